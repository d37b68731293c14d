//! Weights with an accumulator: all weights that an operation updates, whatever its name.

use std::ops::Range;

use popliner::memory::{MemoryModel, Pipeline, Recompute, Schedule};
use popliner::model::{Layering, Model, Pass, Placement, PlacementOptions};
use tempfile::TempDir;

use crate::support::models::{generate, pairs, share};
use crate::support::{self, Checking, contexts};

const FRAMEWORKS: [&str; 3] = ["popart", "poptorch", "tensorflow"];
const OPTIMISERS: [&str; 4] = ["sgd", "adam-each", "adam-sets", "adam-fused"];

/// Returns a training model with changed texts in its contexts.
fn model(framework: &str, optimiser: &str, change: impl Fn(&mut String)) -> Model {
    let options = format!(
        "--framework {framework} --mode training --optimiser {optimiser} --layers 4 \
         --tiles 4 --vars-per-layer-tile 6 --page-size 1024 --gradient-norm --seed 5"
    );
    let folder = TempDir::new().expect("a folder");
    let [profile, debug] = generate(folder.path(), &options);
    contexts::change_texts(&debug, change);
    support::model(&profile, &debug)
}

/// Replaces the names of updates by unknown ones.
fn unknown(text: &mut String) {
    for known in ["VarUpdate", "ResourceApply"] {
        *text = text.replace(known, "Move");
    }
    *text = text
        .replace("/update_", "/of_")
        .replace("/update/", "/all/");
}

fn updates(model: &Model) -> Vec<String> {
    let operations = model.operations.iter();
    let updates = operations.filter(|operation| operation.pass == Pass::Update);
    updates.map(|update| update.name.to_string()).collect()
}

fn placement(model: &Model) -> Placement {
    let layering = Layering::original(&model.operations);
    let placement = Placement::full(model, &layering, &PlacementOptions::default());
    placement.expect("places")
}

/// Returns the warning about updates, and the bytes of accumulators over all tiles by stage.
fn accumulators(model: &Model, stages: &[Range<usize>]) -> (Option<String>, Vec<u64>) {
    let placement = placement(model);
    let memory = MemoryModel::new(model, &placement).expect("memory");
    let memory = memory.in_pipeline(Pipeline {
        schedule: Schedule::Sequential,
        recompute: Recompute::None,
        ..Pipeline::default()
    });
    let memory = memory.expect("memory");
    assert_eq!(memory.layers(), 6, "In, four layers, Out");
    let computed = memory.split(stages).into_iter();
    let warning = memory.update_warning(stages).map(|text| text.to_string());
    let bytes = computed.map(|stage| stage.sums().accumulators);
    (warning, bytes.collect())
}

#[test]
fn updates_with_unknown_names_are_found_by_what_they_do() {
    for (framework, optimiser) in pairs(&FRAMEWORKS, &OPTIMISERS, 3) {
        let _checking = Checking(format!("{framework}, {optimiser}"));
        let named = model(framework, optimiser, |_| {});
        let mut expected = updates(&named);
        expected.iter_mut().for_each(unknown);
        let renamed = model(framework, optimiser, unknown);
        assert!(!expected.is_empty());
        assert_eq!(updates(&renamed), expected);
        let both = [&named, &renamed].map(|model| accumulators(model, &[0..3, 3..6]));
        assert_eq!(both[0], both[1]);
        assert!(both[0].1.iter().all(|&bytes| bytes > 0));
        assert_eq!(both[0].0, None);
    }
}

#[test]
fn weights_that_nothing_updates_have_no_accumulator() {
    let stages = [0..3, 3..6];
    for framework in FRAMEWORKS.into_iter().step_by(share(2)) {
        let _checking = Checking(framework);
        let whole = model(framework, "adam-each", |_| {});
        let places = placement(&whole);
        let (warning, of_whole) = accumulators(&whole, &stages);
        assert!(warning.is_none() && of_whole.iter().all(|&bytes| bytes > 0));
        let frozen = |is_frozen: fn(&[u32]) -> bool| {
            let mut frozen = model(framework, "adam-each", |_| {});
            for (number, operation) in frozen.operations.iter_mut().enumerate() {
                if operation.is_update && is_frozen(places.places_of(number)) {
                    operation.is_update = false;
                    operation.pass = Pass::Backward;
                }
            }
            let (warning, bytes) = accumulators(&frozen, &stages);
            (warning.expect("a warning"), bytes)
        };
        let (warning, of_half) = frozen(|places| places.iter().all(|&place| place < 3));
        assert_eq!(of_half, [0, of_whole[1]]);
        assert!(warning.contains("weights of IPU 0,"), "{warning}");
        let (warning, of_none) = frozen(|_| true);
        assert_eq!(of_none, [0, 0]);
        let all: u64 = of_whole.iter().sum();
        let bytes = bytes_in(&warning);
        // Contexts of TensorFlow do not distinguish constants from weights.
        assert!((all..all + all / 100).contains(&bytes), "{warning}");
    }
}

/// Weights that are live from step 3 on, before which nothing is computed, are not activations: no
/// pipeline keeps copies of them.
#[test]
fn weights_that_miss_the_first_steps_stay_weights() {
    let folder = TempDir::new().expect("a folder");
    let [profile, debug] = support::copy("training-pipeline", folder.path());
    let pipeline = Pipeline {
        schedule: Schedule::Popart,
        recompute: Recompute::None,
        ..Pipeline::default()
    };
    let read = || {
        let model = support::model(&profile, &debug);
        let placement = placement(&model);
        let memory = MemoryModel::new(&model, &placement).expect("memory");
        let stages = memory.in_pipeline(pipeline).expect("memory");
        let stages = stages.split(&[0..2, 2..4, 4..6, 6..8]).into_iter();
        stages.map(|stage| stage.tiles).collect::<Vec<_>>()
    };
    let whole = read();
    let changes = "INSERT INTO eq_classes (id, is_always_live) VALUES (842, 0);
        INSERT INTO eq_class_step (eq_class_id, step_id_from, step_id_to) VALUES (842, 3, 1932);
        UPDATE vars_info SET equivalence_class = 842 WHERE equivalence_class = 2
        AND name_base_id IN (SELECT id FROM vars_string_table WHERE string GLOB 'Layer*weight#');";
    support::run_sql(&profile, changes);
    let connection = rusqlite::Connection::open(&profile).expect("a profile");
    let count = "SELECT count(*) FROM vars_info WHERE equivalence_class = 842";
    let count = connection.query_row(count, [], |row| row.get(0));
    assert_eq!(count, Ok(346));
    assert_eq!(read(), whole);
}

/// Returns the bytes in a warning.
fn bytes_in(warning: &str) -> u64 {
    let (before, _) = warning.split_once(" bytes").expect("bytes");
    let number = before.rsplit(' ').next().expect("a number");
    number.replace(',', "").parse().expect("a number")
}
