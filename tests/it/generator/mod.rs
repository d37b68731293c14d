//! The generator of synthetic profiles, compared with plain SQL and a second, simpler computation
//! of the recorded numbers.

mod debug_file;
mod graphs;
mod places;
mod profile_tables;

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::support::{Words, each, model_in};

/// Small models of every framework, mode and way of outlining.
fn cases() -> Vec<String> {
    let mut cases = Vec::new();
    for framework in ["popart", "poptorch", "tensorflow", "poplar"] {
        for mode in ["inference", "training"] {
            for outlined in ["none", "once", "per-call"] {
                let kind = format!("--framework {framework} --mode {mode}");
                cases.push(format!("{kind} --outlined {outlined}"));
            }
        }
    }
    let others = [
        "--overflow --outlined once",
        "--nested --outlined once",
        "--nested --outlined per-call",
        "--mode training --classes 2000",
        "--execution --no-cycle-estimates --nested --outlined once",
    ];
    cases.extend(others.map(String::from));
    cases.extend(cases_with_features().map(|case| format!("{case} --bytes-per-layer-tile 20000")));
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

/// The size of a small model.
const SIZE: &str = "--layers 3 --tiles 9 --vars-per-layer-tile 9 --page-size 1024";

/// A generated model.
struct Made {
    directory: TempDir,
    profile: Connection,
}

impl Made {
    /// Writes a small model with these options.
    fn of(options: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let all = [SIZE.words(), options.words()].concat();
        synthesize::write(directory.path(), all).expect("the files are written");
        let profile = open(&directory.path().join("profile.pop"));
        Self { directory, profile }
    }

    fn number(&self, sql: &str) -> i64 {
        number(&self.profile, sql)
    }
}

/// Each model is written once for all checks.
#[test]
fn models_are_sound() {
    each(&cases(), |case| {
        let made = Made::of(case);
        recorded_sums_contradict_nothing(case, &made);
        debug_file::contexts_parse_and_come_before_their_parents(case, &made);
        profile_tables::ids_of_variables_are_dense_and_sorted(case, &made);
        profile_tables::programs_use_all_user_data(case, &made);
        profile_tables::an_execution_is_that_of_the_program_tree(case, &made);
    });
}

/// Recorded bytes of tiles, categories, steps and code are the sums of variables, vertices and
/// programs. Only a model with such options has gaps, or is too large.
fn recorded_sums_contradict_nothing(case: &str, made: &Made) {
    let model = model_in(made.directory.path());
    assert_eq!(model.contradictions, [], "{case}");
    for tile in model.recorded.tiles.iter() {
        let has_gap = tile.total > tile.always_live + tile.not_always_live;
        assert_eq!(has_gap, case.contains("--gaps"), "{case}");
        let is_over = tile.total > model.target.bytes_per_tile;
        assert_eq!(is_over, case.contains("--overflow"), "{case}");
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
