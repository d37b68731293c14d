//! Finds the layers of a model, and the layer of each operation (docs/model.md, "Layers").

use super::{
    Framework, Label, LayerOrder, Model, ModuleCalls, ModuleLayers, NO_LAYER, Named, Note,
    Operation,
    layer_lookup::{PART, WHOLE, lookup, lookup_path},
    layer_regex::{CaptureGroups, assign, matches, only},
};
use regex::Regex;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The layers of a model, at which a pipeline can be split, and the layer of each operation.
#[derive(Debug, Clone)]
pub struct Layering {
    /// The names of the layers, in their order. Entry 0 is empty and stands for operations without
    /// a layer.
    pub names: Vec<String>,
    /// One entry per operation: its layer, as an index into `names`; [`NO_LAYER`] (0) if the
    /// operation has no layer.
    pub layers: Vec<u32>,
    /// One entry per operation: the rule that gave the operation its layer, or the reason why it
    /// has none.
    pub notes: Vec<Note>,
    /// One entry per layer, without an entry for "no layer": the full path of the layer's module,
    /// such as `bert.encoder.layer.3`; empty if the module is unknown.
    pub(crate) modules: Vec<String>,
    /// The modules of the model, if they are the layers. If a regex found the layers instead, the
    /// modules that could be layers are computed when first needed ([`tree`](Self::tree)).
    tree: OnceLock<ModuleLayers>,
    /// Names that the user gave in options for modules or operations rather than layers. Each comes
    /// with the index of the operation with which the module or operation begins. The index is in a
    /// [`Named::Layer`] if a layer or Out (the operations after the last layer) begins there too,
    /// and otherwise in a [`Named::Inside`]. Elsewhere, these variants hold indices of layers.
    named: Vec<(String, Named)>,
    finder: Finder,
}

/// A way to find the layer that a text belongs to, such as the name of a variable.
#[derive(Debug, Clone)]
enum Finder {
    /// Layers cannot be found in texts. [`Layering::of`] is given the layer of each operation, so
    /// it knows neither a regex nor modules that would find a layer in the name of an operation.
    Nothing,
    /// The layer regex, and a map from the capture groups of a match to the index of the layer in
    /// [`Layering::names`].
    Regex(Regex, FxHashMap<CaptureGroups, u32>),
    /// Texts are searched for modules. The name of a parameter belongs to the first layer that uses
    /// the parameter, and any other text to the layer of the module whose path it contains, such as
    /// `encoder.layer.3`.
    Modules,
}

impl Layering {
    /// Finds the layers of a model, from its names and modules as `options` require.
    pub fn new(model: &Model, options: &LayerOptions) -> Self {
        Self::find(&model.operations, options, Some(model))
    }

    /// Finds the layers from names of operations only, for a program whose data flow and bytes are
    /// unknown. Without these, layers of a regex cannot be compared with modules. So
    /// [`LayerSource::Best`] takes the layers of the default regex if it finds any, and modules
    /// otherwise.
    pub fn of_names(operations: &[Operation], options: &LayerOptions) -> Self {
        Self::find(operations, options, None)
    }

    fn find(operations: &[Operation], options: &LayerOptions, model: Option<&Model>) -> Self {
        let of_names = || ModuleLayers::of_names(operations);
        let modules = || model.map_or_else(of_names, ModuleLayers::new);
        match &options.source {
            LayerSource::Regex(regex) => Self::by_regex(operations, regex, options),
            LayerSource::Modules => Self::by_modules(operations, modules()),
            LayerSource::Original => Self::by_default(operations, options),
            LayerSource::Best => {
                let mut by_regex = Self::by_default(operations, options);
                if model.is_none() && !by_regex.is_empty() {
                    return by_regex;
                }
                let modules = modules();
                let layers = by_regex.layers_by_name();
                if !by_regex.is_empty() && modules.are_matched_by(&layers) {
                    by_regex.modules = modules.modules_of(&layers, by_regex.len() - 1);
                    by_regex.tree = modules.into();
                    by_regex
                } else {
                    Self::by_modules(operations, modules)
                }
            }
        }
    }

    /// Finds the layers as the original tool does, with the default regex and default options.
    pub fn original(operations: &[Operation]) -> Self {
        Self::by_default(operations, &LayerOptions::default())
    }

    fn by_default(operations: &[Operation], options: &LayerOptions) -> Self {
        Self::by_regex(operations, &own_regex(DEFAULT_LAYER_REGEX), options)
    }

    /// Finds the layers that `regex` matches in names and inputs of operations. Matches with the
    /// same capture groups belong to one layer. The field `options.source` has no effect.
    pub fn by_regex(operations: &[Operation], regex: &Regex, options: &LayerOptions) -> Self {
        let (layers, notes, keys) = assign(operations, regex, options);
        let mut names = vec![String::new()];
        names.extend(keys.iter().map(|groups| {
            groups
                .iter()
                .filter(|text| !text.is_empty())
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(options.separator)
        }));
        Self {
            notes,
            finder: Finder::Regex(regex.clone(), keys.into_iter().zip(1..).collect()),
            ..Self::of(names, layers)
        }
    }

    fn by_modules(operations: &[Operation], modules: ModuleLayers) -> Self {
        let layers: Vec<u32> = modules
            .layers(operations)
            .into_iter()
            .map(|layer| layer.map_or(NO_LAYER, |layer| layer as u32 + 1))
            .collect();
        let note = |(operation, &layer): (&Operation, &u32)| match layer {
            _ if operation.is_tensor => Note::TensorFilter,
            NO_LAYER => Note::InputLayers(0),
            _ => Note::Name,
        };
        let mut names = vec![String::new()];
        names.extend(modules.layers.iter().map(|layer| layer.name.clone()));
        Self {
            notes: operations.iter().zip(&layers).map(note).collect(),
            modules: modules
                .layers
                .iter()
                .map(|layer| layer.path.clone())
                .collect(),
            finder: Finder::Modules,
            tree: modules.into(),
            ..Self::of(names, layers)
        }
    }

    /// Builds a layering from given layers. `names` has the names of the layers, after an empty
    /// entry 0. `layers` has one entry per operation: an index into `names`, or 0 for no layer. The
    /// name of a variable gives it no layer, since no regex or module shows how names contain a
    /// layer.
    pub fn of(names: Vec<String>, layers: Vec<u32>) -> Self {
        Self {
            notes: vec![Note::Name; layers.len()],
            names,
            layers,
            modules: Vec::new(),
            tree: OnceLock::new(),
            named: Vec::new(),
            finder: Finder::Nothing,
        }
    }

    /// Returns the regex that found the layers; `None` if the layers are modules.
    pub fn regex(&self) -> Option<&Regex> {
        match &self.finder {
            Finder::Regex(regex, _) => Some(regex),
            _ => None,
        }
    }

    /// Divides the layers for which `is_wanted` is true into their submodules, which become layers.
    /// `is_wanted` is called with the index of a layer in `names`. Returns `None` if no layer can
    /// be divided.
    pub(crate) fn refined(
        &self,
        operations: &[Operation],
        is_wanted: impl Fn(&usize) -> bool,
    ) -> Option<Self> {
        let mut refined: Option<ModuleLayers> = None;
        for position in (1..self.names.len()).rev().filter(is_wanted) {
            let modules = refined.as_ref().or(self.modules())?;
            refined = modules.refined(position - 1).or(refined);
        }
        Some(Self::by_modules(operations, refined?))
    }

    /// Returns a regex for PopART's environment variable `POPART_POPLINER_OUTLINER_REGEX`, which
    /// keeps PopART from outlining code of different layers together. The regex comes from the
    /// modules or, if they give none, is the layer regex.
    pub(crate) fn outliner_regex(&self, operations: &[Operation]) -> String {
        self.modules()
            .and_then(|modules| modules.outliner_regex(operations))
            .unwrap_or_else(|| {
                self.regex()
                    .map_or(DEFAULT_LAYER_REGEX, Regex::as_str)
                    .to_string()
            })
    }

    /// Moves operations at both ends of the model that use a weight named in `tied` from their
    /// layers to In (before the first layer) or Out (after the last layer), so that the weight does
    /// not force these layers onto one IPU. Returns `None` if no operation moves.
    pub(crate) fn without_tied_ends(&self, model: &Model, tied: &[&str]) -> Option<Self> {
        let modules = self.modules()?.without_tied_ends(model, tied)?;
        Some(Self::by_modules(&model.operations, modules))
    }

    /// Divides layers further so that the model can be split before each of `names`, which the user
    /// gave. A name may be that of a layer, of a part of a layer, of a module or of an operation.
    /// Names that are unknown, or before which no division allows a split, do not change the
    /// layers.
    pub(crate) fn with_named(self, model: &Model, names: &[String]) -> Self {
        names.iter().fold(self, |layers, name| {
            if layers.names.iter().any(|own| own == name) {
                return layers;
            }
            let named = layers.named_by(name);
            let part = layers.modules().filter(|_| named == Named::Unknown);
            if let Some(part) = part.and_then(|modules| modules.with_part(name)) {
                return layers.with_modules(&model.operations, part);
            }
            let at_module = |ways| layers.tree(model).first_of_module(name, ways);
            // If a name is the whole path of a layer or module, it stands only for this layer or
            // module, and not for others whose paths contain the name. So whole paths are tried
            // first.
            for way in WHOLE.chunks(1) {
                if let Named::Layer(_) = lookup_path(name, &layers.modules, way) {
                    return layers;
                }
                if let Named::Layer(operation) = at_module(way) {
                    return layers.beginning_with(model, name, operation);
                }
            }
            if named != Named::Unknown {
                return layers;
            }
            let operation = match at_module(&PART) {
                Named::Unknown => layers.tree(model).operation(name, &model.operations),
                named => named.layer(),
            };
            match operation {
                Some(operation) => layers.beginning_with(model, name, operation),
                None => layers,
            }
        })
    }

    fn named_by(&self, name: &str) -> Named {
        lookup(name, &self.names[1..], &self.modules)
    }

    /// Iterates over the places in the layer order that the user's `name` stands for, as indices: 0
    /// for In (what runs before the layers), the index of a layer in [`names`](Self::names), or the
    /// number of names for Out (what runs after the layers).
    pub(crate) fn places_named(&self, name: &str) -> impl Iterator<Item = usize> {
        let own = self.named_by(name).map(|layer| layer + 1);
        let known = self
            .named_places()
            .filter(move |(text, _)| *text == name)
            .map(|(_, named)| named);
        [own].into_iter().chain(known).filter_map(Named::layer)
    }

    /// Returns a layering whose layers are `modules`. Names given by the user still stand for the
    /// same operations as in `self`.
    fn with_modules(self, operations: &[Operation], modules: ModuleLayers) -> Self {
        Self {
            named: self.named,
            ..Self::by_modules(operations, modules)
        }
    }

    /// Iterates over the names that the user gave for modules or operations rather than layers.
    /// Each comes with the place of the module or operation: 0 for In (the operations before the
    /// first layer), the index of a layer in [`names`](Self::names), or the length of
    /// [`names`](Self::names) for Out (the operations after the last layer). This number is in a
    /// [`Named::Layer`] if the place begins with the module or operation, and otherwise in a
    /// [`Named::Inside`].
    pub(crate) fn named_places(&self) -> impl Iterator<Item = (&str, Named)> {
        let layers = self.layers_by_name();
        let place = move |operation| self.place(operation, &layers);
        self.named
            .iter()
            .map(move |(text, named)| (&**text, named.clone().map(&place)))
    }

    /// Returns the place of an operation: the index of the layer that its name contains. An
    /// operation whose name contains no layer is in In (place 0) if it comes before the first
    /// operation with a layer, and otherwise in Out (place `names.len()`). `layers` has, for each
    /// operation, the layer that its name contains, or [`NO_LAYER`].
    fn place(&self, operation: usize, layers: &[u32]) -> usize {
        let first = layers.iter().position(|&layer| layer != NO_LAYER);
        match layers[operation] {
            NO_LAYER if Some(operation) >= first => self.names.len(),
            layer => layer as usize,
        }
    }
    /// Divides layers into their modules until one begins with `operation`, so that the model can
    /// be split before the module or operation that the user calls `name`. If no division leads to
    /// that, the layers stay as they are. In both cases, adds `name` to the field `named`, except
    /// for operations of Out (the operations after the last layer) before Out's first module.
    fn beginning_with(self, model: &Model, name: &str, operation: usize) -> Self {
        let operation = self
            .tree(model)
            .layered_from(operation, &self.layers_by_name());
        let divided = self
            .modules()
            .and_then(|modules| modules.beginning_at(operation));
        let mut layers = match divided {
            Some(divided) => self.with_modules(&model.operations, divided),
            None => self,
        };
        let begins = layers.begins_place(model, operation);
        layers.named.extend(begins.map(|begins| {
            let named = if begins { Named::Layer } else { Named::Inside };
            (name.to_owned(), named(operation))
        }));
        layers
    }

    /// Returns whether a layer or Out (the operations after the last layer) begins with
    /// `operation`. Before the first module that a layer or Out calls, there may be operations of
    /// no module.
    /// - In a layer, the first operation counts as its beginning, and so does the first operation
    ///   of its first module.
    /// - In Out, only the first operation of its first module counts. For operations before that,
    ///   or if there is no such module, the result is `None` (unknown).
    /// - In In (the operations before the first layer), no operation counts.
    fn begins_place(&self, model: &Model, operation: usize) -> Option<bool> {
        let by_name = self.layers_by_name();
        let place = self.place(operation, &by_name);
        if place == 0 {
            return Some(false);
        }
        let calls = self.module_calls(model).swap_remove(place);
        let begun = self
            .tree(model)
            .first_of_module(&calls.leaf.unwrap_or_default(), &WHOLE)
            .layer();
        if place == self.names.len() {
            return (begun? <= operation).then_some(begun? == operation);
        }
        let first = by_name.iter().position(|&layer| layer as usize == place);
        Some([first, begun].contains(&Some(operation)))
    }
    /// Returns the modules of the model's code that each position (In, each layer, Out) calls.
    pub(crate) fn module_calls(&self, model: &Model) -> Vec<ModuleCalls> {
        let mut calls = self
            .tree(model)
            .calls(&self.layers_by_name(), self.names.len() - 1);
        if model.recording.framework != Framework::Tensorflow {
            calls.iter_mut().for_each(|calls| calls.top.clear());
        }
        calls
    }

    /// Returns whether the model's code certainly has a module, or a list of modules, at `path`,
    /// which was derived from names of operations. Such paths are uncertain in PopTorch, whose
    /// names of operations may leave out lists. Other frameworks name all modules, so the result is
    /// always true for them.
    pub(crate) fn has_module(&self, model: &Model, path: &str) -> bool {
        model.recording.framework != Framework::Poptorch || self.tree(model).has_module(path)
    }

    /// Returns the modules of the model. If a regex found the layers, the modules are computed by
    /// the first call.
    pub(crate) fn tree(&self, model: &Model) -> &ModuleLayers {
        self.tree.get_or_init(|| ModuleLayers::new(model))
    }

    /// Returns the modules of the model if they are the layers; `None` if a regex found the layers.
    pub(crate) fn modules(&self) -> Option<&ModuleLayers> {
        match self.finder {
            Finder::Modules => self.tree.get(),
            _ => None,
        }
    }

    /// Returns the layer of an operation by its name, by its inputs or, for a Call, by the
    /// operation after it; `None` if these give none. The regex for inputs of the first layer gives
    /// no layer here, since operations that match it, such as an embedding, run before the layers.
    pub fn own_layer(&self, operation: usize) -> Option<u32> {
        let layer = self.layers[operation];
        (layer != NO_LAYER && self.notes[operation] != Note::InputsRegexLayer0).then_some(layer)
    }

    /// Returns one entry per operation: the index of the layer that the operation's name contains,
    /// or [`NO_LAYER`] if its name contains none. Layers in the names of its inputs are ignored.
    pub(crate) fn layers_by_name(&self) -> Vec<u32> {
        self.layers
            .iter()
            .zip(&self.notes)
            .map(|(&layer, &note)| match note {
                Note::Name => layer,
                _ => NO_LAYER,
            })
            .collect()
    }

    /// Returns the layer of a variable by the tensor id in its label or, if that contains no layer,
    /// by the name in its label. A text contains a layer if it has exactly one match of the layer
    /// regex, or the path of the layer's module.
    pub fn layer_in(&self, label: &Label) -> Option<u32> {
        let layer = |text: &str| match &self.finder {
            Finder::Nothing => None,
            Finder::Regex(regex, positions) => positions.get(&only(matches(regex, text))?).copied(),
            Finder::Modules => Some(self.tree.get()?.layer_of(text)? as u32 + 1),
        };
        layer(&label.tensor).or_else(|| layer(&label.name))
    }

    /// Returns the length of `names`: the number of layers plus 1, since index 0 stands for
    /// operations without a layer.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether no layer was found.
    pub fn is_empty(&self) -> bool {
        self.names.len() == 1
    }
}

#[cfg(test)]
mod tests;

/// The regex with which the original tool (the Python program that PopLiner replaces) finds layers
/// in names of operations.
pub const DEFAULT_LAYER_REGEX: &str = r"(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)";

/// The regex with which the original tool (the Python program that PopLiner replaces) finds inputs
/// of the first layer.
pub const DEFAULT_INPUTS_REGEX: &str = r"(word_embeddings|Embedding_Dict)";

/// Where layers come from: from a regex, or from the modules of the model.
#[derive(Debug, Clone, Default)]
pub enum LayerSource {
    /// Take the layers of the default regex, unless it finds none or the modules of the model are
    /// better layers, mainly because they are fewer, more alike or smaller (docs/model.md, "Layers
    /// from modules").
    #[default]
    Best,
    /// Take modules of the model as layers, such as the blocks that its PyTorch code calls.
    Modules,
    /// Find layers with [`DEFAULT_LAYER_REGEX`] only, as the original tool does.
    Original,
    /// Find layers by searching for this regex in the names and inputs of operations.
    Regex(Regex),
}

/// Options that determine what the layers of a model are.
#[derive(Debug, Clone)]
pub struct LayerOptions {
    /// Where layers come from: a regex, or the modules of the model.
    pub source: LayerSource,
    /// A regex that matches inputs of the first layer. An operation with such an input belongs to
    /// the first layer if neither its name nor its inputs contain a layer.
    pub inputs_regex: Regex,
    /// The order in which layers from a regex are numbered; modules keep the order of the program.
    pub order: LayerOrder,
    /// The text between the capture groups of the layer regex in the name of a layer: a dot in the
    /// full memory model. In the classic memory model, it is empty, because the original tool joins
    /// capture groups without a separator.
    pub separator: &'static str,
}

impl Default for LayerOptions {
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
    /// Returns default options, except that the layers are modules of the model.
    pub fn modules() -> Self {
        Self {
            source: LayerSource::Modules,
            ..Self::default()
        }
    }
}

pub fn own_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regex of this program")
}
