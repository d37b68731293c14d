//! The generator of synthetic profiles: its schema, its seeds, and the planted memory of places
//! against the recorded memory. `cli::first_run` checks its contexts, and `numbers` and `planted`
//! everything that the library reads of its models.

mod recompiled;

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use synthesize::place_truth::PlaceTruth;
use synthesize::places::Places;
use tempfile::TempDir;

use crate::support::models::generate;
use crate::support::{Words, each, model_in, sample};

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
        "--overflow --execution --batch 4 --proportion 0.2 --moved",
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
        "--mode training --batch 4 --moved --optimiser adam-each --masks --constants --gaps 9",
        "--mode training --proportion 0.2 --temporaries 8 --framework tensorflow --outlined once",
        "--mode training --framework poptorch --bytes-per-tile 4000000 \
         --graph crates/synthesize/graphs/t5.json.gz --batch 2 --proportion 0.9 --moved",
    ]
    .into_iter()
}

/// The size of a small model.
const SIZE: &str = "--layers 3 --tiles 9 --vars-per-layer-tile 9 --page-size 1024";

/// Recorded bytes of tiles, categories, steps and code are the sums of variables, vertices and
/// programs. A model has gaps, or exceeds its tiles, only if its options say so. The memory of a
/// range of places grows with each place, is at most the sum of its parts, and equals the recorded
/// memory for all places.
#[test]
fn models_are_sound_and_places_need_what_is_recorded() {
    each(&cases(), |case| {
        let folder = TempDir::new().unwrap();
        let options = format!("{SIZE} {case}");
        let written = synthesize::write(folder.path(), options.words()).unwrap();
        let model = model_in(folder.path());
        assert_eq!(model.contradictions, [], "{case}");
        let tiles = &model.recorded.tiles;
        for tile in tiles.iter() {
            let has_gap = tile.total > tile.always_live + tile.not_always_live;
            assert_eq!(has_gap, case.contains("--gaps"), "{case}");
            let is_over = tile.total > model.target.bytes_per_tile;
            assert_eq!(is_over, case.contains("--overflow"), "{case}");
        }
        let recorded: Vec<u64> = tiles.iter().map(|tile| tile.total).collect();
        check_ranges(case, &written.places(), &recorded);
    });
}

fn check_ranges(case: &str, truth: &PlaceTruth, recorded: &[u64]) {
    let (layers, last) = (truth.layers, truth.layers + 1);
    let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
    let needs = |(from, to)| truth.bytes(Places::positions(layers, from..=to));
    let ranges = ranges.map(|range| (range, needs(range)));
    let ranges: HashMap<(u32, u32), Vec<u64>> = ranges.collect();
    assert_eq!(ranges[&(0, last)], recorded, "{case}");
    for (&(from, to), range) in ranges.iter().filter(|((from, to), _)| from < to) {
        let (left, right) = (&ranges[&(from, to - 1)], &ranges[&(to, to)]);
        for (part, (left, right)) in range.iter().zip(left.iter().zip(right)) {
            // Each part's share of a gap is rounded up.
            let parts = *left.max(right)..=left + right + 1;
            assert!(parts.contains(part), "{case}, {from} to {to}");
        }
    }
    // Each of these models has one weight that several places share.
    let tied = ["--tied", "t5.json", "bert.json"];
    let is_tied = tied.iter().any(|tied| case.contains(tied));
    assert_eq!(truth.ties.len(), usize::from(is_tied), "{case}");
}

/// Returns the columns of all tables: table, name, type, and whether it is `NOT NULL` and a key.
fn columns(profile: &Path) -> Vec<(String, String, String, i64, i64)> {
    let uri = format!("file:{}?immutable=1", profile.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags).unwrap();
    let sql = "SELECT t.name, c.name, upper(c.type), c.\"notnull\", c.pk
               FROM sqlite_master t, pragma_table_info(t.name) c
               WHERE t.type = 'table' ORDER BY t.rowid, c.cid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.try_into()).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn the_schema_is_that_of_the_real_sample() {
    let sample = or_skip!(sample("firehose.profile.pop"));
    let folder = TempDir::new().unwrap();
    synthesize::write(folder.path(), SIZE.words()).unwrap();
    let real = columns(&sample);
    assert!(real.len() > 300);
    assert_eq!(columns(&folder.path().join("profile.pop")), real);
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_seed_others() {
    for framework in ["popart", "tensorflow"] {
        let files = |seed: u32| {
            let folder = TempDir::new().unwrap();
            let model = format!("--framework {framework} --mode training --outlined once");
            generate(folder.path(), &format!("{SIZE} {model} --seed {seed}"))
                .map(|file| std::fs::read(file).unwrap())
        };
        assert!(files(3) == files(3), "{framework}");
        assert!(files(3)[0] != files(4)[0], "{framework}");
    }
}
