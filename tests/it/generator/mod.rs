//! The generator of synthetic profiles, compared with plain SQL and a second, simpler computation
//! of the recorded numbers.

mod debug_file;
mod graphs;
mod places;
mod profile_tables;

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::support::model_in;

/// Small models of every framework, mode and way of outlining.
fn cases() -> Vec<Vec<&'static str>> {
    let mut cases = Vec::new();
    for framework in ["popart", "poptorch", "tensorflow", "poplar"] {
        for mode in ["inference", "training"] {
            for outlined in ["none", "once", "per-call"] {
                cases.push(vec![
                    "--framework",
                    framework,
                    "--mode",
                    mode,
                    "--outlined",
                    outlined,
                ]);
            }
        }
    }
    cases.push(vec!["--overflow", "--outlined", "once"]);
    cases.push(vec!["--nested", "--outlined", "once"]);
    cases.push(vec!["--nested", "--outlined", "per-call"]);
    cases.push(vec!["--mode", "training", "--classes", "2000"]);
    cases.push(vec![
        "--execution",
        "--no-cycle-estimates",
        "--nested",
        "--outlined",
        "once",
    ]);
    let small = ["--bytes-per-layer-tile", "20000"];
    cases.extend(cases_with_features().map(|case| case.split(' ').chain(small).collect()));
    cases
}

/// Models that have every feature at least once.
fn cases_with_features() -> impl Iterator<Item = &'static str> {
    [
        "--mode inference --masks --constants --gaps 9",
        "--mode training --optimiser adam-each --tied ends --compiler-made 50",
        "--mode training --optimiser adam-fused --names none --gradient-norm --frozen",
        "--mode training --outlined once --outline-backward --nested --pairs-on-replaced",
        "--mode training --outlined per-call --outline-backward --framework poptorch \
         --nested --shuffle-pairs --ends small",
        "--mode training --optimiser adam-sets --names variable --random-state \
         --framework tensorflow --tied layers --ends large",
        "--mode training --framework tensorflow --outlined per-call --outline-backward \
         --accumulation --gradient-norm",
        "--mode training --framework poplar --outlined once --outline-backward \
         --anonymous-calls --tied ends",
        "--mode training --framework poptorch --bytes-per-tile 4000000 \
         --graph crates/synthesize/graphs/t5.json.gz \
         --optimiser adam-each --gradient-norm",
        "--mode training --framework popart --graph crates/synthesize/graphs/resnet50.json.gz \
         --accumulation",
        "--mode training --framework tensorflow \
         --graph crates/synthesize/graphs/keras_xception.json.gz",
        "--mode inference --framework poplar --graph crates/synthesize/graphs/bert.json.gz",
    ]
    .into_iter()
}

/// Returns these options with those of a small model.
fn sized<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let size = ["--layers", "3", "--tiles", "9"];
    let more = ["--vars-per-layer-tile", "9", "--page-size", "1024"];
    [&size[..], &more, arguments].concat()
}

fn generate(directory: &Path, arguments: &[&str]) -> synthesize::Summary {
    synthesize::write(directory, sized(arguments)).expect("the files are written")
}

/// Runs `check` on the profile of every case.
fn with_each(check: impl Fn(&str, &Connection)) {
    for case in cases() {
        let directory = TempDir::new().unwrap();
        generate(directory.path(), &case);
        let profile = open(&directory.path().join("profile.pop"));
        check(&case.join(" "), &profile);
    }
}

/// Recorded bytes of tiles, categories, steps and code are the sums of variables, vertices and
/// programs. Only a model with such options has gaps, or is too large.
#[test]
fn recorded_sums_contradict_nothing() {
    for case in cases() {
        let directory = TempDir::new().unwrap();
        generate(directory.path(), &case);
        let model = model_in(directory.path());
        assert_eq!(model.contradictions, [], "{case:?}");
        for tile in model.recorded.tiles.iter() {
            let has_gap = tile.total > tile.always_live + tile.not_always_live;
            assert_eq!(has_gap, case.contains(&"--gaps"), "{case:?}");
            let is_over = tile.total > model.target.bytes_per_tile;
            assert_eq!(is_over, case.contains(&"--overflow"), "{case:?}");
        }
    }
}

fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn rows<T, F>(connection: &Connection, sql: &str, read: F) -> Vec<T>
where
    F: Fn(&rusqlite::Row) -> rusqlite::Result<T>,
{
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| read(row)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn pairs(connection: &Connection, sql: &str) -> Vec<(i64, i64)> {
    rows(connection, sql, |row| Ok((row.get(0)?, row.get(1)?)))
}
