//! How layers are found, and the layer of each operation (docs/model.md, "Layers").

use super::layer_regex::{
    CaptureGroups, LayerOrder, NO_LAYER, Note, assign, in_order, matches, only,
};
use super::modules::{ModuleCalls, ModuleLayers, ModuleRow};
use super::recording::Framework;
use super::{Label, Model, Operation};
use regex::Regex;
use rustc_hash::FxHashMap;

/// Which layer each operation of a model is in.
#[derive(Debug, Clone)]
pub struct Layering {
    /// The names of the layers in their order. Position 0 is the pseudo-layer
    /// of the operations without a layer, which has no name.
    pub names: Vec<String>,
    /// By operation: the position of its layer, [`NO_LAYER`] for none.
    pub layers: Vec<u32>,
    /// By operation: why it got this layer.
    pub notes: Vec<Note>,
    /// By layer, without the pseudo-layer: the path of its module, with the names of containers
    /// that are never called; empty if the module is unknown.
    pub(crate) modules: Vec<String>,
    /// The modules of the model, if they were compared with a regex that found the layers.
    tree: Option<Box<ModuleLayers>>,
    finder: Finder,
}

/// Finds layers in texts other than names of operations.
#[derive(Debug, Clone, Default)]
enum Finder {
    /// No text names a layer.
    #[default]
    Nothing,
    /// A regex, and the position of each layer by its capture groups.
    Regex(Regex, FxHashMap<CaptureGroups, u32>),
    /// The modules of the model.
    Modules(Box<ModuleLayers>),
}

impl Layering {
    /// Finds the layer of every operation of a model.
    pub fn new(model: &Model, options: &LayerOptions) -> Self {
        Self::find(&model.operations, options, || ModuleLayers::new(model))
    }

    /// Finds the layer of every operation from names only. Which layers describe the program best
    /// cannot be computed then: the default regex is used if it finds any layer.
    pub fn of_names(operations: &[Operation], options: &LayerOptions) -> Self {
        if let LayerSource::Best = options.source {
            let by_regex = Self::by_regex(operations, &own_regex(DEFAULT_LAYER_REGEX), options);
            if !by_regex.is_empty() {
                return by_regex;
            }
        }
        Self::find(operations, options, || ModuleLayers::of_names(operations))
    }

    fn find(
        operations: &[Operation],
        options: &LayerOptions,
        modules: impl FnOnce() -> ModuleLayers,
    ) -> Self {
        let by_default = || Self::by_regex(operations, &own_regex(DEFAULT_LAYER_REGEX), options);
        match &options.source {
            LayerSource::Regex(regex) => Self::by_regex(operations, regex, options),
            LayerSource::Modules => Self::by_modules(operations, modules()),
            LayerSource::Original => by_default(),
            LayerSource::Best => {
                let mut by_regex = by_default();
                let modules = modules();
                let layers = by_regex.layers_by_name();
                if !by_regex.is_empty() && modules.are_matched_by(&layers) {
                    by_regex.modules = modules.modules_of(&layers, by_regex.len() - 1);
                    by_regex.tree = Some(Box::new(modules));
                    by_regex
                } else {
                    Self::by_modules(operations, modules)
                }
            }
        }
    }

    /// Finds the layers as the original tool does by default.
    pub fn original(operations: &[Operation]) -> Self {
        let options = LayerOptions::default();
        Self::by_regex(operations, &own_regex(DEFAULT_LAYER_REGEX), &options)
    }

    /// Finds the layers that a regex matches in names and inputs.
    pub fn by_regex(operations: &[Operation], regex: &Regex, options: &LayerOptions) -> Self {
        let mut found: FxHashMap<CaptureGroups, u32> = FxHashMap::default();
        let (mut layers, notes) = assign(operations, (regex, &options.inputs_regex), &mut found);
        let keys = in_order(found, &mut layers, options.order);
        let mut names = vec![String::new()];
        let name = |groups: &CaptureGroups| {
            let texts = groups.iter().filter(|text| !text.is_empty());
            let texts: Vec<&str> = texts.map(String::as_str).collect();
            texts.join(options.separator)
        };
        names.extend(keys.iter().map(name));
        let positions = keys.into_iter().zip(1..).collect();
        Self {
            notes,
            finder: Finder::Regex(regex.clone(), positions),
            ..Self::of(names, layers)
        }
    }

    /// Layers that are the modules of a model.
    fn by_modules(operations: &[Operation], modules: ModuleLayers) -> Self {
        let layers = modules.layers(operations).into_iter();
        let layers: Vec<u32> = layers
            .map(|layer| layer.map_or(NO_LAYER, |layer| layer + 1))
            .collect();
        let note = |(operation, &layer): (&Operation, &u32)| match layer {
            _ if operation.is_tensor => Note::TensorFilter,
            NO_LAYER => Note::InputLayers(0),
            _ => Note::Name,
        };
        let names = modules.layers.iter().map(|layer| layer.name.clone());
        let names = [String::new()].into_iter().chain(names).collect();
        let paths = modules.layers.iter().map(|layer| layer.path.clone());
        Self {
            notes: operations.iter().zip(&layers).map(note).collect(),
            modules: paths.collect(),
            finder: Finder::Modules(Box::new(modules)),
            ..Self::of(names, layers)
        }
    }

    /// Operations with given layers, by position in `names`, where position 0 means no layer. No
    /// text names any of these layers.
    pub fn of(names: Vec<String>, layers: Vec<u32>) -> Self {
        Self {
            notes: vec![Note::Name; layers.len()],
            names,
            layers,
            modules: Vec::new(),
            tree: None,
            finder: Finder::default(),
        }
    }

    /// The regex that found the layers, if one did.
    pub fn regex(&self) -> Option<&Regex> {
        match &self.finder {
            Finder::Regex(regex, _) => Some(regex),
            _ => None,
        }
    }

    /// The layers with those at `positions` cut into their parts; `None` if none of them is a
    /// module with parts.
    pub(crate) fn refined(&self, operations: &[Operation], positions: &[usize]) -> Option<Self> {
        let mut refined: Option<ModuleLayers> = None;
        let layers = 1..self.names.len();
        let layers = positions
            .iter()
            .filter(|position| layers.contains(position));
        for position in layers.rev() {
            let modules = refined.as_ref().or(self.modules())?;
            refined = modules.refined(position - 1).or(refined);
        }
        Some(Self::by_modules(operations, refined?))
    }

    /// The modules of the model down to its layers; if a regex found the layers, down to the
    /// modules that would be layers.
    pub(crate) fn outline(&self, model: &Model) -> Vec<ModuleRow> {
        match self.modules() {
            Some(modules) => modules.outline(),
            None => ModuleLayers::new(model).outline(),
        }
    }

    /// The value of PopART's `POPART_POPLINER_OUTLINER_REGEX` that keeps code of different layers
    /// from being outlined together.
    pub(crate) fn outliner_regex(&self, operations: &[Operation]) -> String {
        let modules = self.modules();
        let by_modules = modules.and_then(|modules| modules.outliner_regex(operations));
        let regex = || {
            self.regex()
                .map_or(DEFAULT_LAYER_REGEX, Regex::as_str)
                .to_string()
        };
        by_modules.unwrap_or_else(regex)
    }

    /// The layers without the operations at both ends that share a weight named in `tied`; `None` if
    /// the layers are not modules, or if no operation is released.
    pub(crate) fn without_tied_ends(&self, model: &Model, tied: &[&str]) -> Option<Self> {
        let modules = self.modules()?.without_tied_ends(model, tied)?;
        Some(Self::by_modules(&model.operations, modules))
    }

    /// The layers, with each named part of a layer as a separate layer if the modules have such a
    /// part.
    pub(crate) fn with_parts(self, operations: &[Operation], names: &[&str]) -> Self {
        let with_part = |layers: Self, name: &&str| {
            let is_known = layers.names.iter().any(|layer| layer == name);
            let modules = layers.modules().filter(|_| !is_known);
            let refined = modules.and_then(|modules| modules.with_part(name));
            refined.map_or(layers, |refined| Self::by_modules(operations, refined))
        };
        names.iter().fold(self, with_part)
    }

    /// The modules of the model's code that are called by the operations before the layers, by each
    /// layer, and by the operations after them.
    pub(crate) fn module_calls(&self, model: &Model) -> Vec<ModuleCalls> {
        let layers = self.layers_by_name();
        let calls = |modules: &ModuleLayers| modules.calls(&layers, self.names.len() - 1);
        let mut calls = match self.modules().or(self.tree.as_deref()) {
            Some(modules) => calls(modules),
            None => calls(&ModuleLayers::new(model)),
        };
        if model.recording.framework != Framework::Tensorflow {
            calls.iter_mut().for_each(|calls| calls.top.clear());
        }
        calls
    }

    /// The modules, if the layers are modules.
    pub(crate) fn modules(&self) -> Option<&ModuleLayers> {
        match &self.finder {
            Finder::Modules(modules) => Some(modules),
            _ => None,
        }
    }

    /// The layer that the name or the inputs of an operation give. An operation that only has
    /// inputs of the first layer belongs to In.
    pub fn own_layer(&self, operation: usize) -> Option<u32> {
        let is_own = self.notes[operation] != Note::InputsRegexLayer0;
        Some(self.layers[operation]).filter(|&layer| is_own && layer != NO_LAYER)
    }

    /// By operation: the position of the layer that its name gives, or [`NO_LAYER`].
    pub(crate) fn layers_by_name(&self) -> Vec<u32> {
        let by_name = |(&layer, &note)| match note {
            Note::Name => layer,
            _ => NO_LAYER,
        };
        self.layers.iter().zip(&self.notes).map(by_name).collect()
    }

    /// The position of the single layer that a variable's label names.
    pub fn layer_in(&self, label: &Label) -> Option<u32> {
        let layer = |text: &str| match &self.finder {
            Finder::Nothing => None,
            Finder::Regex(regex, positions) => {
                let groups = only(matches(regex, text))?;
                positions.get(&groups).copied()
            }
            Finder::Modules(modules) => Some(modules.layer_of(text)? + 1),
        };
        layer(&label.tensor).or_else(|| layer(&label.name))
    }

    /// Number of positions in the layer order, the pseudo-layer included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Was no layer found?
    pub fn is_empty(&self) -> bool {
        self.names.len() == 1
    }
}

#[cfg(test)]
mod tests;

/// The regex for layer names of the original tool.
pub const DEFAULT_LAYER_REGEX: &str = r"(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)";

/// The regex for inputs of the first layer of the original tool.
pub const DEFAULT_INPUTS_REGEX: &str = r"(word_embeddings|Embedding_Dict)";

/// The source of layers: a regex or the modules of the model.
#[derive(Debug, Clone, Default)]
pub enum LayerSource {
    /// The default regex where it describes the model as well as its modules, else the modules.
    #[default]
    Best,
    /// The modules of the model.
    Modules,
    /// The default regex.
    Original,
    /// A regex that matches the layer in names and inputs of operations.
    Regex(Regex),
}

/// How layers are found.
#[derive(Debug, Clone)]
pub struct LayerOptions {
    /// The source of the layers.
    pub source: LayerSource,
    /// Matches inputs of operations that belong to the first layer.
    pub inputs_regex: Regex,
    /// The order of the layers.
    pub order: LayerOrder,
    /// Text between those of several capture groups of the layer regex in the name of a layer: a
    /// dot, or nothing in the classic memory model, as in the Python tool.
    pub separator: &'static str,
}

impl Default for LayerOptions {
    /// The layers that describe the model best, in the order of their first step.
    fn default() -> Self {
        Self {
            source: LayerSource::default(),
            inputs_regex: own_regex(DEFAULT_INPUTS_REGEX),
            order: LayerOrder::Steps,
            separator: ".",
        }
    }
}

impl LayerOptions {
    /// The layers are the modules of the model.
    pub fn modules() -> Self {
        Self {
            source: LayerSource::Modules,
            ..Self::default()
        }
    }
}

/// Compiles a regex constant of this program.
pub(super) fn own_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regex of this program")
}
