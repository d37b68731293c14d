//! Layers by whose names something is wrong.

use crate::message::Warning;
use crate::model::{Framework, LayerOptions, Layering, Model, NO_CALL, NO_LAYER, Pass};
use rustc_hash::FxHashSet;

/// Less than half of the operations have a layer.
pub(super) fn few_operations(model: &Model, layering: &Layering) -> Option<Warning> {
    let operations = model.operations.iter();
    let all = operations.filter(|operation| !operation.is_tensor).count();
    let layered = layering.layers.iter().filter(|&&layer| layer != NO_LAYER);
    let layered = layered.count();
    if layered * 2 >= all {
        return None;
    }
    let mut candidates = model.layer_candidates(&LayerOptions::default()).into_iter();
    let better = candidates
        .next()
        .filter(|best| best.covered.operations > layered);
    Some(match better {
        Some(best) => Warning::new(format!(
            "only {layered} of {all} operations got a layer; set --layer-name-regex to '{}', \
             which finds {} layers with {} operations, or to auto",
            best.regex, best.layers, best.covered.operations
        )),
        None => Warning::new(format!(
            "only {layered} of {all} operations got a layer; check --layer-name-regex against \
             the names in --list-layers"
        )),
    })
}

/// The layers of the forward pass, operation by operation, of those whose name or
/// inputs say one. In a function that several places call the names are those of one
/// of them.
fn forward(model: &Model, layering: &Layering) -> Vec<u32> {
    let operations = model.operations.iter().enumerate();
    let forward = operations.filter(|(_, operation)| {
        operation.call == NO_CALL && matches!(operation.pass, Pass::Forward | Pass::Both)
    });
    forward
        .filter_map(|(index, _)| layering.own_layer(index))
        .collect()
}

/// A layer with a higher number runs before one with a lower.
pub(super) fn numbers_out_of_order(model: &Model, layering: &Layering) -> Option<Warning> {
    let mut seen = FxHashSet::default();
    let mut order = forward(model, layering);
    order.retain(|&layer| seen.insert(layer));
    let names = order.iter().map(|&layer| &*layering.names[layer as usize]);
    let names: Vec<&str> = names.collect();
    let falls = |pair: &&[&str]| {
        let [first, second] = [pair[0], pair[1]];
        let order = alphanumeric_sort::compare_str(first, second);
        words(first).eq(words(second)) && order.is_gt()
    };
    let pair = names.windows(2).find(falls)?;
    Some(Warning::new(format!(
        "layers do not run in the order of their numbers: {} runs before {}; look at their steps \
         in --list-layers, and where the numbers are right, give --layer-order natural",
        pair[0], pair[1]
    )))
}

/// A name without its numbers.
fn words(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(|character| !character.is_ascii_digit())
}

/// Most layers are in several runs of the forward pass, each with many of the
/// layer's operations: their numbers are used twice. Plain Poplar and PopXL do not
/// say which operations are forward.
pub(super) fn scattered(model: &Model, layering: &Layering) -> Option<Warning> {
    if matches!(
        model.recording.framework,
        Framework::Poplar | Framework::Popxl
    ) {
        return None;
    }
    let forward = forward(model, layering);
    let mut longest = vec![0usize; layering.len()];
    let mut all = vec![0usize; layering.len()];
    for run in forward.chunk_by(|a, b| a == b) {
        let layer = run[0] as usize;
        longest[layer] = longest[layer].max(run.len());
        all[layer] += run.len();
    }
    let is_scattered = |&layer: &usize| longest[layer] * 3 < all[layer] * 2;
    let mut scattered = (1..layering.len()).filter(is_scattered);
    let (first, count) = (scattered.next()?, scattered.count() + 1);
    let layers = layering.len() - 1;
    (count * 2 > layers).then(|| {
        Warning::new(format!(
            "{count} of {layers} layers run in several places of the forward pass with others \
             between, {} first, as where an encoder and a decoder count their layers alike; let \
             --layer-name-regex capture the word before the number too, such as \
             '(\\w+)/layer/(\\d+)'",
            layering.names[first]
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing;
    use regex::Regex;

    /// The warnings about operations with these names.
    fn warnings(regex: &str, framework: Framework, names: &[&str]) -> Vec<String> {
        let mut model = testing::model(1, 1000);
        model.recording.framework = framework;
        let made = (0u32..).zip(names);
        let made = made.map(|(group, name)| testing::operation(group, name, ""));
        model.operations = made.collect();
        let options = LayerOptions {
            layer_regex: Regex::new(regex).unwrap(),
            ..LayerOptions::default()
        };
        let layering = Layering::new(&model.operations, &options);
        let all = [few_operations, numbers_out_of_order, scattered];
        let found = all.iter().filter_map(|check| check(&model, &layering));
        found.map(|warning| warning.to_string()).collect()
    }

    fn of_popart(regex: &str, names: &[&str]) -> Vec<String> {
        warnings(regex, Framework::Popart, names)
    }

    #[test]
    fn layers_that_fit_say_nothing() {
        let names = ["Layer0/a", "Layer0/b", "Layer1/a", "Layer1/b", "loss"];
        assert_eq!(of_popart(r"Layer(\d+)", &names), [""; 0]);
        assert_eq!(of_popart(r"Layer(\d+)", &["a"; 0]), [""; 0]);
    }

    #[test]
    fn few_operations_come_with_a_better_regex_where_there_is_one() {
        let names = ["blocks1/a", "blocks1/b", "blocks2/a", "blocks2/b", "fc0/x"];
        let found = of_popart(r"fc(\d+)", &names);
        let expected = "only 1 of 5 operations got a layer; set --layer-name-regex to \
                        'blocks(\\d+)', which finds 2 layers with 4 operations, or to auto";
        assert_eq!(found, [expected]);
        let found = of_popart(r"fc(\d+)", &["a", "b", "c", "fc0/x"]);
        assert!(found[0].contains("--list-layers"), "{found:?}");
    }

    #[test]
    fn numbers_that_fall_are_named() {
        let names = ["Layer0/a", "Layer2/a", "Layer10/a", "Layer3/a"];
        let found = of_popart(r"Layer(\d+)", &names);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("numbers: 10 runs before 3;"), "{found:?}");
        // Words have no order.
        let names = [
            "enc/layer0/a",
            "enc/layer1/a",
            "dec/layer0/a",
            "dec/layer1/a",
        ];
        assert_eq!(of_popart(r"(\w+)/layer(\d+)", &names), [""; 0]);
    }

    #[test]
    fn numbers_that_are_used_twice_are_named_where_passes_are_told() {
        let parts = ["a", "b", "c"];
        let stacks = [("enc", 0), ("enc", 1), ("dec", 0), ("dec", 1)];
        let names =
            stacks.map(|(stack, layer)| parts.map(|part| format!("{stack}/layer{layer}/{part}")));
        let names: Vec<String> = names.concat();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let with = |regex, framework| warnings(regex, framework, &names);
        let found = with(r"/layer(\d+)", Framework::Popart);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("2 of 2 layers run in several places"));
        assert_eq!(with(r"/layer(\d+)", Framework::Poplar), [""; 0]);
        assert_eq!(with(r"(\w+)/layer(\d+)", Framework::Popart), [""; 0]);
        // A few operations elsewhere are none.
        let few = [
            "layer0/w", "layer1/w", "layer0/a", "layer0/b", "layer0/c", "layer1/a", "layer1/b",
            "layer1/c",
        ];
        assert_eq!(of_popart(r"layer(\d+)", &few), [""; 0]);
    }
}
