//! All layers in one stage: the recorded bytes on each tile and in each category. Sound files do not
//! contradict themselves.

use std::collections::BTreeMap;

use popliner::memory::{MemoryModel, StageMemory};
use popliner::model::{CodeKind, Layering, Model, Placement, PlacementOptions};
use popliner::profile::{NEVER_LIVE, Profile};
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
        assert_eq!(
            stage.tile_bytes(tile),
            recorded.total,
            "{what}, tile {tile}"
        );
    }
}

/// Returns bytes by tile and category: of lowered variables that are live at the tile's own peak
/// step, and of all code and vertex state.
fn recount(profile: &Profile, steps: &[Option<u32>]) -> Vec<BTreeMap<String, u64>> {
    let variables = &profile.variables;
    let mut sums = vec![BTreeMap::new(); steps.len()];
    for (index, &class) in variables.classes.iter().enumerate() {
        let tile = usize::from(variables.tiles[index]);
        let name = &variables.category_names[usize::from(variables.categories[index])];
        let is_code = CodeKind::of_category(name).is_some();
        let is_live = |step| profile.classes.is_live(class, step);
        if class != NEVER_LIVE && (is_code || steps[tile].is_some_and(is_live)) {
            *sums[tile].entry(name.clone()).or_default() += u64::from(variables.bytes[index]);
        }
    }
    sums
}

/// Counts every lowered variable of the profile once and compares: on each tile the sum over the
/// categories is the total, and no part has more bytes than its categories.
pub fn check(subject: &Subject) {
    let Subject { name, model, .. } = subject;
    agrees(model, &subject.layering, name);
    let placement = subject.placement();
    let memory = MemoryModel::new(model, &placement).expect("few sets");
    let stage = whole(&memory);
    let sums = recount(&subject.profile(), &stage.peak_steps);
    for (tile, (parts, sums)) in stage.tiles.iter().zip(&sums).enumerate() {
        let all: u64 = sums.values().sum();
        let rest = rest(model, tile);
        assert_eq!(all + rest, parts.total(), "{name} tile {tile}: {sums:?}");
        let mut data = all;
        for (kind, bytes) in [
            (CodeKind::VertexCode, parts.vertex_code),
            (CodeKind::VertexState, parts.vertex_state),
            (CodeKind::ExchangeCode, parts.exchange_code),
            (CodeKind::ControlCode, parts.control_code),
        ] {
            let of_kind = kind.categories().iter();
            let of_kind: u64 = of_kind.filter_map(|category| sums.get(*category)).sum();
            assert!(bytes <= of_kind, "{name} tile {tile}: {kind:?}");
            data -= of_kind;
        }
        assert!(parts.variables <= data, "{name} tile {tile}");
    }
    let coverage = memory.coverage().expect("all variables");
    assert_eq!(coverage.rest, 0, "{name}: {coverage:?}");
    diagnosed_categories_add_up(subject, &memory, &stage);
}

/// Returns the recorded bytes of a tile that are no variable's, which are gaps.
fn rest(model: &Model, tile: usize) -> u64 {
    let recorded = model.recorded.tiles[tile];
    recorded.total - recorded.always_live - recorded.not_always_live
}

/// The categories of `--diagnose` at the peak also add up.
fn diagnosed_categories_add_up(subject: &Subject, memory: &MemoryModel<'_>, stage: &StageMemory) {
    let Subject { name, model, .. } = subject;
    let peak = model.memory_peak.as_ref().expect("a peak");
    let categories = memory.coverage_by_category(peak);
    let (mut recorded, mut explained) = (0, 0);
    for category in categories.values() {
        recorded += category.recorded;
        explained += category.layers + category.assigned + category.overhead;
    }
    assert_eq!(recorded, peak.bytes, "{name}");
    let tile = peak.tile as usize;
    assert_eq!(
        explained + rest(model, tile),
        stage.tiles[tile].total(),
        "{name}"
    );
}

#[test]
fn unusual_but_sound_models_contradict_nothing() {
    let folder = TempDir::new().expect("a folder");
    for seed in seeds(8) {
        let mut random = Random(seed);
        let [profile, debug] = generate(folder.path(), &models::options(seed));
        vary::profile(&profile, &mut random);
        vary::contexts(&debug, &mut random);
        let model = model_in(folder.path());
        agrees(
            &model,
            &Layering::original(&model.operations),
            &format!("seed {seed}"),
        );
    }
}
