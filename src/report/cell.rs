//! A cell of a table, as people and as programs read it.

use super::{LayerNames, join};
use crate::model::PseudoLayers;
use crate::wording::{displayed, grouped_signed, share};
use serde::Serialize;

/// The value of one cell of a table, which people and programs read in different forms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Cell {
    /// No value, since it is unknown or does not apply.
    Empty,
    /// Text, which may come from a file.
    Text(String),
    /// A truth value, shown as `yes` or `no`.
    Bool(bool),
    /// A whole number, such as bytes, tiles or cycles; the column says which.
    Number(i128),
    /// The name of one layer; `None` for the first position of the layer order.
    #[serde(serialize_with = "layer")]
    #[cfg_attr(
        test,
        schemars(with = "std::collections::BTreeMap<String, Option<String>>")
    )]
    Layer(Option<String>),
    /// The names of the layers of one stage.
    Layers(LayerNames),
    /// The names of the layers of each stage of a split.
    Stages(Vec<LayerNames>),
    /// A part in bytes and the whole in bytes, shown in per cent.
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

/// Serializes the name of a layer as an object with the key `layer`. The bare name of In would be
/// `null`, which is an empty cell.
fn layer<S: serde::Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("layer", name)])
}

impl Cell {
    /// Writes the cell for people, with digits in groups and with long lists of layers shortened.
    /// `order` says whether the layer that has no name is In or None.
    pub(super) fn displayed(&self, order: PseudoLayers) -> String {
        match self {
            Cell::Text(text) => displayed(text),
            Cell::Number(number) => grouped_signed(*number),
            Cell::Layer(layer) => displayed(order.name_of(layer)),
            Cell::Layers(layers) => order.displayed_list(layers),
            Cell::Stages(stages) => order.displayed_stages(stages),
            other => other.plain(order),
        }
    }

    /// Writes the cell for programs, with whole names and without separators in numbers. `order`
    /// says whether the layer that has no name is In or None.
    pub(super) fn plain(&self, order: PseudoLayers) -> String {
        let names = |layers: &LayerNames| order.names_of(layers).join(" ");
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Bool(is) => if *is { "yes" } else { "no" }.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Layer(layer) => order.name_of(layer).to_string(),
            Cell::Layers(layers) => names(layers),
            Cell::Stages(stages) => join(stages.iter().map(names), " | "),
            Cell::Share(part, whole) => share(*part, *whole),
        }
    }
}
