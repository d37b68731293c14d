//! Warns about layers that do not fit a model: a regex found them, but the modules of the model
//! describe it better, or names of layers were lost when the compiler put code into functions.

use super::{Framework, Layering, Model, ModuleLayers, NO_CALL, NO_LAYER, Note, Rules, counts};
use crate::{message::Warning, wording::grouped};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;

impl Model {
    /// Returns warnings about layers that are probably wrong:
    /// - A regex found them, but modules would describe the model better. This is checked only in
    ///   the full memory model (`rules`), since the classic one always takes its layers from a
    ///   regex.
    /// - A Call has inputs of several layers.
    /// - Names of layers were lost when the compiler outlined code.
    pub fn layer_warnings(&self, layering: &Layering, rules: Rules) -> Vec<Warning> {
        [
            better_modules(self, layering).filter(|_| rules == Rules::Full),
            outlined_across_layers(self, layering),
            lost_in_functions(self, layering),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns a warning if a regex found the layers, but the modules of the model describe it better.
fn better_modules(model: &Model, layering: &Layering) -> Option<Warning> {
    let regex = layering.regex()?;
    let modules = layering.tree(model);
    let layers = layering.layers_by_name();
    if modules.are_by_flow() || modules.are_matched_by(&layers) {
        return None;
    }
    let [by_modules, by_regex] = modules.descriptions(&layers);
    let operations = model.operations.iter();
    Some(Warning::new(format!(
        "--layer-name-regex '{regex}' finds {} layers with {} of {} operations, and the largest \
         piece between two cuts has {} bytes of variables, but the modules of the model are {} \
         layers with at most {} bytes{}; set --layer-name-regex to auto",
        layering.len() - 1,
        layers.iter().filter(|&&layer| layer != NO_LAYER).count(),
        operations.filter(|operation| !operation.is_tensor).count(),
        grouped(by_regex.largest),
        modules.layers.len(),
        grouped(by_modules.largest),
        outside(modules, &layers)
    )))
}

/// Returns the part of a warning that says how many modules lie outside the user's layers, in In
/// (before the first layer) and in Out (after the last layer). An end with fewer than two modules
/// is not mentioned. `layers` has the layer of each operation: from 1, or 0 for none.
fn outside(modules: &ModuleLayers, layers: &[u32]) -> String {
    ["In", "Out"]
        .into_iter()
        .zip(modules.outside(layers))
        .map(|(end, names)| match &names[..] {
            [] | [_] => String::new(),
            [first, .., last] => format!(", {} of them in {end} ({first} to {last})", names.len()),
        })
        .collect()
}

/// Returns a warning if a Call has inputs of several layers, because the compiler then outlined
/// code across layers.
fn outlined_across_layers(model: &Model, layering: &Layering) -> Option<Warning> {
    let mut operations = model.operations.iter().zip(&layering.notes);
    let (operation, _) = operations.find(|(operation, note)| {
        matches!(note, Note::InputLayers(2..)) && operation.name.starts_with("Call")
    })?;
    Some(Warning::new(format!(
        "the operation '{}' calls code that was outlined across layers; compile the model again \
         with the environment variable POPART_POPLINER_OUTLINER_REGEX set to '{}', and record a \
         new profile",
        operation.name,
        layering.outliner_regex(&model.operations)
    )))
}

/// Returns a warning if names of layers were probably lost. When the compiler puts equal code of
/// several layers into one function, only the names of one of these layers remain in it. A sign of
/// this is a layer that occurs only inside a function with more calls than there are layers: one
/// layer, for example, in a function with 12 calls.
fn lost_in_functions(model: &Model, layering: &Layering) -> Option<Warning> {
    let calls = counts(&model.calls);
    let (outside, inside): (Vec<usize>, Vec<usize>) = (0..model.operations.len())
        .filter(|&operation| {
            matches!(layering.notes[operation], Note::Name | Note::InputNames)
                && layering.layers[operation] != NO_LAYER
        })
        .partition(|&operation| model.operations[operation].call == NO_CALL);
    let layer = |&operation: &usize| layering.layers[operation];
    let layers_outside: FxHashSet<u32> = outside.iter().map(layer).collect();
    let only_inside = inside
        .into_iter()
        .filter(|operation| !layers_outside.contains(&layer(operation)))
        .map(|operation| {
            let function = model.calls[model.operations[operation].call as usize];
            (calls[&function], Reverse(operation))
        });
    let (count, operation) = only_inside.max()?;
    let layers = layering.len() - 1;
    (count > layers).then(|| {
        Warning::new(format!(
            "code was outlined, so layers may be missing: the function with the operation '{}' is \
             called from {count} places, but has the names of only one of them, and the number of \
             layers found is {layers}; record a new profile without outlining ({})",
            model.operations[operation.0].name,
            without_outlining(
                model.recording.framework,
                &layering.outliner_regex(&model.operations)
            )
        ))
    })
}

/// Returns the advice in a warning: how to compile without outlining, or with the outliner regex
/// `regex`, so that code of different layers is not outlined together. Names of options are those
/// in the sources of the frameworks.
fn without_outlining(framework: Framework, regex: &str) -> String {
    let off = match framework {
        Framework::Popart => "enableOutlining to False in popart.SessionOptions",
        Framework::Poptorch => {
            "turn outlining off with options._Popart.set(\"enableOutlining\", False)"
        }
        Framework::Tensorflow => {
            return "set optimizations.enable_graph_outlining to False in the IPUConfig".into();
        }
        Framework::Popxl | Framework::Poplar => {
            return "write the model so that each layer calls its own function".into();
        }
    };
    format!("set the environment variable POPART_POPLINER_OUTLINER_REGEX to '{regex}', or {off}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing;

    #[test]
    fn code_that_was_outlined_across_layers_is_named() {
        let mut model = testing::model(1, 1000);
        let names = [
            ("Call(1)", "Layer1/x/Layer2/y"),
            ("Layer1/Add", ""),
            ("Layer2/Add", ""),
        ];
        let operations = (0u32..).zip(names);
        let operations =
            operations.map(|(group, (name, inputs))| testing::operation(group, name, inputs));
        model.operations = operations.collect();
        let layering = Layering::original(&model.operations);
        let found = outlined_across_layers(&model, &layering).expect("a warning");
        for part in ["'Call(1)'", "POPART_POPLINER_OUTLINER_REGEX"] {
            assert!(found.contains(part), "{found}");
        }
        model.operations.remove(0);
        let layering = Layering::original(&model.operations);
        assert_eq!(outlined_across_layers(&model, &layering), None);
    }
}
