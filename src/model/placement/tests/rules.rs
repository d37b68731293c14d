//! Tests of the rules that give places (In, layers, Out) to operations by the flow of data. Each
//! test uses a pattern that a real model may have.

use super::case::{Case, Training};
use crate::{model::LayerOrder, model::placement::*};

/// The operation `dense`, whose name contains no layer, uses 100 bytes that layer 1 makes, and
/// makes 100 bytes that layer 2 uses. So the flow of data fits both layers. The name of its weight
/// contains layer 1, so the operation is at layer 1.
#[test]
fn what_has_no_name_is_at_the_layer_that_its_weight_is_named_after() {
    let mut case = Case::default();
    let [first, dense, second] = case.operations(["layer/1/x", "dense", "layer/2/x"]);
    case.passing(&[first, dense], "");
    case.passing(&[dense, second], "");
    let weight = case.lasting(&[dense], "layer/1/kernel");
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(dense), ("1".into(), Reason::Variables));
    assert_eq!(placed.variable(weight), "1");
    case.variables[weight].3 = "kernel";
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.operation(dense), ("2".into(), Reason::Variables));
}

/// No data flows between the layers and the operations `table` and `metric`. So the order of the
/// program decides whether these are in In (before the first layer) or in Out (after the last
/// layer).
#[test]
fn without_flow_to_a_layer_the_order_of_the_program_tells() {
    let mut case = Case::default();
    let [table, table_sum, first, second, metric, metric_sum] = case.operations([
        "table",
        "table sum",
        "layer/1/x",
        "layer/2/x",
        "metric",
        "metric sum",
    ]);
    for (from, to) in [(table, table_sum), (first, second), (metric, metric_sum)] {
        case.passing(&[from, to], "");
    }
    let placed = case.placed(&PlacementOptions::default());
    for before in [table, table_sum] {
        let place = placed.operation(before);
        assert_eq!(place, ("In".into(), Reason::BeforeLayers));
    }
    for after in [metric, metric_sum] {
        let place = placed.operation(after);
        assert_eq!(place, ("Out".into(), Reason::AfterLayers));
    }
}

/// The operation that makes an attention mask from an input is in In (before the first layer),
/// although only layer 2 uses the mask. An operation that casts a weight for layer 2 would be at
/// layer 2. The model's debug contexts mark its weights, so the unmarked parameter `mask of the
/// host` is an input.
#[test]
fn what_is_made_of_an_input_is_not_of_the_layer_that_uses_it() {
    let mut training = Training::new();
    let prepare = training.case.operation_at(1, "prepare the mask");
    training.case.lasting(&[prepare], "mask of the host");
    training.case.passing(&[prepare, training.forward[2]], "");
    training
        .case
        .lasting(&[training.embedding], "weight of words");
    let placed = training.placed();
    assert_eq!(placed.operation(1), ("In".into(), Reason::BeforeLayers));
}

/// All layers share one weight, and the embedding in In has another. An operation that scales the
/// gradients of both weights uses variables of In and of all layers, so it has no place of its own.
#[test]
fn what_scales_a_shared_gradient_and_another_is_nowhere() {
    let mut training = Training::new();
    let layers = training.forward[1..4].to_vec();
    let shared = training.case.lasting(&layers, "shared");
    let [scale, of_shared, of_words] =
        training
            .case
            .operations(["scale", "update of shared", "update of words"]);
    training.case.passing(&[scale, of_shared], "");
    training.case.passing(&[scale, of_words], "");
    training.uses(of_shared, &[shared]);
    let words = training.weights[0];
    training.uses(of_words, &[words]);
    let placed = training.placed();
    assert_eq!(placed.operation(of_shared).0, "1 2 3");
    assert_eq!(placed.operation(of_words).0, "In");
    assert!(placed.placement.operations[scale].reason == Reason::Touched);
    assert_eq!(placed.operation(scale).0, "In 1 2 3");
}

/// Layer 2 has a loss of its own, whose backward pass begins with a tensor of ones. Only layer 2
/// uses this tensor, so it is not in Out (the operations after the last layer).
#[test]
fn the_first_gradient_of_a_head_between_layers_is_not_of_out() {
    let mut training = Training::new();
    let ones = training.case.operation_at(5, "ones of a loss grad");
    // Operation group 7 is that of `layer/2/x_grad`, the gradient of layer 2.
    training.case.passing(&[ones, 7], "");
    let placed = training.placed();
    assert_eq!(placed.operation(5), ("2".into(), Reason::Variables));
}

/// A residual sum of outputs of In and layer 1 is recomputed in the backward pass. The sum is at
/// layer 1, by the data flow of its first run in the forward pass.
#[test]
fn what_is_recomputed_is_where_it_ran_first() {
    let mut training = Training::new();
    let sum = training.case.operation_at(2, "residual sum");
    training.case.passing(&[training.forward[0], sum], "");
    for _ in 0..2 {
        training.case.passing(&[training.forward[1], sum], "");
    }
    training.case.passing(&[sum, training.forward[2]], "");
    training.case.recomputed.push(sum);
    let placed = training.placed();
    assert_eq!(placed.operation(2), ("1".into(), Reason::Variables));
}

/// In the backward pass, layer 2 makes a tensor that layer 1 uses. The gradient of a bias is
/// computed from this tensor too, and only the host reads this gradient. It belongs to layer 2.
#[test]
fn a_gradient_that_only_the_host_reads_is_where_it_is_made() {
    let mut training = Training::new();
    let bias = training.case.operation_at(8, "bias grad");
    let host = training.case.operation("move out");
    training.case.groups[host].host_copies.push(0);
    let derivative = training.case.passing(&[7, bias, 8], "");
    let gradient = training.case.passing(&[bias, host], "");
    let placed = training.placed();
    assert_eq!(placed.operation(8), ("2".into(), Reason::Variables));
    assert_eq!(placed.variable(gradient), "2");
    assert_eq!(placed.variable(derivative), "1 2");
}

/// An operation joins a gradient from Out with a tensor that layer 3 took from layer 2. More bytes
/// come from Out, but Out does not use the tensor of layer 2, so the operation is at layer 3.
#[test]
fn a_gradient_is_where_the_forward_variables_are_that_it_uses() {
    let mut training = Training::new();
    let gate = training.case.operation_at(6, "gate grad");
    let forward = training.forward.clone();
    training.case.passing(&[forward[2], forward[3], gate], "");
    training.case.passing(&[forward[3], forward[4], gate], "");
    training.case.passing(&[5, gate], "");
    training.case.passing(&[5, gate], "");
    training.case.passing(&[gate, 6], "");
    let placed = training.placed();
    assert_eq!(placed.operation(6), ("3".into(), Reason::Variables));
}

/// No name of an operation contains a layer, but the names of inputs do, as with exporters that
/// name only weights after layers. So the inputs show the layers.
#[test]
fn inputs_tell_the_layer_where_no_name_does() {
    let mut case = Case::default();
    let [words, positions, sum] = case.operations(["words", "positions", "sum"]);
    for layered in [words, sum] {
        case.operations[layered].inputs = "layer/1/kernel".into();
    }
    case.passing(&[words, sum], "");
    case.passing(&[positions], "ids");
    case.passing(&[positions, sum], "");
    let placed = case.placed(&PlacementOptions::default());
    let place = placed.operation(positions);
    assert_eq!(place, ("In".into(), Reason::BeforeLayers));
}

/// Layer 2 runs before layer 1, as in a model that gives its encoder a higher number than its
/// decoder. Data flows from layer 2 through the operation `between` to layer 1.
#[test]
fn layers_are_passed_in_the_order_in_which_they_run() {
    let mut case = Case {
        order: LayerOrder::Natural,
        ..Case::default()
    };
    let [first, between, second] = case.operations(["layer/2/x", "between", "layer/1/x"]);
    case.passing(&[first, between], "");
    case.passing(&[first, between], "");
    case.passing(&[between, second], "");
    let placed = case.placed(&PlacementOptions::default());
    assert_eq!(placed.placement.positions.layers(), ["1", "2"]);
    let place = placed.operation(between);
    assert_eq!(place, ("2".into(), Reason::Variables));
}

/// The backward pass begins with operations of the loss that use no weights, such as for a mean of
/// the outputs of layers. These operations are in Out, which has the operations after the last
/// layer.
#[test]
fn what_begins_the_backward_pass_without_weights_is_of_out() {
    let mut training = Training::new();
    let ones = training.case.operation_at(5, "ones grad");
    let scale = training.case.operation_at(6, "scale grad");
    training.case.passing(&[ones, scale], "");
    // Operation group 6 is that of `layer/3/x_grad`, the gradient of layer 3.
    training.case.passing(&[scale, 6], "");
    let placed = training.placed();
    for operation in [5, 6] {
        let place = placed.operation(operation);
        assert_eq!(place, ("Out".into(), Reason::AfterLayers));
    }
}

#[test]
fn a_rate_that_a_named_update_uses_tells_nothing_of_others() {
    let mut training = Training::new();
    let [named, other] = training.case.operations(["update layer/2/x", "update"]);
    let weights = training.weights.clone();
    training.uses(named, &[weights[2]]);
    training.uses(other, &[weights[1]]);
    training.case.lasting(&[named, other], "rate");
    let placed = training.placed();
    assert_eq!(placed.operation(other).0, "1");
}
