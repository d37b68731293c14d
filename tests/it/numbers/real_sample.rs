//! The reader against the only real profile. `numbers::fixtures` compares its tables and splits with
//! the second analyser, and `planted::whole` its memory with the recorded bytes of each tile.
//!
//! The files have no licence and are not part of the project. If they are missing, these tests are
//! skipped.

use crate::support::{popliner, sample};
use popliner::profile::{CompiledProfile, Profile};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::path::Path;

fn query<T>(path: &Path, sql: &str, row: impl Fn(&rusqlite::Row<'_>) -> T) -> Vec<T> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |r| Ok(row(r))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Only exchanges and stream copies have estimates, and all 21 can be read: an unreadable one would
/// be a warning.
#[test]
fn cycles_and_origin_of_the_sample() {
    let path = or_skip!(sample("firehose.profile.pop"));
    let profile = Profile::read(&path).unwrap();
    assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
    assert_eq!(profile.cycles.executed, None);
    assert_eq!(profile.cycles.estimated, None);
    let repeats: Vec<u64> = profile.cycles.repeats.values().copied().collect();
    assert_eq!(repeats, [3, 3]);
    let made = &profile.made;
    assert!(made.poplar.as_ref().unwrap().starts_with("3.3.0"));
    assert_eq!(made.time.as_deref(), Some("2024-04-09 08:23:39"));
    assert_eq!(made.device.as_deref(), Some("IPU"));
    assert_eq!(made.clock_hertz, Some(1_850_000_000));
    let sql = "SELECT count(*) FROM compilation_parameters WHERE is_default = 0";
    let count: Vec<usize> = query(&path, sql, |row| row.get_unwrap(0));
    assert_eq!([made.compilation_options.len()], count[..]);
    let [target] = &made.target_options[..] else {
        panic!("{:?}", made.target_options);
    };
    assert_eq!((&*target.name, &*target.value), ("GatewayMode", "1"));
}

/// The verdict on the compilation uses the memory that Poplar recorded for its one IPU.
#[test]
fn the_compilation_is_judged_by_what_poplar_recorded() {
    let path = or_skip!(sample("firehose.profile.pop"));
    let profile = CompiledProfile::read(&path, true).unwrap();
    assert_eq!(profile.warnings, []);
    assert_eq!(
        (profile.ipus.count, profile.recorded.tiles.len()),
        (1, 1472)
    );
    let variables = profile.variables.as_ref().expect("variables");
    assert_eq!(variables.count, 51_880);
    let live = profile.live.as_ref().expect("liveness by IPU");
    let peak = live.ipus[0].iter().map(|point| point.1).max();
    let sql = "SELECT max(live) FROM (SELECT sum(delta_bytes) OVER (ORDER BY step_id) AS live
               FROM memory_not_always_live_by_step_and_ipu WHERE ipu = 0)";
    assert_eq!(peak, query(&path, sql, |row| row.get(0).unwrap())[0]);
    let run = popliner([&*path, Path::new("--fit"), Path::new("--export-json=-")]);
    let report = run.exits(0).report();
    let totals = report["memory"]["tiles"]["total"].as_array();
    let totals = totals.expect("tiles").iter().filter_map(Value::as_u64);
    let categories = report["memory"]["tile_map"]["categories"].as_array();
    let categories = categories.expect("categories");
    // Bytes at addresses of their own are at most the bytes in use on a tile, and every shared
    // address has at least one variable.
    for (tile, total) in totals.enumerate() {
        let sum = |name: &str| -> u64 {
            let bytes = categories.iter().filter_map(|row| row[name][tile].as_u64());
            bytes.sum()
        };
        let (all, overlapped) = (sum("bytes"), sum("overlapped"));
        assert!(all - overlapped <= total && total <= all, "tile {tile}");
    }
    let ipu = &report["fit"]["ipus"][0];
    let tile = &ipu["fullest_tile"];
    assert_eq!((&tile["tile"], &tile["bytes"]), (&0.into(), &8281.into()));
    let parts = tile["parts"].as_object().expect("parts").values();
    assert_eq!(parts.filter_map(Value::as_u64).sum::<u64>(), 8281);
    // No variable explains 36 bytes of tile 0.
    assert_eq!(tile["parts"]["gaps"], 36);
    let sum = "SELECT sum(total) FROM memory_by_tile";
    let sum: u64 = query(&path, sum, |row| row.get(0).unwrap())[0];
    assert_eq!(ipu["total"], sum);
}
