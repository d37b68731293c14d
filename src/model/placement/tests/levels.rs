//! Tests of the rules that give places (In, layers, Out) to gradients, to updates of weights, and
//! to state such as optimizer state or a random state. Each test fails without the rule that it
//! tests.

use super::case::{Case, LASTING, PASSING, Training};
use crate::model::placement::*;

/// The operation `gate grad` uses a gradient that layer 1 makes. In the backward pass data flows
/// down, so the operation is not at layer 3, although it uses a weight of layer 3.
#[test]
fn a_weight_above_what_leads_to_a_gradient_does_not_place_it() {
    let mut training = Training::new();
    let gate = training.case.operation_at(9, "gate grad");
    training.case.passing(&[8, gate], "");
    training.case.passing(&[gate, 9], "");
    let weight = training.weights[3];
    training.uses(gate, &[weight]);
    assert_eq!(training.placed().operation(9).0, "1");
}

/// An operation joins outputs of layers 1 and 2. Most bytes that it uses come from layer 1, but it
/// cannot be there: in the forward pass, no data flows from layer 2 down to layer 1.
#[test]
fn what_joins_two_layers_is_not_before_the_later_one() {
    let mut training = Training::new();
    let join = training.case.operation_at(3, "join");
    for from in [1, 1, 1, 2, 2] {
        training.case.passing(&[from, join], "");
    }
    training.case.passing(&[join, 3], "");
    assert_eq!(training.placed().operation(3).0, "2");
}

#[test]
fn a_head_between_layers_is_at_the_layer_before_it() {
    let mut training = Training::new();
    let loss = training.case.operation_at(3, "loss of layer 2");
    training.case.passing(&[2, loss], "");
    assert_eq!(training.placed().operation(3).0, "2");
}

/// In CLIP, an operation finds the end of the text in the input, and only the head uses the result.
/// So the operation belongs to Out.
#[test]
fn a_number_of_the_input_for_the_head_alone_is_of_out() {
    let mut case = Case::default();
    let [words, first, last, end, head] =
        case.operations(["words", "layer/1/x", "layer/2/x", "end", "head"]);
    case.passing(&[words, end], "ids");
    for (from, to) in [(words, first), (first, last), (last, head), (end, head)] {
        case.passing(&[from, to], "");
    }
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(end), ("Out".into(), Reason::AfterLayers));
}

/// The operation `gate grad` gets most of its bytes from layer 2, but uses a weight that only
/// layers 1 and 3 share. In the backward pass, no data flows from layer 2 up to layer 3. So the
/// operation is at layer 1.
#[test]
fn a_gradient_with_a_shared_weight_is_where_that_is() {
    let mut training = Training::new();
    let gate = training.case.operation_at(8, "gate grad");
    training.case.lasting(&[1, 3, gate], "shared");
    for _ in 0..3 {
        training.case.passing(&[7, gate, 9], "");
    }
    training.case.passing(&[gate, 8], "");
    assert_eq!(training.placed().operation(8).0, "1");
}

#[test]
fn what_changes_a_gradient_in_place_is_where_its_update_is() {
    let mut training = Training::new();
    let [norm, clip, update, other] =
        training
            .case
            .operations(["norm", "clip", "update of 2", "update of 1"]);
    let (weights, gradients) = (training.weights.clone(), training.gradients.clone());
    training.uses(norm, &gradients[1..3]);
    training.uses(clip, &[gradients[2]]);
    training.uses(update, &[gradients[2], weights[2]]);
    training.uses(other, &[gradients[1], weights[1]]);
    let placed = training.placed();
    assert_eq!(
        (placed.operation(clip).0, placed.programs(clip).len()),
        ("2".into(), 0)
    );
}

/// The updates of two weights use results of the operation `scale`. Layers 1 to 3 share one of the
/// weights, and the other is of layer 2. So the operation is at all three layers.
#[test]
fn what_leads_to_updates_of_a_shared_weight_and_of_one_there_is_at_all_that_share_it() {
    let mut training = Training::new();
    let [scale, of_shared, of_second] =
        training
            .case
            .operations(["scale", "update of shared", "update of 2"]);
    training.case.lasting(&[1, 2, 3, of_shared], "shared");
    training.case.passing(&[scale, of_shared], "");
    training.case.passing(&[scale, of_second], "");
    let weight = training.weights[2];
    training.uses(of_second, &[weight]);
    let placed = training.placed();
    assert_eq!(
        (placed.operation(scale).0, placed.programs(scale).len()),
        ("1 2 3".into(), 0)
    );
}

#[test]
fn the_name_of_an_update_is_that_of_one_level_of_a_shared_weight() {
    let mut training = Training::new();
    let [scale, named] = training.case.operations(["scale", "update layer/2/x"]);
    training.case.lasting(&[1, 2, named], "shared");
    training.case.passing(&[scale, named], "");
    assert_eq!(training.placed().operation(scale).0, "1 2");
}

/// The operation `gate grad` uses a weight that layers 1 and 2 share, but its result also reaches
/// the update of a weight of layer 3. It is at layers 1 and 2, by the weight that it uses itself.
#[test]
fn a_gradient_is_where_its_weight_is_and_not_where_its_update_is() {
    let mut training = Training::new();
    let gate = training.case.operation_at(9, "gate grad");
    let update = training.case.operation("update of 3");
    training.case.lasting(&[1, 2, gate], "shared");
    training.case.passing(&[gate, update], "");
    let weight = training.weights[3];
    training.uses(update, &[weight]);
    let placed = training.placed();
    assert_eq!(
        (placed.operation(9).0, placed.programs(gate).len()),
        ("1 2".into(), 0)
    );
}

#[test]
fn state_is_where_the_weight_is_that_it_is_named_after() {
    let mut training = Training::new();
    training.case.lasting(&[2], "weight q");
    let norm = training.case.operation("norm");
    training.uses(norm, &training.gradients.clone());
    let state = training.case.lasting(&[norm], "Accl1___weight q");
    assert_eq!(training.placed().variable(state), "2");
}

/// A copy and a norm use the variable `number`, whose name shows no layer. All other variables of
/// the copy are at layer 2, but those of the norm are at all layers. So `number` is at layer 2.
#[test]
fn what_has_no_place_goes_with_an_operation_that_touches_one() {
    let mut training = Training::new();
    let [copy, norm] = training.case.operations(["move in", "norm"]);
    training.case.groups[copy].host_copies.push(0);
    training.uses(copy, &[training.weights[2]]);
    training.uses(norm, &training.gradients.clone());
    let number = training.case.lasting(&[copy, norm], "");
    let programs = vec![vec![training.weights[2]], vec![number]];
    training.case.programs.push((copy, programs));
    assert_eq!(training.placed().variable(number), "2");
}

#[test]
fn what_is_used_with_what_has_got_a_place_gets_it_too() {
    let mut training = Training::new();
    let copies = training.case.operations(["move in", "move on"]);
    for copy in copies {
        training.case.groups[copy].host_copies.push(0);
    }
    training.uses(copies[0], &[training.weights[2]]);
    training.case.lasting(&copies, "");
    let last = training.case.lasting(&copies[1..], "");
    assert_eq!(training.placed().variable(last), "2");
}

#[test]
fn a_small_number_adds_no_place_to_what_uses_it() {
    let mut training = Training::new();
    let copy = training.case.operation("move in");
    training.case.groups[copy].host_copies.push(0);
    training.uses(copy, &[training.weights[2]]);
    training.case.variable(&[1, copy], LASTING, 4, "");
    assert_eq!(training.placed().operation(copy).0, "2");
}

#[test]
fn a_weight_that_is_cast_for_a_layer_and_used_by_another_is_shared() {
    let mut training = Training::new();
    let cast = training.case.operation_at(1, "cast");
    training.case.lasting(&[cast, 3], "weight of two");
    training.case.passing(&[cast, 1], "");
    let placed = training.placed();
    assert_eq!(placed.operation(1).0, "1");
    assert_eq!(placed.placement.ties[0].places, [1, 3]);
}

/// No debug context marks weights and no update uses the variable `shared`, but the host writes and
/// reads it, so it is a weight.
#[test]
fn what_the_host_gives_and_takes_is_a_weight_too() {
    let mut training = Training::new();
    let copies = training.case.operations(["move in", "move out"]);
    for copy in copies {
        training.case.groups[copy].host_copies.push(0);
    }
    let shared = training.case.lasting(&[1, 3], "shared");
    training.uses(copies[0], &[shared]);
    assert_eq!(training.placed().placement.ties, []);
    training.uses(copies[1], &[shared]);
    assert_eq!(training.placed().placement.ties[0].places, [1, 3]);
    // A variable of a single number per tile is too small to be a weight, so it ties no layers.
    training.case.variables[shared].2 = 4;
    assert_eq!(training.placed().placement.ties, []);
}

/// The operation `gate grad` gets its gradient from layer 3, but is at layer 2, because it uses an
/// activation that the forward pass makes there. In the backward pass, data only flows to lower
/// layers. So `next grad`, which uses the result, cannot be at layer 3.
#[test]
fn a_gradient_is_where_the_activation_is_that_it_uses() {
    let mut training = Training::new();
    let gate = training.case.operation_at(8, "gate grad");
    let next = training.case.operation_at(9, "next grad");
    training.case.passing(&[6, gate], "");
    training.case.passing(&[2, gate], "");
    training.case.passing(&[gate, next], "");
    training.case.passing(&[next, 8], "");
    let placed = training.placed();
    assert_eq!([8, 9].map(|number| placed.operation(number).0), ["2", "2"]);
}

/// An operation of the backward pass adds up two gradients: one of layer 3, and a later one of
/// layer 2. It is at layer 2, where the last summand is made, although most bytes of its results go
/// to In (the operations before the first layer).
#[test]
fn a_sum_of_gradients_is_where_the_last_of_them_is_made() {
    let mut training = Training::new();
    let sum = training.case.operation_at(8, "sum grad");
    training.case.passing(&[6, sum], "");
    training.case.passing(&[7, sum], "");
    for _ in 0..3 {
        training.case.passing(&[sum, 9], "");
    }
    assert_eq!(training.placed().operation(8).0, "2");
}

/// The operation `gate grad` uses a tensor that In (the operations before the first layer) stashed
/// in the forward pass. So it is in In, although more of the bytes that it uses come from gradients
/// of layer 1.
#[test]
fn a_gradient_next_to_in_that_uses_what_in_keeps_is_of_in() {
    let mut training = Training::new();
    let gate = training.case.operation_at(9, "gate grad");
    training.case.passing(&[0, 1, gate], "");
    for _ in 0..3 {
        training.case.passing(&[8, gate], "");
    }
    training.case.passing(&[gate, 9], "");
    assert_eq!(training.placed().operation(9).0, "In");
}

#[test]
fn a_number_that_scales_all_gradients_does_not_join_them() {
    let mut training = Training::new();
    let [norm, clip, of_first, update, update_first] =
        (training.case).operations(["norm", "clip", "clip 1", "update of 2", "update of 1"]);
    let (weights, gradients) = (training.weights.clone(), training.gradients.clone());
    training.uses(norm, &gradients[1..3]);
    let scaled = [norm, clip, of_first];
    training.case.variable(&scaled, PASSING, 4, "");
    for (gradient, users) in [(2, [clip, update]), (1, [of_first, update_first])] {
        for user in users {
            training.uses(user, &[gradients[gradient]]);
        }
        training.uses(users[1], &[weights[gradient]]);
    }
    let placed = training.placed();
    for (own, place) in [(clip, "2"), (of_first, "1")] {
        let found = (placed.operation(own).0, placed.programs(own).len());
        assert_eq!(found, (place.into(), 0));
    }
}

#[test]
fn a_named_operation_of_a_function_goes_with_the_operation_before() {
    let mut training = Training::new();
    let inner = training.case.operation_at(2, "inner");
    training.case.operations[2].is_nested = true;
    training.case.lasting(&[inner], "");
    let placed = training.placed();
    assert_eq!(placed.operation(2), ("1".into(), Reason::Neighbour));
}

/// The operation `advance` changes a random state that several layers use, as for dropout. Every
/// IPU has its own copy of the state, so the operation is on every IPU. It also uses a constant,
/// which does not change this.
#[test]
fn what_advances_the_state_of_several_layers_is_on_every_ipu() {
    let mut training = Training::new();
    let advance = training.case.operation_at(1, "advance");
    training.case.lasting(&[advance], "");
    let state = training.case.lasting(&[advance, 1, 3], "state");
    for copy in training.case.operations(["move in", "move out"]) {
        training.case.groups[copy].host_copies.push(0);
        training.uses(copy, &[state]);
    }
    let placed = training.placed();
    let found = placed.operation(1);
    assert_eq!(found, ("every stage".into(), Reason::EveryStage));
    assert_eq!(placed.placement.ties, []);
}

/// The gradient of the pooling in layer 2 uses no variable of layer 2. Only the sizes of tensors
/// show its layer: it uses a small gradient of layer 3 and makes a large one for layer 1.
#[test]
fn a_gradient_is_where_the_only_operation_of_its_sizes_is() {
    let mut case = Case::default();
    let [first, pool, last, last_grad, pool_grad, first_grad] = case.operations([
        "layer/1/x",
        "layer/2/pool",
        "layer/3/x",
        "layer/3/x_grad",
        "pool_grad",
        "layer/1/x_grad",
    ]);
    case.variable(&[first, pool, pool_grad], PASSING, 400, "");
    case.variable(&[pool, last], PASSING, 40, "");
    case.passing(&[last, last_grad], "");
    case.variable(&[last_grad, pool_grad], PASSING, 40, "");
    case.variable(&[pool_grad, first_grad], PASSING, 400, "");
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(pool_grad).0, "2");
}
