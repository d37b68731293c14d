//! All layers in one stage: its categories have the recorded bytes. `hostile::witnesses` compares
//! its bytes on each tile.

use std::collections::BTreeMap;

use popliner::memory::{MemoryModel, StageMemory};
use popliner::model::CodeKind;
use popliner::profile::{NEVER_LIVE, Profile};

use super::subject::{Subject, each_fixture, each_generated, the_sample};

/// Returns the stage of all layers.
fn whole(memory: &MemoryModel<'_>) -> StageMemory {
    let mut stages = memory.stages(std::slice::from_ref(&(0..memory.layers())));
    stages.pop().expect("one stage")
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
fn categories_add_up(subject: &Subject) {
    let Subject { name, model, .. } = subject;
    let placement = subject.placement();
    let memory = subject.memory(&placement);
    let stage = whole(&memory);
    let sums = recount(&subject.profile(), &stage.peak_steps);
    for (tile, (parts, sums)) in stage.tiles.iter().zip(&sums).enumerate() {
        let recorded = model.recorded.tiles[tile];
        let rest = recorded.total - recorded.always_live - recorded.not_always_live;
        let all: u64 = sums.values().sum();
        assert_eq!(all + rest, parts.total(), "{name} tile {tile}: {sums:?}");
        let bytes_by_kind = [
            (CodeKind::VertexCode, parts.vertex_code),
            (CodeKind::VertexState, parts.vertex_state),
            (CodeKind::ExchangeCode, parts.exchange_code),
            (CodeKind::ControlCode, parts.control_code),
        ];
        let mut data = all;
        for (kind, bytes) in bytes_by_kind {
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

/// The categories of `--diagnose` at the peak also add up.
fn diagnosed_categories_add_up(subject: &Subject, memory: &MemoryModel<'_>, stage: &StageMemory) {
    let bottleneck = subject.model.memory_peak.as_ref().unwrap();
    let categories = memory.coverage_by_category(bottleneck);
    let recorded: u64 = categories.values().map(|category| category.recorded).sum();
    assert_eq!(recorded, bottleneck.bytes, "{}", subject.name);
    let explained = categories.values();
    let explained =
        explained.map(|category| category.layers + category.assigned + category.overhead);
    let tile = bottleneck.tile as usize;
    let truth = subject.model.recorded.tiles[tile];
    let rest = truth.total - truth.always_live - truth.not_always_live;
    let explained: u64 = explained.sum();
    assert_eq!(
        explained + rest,
        stage.tiles[tile].total(),
        "{}",
        subject.name
    );
}

#[test]
fn the_categories_of_a_fixture_add_up_to_the_total() {
    each_fixture(categories_add_up);
}

#[test]
fn the_categories_of_a_generated_model_add_up_to_the_total() {
    each_generated(categories_add_up);
}

#[test]
fn the_categories_of_the_real_sample_add_up_to_the_total() {
    the_sample(categories_add_up);
}
