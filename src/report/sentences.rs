//! The sentences that several forms of output show, each written once.
//!
//! `format!` makes them. Each [`Phrase`] that it puts in, such as a number or a name from a file,
//! is marked in the text. A [`Sentence`] is the text separated into phrases, so that a form can
//! write each kind in its own way: the terminal writes amounts in the requested units, and Markdown
//! and the page escape names. Sentences begin with a small letter and have no full stop. A form
//! adds both if it needs them.

mod explain;
mod pipeline;
mod refusal;

pub(super) use explain::{explain, tied_weights};
pub(super) use pipeline::{other_pipelines, other_split, pipeline, pipeline_name};
pub(super) use refusal::{advice, given, help, missing_memory, obstacles, why_none_fits};

use super::{CoverageFacts, LayerMemory, LayerNames, Proof, Report, Split, Units};
use crate::escape::printable;
use crate::model::{Framework, PseudoLayers};
use crate::wording::{capital, counted, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

pub(super) use Phrase::{Amount, Bytes, Count};

/// A sentence as a list of phrases, each of which an output form writes in its own way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Sentence {
    pub(super) phrases: Vec<Phrase>,
}

/// A phrase of a sentence: text of this program, or a value that is put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phrase {
    /// Text that this program wrote, which needs no escaping.
    Text(String),
    /// A number of bytes, written with its unit, such as `1,024 bytes`.
    Amount(u64),
    /// A number of bytes, written without a unit, such as `1,024`.
    Bytes(u64),
    /// A number of things, such as tiles, or the index of one thing.
    Count(u64),
    /// A name that may come from a file, so it must be escaped.
    Name(String),
    /// Several names in one text, such as `a, b and c`, each already shortened to a readable
    /// length.
    List(String),
    /// Text that a user can type, such as an option.
    Code(String),
    /// The names of the layers of one stage.
    Layers(LayerNames),
    /// The names of the layers of each stage of a split.
    Stages(Vec<LayerNames>),
}

/// The character before and after each marked phrase in a text. It cannot be in JSON.
const MARK: char = '\0';

impl fmt::Display for Phrase {
    /// Writes the phrase as JSON between two marks, for [`Sentence::from`].
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        write!(formatter, "{MARK}{json}{MARK}")
    }
}

impl From<String> for Sentence {
    /// Separates a text into its unmarked pieces and its marked phrases.
    fn from(text: String) -> Self {
        let pieces = text.split(MARK).enumerate();
        let phrases = pieces.filter_map(|(place, piece)| match place % 2 {
            0 => Some(Phrase::Text(piece.to_string())).filter(|_| !piece.is_empty()),
            _ => serde_json::from_str(piece).ok(),
        });
        Self {
            phrases: phrases.collect(),
        }
    }
}

/// Makes a phrase from a name that may come from a file.
pub(super) fn name(name: impl Into<String>) -> Phrase {
    Phrase::Name(name.into())
}

/// Makes a phrase from text that a user can type, such as an option.
pub(super) fn code(code: impl Into<String>) -> Phrase {
    Phrase::Code(code.into())
}

/// Makes a phrase from the names of the layers of one stage.
pub(super) fn layers(layers: &LayerNames) -> Phrase {
    Phrase::Layers(layers.clone())
}

/// Makes a phrase from the names of the layers of each stage of a split.
pub(super) fn stages(stages: &[LayerNames]) -> Phrase {
    Phrase::Stages(stages.to_vec())
}

/// Joins phrases or sentences into one text, with commas between.
pub(super) fn with_commas(all: impl Iterator<Item = impl fmt::Display>) -> String {
    let all: Vec<String> = all.map(|one| one.to_string()).collect();
    all.join(", ")
}

/// Returns `text` followed by `names`, which are separated by commas; `None` if there are no names.
pub(super) fn names(text: &str, names: &[String]) -> Option<String> {
    let all = with_commas(names.iter().map(code));
    (!names.is_empty()).then(|| format!("{text}{all}"))
}

impl Sentence {
    /// Writes the first letter of the sentence in upper case, unless it begins with a name or
    /// number.
    pub(super) fn capital(mut self) -> Self {
        if let Some(Phrase::Text(text)) = self.phrases.first_mut() {
            *text = capital(text);
        }
        self
    }

    /// Writes the sentence for a terminal, with amounts in `units`, and with control characters in
    /// names escaped.
    pub(super) fn plain(&self, units: Units, pseudo_layers: PseudoLayers) -> String {
        let phrase = |phrase: &Phrase| match phrase {
            Phrase::Text(text) => text.clone(),
            Phrase::Amount(bytes) => units.amount(*bytes),
            Phrase::Bytes(bytes) => units.short(*bytes),
            Phrase::Count(count) => grouped(*count),
            Phrase::Name(name) | Phrase::Code(name) => printable(name),
            Phrase::List(list) => list.clone(),
            Phrase::Layers(layers) => pseudo_layers.plain_list(layers),
            Phrase::Stages(stages) => pseudo_layers.plain_stages(stages),
        };
        self.phrases.iter().map(phrase).collect()
    }
}

/// Returns the heading of a report on a model: whether its split fits, and on how many IPUs.
pub(super) fn verdict(report: &Report) -> String {
    let Some(split) = &report.split else {
        return "Memory of the model".to_string();
    };
    let stages = split.stages.len() as u64;
    let max_ipus = counted(split.max_stages, "IPU");
    if split.fits {
        let late = match report.is_in_time() {
            true => "",
            false => ", but a step takes too long",
        };
        format!("The model fits on {}{late}", counted(stages, "IPU"))
    } else if !split.unplaced.is_empty() {
        let unplaced = split.unplaced.len();
        format!("The search found no room on {max_ipus} for {unplaced} of the layers")
    } else if stages > u64::from(split.max_stages) {
        let ipus = counted(stages, "IPU");
        format!("The split needs {ipus}, and there are {}", split.max_stages)
    } else {
        format!("The model does not fit on {max_ipus}")
    }
}

/// Writes the layers of each stage of a split, followed by the number of IPUs that they fit on, or
/// by the reason why they do not fit. Without a verdict (`fits` is `None`), only the layers.
pub(super) fn split(report: &Report, split: &Split, fits: Option<bool>) -> String {
    let layers = stages(&split.layers());
    match fits {
        Some(false) => format!("{layers} {}", shortfall(report, split)),
        Some(true) => format!("{layers} {}", fits_on(report, split)),
        None => layers.to_string(),
    }
}

/// Writes on how many IPUs a split fits, with a hint if the framework needs a power of two.
fn fits_on(report: &Report, split: &Split) -> String {
    let count = split.stages.len();
    let line = format!("fits on {}", counted(count, "IPU"));
    let framework = report
        .pipeline
        .as_ref()
        .map(|pipeline| pipeline.recording.framework);
    match framework {
        _ if count == 1 => line + ": a pipeline is not needed",
        Some(Framework::Poptorch) if !count.is_power_of_two() => {
            let needed = count.next_power_of_two();
            format!("{line}; PopTorch needs a power of 2: use {needed}")
        }
        _ => line,
    }
}

/// Says which stage has the fewest free bytes, and how full it is; `None` if the split does not
/// fit.
pub(super) fn most_memory(report: &Report) -> Option<String> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let stage = split.nearest_to_limit()?;
    let (number, tile) = (stage.stage, &stage.fullest_tile);
    let (bytes, limit, tile) = (Amount(tile.bytes), Bytes(tile.limit), tile.tile);
    Some(format!(
        "stage {number} needs the most memory: {bytes} of {limit} on tile {tile}"
    ))
}

/// Warns if more than 98 % of the limit is taken, since code for exchange between IPUs, which a
/// profile of one IPU lacks, may then not fit. `None` if less is taken, or more than the limit.
pub(super) fn nearly_full(bytes: u64, limit: u64) -> Option<String> {
    let is_close = u128::from(bytes) * 100 > u128::from(limit) * 98;
    (is_close && bytes <= limit).then(|| {
        format!(
            "more than 98 % of the limit is taken, and a profile of one IPU has no code for \
             exchange between IPUs: {} keeps room for it",
            code("--reserve")
        )
    })
}

/// Says that the split would fit on fewer IPUs than it uses; `None` if it would not.
pub(super) fn fewer_ipus(report: &Report) -> Option<String> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let fewest = split.fewest_ipus?;
    let are = if fewest == 1 { "is" } else { "are" };
    let ipus = counted(fewest, "IPU");
    let option = code(format!("--num-ipus {fewest}"));
    let is_less = usize::try_from(fewest).ok()? < split.stages.len();
    is_less.then(|| format!("{ipus} {are} enough ({option})"))
}

/// Says why a split does not fit, as the end of a sentence that begins with "the split".
pub(super) fn shortfall(report: &Report, split: &Split) -> String {
    if !split.unplaced.is_empty() {
        let unplaced = layers(&split.unplaced);
        return format!("is as far as the search got; in no stage: {unplaced}");
    }
    let count = split.stages.len();
    if count > split.max_stages as usize {
        let max_ipus = counted(split.max_stages, "IPU");
        return format!("has {} for {max_ipus}", counted(count, "stage"));
    }
    let broken = report.given.as_ref().map(|given| &given.broken_constraints);
    if let Some(broken) = broken.filter(|broken| !broken.is_empty()) {
        return format!("breaks {}", name(broken.join(", ")));
    }
    let begin = match split.is_given {
        true => "does not fit:",
        false => "is the best, but",
    };
    let Some(stage) = split.nearest_to_limit() else {
        return String::new();
    };
    let (number, tile) = (stage.stage, &stage.fullest_tile);
    let over = Amount(tile.bytes.saturating_sub(tile.limit));
    let (tile, limit) = (Count(tile.tile.into()), Bytes(tile.limit));
    format!("{begin} tile {tile} of stage {number} is {over} over the limit of {limit}")
}

/// Says, for each layer that exceeds the limit as a stage of its own, that more IPUs do not help.
pub(super) fn too_large(report: &Report) -> Vec<String> {
    let is_by_regex = report.provenance.layer_name_regex.is_some();
    let help = match &*report.provenance.memory_model {
        "full" if is_by_regex => {
            "with these layers more IPUs do not help; finer layers may (--layer-name-regex auto)"
        }
        _ => "more IPUs do not help",
    };
    let sentence = |layer: &LayerMemory, limit: u64| {
        let meaning = report.pseudo_layers.meaning(&layer.name);
        let meaning = meaning.map_or(String::new(), |meaning| format!(" ({meaning})"));
        let own_name = name(capital(&report.pseudo_layers.in_sentence(&layer.name)));
        let bytes = layer.fullest_tile_bytes;
        let over = Bytes(bytes.saturating_sub(limit));
        let (bytes, tile) = (Amount(bytes), layer.fullest_tile);
        format!(
            "{own_name}{meaning} by itself needs {bytes} on tile {tile}, {over} over the limit: {help}"
        )
    };
    let split = report.split.iter();
    let too_large = split.flat_map(|split| {
        let layers = split.too_large.iter();
        layers.map(|layer| sentence(layer, split.limit))
    });
    too_large.collect()
}

/// Says how much of the recorded bytes of the fullest tile the model attributes to layers, to other
/// operations and to every stage, and how much counts in several stages only because these use it.
pub(super) fn coverage(coverage: &CoverageFacts) -> String {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    let by_touch = match coverage.by_touch {
        0 => String::new(),
        bytes => format!(" ({} in every place that uses it)", share(bytes.into())),
    };
    let explained = share(i128::from(coverage.recorded) - i128::from(coverage.rest));
    let [in_layers, assigned, overhead] =
        [coverage.layers, coverage.assigned, coverage.overhead].map(|bytes| share(bytes.into()));
    let (tile, recorded) = (coverage.tile, Amount(coverage.recorded));
    format!(
        "{explained} of the fullest tile of the whole model, tile {tile} with {recorded}, is \
         attributed: {in_layers} to layers, {assigned} to other operations{by_touch}, {overhead} to \
         every stage"
    )
}

/// Says whether the split is proven to be the best, by which numbers, and how many stages lower
/// numbers would need; `None` if the search proved nothing.
pub(super) fn proof(proof: &Proof) -> Option<String> {
    let numbers = proof.objectives.iter();
    let numbers: Vec<String> = numbers
        .map(|number| format!("{} {}", number.objective.key(), number.integer_program))
        .collect();
    let agree = match (proof.step_at_least, proof.optimal) {
        (None, _) => "optimal: the integer program and the dynamic program agree on ",
        (Some(_), true) => {
            "optimal: all splits were tried, or shown to be no faster; in every split the slowest \
             stage takes at least "
        }
        (Some(_), false) => {
            "not all splits could be tried; in every split the slowest stage takes at least "
        }
    };
    let mut text = format!("{agree}{}", name(numbers.join(", ")));
    if let Some(step) = proof.step_at_least {
        text += &format!(", and every step at least {}", Count(step));
    }
    for bottleneck in &proof.bottlenecks {
        let needs = match bottleneck.stages_needed {
            Some(stages) => format!("needs {}", counted(stages, "stage")),
            None => "is too little for any split".to_string(),
        };
        let number = format!("{} {}", bottleneck.objective.key(), bottleneck.below);
        text += &format!("; {} {needs}", name(number));
    }
    (proof.optimal || proof.step_at_least.is_some()).then_some(text)
}

/// Writes a difference in bytes with its sign, in parentheses.
fn in_parentheses(change: i64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("({sign}{})", Bytes(change.unsigned_abs()))
}
