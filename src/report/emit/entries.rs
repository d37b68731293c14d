//! Forms of configuration that name, for each IPU or stage, the module or layer at which it begins.

use super::form_source::FormSource;
use super::lines::{Draft, STAGE};
use crate::escape::{printable, quoted};
use crate::model::Framework;

impl<'a> FormSource<'a> {
    /// Returns the names of the Keras layers that a position of the layer order calls; empty if
    /// another framework recorded the profile.
    fn keras_layers(self, position: u32) -> &'a [String] {
        let calls = self.calls(position, Framework::Tensorflow);
        calls.map_or(&[], |calls| &calls.top)
    }

    /// Returns whether the profile was recorded with TensorFlow.
    pub fn is_keras(self) -> bool {
        self.report.framework() == Some(Framework::Tensorflow)
    }

    /// Returns the first Keras layer that a position of the layer order calls and no earlier
    /// position calls; `None` if it calls no such layer.
    fn keras_begin(self, position: u32) -> Option<&'a String> {
        let mut layers = self.keras_layers(position).iter();
        layers.find(|layer| !(0..position).any(|at| self.keras_layers(at).contains(layer)))
    }

    /// Returns whether the profile has the name of the Keras layer at which each stage after the
    /// first begins.
    pub fn has_keras_names(self) -> bool {
        let mut stages = self.split.stages.iter().skip(1);
        self.is_keras() && stages.all(|stage| self.keras_begin(stage.positions.start).is_some())
    }

    /// Returns the innermost module at which a position of the layer order begins. For TensorFlow,
    /// returns the module below the model that begins there (the first Keras layer or a scope) or,
    /// if it is unknown, `name`, the layer's name. `None` if the profile does not show the module.
    fn split_at(self, position: u32, name: &'a str) -> Option<&'a str> {
        if !self.is_keras() {
            return self.torch_calls(position)?.leaf.as_deref();
        }
        let calls = self.calls(position, Framework::Tensorflow)?;
        let below = calls.begin.as_ref().and_then(|path| path.split_once('.'));
        let is_layer = Some(position) != self.out();
        below.map(|(_, path)| path).or(is_layer.then_some(name))
    }
}

/// Returns `module` in quotes, and an empty comment. If the module is unknown, returns a
/// placeholder that has the `name` of the layer, and a comment that tells the user to write the
/// layer's first `kind` of module.
fn entry(module: Option<&str>, name: &str, kind: &str) -> (String, String) {
    match module {
        Some(module) => (quoted(module), String::new()),
        None => (
            quoted(&format!("<{name}>")),
            format!("  # write its first {kind}"),
        ),
    }
}

impl Draft<'_> {
    /// Adds the entries of `train_split_edges` of mmcv's runners for IPUs (`eval_split_edges` for
    /// inference): for each IPU except the first, the module at which it begins, by its name below the
    /// model of the configuration. mmcv makes a `poptorch.BeginBlock` of each entry; what runs before
    /// the first entry is on IPU 0. Adds warnings of stages that begin with operations outside modules.
    pub fn edges(&mut self) {
        let source = self.source;
        for (position, name) in source.layers_and_out() {
            let calls = source.torch_calls(position);
            // mmcv compiles a wrapper module, which has the user's model as its attribute `model`.
            let path = calls.and_then(|calls| calls.begin.as_deref());
            let path = path.map(|path| path.strip_prefix("model.").unwrap_or(path));
            let (module, comment) = entry(path, name, "module");
            let edge = format!("    dict(layer_to_call={module}, ipu_id={STAGE}),{comment}");
            self.text.begin(position, true, &edge);
            self.warn_functional(position);
        }
    }

    /// Adds the Python contexts of PopART's builder that set the virtual graph (an IPU) and the
    /// pipeline stage of each layer: every operation of a pipeline has both, and a session needs
    /// virtual graphs to be set by hand. In PopART, pipelining on one IPU is an error.
    pub fn layers(&mut self) {
        for (position, layer) in self.source.layers() {
            let line = format!(
                "with builder.virtualGraph({STAGE}), builder.pipelineStage({STAGE}):\n    \
                 ...  # layer {}",
                printable(layer)
            );
            self.text.at(position, &line);
        }
    }

    /// Adds the entries of `pipeline_stages` of Keras on IPUs: for each stage except the first, the
    /// Keras layer at which it begins. In Keras, every call of a layer has a pipeline stage, stages
    /// count from 0 without gaps, and `device_mapping` has the IPU of each stage. A model lists its
    /// calls in the order in which they run, so calls without an entry take the stage of the call
    /// before. Adds warnings of stages whose first operations belong to a Keras layer that an
    /// earlier stage runs, too.
    pub fn keras_stages(&mut self) {
        let source = self.source;
        let line = |position, name: &str, stage: &str| {
            let begin = source.keras_begin(position).map(String::as_str);
            let (layer, comment) = entry(begin, name, "Keras layer");
            format!("    {layer}: {stage},{comment}")
        };
        for (position, name) in source.layers_and_out() {
            self.text
                .begin(position, true, &line(position, name, STAGE));
            let earlier = source.keras_layers(position).first();
            if let (Some(begin), Some(earlier)) = (source.keras_begin(position), earlier)
                && begin != earlier
            {
                let warning = format!(
                    "WARNING: layer {} runs before stage {STAGE}, too, so what it does in this stage \
                     before layer {} stays in the stage before.",
                    printable(earlier),
                    printable(begin)
                );
                self.notes.begin(position, true, &warning);
            }
        }
        self.text.by_stages(|stages| {
            let last = source.forward_stages(stages).saturating_sub(1).to_string();
            let is_apart = source.out_returns(stages);
            is_apart.then(|| line(source.place_of_out(), "Out", &last))
        });
    }

    /// Adds the entries of `pipeline_splits` of Graphcore's vision examples: for each IPU except
    /// the first, the module at which it begins. The CNNs for PopTorch name innermost modules, with
    /// slashes; the CNNs for TensorFlow 2 name Keras layers, those for TensorFlow 1 name scopes,
    /// with slashes.
    pub fn pipeline_splits(&mut self) {
        for (position, name) in self.source.layers_and_out() {
            let path = self.source.split_at(position, name);
            let path = path.map(|path| path.replace('.', "/"));
            let (module, comment) = entry(path.as_deref(), name, "module");
            let line = format!("- {module}{comment}");
            self.text.begin(position, true, &line);
        }
    }
}
