//! The report: the result of the analysis, for machines and for people.
//!
//! A [`Report`] is plain data that can be written to a file and read again. [`Report::new`] makes a
//! report (`build`), and every output form is a pure function of the report: `json`, CSV,
//! `markdown` and `html` in files, [`emit`] and tables on standard output, [`terminal`] on standard
//! error, and [`compare`] with an earlier report. Content that several forms show is declared once:
//! `sections` declares which form shows which content in which order, `tables` has rows and
//! columns, `sentences` has sentences, and `layer_names` has the names of layers.
//!
//! Bytes are exact integers. A step is the index of a liveness step, from 0, and both ends of a
//! range of steps are inclusive. Tiles and stages are numbered from 0. In lists of layers, `null`
//! is the position before the layers, and `"Out"` is the position after them;
//! [`PseudoLayers`](crate::model::PseudoLayers) determines which operations are at these positions.
//!
//! The version of the report format grows when a field is removed or changes its meaning. Fields
//! and whole sections may be added without a new version, so readers must ignore unknown fields.

mod answer;
mod best_split;
mod breakdown;
mod build;
pub mod compare;
mod contents;
mod diagnosis;
pub mod emit;
mod fit;
mod html;
mod json;
mod layer_names;
mod liveness;
mod markdown;
mod phrases;
mod pipeline;
mod provenance;
mod recorded;
mod sections;
mod sentences;
mod split;
mod step;
mod table;
mod table_forms;
mod tables;
pub mod terminal;
#[cfg(test)]
pub(crate) mod testing;
mod what_if;

pub use crate::escape::printable;
pub use crate::wording::Units;
pub use answer::{GivenSplit, Proof, Refusal, RelaxationFacts, SharedVariables};
pub use best_split::*;
pub use breakdown::*;
pub use build::{Detail, Inputs, Peaks};
pub use contents::*;
pub use diagnosis::tables as diagnosis;
pub use fit::*;
pub use html::{text as html, viewer};
pub use json::{stages as stages_as_json, text as json};
pub use liveness::*;
pub use markdown::text as markdown;
use phrases::{Phrase, Sentence};
pub use pipeline::*;
pub use provenance::*;
pub use recorded::*;
use sections::Block;
pub use sections::{ScreenPart, Section};
pub use split::*;
pub use step::StepFacts;
use table::{Cell, table};
pub use table::{Form, Table};
pub use table_forms::Format;
pub use tables::{plan_table, sweep_table};
pub use what_if::*;

pub use crate::memory::Coverage as CoverageFacts;
pub use crate::model::{LayerNames, WeightTie};
pub use crate::search::{Advice, Change, OverLimit};
