//! The order of the layers, with the pseudo-layers before and after them.

use crate::model::Layering;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The positions of the layer order, which computing memory, splitting and showing ranges of layers
/// refer to.
///
/// | position | classic model | full model | full model, Out with In |
/// |---|---|---|---|
/// | 0 | None: all operations without a layer | In: what runs before the layers | In and Out |
/// | 1 to n | the layers in their order | the same | the same |
/// | n + 1 | | Out: what runs after the last layer, and its own backward pass | |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions {
    pseudo_layers: PseudoLayers,
    layers: Vec<String>,
    /// By layer: the path of its module; empty if unknown.
    modules: Vec<String>,
}

/// The pseudo-layers around the layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PseudoLayers {
    /// None before the layers: all operations without a layer (classic memory model).
    NoneFirst,
    /// In before the layers, for operations before them, and Out after the layers, for operations
    /// after them.
    #[default]
    InAndOut,
    /// In and Out as one position before the layers, since Out runs on the first IPU.
    OutWithIn,
}

impl PseudoLayers {
    /// The pseudo-layers of the full memory model. Out has a position of its own unless it runs on
    /// the first IPU (`out_is_first`).
    pub fn full(out_is_first: bool) -> Self {
        match out_is_first {
            true => PseudoLayers::OutWithIn,
            false => PseudoLayers::InAndOut,
        }
    }
}

/// The meaning of a position of the layer order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionName<'a> {
    /// All operations without a layer (classic model).
    None,
    /// Operations before the layers.
    In,
    /// In, and Out with it.
    InAndOut,
    /// A layer.
    Layer(&'a str),
    /// Operations after the layers.
    Out,
}

impl fmt::Display for PositionName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PositionName::None => "None",
            PositionName::In => "In",
            PositionName::InAndOut => "In Out",
            PositionName::Layer(name) => name,
            PositionName::Out => "Out",
        })
    }
}

impl Positions {
    /// The layers between these pseudo-layers.
    pub fn new(layering: &Layering, pseudo_layers: PseudoLayers) -> Self {
        Self {
            pseudo_layers,
            layers: layering.names.get(1..).unwrap_or_default().to_vec(),
            modules: layering.modules.clone(),
        }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.layers.len() + 1 + usize::from(self.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Always false: there is at least the first position.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The names of the layers in their order, without In, Out and None.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// The position of Out, if it has one of its own.
    pub fn out(&self) -> Option<usize> {
        (self.pseudo_layers == PseudoLayers::InAndOut).then_some(self.layers.len() + 1)
    }

    /// Are In and Out in one position?
    pub fn out_is_first(&self) -> bool {
        self.pseudo_layers == PseudoLayers::OutWithIn
    }

    /// The pseudo-layers around the layers.
    pub fn pseudo_layers(&self) -> PseudoLayers {
        self.pseudo_layers
    }

    /// The meaning of a position.
    ///
    /// # Panics
    /// When the position does not exist.
    pub fn name(&self, position: usize) -> PositionName<'_> {
        match (position, self.pseudo_layers) {
            (0, PseudoLayers::NoneFirst) => PositionName::None,
            (0, PseudoLayers::InAndOut) => PositionName::In,
            (0, PseudoLayers::OutWithIn) => PositionName::InAndOut,
            (position, _) if Some(position) == self.out() => PositionName::Out,
            (position, _) => PositionName::Layer(&self.layers[position - 1]),
        }
    }

    /// The names of all positions, in their order.
    pub fn names(&self) -> Vec<String> {
        let names = (0..self.len()).map(|position| self.name(position).to_string());
        names.collect()
    }

    /// The position of a place. The place of Out is after all layers, even if Out shares a position
    /// with In.
    pub fn of_place(&self, place: u32) -> usize {
        let place = place as usize;
        if self.out_is_first() && place > self.layers.len() {
            0
        } else {
            place
        }
    }

    /// The meaning of a place, with In and Out apart.
    pub fn name_of_place(&self, place: u32) -> PositionName<'_> {
        match self.name(self.of_place(place)) {
            PositionName::InAndOut if place == 0 => PositionName::In,
            PositionName::InAndOut => PositionName::Out,
            name => name,
        }
    }

    /// The path of the module of the layer at a position; `None` if unknown.
    pub(crate) fn module(&self, position: usize) -> Option<&str> {
        let module = self.modules.get(position.checked_sub(1)?)?;
        Some(&**module).filter(|path| !path.is_empty())
    }

    /// The layer (from 0) that is the only one whose path ends with these modules.
    fn find_by_path(&self, end: &str) -> Option<usize> {
        let ends = |path: &String| {
            let before = path.strip_suffix(end);
            before.is_some_and(|before| before.is_empty() || before.ends_with(['.', '/']))
        };
        let mut found = (0..self.modules.len()).filter(|&layer| ends(&self.modules[layer]));
        found
            .next()
            .filter(|_| !end.is_empty() && found.next().is_none())
    }

    /// The position with this name: a layer, also by another end of its module's path that no other
    /// layer has, or `In`, `Out` or `None` where it exists. A layer with such a name comes before
    /// the pseudo-layer.
    pub fn find(&self, name: &str) -> Option<usize> {
        let layer = self.layers.iter().position(|layer| layer == name);
        let pseudo_layer = || match (name, self.pseudo_layers) {
            ("Out", PseudoLayers::InAndOut) => self.out(),
            ("None", PseudoLayers::NoneFirst)
            | ("In", PseudoLayers::InAndOut | PseudoLayers::OutWithIn)
            | ("Out", PseudoLayers::OutWithIn) => Some(0),
            _ => None,
        };
        let by_path = || self.find_by_path(name).map(|layer| layer + 1);
        let layer = layer.map(|layer| layer + 1);
        layer.or_else(pseudo_layer).or_else(by_path)
    }
}
