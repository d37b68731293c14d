//! The reader against the only real profile there is: what Poplar recorded of
//! its own compilation must come out of what was read, to the byte.
//!
//! The files have no licence and are not part of the project; where they are
//! missing, these tests say so and end.

use popliner::debug_info::DebugInfo;
use popliner::model::Model;
use popliner::profile::{NEVER_LIVE, Profile};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};

/// A file of the samples, or `None` after saying that the test is skipped.
fn sample(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/samples")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: the real sample {} is not here", path.display());
    None
}

fn query<T>(path: &Path, sql: &str, row: impl Fn(&rusqlite::Row<'_>) -> T) -> Vec<T> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |r| Ok(row(r))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// By tile, the bytes that are not always live at each step.
fn live_by_tile_and_step(profile: &Profile) -> Vec<Vec<u64>> {
    let steps = profile.steps.len();
    let mut live = vec![vec![0u64; steps]; profile.target.num_tiles as usize];
    let variables = &profile.variables;
    for (index, &class) in variables.classes.iter().enumerate() {
        if class == NEVER_LIVE || profile.classes.is_always_live(class) {
            continue;
        }
        for &(from, to) in profile.classes.ranges(class) {
            for bytes in &mut live[usize::from(variables.tiles[index])][from as usize..to as usize]
            {
                *bytes += u64::from(variables.bytes[index]);
            }
        }
    }
    live
}

#[test]
fn every_step_total_that_poplar_recorded_is_recomputed() {
    let Some(path) = sample("firehose.profile.pop") else {
        return;
    };
    let profile = Profile::read(&path).unwrap();
    assert_eq!(profile.steps.len(), 111);
    assert_eq!(profile.variables.len(), 51_880);
    let live = live_by_tile_and_step(&profile);
    let sql = "SELECT step_id, delta_bytes FROM memory_not_always_live_by_step_and_ipu \
               WHERE ipu IS NULL";
    let mut deltas = vec![0i64; 111];
    for (step, delta) in query(&path, sql, |r| {
        (r.get_unwrap::<_, i64>(0), r.get_unwrap::<_, i64>(1))
    }) {
        deltas[step as usize] += delta;
    }
    assert!(deltas.iter().any(|&delta| delta != 0));
    let mut recorded = 0;
    for (step, delta) in deltas.into_iter().enumerate() {
        recorded += delta;
        let computed: u64 = live.iter().map(|tile| tile[step]).sum();
        assert_eq!(computed, recorded as u64, "step {step}");
    }
}

#[test]
fn every_tile_that_poplar_recorded_is_recomputed() {
    let Some(path) = sample("firehose.profile.pop") else {
        return;
    };
    let profile = Profile::read(&path).unwrap();
    let live = live_by_tile_and_step(&profile);
    let mut always = vec![0u64; 1472];
    let variables = &profile.variables;
    for (index, &class) in variables.classes.iter().enumerate() {
        if class != NEVER_LIVE && profile.classes.is_always_live(class) {
            always[usize::from(variables.tiles[index])] += u64::from(variables.bytes[index]);
        }
    }
    let sql = "SELECT tile, always_live_bytes, not_always_live_max_bytes FROM memory_by_tile";
    let rows = query(&path, sql, |r| {
        (
            r.get_unwrap::<_, i64>(0) as usize,
            r.get_unwrap::<_, i64>(1),
            r.get_unwrap::<_, i64>(2),
        )
    });
    assert_eq!(rows.len(), 1472);
    for (tile, recorded_always, recorded_max) in rows {
        assert_eq!(always[tile], recorded_always as u64, "tile {tile}");
        let max = live[tile].iter().max().unwrap();
        assert_eq!(*max, recorded_max as u64, "tile {tile}");
    }
}

#[test]
fn operations_of_the_sample_are_those_of_its_contexts() {
    let (Some(profile), Some(debug)) = (
        sample("firehose.profile.pop"),
        sample("firehose.debug.cbor"),
    ) else {
        return;
    };
    let profile = Profile::read(&profile).unwrap();
    let debug_info = DebugInfo::read(&debug).unwrap();
    let model = Model::build(profile, &debug_info, false).unwrap();
    // Plain Poplar: the outermost PopLibs call names an operation, otherwise
    // the program's own context or its first compute set.
    let uids: Vec<(u64, &str)> = model
        .operations
        .iter()
        .map(|op| (model.bodies[op.body as usize].uid, &*op.name))
        .collect();
    for expected in [
        (19, "IO in CS 0"),
        (41, "rowCopySet"),
        (31, "countedLoop"),
        (46, "reduceWithOutput"),
    ] {
        assert!(uids.contains(&expected), "{expected:?} in {uids:?}");
    }
    // Context 31 covers the loop's own program (step 36) and what the loop
    // adds at its end (step 50), but not the body's other operations.
    let body = model.bodies.iter().find(|body| body.uid == 31).unwrap();
    assert_eq!(body.window, Some((36, 50)));
}
