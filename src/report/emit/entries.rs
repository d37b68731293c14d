//! Writes the forms of configuration that name the module or layer at which each IPU or stage
//! begins.

use super::{Draft, FormSource, STAGE};
use crate::{
    escape::{printable, quoted},
    model::Framework,
};

impl<'a> FormSource<'a> {
    /// Returns the names of the Keras layers that run at a position of the layer order (In, a layer
    /// or Out); an empty list if the profile is not of TensorFlow.
    fn keras_layers(self, position: u32) -> &'a [String] {
        self.calls(position, Framework::Tensorflow)
            .map_or(&[], |calls| &calls.top)
    }

    pub fn is_keras(self) -> bool {
        self.report.framework() == Some(Framework::Tensorflow)
    }

    /// Returns the Keras layer that a configuration names for a stage that begins at a position of
    /// the layer order (In, a layer or Out): the first one that runs there and at no earlier
    /// position. Returns `None` if no Keras layer begins to run there, or if the first module at
    /// the position is outside the scope of the model's name, such as an embedding that encoder and
    /// decoder share. The names in the profile do not tell which Keras layer calls such a module.
    fn keras_begin(self, position: u32) -> Option<&'a String> {
        let calls = self.calls(position, Framework::Tensorflow)?;
        let is_below_model = calls.leaf.as_ref().is_none_or(|leaf| {
            let layer = leaf.split('.').nth(1);
            calls
                .top
                .iter()
                .any(|called| Some(called.as_str()) == layer)
        });
        let is_earlier =
            |layer: &String| (0..position).any(|at| self.keras_layers(at).contains(layer));
        calls
            .top
            .iter()
            .find(|layer| is_below_model && !is_earlier(layer))
    }

    /// Returns whether the profile names the Keras layer at which each stage of the split begins,
    /// except the first stage.
    pub fn has_keras_names(self) -> bool {
        self.is_keras()
            && self
                .split
                .stages
                .iter()
                .skip(1)
                .all(|stage| self.keras_begin(stage.positions.start).is_some())
    }

    /// Returns the path of the module that a configuration names for a stage that begins at a
    /// position of the layer order (In, a layer or Out):
    /// - for TensorFlow, the Keras layer or scope, without the model's name; if it is unknown,
    ///   `name` (the name of the layer at the position), or `None` for Out
    /// - otherwise, the innermost module; `None` if it is unknown
    fn split_at(self, position: u32, name: &'a str) -> Option<&'a str> {
        if !self.is_keras() {
            return self.torch_calls(position)?.leaf.as_deref();
        }
        let is_layer = Some(position) != self.out();
        self.calls(position, Framework::Tensorflow)?
            .begin
            .as_ref()
            .and_then(|path| path.split_once('.'))
            .map(|(_, path)| path)
            .or(is_layer.then_some(name))
    }
}

/// Returns an entry of a configuration, and a comment on the entry. The entry is the name `module`
/// in quotes, and the comment is empty. If `module` is unknown, the entry is a placeholder made
/// from `name`, the name of a layer, and the comment tells the user to replace it by the first
/// module or Keras layer (`kind`) of this layer.
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
    /// Adds the entries of `train_split_edges` (`eval_split_edges` for inference) of mmcv's
    /// runners: the module at which each IPU except the first begins, as a path below the user's
    /// model. mmcv makes a `poptorch.BeginBlock` of each entry. Also warns of stages that begin
    /// with operations outside modules.
    pub fn edges(&mut self) {
        let source = self.source;
        for (position, name) in source.layers_and_out() {
            let calls = source.torch_calls(position);
            // mmcv compiles a wrapper, which has the user's model as its attribute `model`. The
            // paths in the configuration start below the user's model, so `model.` is removed from
            // them.
            let path = calls
                .and_then(|calls| calls.begin.as_deref())
                .map(|path| path.strip_prefix("model.").unwrap_or(path));
            let (module, comment) = entry(path, name, "module");
            let edge = format!("    dict(layer_to_call={module}, ipu_id={STAGE}),{comment}");
            self.text.begin(position, true, &edge);
            self.warn_functional(position);
        }
    }

    /// For each layer, adds a Python `with` statement that sets the virtual graph (an IPU) and the
    /// pipeline stage of the layer. PopART requires both of every operation in a pipeline.
    pub fn layers(&mut self) {
        for (position, layer) in self.source.layers() {
            self.text.at(
                position,
                format!(
                    "with builder.virtualGraph({STAGE}), builder.pipelineStage({STAGE}):\n    \
                 ...  # layer {}",
                    printable(layer)
                ),
            );
        }
    }

    /// Adds the entries of the Python dictionary `pipeline_stages` to a configuration for Keras:
    /// the Keras layer at which each stage except the first begins. A Keras layer without an entry
    /// goes into the stage of the Keras layer before it. Also warns of stages whose first
    /// operations belong to a Keras layer that already runs in an earlier stage.
    pub fn keras_stages(&mut self) {
        let source = self.source;
        let line = |position, name: &str, stage: &str| {
            let begin = source.keras_begin(position);
            let (layer, comment) = entry(begin.map(String::as_str), name, "Keras layer");
            format!("    {layer}: {stage},{comment}")
        };
        for (position, name) in source.layers_and_out() {
            self.text.begin(position, true, line(position, name, STAGE));
            let earlier = source.keras_layers(position).first();
            if let (Some(begin), Some(earlier)) = (source.keras_begin(position), earlier)
                && begin != earlier
            {
                self.notes.begin(position, true, format!(
                    "WARNING: layer {} runs before stage {STAGE}, too, so what it does in this stage \
                     before layer {} stays in the stage before.",
                    printable(earlier),
                    printable(begin)
                ));
            }
        }
        self.text.by_stages(|stages| {
            source
                .out_returns(stages)
                .then(|| line(source.place_of_out(), "Out", &stages.to_string()))
        });
    }

    /// Adds the entries of `pipeline_splits` of Graphcore's vision examples: the module at which
    /// each IPU except the first begins. The examples for PopTorch name innermost modules, those
    /// for TensorFlow 2 Keras layers, and those for TensorFlow 1 scopes. Modules and scopes are
    /// paths with slashes.
    pub fn pipeline_splits(&mut self) {
        for (position, name) in self.source.layers_and_out() {
            let path = self
                .source
                .split_at(position, name)
                .map(|path| path.replace('.', "/"));
            let (module, comment) = entry(path.as_deref(), name, "module");
            self.text
                .begin(position, true, format!("- {module}{comment}"));
        }
    }
}
