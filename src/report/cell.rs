//! A cell of a table, as people and as programs read it.

use super::LayerNames;
use crate::model::PseudoLayers;
use crate::wording::{displayed, grouped_signed, share};
use schemars::JsonSchema;
use serde::Serialize;

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// An unknown value.
    Empty,
    /// Text, which may come from a file.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(i128),
    /// One layer.
    #[serde(serialize_with = "layer")]
    #[schemars(with = "std::collections::BTreeMap<String, Option<String>>")]
    Layer(Option<String>),
    /// The layers of a stage.
    Layers(LayerNames),
    /// The layers of all stages.
    Stages(Vec<LayerNames>),
    /// A part and the whole.
    Share(u64, u64),
}

macro_rules! from {
    ($($value:ident: $type:ty => $cell:expr,)*) => {$(
        impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        }
    )*};
}

from! {
    number: u32 => Cell::Number(number.into()),
    number: u64 => Cell::Number(number.into()),
    number: usize => Cell::Number(number as i128),
    number: i64 => Cell::Number(number.into()),
    number: i128 => Cell::Number(number),
    is: bool => Cell::Bool(is),
    text: &str => Cell::Text(text.to_string()),
    text: String => Cell::Text(text),
    layers: LayerNames => Cell::Layers(layers),
    stages: Vec<LayerNames> => Cell::Stages(stages),
}

impl<T: Clone> From<&T> for Cell
where
    Cell: From<T>,
{
    fn from(cell: &T) -> Self {
        Cell::from(cell.clone())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Cell::Empty, Into::into)
    }
}

/// Writes a layer as an object. The name itself would be `null` for In, like an empty cell.
fn layer<S: serde::Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("layer", name)])
}

impl Cell {
    /// Writes the cell for people: digits in groups, and long lists of layers shortened. `order`
    /// says whether the first position is In, which has no name of its own.
    pub(super) fn displayed(&self, order: PseudoLayers) -> String {
        match self {
            Cell::Text(text) => displayed(text),
            Cell::Number(number) => grouped_signed(*number),
            Cell::Layer(layer) => order.displayed(layer),
            Cell::Layers(layers) => order.displayed_list(layers),
            Cell::Stages(stages) => order.displayed_stages(stages),
            other => other.plain(order),
        }
    }

    /// Writes the cell for programs: whole names, and numbers without separators.
    pub(super) fn plain(&self, order: PseudoLayers) -> String {
        let names = |layers: &LayerNames| order.names_of(layers).join(" ");
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Bool(is) => if *is { "yes" } else { "no" }.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Layer(layer) => order.name_of(layer).to_string(),
            Cell::Layers(layers) => names(layers),
            Cell::Stages(stages) => stages.iter().map(names).collect::<Vec<_>>().join(" | "),
            Cell::Share(part, whole) => share(*part, *whole),
        }
    }
}
