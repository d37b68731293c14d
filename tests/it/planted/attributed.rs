//! Nearly all memory that operations can own has a layer or another place, and is not overhead, and no
//! more than was recorded. The bytes of all tiles are compared, live at the same time or not.

use popliner::memory::{MemoryModel, Parts};
use popliner::profile::{LiveClasses, NEVER_LIVE, Profile, ProgramKind, TileBytes};

use super::subject::{Subject, whole};

/// Categories of data that the operations of the model must own.
const USER_DATA: [&str; 5] = [
    "variable",
    "constant",
    "message",
    "rearrangement",
    "outputEdge",
];

/// Returns the parts of a stage of all layers, summed over all tiles.
fn attributed(subject: &Subject, profile: Profile) -> Parts {
    let model = subject.changed(profile);
    let placement = subject.placement();
    whole(&MemoryModel::new(&model, &placement).expect("few sets")).sums()
}

/// Returns the bytes of a category that layers and places own, and all its bytes. The profile is
/// changed to have only this category, live on every step.
fn bytes_of(subject: &Subject, category: &str) -> (u64, u64) {
    let mut profile = subject.profile();
    let variables = &mut profile.variables;
    let wanted = variables.category_names.iter().position(|c| c == category);
    let wanted = wanted.expect("a known category");
    let mut all = 0;
    for (index, bytes) in variables.bytes.iter_mut().enumerate() {
        let is_wanted = usize::from(variables.categories[index]) == wanted;
        match is_wanted && variables.classes[index] != NEVER_LIVE {
            true => all += u64::from(*bytes),
            false => *bytes = 0,
        }
    }
    let (classes, steps) = (profile.classes.len(), profile.classes.steps());
    profile.classes = LiveClasses::new(vec![true; classes], Vec::new(), steps);
    (attributed(subject, profile).variables, all)
}

fn user_data_has_a_place(subject: &Subject) {
    for category in USER_DATA {
        let (owned, all) = bytes_of(subject, category);
        assert!(
            owned * 100 >= all * 99 && owned <= all,
            "{owned} of {all} bytes of {category}"
        );
    }
    let (_, all) = bytes_of(subject, "variable");
    assert!(all > 0, "no variables");
}

/// Returns, summed over all tiles, the code that compute sets and exchanges own: code of vertex
/// types with instances, vertex state, and code of exchanges, of which a tile has at most the
/// recorded bytes.
fn owned_code(profile: &Profile, recorded: &TileBytes) -> [u64; 3] {
    let tiles = profile.target.num_tiles as usize;
    let programs = &profile.programs;
    let (mut code, mut state) = (0, 0);
    let mut present = vec![vec![false; tiles]; programs.vertex_types.len()];
    for set in &programs.compute_sets {
        state += set.memory.as_ref().expect("recorded").total();
        for (kind, instances) in &set.vertices {
            for run in instances.runs() {
                present[*kind as usize][run.from as usize..run.to as usize].fill(true);
            }
        }
    }
    for (kind, present) in programs.vertex_types.iter().zip(present) {
        let here = (0u32..).zip(present).filter(|&(_, present)| present);
        code += here
            .map(|(tile, _)| u64::from(kind.code.get(tile)))
            .sum::<u64>();
    }
    let exchanges = programs
        .all
        .iter()
        .filter_map(|program| match &program.kind {
            ProgramKind::DoExchange(code) => Some(code),
            _ => None,
        });
    let on_tile = |tile| -> u64 {
        exchanges
            .clone()
            .map(|code| u64::from(code.get(tile)))
            .sum()
    };
    let exchange = (0..tiles as u32).map(|tile| on_tile(tile).min(u64::from(recorded.get(tile))));
    [code, state, exchange.sum()]
}

fn code_has_a_place(subject: &Subject) {
    let recorded = &subject.model.recorded_code;
    let profile = subject.profile();
    let owned = owned_code(&profile, &recorded[2]);
    let parts = attributed(subject, profile);
    let attributed = [
        parts.vertex_code,
        parts.vertex_state,
        parts.exchange_code,
        parts.control_code,
    ];
    for (bytes, recorded) in attributed.iter().zip(recorded) {
        assert!(*bytes <= recorded.total(), "{attributed:?}");
    }
    // Exchanges that the compiler makes for every IPU are overhead.
    for ((bytes, owned), least) in attributed.iter().zip(owned).zip([95, 95, 85]) {
        let is_enough = owned > 0 && bytes * 100 >= owned * least;
        assert!(is_enough, "{attributed:?}: {bytes} of {owned}");
    }
}

pub fn check(subject: &Subject) {
    user_data_has_a_place(subject);
    code_has_a_place(subject);
}
