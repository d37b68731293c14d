//! Checks the rules about flows (tensors that the same layers use) on models that are small enough
//! to count by hand.

use super::{users::KnownFlows, *};
use crate::{
    memory::pipeline::Schedule,
    memory::tests::reference_model::full,
    model::{
        GroupCode, Label, Layering, OperationGroup, OutOn, Pass, PlacementOptions, UseSets,
        VariableGroup, VariableGroups, testing,
    },
    profile::LiveClasses,
};

fn flow(forward: &[u32], backward: &[u32], life: Life) -> Flow {
    Flow {
        forward: forward.into(),
        backward: backward.into(),
        life,
        is_streamed: false,
    }
}

#[test]
fn a_stage_beside_out_holds_only_what_out_takes() {
    let pipeline = Pipeline {
        schedule: Schedule::Popart,
        ..Pipeline::default()
    };
    let counts = |users: &[u32], places: Range<u32>| {
        let flow = flow(users, &[], Life::Forward);
        let flows = Flows::made(vec![flow.clone()], pipeline, 4, true);
        flow.role_of(&places, &flows).counts[Quantity::ForOut as usize]
    };
    assert!(counts(&[0, 3], 0..1));
    assert!(!counts(&[0, 2], 0..1));
    assert!(!counts(&[0, 3], 0..4));
    assert!(!counts(&[1, 3], 1..2));
}

#[test]
fn backward_users_change_only_where_out_runs_on_the_first_ipu() {
    let backward_of = |out_on, forward: &[u32], backward: &[u32]| {
        let model = testing::model(1, 0);
        let names = ["0", "1", "2"].map(String::from);
        let layering = Layering::of(names.into(), Vec::new());
        let options = PlacementOptions {
            out_on,
            ..PlacementOptions::default()
        };
        let placement = Placement::full(&model, &layering, &options).expect("few places");
        let mut known = KnownFlows::new(&placement.positions);
        let number = known.number(flow(forward, backward, Life::Backward));
        known.list[number as usize].backward.to_vec()
    };
    let out = 3;
    assert_eq!(backward_of(OutOn::First, &[1], &[1]), [1]);
    assert_eq!(backward_of(OutOn::First, &[1], &[1, out]), [0, 1]);
    assert_eq!(backward_of(OutOn::First, &[1, out], &[1, out]), [1, out]);
    assert_eq!(backward_of(OutOn::First, &[], &[0, out]), [0]);
    assert_eq!(backward_of(OutOn::Last, &[], &[0, out]), [0, out]);
}

fn operation_group(number: u32) -> OperationGroup {
    OperationGroup {
        uid: number.into(),
        window: Some((number, number)),
        code: GroupCode::default(),
        host_copies: Vec::new(),
        clusters: Vec::new(),
    }
}

/// Returns a model with one weight that the forward pass uses. `updates` is the number of
/// operations that update the weight, and `label` its name and kind from the debug context.
fn with_updates(updates: u32, label: Label) -> Model {
    let mut use_sets = UseSets::default();
    let set = (0..=updates).fold(0, |set, group| use_sets.push(set, group));
    let weight = VariableGroup {
        class: 0,
        set,
        bytes: 8,
    };
    let operations = (0..=updates).map(|group| crate::model::Operation {
        pass: if group == 0 {
            Pass::Forward
        } else {
            Pass::Update
        },
        is_update: group > 0,
        window: Some((group, group)),
        ..testing::operation(group, "", "")
    });
    Model {
        operations: operations.collect(),
        operation_groups: (0..=updates).map(operation_group).collect(),
        classes: LiveClasses::new(vec![true], Vec::new(), updates + 1),
        variables: VariableGroups::new(1, [(0, weight)].into_iter()),
        use_sets,
        labels: vec![label],
        backward_start: Some(1),
        ..testing::model(1, 0)
    }
}

#[test]
fn a_parameter_of_several_updates_is_a_weight_only_by_its_label() {
    let accumulated = |updates, kind| {
        let label = Label {
            kind,
            element_bytes: Some(2),
            ..Label::default()
        };
        let model = with_updates(updates, label);
        let layers = vec![1; model.operations.len()];
        let layering = Layering::of(["0", "1"].map(String::from).into(), layers);
        let placement = full(&model, &layering);
        let set = model.variables.uses()[0].set as usize;
        let role = UseInPipeline::of_parameters(&model, &placement.by_pass)[set];
        matches!(role, UseInPipeline::Accumulated(_))
    };
    assert!(!accumulated(0, TensorKind::Variable));
    assert!(accumulated(1, TensorKind::Variable));
    assert!(accumulated(2, TensorKind::Variable));
    assert!(accumulated(1, TensorKind::default()));
    assert!(!accumulated(2, TensorKind::default()));
    assert!(!accumulated(1, TensorKind::Constant));
}

#[test]
fn only_tensors_of_both_passes_with_known_users_are_layered() {
    let model = with_updates(1, Label::default());
    let layering = Layering::of(["0", "1"].map(String::from).into(), vec![1; 2]);
    let placement = full(&model, &layering);
    let set = model.variables.uses()[0].set;
    let is_layered = |flow: Flow| flow.is_layered(&placement, set);
    let counted = placement.sets.places(placement.counted[set as usize]);
    assert!(is_layered(flow(counted, counted, Life::AcrossPasses)));
    assert!(!is_layered(flow(counted, counted, Life::Forward)));
    assert!(!is_layered(flow(counted, &[], Life::AcrossPasses)));
    assert!(!is_layered(flow(&[], &[9], Life::AcrossPasses)));
}
