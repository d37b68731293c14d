//! Builds small models for unit tests.

use super::{Label, Model, NO_CALL, Operation, Pass, UseSets, VariableGroups};
use crate::{
    analysis::Analysis,
    profile::{LiveClasses, Recorded, Target},
};
use std::path::Path;

/// Reads the profile and the debug contexts of a recorded fixture, and builds its model.
pub(crate) fn fixture(name: &str) -> Model {
    let folder = Path::new("fixtures").join(name);
    let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
    read.expect(name).model
}

pub(crate) fn operation(group: u32, name: &str, inputs: &str) -> Operation {
    Operation {
        group,
        name: name.into(),
        inputs: inputs.into(),
        is_tensor: false,
        is_anonymous: false,
        is_backward: false,
        is_update: false,
        pass: Pass::default(),
        is_nested: false,
        window: None,
        call: NO_CALL,
    }
}

/// Returns a model without operations and variables, on one IPU with `tiles` tiles that have
/// `bytes_per_tile` bytes each.
pub(crate) fn model(tiles: u32, bytes_per_tile: u64) -> Model {
    Model {
        target: Target {
            tiles_per_ipu: tiles,
            num_tiles: tiles,
            bytes_per_tile,
            num_ipus: 1,
            num_replicas: 1,
            architecture: String::new(),
        },
        operations: Vec::new(),
        operation_groups: Vec::new(),
        classes: LiveClasses::new(Vec::new(), Vec::new(), 0),
        variables: VariableGroups::new(tiles, std::iter::empty()),
        code_variables: VariableGroups::new(tiles, std::iter::empty()),
        recorded_code: Default::default(),
        use_sets: UseSets::default(),
        labels: vec![Label::default()],
        calls: Vec::new(),
        flow: Default::default(),
        vertex_code: Vec::new(),
        programs: Vec::new(),
        backward_start: None,
        recording: Default::default(),
        recorded: Recorded::default(),
        cycles: None,
        layer_regexes: Default::default(),
        made: Default::default(),
        memory_peak: None,
        warnings: Vec::new(),
        contradictions: Vec::new(),
    }
}
