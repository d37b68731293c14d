//! All layers in one stage need the recorded bytes on each tile. Sound files do not contradict
//! themselves.

use popliner::memory::MemoryModel;
use popliner::model::{Layering, Model, Placement, PlacementOptions};
use popliner::witnesses::Witness;
use tempfile::TempDir;

use super::subject::{Subject, whole};
use crate::support::models::{self, Random, generate, seeds};
use crate::support::{model_in, vary};

/// Checks that a model has no contradiction, and that all its layers in one stage need the recorded
/// bytes, tile by tile.
fn agrees(model: &Model, layering: &Layering, what: &str) {
    assert_eq!(model.contradictions, [], "{what}");
    let placement = Placement::full(model, layering, &PlacementOptions::default());
    let placement = placement.expect("places");
    let stage = whole(&MemoryModel::new(model, &placement).expect("memory"));
    for (tile, recorded) in model.recorded.tiles.iter().enumerate() {
        let bytes = stage.tiles[tile].total();
        assert_eq!(bytes, recorded.total, "{what}, tile {tile}");
    }
}

/// Compares the bytes of each tile, and checks that something explains all bytes of the fullest tile.
pub fn check(subject: &Subject) {
    let Subject { name, model, .. } = subject;
    agrees(model, &subject.layering, name);
    let placement = subject.placement();
    let memory = MemoryModel::new(model, &placement).expect("few sets");
    let coverage = memory.coverage().expect("all variables");
    assert_eq!(coverage.rest, 0, "{coverage:?}");
}

#[test]
fn unusual_but_sound_models_contradict_nothing() {
    let folder = TempDir::new().expect("a folder");
    for seed in seeds(8) {
        let mut random = Random(seed);
        let options = models::options(seed);
        let [profile, debug] = generate(folder.path(), &options);
        vary::profile(&profile, &mut random);
        vary::contexts(&debug, &mut random);
        let mut model = model_in(folder.path());
        // With other contexts, the order of modules may not show where the backward pass begins.
        if options.contains(&"training".to_owned()) && model.backward_start.is_none() {
            let contradictions = &mut model.contradictions;
            contradictions.retain(|found| found.witness != Witness::Passes);
        }
        let layering = Layering::original(&model.operations);
        agrees(&model, &layering, &format!("seed {seed}: {options:?}"));
    }
}
