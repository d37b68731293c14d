//! The positions of a model, in their order: In (the operations before the first layer), the
//! layers, and Out (the operations after the last layer).

use crate::{
    model::Layering,
    model::layer_lookup::{Named, lookup},
};
use serde::{Deserialize, Serialize};

/// The positions: indices into the list of In, all layers and Out. Stages are ranges of positions.
///
/// | position | classic model | full model | full model, Out on the first IPU |
/// |---|---|---|---|
/// | 0 | None: all operations without a layer | In: operations before the layers | In and Out |
/// | 1 to n | the layers in their order | the layers in their order | the layers in their order |
/// | n + 1 | | Out: operations after the last layer, and their backward pass | |
#[derive(Debug, Clone)]
pub struct Positions {
    pseudo_layers: PseudoLayers,
    layers: Vec<String>,
    /// One entry per layer: the path of the layer's module, such as `bert.encoder.layer.3`; empty
    /// if unknown.
    modules: Vec<String>,
    /// Names of modules or operations that the user gave, without names of layers. Each comes with
    /// the place (In, a layer or Out) that begins at this module or operation or, if none begins
    /// there, the one that contains it.
    named: Vec<(String, Named)>,
}

/// The positions that are not layers: operations before, after and outside all layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PseudoLayers {
    /// One position before the layers for all operations without a layer (classic memory model).
    NoneFirst,
    /// A position before the layers (In) for the operations that run before them, and one after the
    /// layers (Out) for the operations that run after them.
    #[default]
    InAndOut,
    /// One position before the layers for two groups of operations: those before the first layer
    /// (In), and those after the last layer (Out), because Out runs on the first IPU.
    OutWithIn,
}

impl PseudoLayers {
    /// Returns which positions besides the layers the full memory model has: In and Out in one
    /// position if Out runs on the first IPU (`out_is_first`), otherwise each in a position of its
    /// own.
    pub fn full(out_is_first: bool) -> Self {
        if out_is_first {
            PseudoLayers::OutWithIn
        } else {
            PseudoLayers::InAndOut
        }
    }

    /// Returns the name of position 0: `None` in the classic model (all operations without a
    /// layer), otherwise `In`, or `In Out` if Out has the same position.
    pub(crate) fn first(self) -> &'static str {
        match self {
            PseudoLayers::NoneFirst => "None",
            PseudoLayers::InAndOut => "In",
            PseudoLayers::OutWithIn => "In Out",
        }
    }
}

/// The names of positions (In, layers, Out) in a report. The first position has no name (`None`),
/// as in the earlier Python tool. If In and Out are one position, because both run on the first
/// IPU, a list with this position begins with `None` and ends with `"Out"`.
pub type LayerNames = Vec<Option<String>>;

impl Positions {
    /// Lists the positions: the layers of `layering`, and those that `pseudo_layers` puts before
    /// and after them (In and Out in the full memory model).
    pub fn new(layering: &Layering, pseudo_layers: PseudoLayers) -> Self {
        Self {
            pseudo_layers,
            layers: layering.names[1..].to_vec(),
            modules: layering.modules.clone(),
            named: (layering.named_places())
                .map(|(text, place)| (text.to_owned(), place))
                .collect(),
        }
    }

    /// Returns the number of positions: the number of layers, plus 1 for the position before them,
    /// plus 1 if Out has a position of its own.
    pub fn len(&self) -> usize {
        self.layers.len() + 1 + usize::from(self.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Returns whether there are no positions. It is always false, because position 0, for
    /// operations outside the layers, exists even without layers.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the names of the layers in their order, without the positions before and after the
    /// layers, such as In and Out.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// Returns the position of Out (the operations after the last layer); `None` if Out has no
    /// position of its own.
    pub fn out(&self) -> Option<usize> {
        (self.pseudo_layers == PseudoLayers::InAndOut).then_some(self.layers.len() + 1)
    }

    /// Returns whether In (the operations before the first layer) and Out (those after the last)
    /// are one position, because Out runs on the first IPU.
    pub fn out_is_first(&self) -> bool {
        self.pseudo_layers == PseudoLayers::OutWithIn
    }

    /// Returns which positions exist besides the layers, for operations before, after or outside
    /// all layers.
    pub fn pseudo_layers(&self) -> PseudoLayers {
        self.pseudo_layers
    }

    /// Returns the name of a position:
    /// - the name of a layer
    /// - `In`: the operations before the first layer
    /// - `Out`: the operations after the last layer
    /// - `In Out`: both, if Out runs on the first IPU
    /// - `None`: all operations without a layer, in the classic memory model
    ///
    /// # Panics
    /// If the position does not exist.
    pub fn name(&self, position: usize) -> &str {
        match position {
            0 => self.pseudo_layers.first(),
            position if Some(position) == self.out() => "Out",
            position => &self.layers[position - 1],
        }
    }

    /// Returns the names of all positions (In, layers, Out), in their order.
    pub fn names(&self) -> Vec<String> {
        (0..self.len())
            .map(|position| self.name(position).to_string())
            .collect()
    }

    /// Returns the name of a position in a report ([`LayerNames`]): the name of a layer, or `Out`.
    /// Position 0 (In, the operations before the first layer) has no name there, so the result is
    /// `None`.
    pub fn layer_name(&self, position: usize) -> Option<String> {
        (position > 0).then(|| self.name(position).to_string())
    }

    /// Returns the names that `positions` (In, layers, Out; ascending) have in a report
    /// ([`LayerNames`]).
    pub fn layer_names(&self, positions: impl IntoIterator<Item = usize>) -> LayerNames {
        let mut names: Vec<_> = positions
            .into_iter()
            .map(|at| self.layer_name(at))
            .collect();
        if self.out_is_first() && matches!(names.first(), Some(None)) {
            names.push(Some("Out".to_string()));
        }
        names
    }

    /// Returns the position of a place. Places are In, the layers and Out. Positions are the same,
    /// except that Out has position 0, together with In, if Out runs on the first IPU.
    pub fn of_place(&self, place: u32) -> usize {
        let place = place as usize;
        let is_moved = self.out_is_first() && place > self.layers.len();
        if is_moved { 0 } else { place }
    }

    /// Returns the name of a place (In, a layer or Out). In and Out have different names even if
    /// they share a position because both run on the first IPU.
    pub fn name_of_place(&self, place: u32) -> &str {
        match place {
            0 => "In",
            place => (self.layers.get(place as usize - 1)).map_or("Out", String::as_str),
        }
    }

    /// Returns the path of the module that is the layer at `position`; `None` if the path is
    /// unknown, or if the position is no layer.
    pub(crate) fn module(&self, position: usize) -> Option<&str> {
        let module = self.modules.get(position.checked_sub(1)?)?;
        Some(&**module).filter(|path| !path.is_empty())
    }

    /// Returns the position that `name` (given by the user) stands for. These meanings of `name`
    /// are tried in order:
    /// - the name of a layer
    /// - `In`, `Out` or `None`
    /// - the name of a module or operation at which a layer or Out begins (`Layering::with_named`)
    /// - a part of the path of a layer's module
    pub fn find(&self, name: &str) -> Named {
        // The first position is called `In Out` if both In and Out are in it, so `name` is compared
        // with each word of the position's name.
        let is_named = |&position: &usize| self.name(position).split(' ').any(|own| own == name);
        let pseudo_layer = [0].into_iter().chain(self.out()).find(is_named);
        let is_layer = self.layers.iter().any(|layer| layer == name);
        let named = self.named.iter().find(|(text, _)| text == name);
        match (pseudo_layer, named) {
            (Some(position), _) if !is_layer => Named::Layer(position),
            (_, Some((_, named))) => named.clone().map(|place| self.of_place(place as u32)),
            _ => lookup(name, &self.layers, &self.modules).map(|layer| layer + 1),
        }
    }
}
