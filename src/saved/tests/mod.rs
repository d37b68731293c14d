//! Models saved and loaded, and files that were not written by popliner. `planted` in `tests/it` saves
//! models of profiles; `report::exports` and `hostile::faults` there test how the file is written.

mod damaged;
mod hostile;
mod models;
mod unfit_parts;

use super::*;
use crate::message::Warning;
use crate::model::{VariableGroup, VariableGroups};
use models::full;

#[test]
fn a_model_with_something_in_every_field_comes_back() {
    let model = full();
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
    assert_eq!(to_bytes(&full()).unwrap(), bytes, "always the same bytes");
}

/// Many groups, and much text.
#[test]
fn a_large_model_comes_back() {
    let mut model = full();
    model.warnings = (0..3_000)
        .map(|n| Warning::new(format!("{n:x<1000}")))
        .collect();
    let items = (0..600_000u32).map(|n| {
        let (class, set, bytes) = (n % 4, n % 3, n);
        ((n % 4) as u16, VariableGroup { class, set, bytes })
    });
    // 4 tiles of 3 uses each, with bytes so large that groups cannot be joined.
    let many = (0..600_000u32)
        .map(|n| (n % 4) as u16)
        .zip((0..).map(|n| VariableGroup {
            class: n % 4,
            set: n % 3,
            bytes: u32::MAX - n,
        }));
    model.variables = VariableGroups::new(4, items.chain(many));
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
}

#[test]
fn more_steps_than_can_be_read_are_not_saved() {
    let mut long = full();
    let (always, steps) = (vec![true; 4], 1 << 30);
    long.classes = crate::profile::LiveClasses::new(always, Vec::new(), steps);
    let error = to_bytes(&long).unwrap_err().to_string();
    assert!(error.contains("1073741824 liveness steps"), "{error}");
}
