//! Nearly all memory that operations can own is assigned to a layer or another place, not to
//! overhead, and never more than was recorded. Bytes of all tiles are compared, live at the same
//! time or not.

use popliner::memory::{MemoryModel, Parts};
use popliner::profile::{LiveClasses, NEVER_LIVE, Profile};

use super::subject::{Subject, whole};

/// Categories of data that the operations of the model must own.
const USER_DATA: &str = "variable constant message rearrangement outputEdge";

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
    for category in USER_DATA.split(' ') {
        let (owned, all) = bytes_of(subject, category);
        let is_enough = owned * 100 >= all * 99 && owned <= all;
        assert!(is_enough, "{owned} of {all} bytes of {category}");
        assert!(all > 0 || category != "variable", "no variables");
    }
}

fn code_has_a_place(subject: &Subject) {
    let parts = attributed(subject, subject.profile());
    let attributed = [
        parts.vertex_code,
        parts.vertex_state,
        parts.exchange_code,
        parts.control_code,
    ];
    // Vertices, exchanges and control code that the compiler makes for every IPU are overhead.
    let recorded = subject.model.recorded_code.iter();
    for ((bytes, recorded), least) in attributed.iter().zip(recorded).zip([90, 95, 85, 0]) {
        let recorded = recorded.total();
        let is_enough = recorded > 0 && bytes * 100 >= recorded * least && *bytes <= recorded;
        assert!(is_enough, "{attributed:?}: {bytes} of {recorded}");
    }
}

pub fn check(subject: &Subject) {
    user_data_has_a_place(subject);
    code_has_a_place(subject);
}
