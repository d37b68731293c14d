//! Tests of the rules in docs/model.md, "Layers", one by one, on small lists of operations.

use super::*;
use crate::{
    model::testing,
    model::{DEFAULT_INPUTS_REGEX, LayerOrder},
};

fn operation(name: &str, inputs: &str) -> Operation {
    testing::operation(0, name, inputs)
}

fn layering_with(regex: &str, order: LayerOrder, operations: &[Operation]) -> Layering {
    let options = LayerOptions {
        source: LayerSource::Regex(Regex::new(regex).unwrap()),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).unwrap(),
        order,
        ..LayerOptions::default()
    };
    Layering::of_names(operations, &options)
}

fn layering(operations: &[Operation]) -> Layering {
    layering_with(DEFAULT_LAYER_REGEX, LayerOrder::Steps, operations)
}

/// Returns two texts for each operation: the name of its layer, and the rule that gave it this
/// layer or the reason why it has none. A report shows the same texts in its breakdown of
/// operations.
fn rows(layering: &Layering) -> Vec<(String, String)> {
    let layers = layering.layers.iter().zip(&layering.notes);
    layers
        .map(|(&layer, note)| (layering.names[layer as usize].clone(), note.to_string()))
        .collect()
}

#[test]
fn the_name_decides_before_the_inputs() {
    let found = layering(&[
        operation("Layer1/MatMul", "Layer0/out"),
        operation("Gelu", "bert/encoder/layer/0/out/bias"),
        operation("bert/encoder.3/x", ""),
    ]);
    let expected = [("1", ""), ("0", "deduced_from_input_names"), ("3", "")];
    assert_eq!(rows(&found), expected.map(|(a, b)| (a.into(), b.into())));
    assert_eq!(found.names, ["", "1", "0", "3"]);
}

#[test]
fn two_matches_in_a_name_are_none_and_equal_ones_are_one() {
    let found = layering(&[
        operation("Layer1/Layer2/Add", ""),
        operation("Layer2/Layer2/Add", ""),
    ]);
    assert_eq!(found.layers, [NO_LAYER, 1]);
    assert_eq!(found.notes[0], Note::InputLayers(0));
}

#[test]
fn a_call_goes_with_what_follows_until_something_without_a_layer_stands_between() {
    let found = layering(&[
        operation("Call(1)", "x"),
        operation("Loss", ""),
        operation("Call(2)", "x"),
        operation("Layer5/Add", ""),
        operation("Call(3)", "x"),
    ]);
    assert_eq!(found.layers, [0, 0, 1, 1, 0]);
    assert_eq!(found.notes[2], Note::FollowingOperation);
    assert_eq!(found.notes[1].to_string(), "0_input_layers");
    assert_eq!(found.notes[4], Note::FollowingOperation);
}

#[test]
fn tensors_leave_the_current_layer_alone() {
    let mut tensor = operation("Tensor/Layer9/w", "");
    tensor.is_tensor = true;
    let found = layering(&[
        operation("Call(1)", ""),
        tensor,
        operation("Layer7/Add", ""),
    ]);
    assert_eq!(found.layers, [1, 0, 1]);
    assert_eq!(found.notes[1], Note::TensorFilter);
}

#[test]
fn a_call_before_inputs_of_the_first_layer_goes_with_them() {
    let found = layering(&[
        operation("Layer3/Add", ""),
        operation("Call(1)", ""),
        operation("Gather", "bert/word_embeddings/weight"),
        operation("Layer7/Add", ""),
    ]);
    assert_eq!(found.names, ["", "3", "7"]);
    assert_eq!(found.layers, [1, 1, 1, 2]);
    assert_eq!(found.notes[1], Note::FollowingOperation);
    assert_eq!(found.notes[2], Note::InputsRegexLayer0);
}

#[test]
fn inputs_of_the_first_layer_without_any_layer_keep_their_note() {
    let found = layering(&[operation("Gather", "Embedding_Dict")]);
    assert_eq!(found.layers, [NO_LAYER]);
    assert_eq!(found.notes, [Note::InputsRegexLayer0]);
    assert!(found.is_empty());
}

#[test]
fn natural_order_compares_numbers() {
    let operations: Vec<Operation> = ["Layer10/a", "Layer9/a", "Layer1/a"]
        .map(|name| operation(name, ""))
        .into();
    let natural = layering_with(DEFAULT_LAYER_REGEX, LayerOrder::Natural, &operations);
    assert_eq!(natural.names, ["", "1", "9", "10"]);
    assert_eq!(natural.layers, [3, 2, 1]);
    assert_eq!(layering(&operations).names, ["", "10", "9", "1"]);
}

#[test]
fn layers_differ_by_their_groups_and_are_named_by_joining_them() {
    let operations = [
        operation("a1_2", ""),
        operation("a_12", ""),
        operation("b3", ""),
    ];
    let found = layering_with(r"a(\d*)_(\d+)|b3", LayerOrder::Steps, &operations);
    assert_eq!(found.names, ["", "1.2", "12", ""]);
    assert_eq!(found.layers, [1, 2, 3]);
    let whole = layering_with(r"b\d", LayerOrder::Steps, &operations);
    assert_eq!(whole.names, ["", "b3"]);
}
