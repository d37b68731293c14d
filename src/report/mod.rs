//! What the analysis found, for machines and for people.
//!
//! A [`Split`] is plain data; every output form is a pure function of it and
//! stands in a file of its own: [`json`] and [`emit`] for standard output,
//! [`terminal`] for standard error.

pub mod breakdown;
pub mod compare;
pub mod csv;
pub mod diagnosis;
pub mod document;
pub mod emit;
#[cfg(test)]
mod hostile;
pub mod html;
pub mod json;
mod layer_names;
pub mod markdown;
#[cfg(test)]
mod pseudo_layer_forms;
pub mod split;
pub mod sweep;
mod tables;
pub mod terminal;
mod text;
mod tied_weights;
mod units;

pub use document::Report;
pub use layer_names::{layer_name, layer_names};
pub use split::{Layer, Memory, Split, Stage, free_bytes};
pub use tables::{Format, Table};
pub use text::{grouped, printable};
pub use units::Units;
