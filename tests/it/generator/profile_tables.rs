//! Schema and ids, and the requested numbers.

use std::collections::HashSet;

use rusqlite::{Connection, OpenFlags};

use crate::oracle::codec::differences;
use crate::support::sample;

use super::{Made, rows};

#[test]
fn the_schema_is_that_of_the_real_sample() {
    let Some(sample) = sample("firehose.profile.pop") else {
        return;
    };
    let columns = |connection: &Connection| -> Vec<(String, String, String, i64, i64)> {
        rows(
            connection,
            "SELECT t.name, c.name, upper(c.type), c.\"notnull\", c.pk
             FROM sqlite_master t, pragma_table_info(t.name) c
             WHERE t.type = 'table' ORDER BY t.rowid, c.cid",
            |row| row.try_into(),
        )
    };
    let found = columns(&Made::of("").profile);
    let uri = format!("file:{}?immutable=1", sample.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let real = columns(&Connection::open_with_flags(uri, flags).unwrap());
    assert!(real.len() > 300);
    assert_eq!(found, real);
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_seed_others() {
    for framework in ["popart", "tensorflow"] {
        let files = |seed: u32| {
            let model = format!("--framework {framework} --mode training --outlined once");
            let made = Made::of(&format!("{model} --seed {seed}"));
            let read = |name| std::fs::read(made.directory.path().join(name)).unwrap();
            ["profile.pop", "debug.cbor"].map(read)
        };
        assert!(files(3) == files(3), "{framework}");
        assert!(files(3)[0] != files(4)[0], "{framework}");
    }
}

/// Ids have no gaps, and lists of ids are in order. A reader refuses ids that refer to nothing.
pub fn ids_of_variables_are_dense_and_sorted(case: &str, made: &Made) {
    let dense = "SELECT count(*) - max(var_id) FROM vars_info";
    assert_eq!(made.number(dense), 1, "{case}");
    let is_sorted = |ids: &Vec<u64>| ids.is_sorted_by(|a, b| a < b);
    assert!(sets(&made.profile).iter().all(is_sorted), "{case}");
}

/// Returns the ids of the variables of each compute set.
fn sets(profile: &Connection) -> Vec<Vec<u64>> {
    let sql = "SELECT var_ids_diff_rle FROM compute_sets";
    rows(profile, sql, |row| {
        Ok(differences(&row.get::<_, Vec<u8>>(0)?))
    })
}

pub fn programs_use_all_user_data(case: &str, made: &Made) {
    let profile = &made.profile;
    let user = "SELECT var_id FROM vars_info WHERE size_bytes > 0 AND category IN
                (SELECT id FROM var_categories WHERE name IN
                 ('variable', 'constant', 'message', 'rearrangement', 'outputEdge'))";
    let mut unused: HashSet<u64> = rows(profile, user, |row| row.get(0)).into_iter().collect();
    assert!(unused.len() > 300, "{case}");
    let moved = rows(profile, "SELECT var_id FROM exchange_regions", |row| {
        row.get(0)
    });
    for id in sets(profile).into_iter().flatten().chain(moved) {
        unused.remove(&id);
    }
    assert!(unused.is_empty(), "{case}");
}

pub fn an_execution_is_that_of_the_program_tree(case: &str, made: &Made) {
    let count = |sql: &str| made.number(sql);
    let steps = count("SELECT count(*) FROM steps");
    assert_eq!(steps > 0, case.contains("--execution"), "{case}");
    for sql in [
        "SELECT count(*) FROM steps_by_ipu JOIN steps ON id = step_id",
        "SELECT coalesce(sum(num_steps), 0) FROM runs",
    ] {
        assert_eq!(count(sql), steps, "{case}: {sql}");
    }
    let named = count("SELECT count(program) FROM steps");
    let programs = count("SELECT count(*) FROM steps s JOIN programs p ON p.id = s.program");
    assert_eq!(programs, named, "{case}");
    let sets = count("SELECT count(cycles_by_tile_ids) FROM compute_sets");
    assert_eq!(sets == 0, case.contains("--no-cycle-estimates"), "{case}");
}
