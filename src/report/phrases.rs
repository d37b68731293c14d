//! The parts of sentences: fixed text, and values such as numbers and names from files.
//!
//! `format!` writes each [`Phrase`] into a text as JSON between two NUL characters.
//! [`Sentence::from`] then separates the text into phrases, so that an output form can write each
//! kind of phrase in its own way: the terminal writes amounts in the requested units, and Markdown
//! and the HTML page escape names.

use crate::{
    escape::printable,
    model::{LayerNames, PseudoLayers},
    wording::{Units, capital, grouped, join},
};
use serde::{Deserialize, Serialize};
use std::fmt;

pub use Phrase::{Amount, Bytes, Count};

/// A sentence as a list of phrases, since each form of output writes numbers and names in its
/// own way.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sentence(pub Vec<Phrase>);

/// A phrase of a sentence: fixed text, or a value that is put into the sentence.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phrase {
    /// Fixed text that PopLiner itself contains, so no output form needs to escape it.
    Text(String),
    /// A number of bytes, written with its unit, such as `1,024 bytes`.
    Amount(u64),
    /// A number of bytes, written without a unit, such as `1,024`.
    Bytes(u64),
    /// A count of things, such as tiles, or an index, such as the number of a tile.
    Count(u64),
    /// A name that may come from a file, so every output form must escape the name.
    Name(String),
    /// Several names in one text, such as `a, b and c`. Each name is already short enough to
    /// read.
    List(String),
    /// Text that a user can type, such as a command-line option.
    Code(String),
    /// The names of the layers of one stage, which a form of output shortens if they are many.
    Layers(LayerNames),
    /// The names of the layers of each stage of a split, such as `[ In 0 | 1 Out ]` on a
    /// terminal.
    Stages(Vec<LayerNames>),
}

/// The character before and after each value, such as a number or a name, in a formatted sentence.
/// JSON escapes this character, so a value that is written as JSON does not contain it.
const MARK: char = '\0';

impl fmt::Display for Phrase {
    /// Writes the phrase as JSON between two NUL characters ([`MARK`]), by which [`Sentence::from`]
    /// finds the phrase in a text made by `format!`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        write!(formatter, "{MARK}{json}{MARK}")
    }
}

impl From<String> for Sentence {
    /// Splits a text made by `format!` into fixed text and values, such as numbers and names. A
    /// value is JSON between two NUL characters ([`MARK`]). Invalid values are left out.
    fn from(text: String) -> Self {
        let phrases = text
            .split(MARK)
            .enumerate()
            .filter_map(|(place, piece)| match place % 2 {
                0 => Some(Phrase::Text(piece.to_string())).filter(|_| !piece.is_empty()),
                _ => serde_json::from_str(piece).ok(),
            });
        Self(phrases.collect())
    }
}

/// Makes a phrase from a name. Names may come from a file, so each form of output (terminal,
/// Markdown, HTML) escapes them.
pub fn name(name: impl Into<String>) -> Phrase {
    Phrase::Name(name.into())
}

/// Makes a phrase from text that a user can type, such as a command-line option. Each form of
/// output (terminal, Markdown, HTML) escapes the text in its own way.
pub fn code(code: impl Into<String>) -> Phrase {
    Phrase::Code(code.into())
}

pub fn layers(layers: &LayerNames) -> Phrase {
    Phrase::Layers(layers.clone())
}

pub fn stages(stages: &[LayerNames]) -> Phrase {
    Phrase::Stages(stages.to_vec())
}

/// Returns ` at step` and the number of a liveness step, to end a sentence with; an empty text if
/// `step` is `None`.
pub fn at_step(step: Option<u32>) -> String {
    step.map_or(String::new(), |step| format!(" at step {step}"))
}

/// Returns an introduction (`text`) followed by `names`, such as options, with commas between;
/// `None` if there are no names.
pub fn names(text: &str, names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{text}{}", join(names.iter().map(code), ", ")))
}

impl Phrase {
    /// Returns the phrase as text for a terminal, with amounts of bytes in `units`, and with
    /// control characters in names escaped.
    pub fn plain(&self, units: Units, pseudo_layers: PseudoLayers) -> String {
        match self {
            Self::Text(text) | Self::List(text) => text.clone(),
            Self::Amount(bytes) => units.amount(*bytes),
            Self::Bytes(bytes) => units.short(*bytes),
            Self::Count(count) => grouped(*count),
            Self::Name(name) | Self::Code(name) => printable(name),
            Self::Layers(layers) => pseudo_layers.plain_list(layers),
            Self::Stages(stages) => pseudo_layers.plain_stages(stages),
        }
    }
}

impl Sentence {
    /// Starts the sentence with a capital letter, unless it begins with a name or a number.
    pub fn capital(mut self) -> Self {
        if let Some(Phrase::Text(text)) = self.0.first_mut() {
            *text = capital(text);
        }
        self
    }

    /// Returns the sentence as text for a terminal, with amounts of bytes in `units`, and with
    /// control characters in names escaped, since names come from files.
    pub fn plain(&self, units: Units, pseudo_layers: PseudoLayers) -> String {
        let phrases = self.0.iter();
        phrases
            .map(|phrase| phrase.plain(units, pseudo_layers))
            .collect()
    }
}

/// Returns a difference in bytes with its sign and in parentheses, such as `(+1,024)`.
pub fn in_parentheses(change: i64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("({sign}{})", Bytes(change.unsigned_abs()))
}

/// Returns a warning if a tile fits, but takes more than 98 % of its `limit`. The free bytes may be
/// too few for the code of exchanges between IPUs, which a profile of one IPU lacks.
pub fn nearly_full(bytes: u64, limit: u64) -> Option<String> {
    let is_close = u128::from(bytes) * 100 > u128::from(limit) * 98;
    (is_close && bytes <= limit).then(|| {
        format!(
            "more than 98 % of the limit is taken, and a profile of one IPU has no code for \
             exchange between IPUs: {} keeps room for it",
            code("--reserve")
        )
    })
}
