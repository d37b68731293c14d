//! The sentences that several forms show, each written once.
//!
//! A [`Sentence`] distinguishes text, numbers, and names from files. The terminal writes amounts in
//! the requested units; Markdown and the page escape names. Sentences begin with a small letter and
//! have no full stop. Forms add these if they need them.

mod explain;
mod pipeline;
mod refusal;

pub(super) use explain::{explain, tied_weights};
pub(super) use pipeline::{beside_what_fits, named, other_split, pipeline};
pub(super) use refusal::{advice, given, help, in_the_way, refusal};

use super::{CoverageFacts, LayerMemory, LayerNames, Proof, Report, Split, Units};
use crate::escape::printable;
use crate::model::{Framework, PseudoLayers};
use crate::wording::{capital, counted, grouped};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use Phrase::{Amount, Bytes, Count};

/// Returns `text` followed by `names` with commas between; `None` without names.
pub(super) fn names<'a>(
    text: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Option<Sentence> {
    let names = names.into_iter().map(|name| Sentence::from(code(name)));
    let names = Sentence::join(names, ", ");
    (!names.phrases.is_empty()).then(|| say(text).and(names))
}

/// Wraps text that is shown unchanged, such as a warning.
pub(super) fn whole(text: String) -> Sentence {
    Phrase::List(text).into()
}

/// A sentence in phrases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Sentence {
    pub(super) phrases: Vec<Phrase>,
}

impl From<Phrase> for Sentence {
    fn from(phrase: Phrase) -> Self {
        Self::default().phrase(phrase)
    }
}

/// A phrase of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phrase {
    /// Text of this program.
    Text(String),
    /// An amount, such as `1,024 bytes`.
    Amount(u64),
    /// Bytes without a unit, such as `1,024`.
    Bytes(u64),
    /// A number of things, or the index of one.
    Count(u64),
    /// Text that may come from a file.
    Name(String),
    /// Several names in one text, each already shortened.
    List(String),
    /// Text that can be typed, such as an option.
    Code(String),
    /// The layers of a stage.
    Layers(LayerNames),
    /// The layers of all stages.
    Stages(Vec<LayerNames>),
}

/// Makes a sentence of text.
pub(super) fn say(text: impl Into<String>) -> Sentence {
    Sentence::default().text(text)
}

/// Puts `phrases` into `text`, one in place of each `{}`.
pub(super) fn fill<const N: usize>(text: &str, phrases: [Phrase; N]) -> Sentence {
    let mut pieces = text.split("{}");
    let begin = say(pieces.next().unwrap_or_default());
    let pairs = phrases.into_iter().zip(pieces);
    pairs.fold(begin, |sentence, (phrase, text)| {
        sentence.phrase(phrase).text(text)
    })
}

/// A number, or other text of this program.
pub(super) fn text(text: impl ToString) -> Phrase {
    Phrase::Text(text.to_string())
}

/// A name that may come from a file.
pub(super) fn name(name: impl Into<String>) -> Phrase {
    Phrase::Name(name.into())
}

/// Text that can be typed, such as an option.
pub(super) fn code(code: impl Into<String>) -> Phrase {
    Phrase::Code(code.into())
}

/// The layers of a stage.
pub(super) fn layers(layers: &LayerNames) -> Phrase {
    Phrase::Layers(layers.clone())
}

/// The layers of all stages.
pub(super) fn stages(stages: &[LayerNames]) -> Phrase {
    Phrase::Stages(stages.to_vec())
}

impl Sentence {
    /// Adds a phrase. Text continues text before it.
    fn phrase(mut self, phrase: Phrase) -> Self {
        match (self.phrases.last_mut(), phrase) {
            (_, Phrase::Text(more)) if more.is_empty() => {}
            (Some(Phrase::Text(text)), Phrase::Text(more)) => text.push_str(&more),
            (_, phrase) => self.phrases.push(phrase),
        }
        self
    }

    pub(super) fn text(self, text: impl Into<String>) -> Self {
        self.phrase(Phrase::Text(text.into()))
    }

    /// Adds the phrases of another sentence.
    pub(super) fn and(self, other: Sentence) -> Self {
        other.phrases.into_iter().fold(self, Self::phrase)
    }

    /// Adds the phrases of another sentence if there is one.
    pub(super) fn and_if(self, other: Option<Sentence>) -> Self {
        self.and(other.unwrap_or_default())
    }

    /// Joins sentences into one, with `between` between them.
    pub(super) fn join(sentences: impl IntoIterator<Item = Sentence>, between: &str) -> Sentence {
        let mut all = Sentence::default();
        for sentence in sentences {
            if !all.phrases.is_empty() {
                all = all.text(between);
            }
            all = all.and(sentence);
        }
        all
    }

    /// Returns the sentence with a capital letter at its start.
    pub(super) fn capital(mut self) -> Self {
        if let Some(Phrase::Text(text)) = self.phrases.first_mut() {
            *text = capital(text);
        }
        self
    }
}

/// Returns the heading of a report: whether the model fits.
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

/// Gives the layers of each stage, and either how many IPUs they fit on or why they do not fit.
pub(super) fn split(report: &Report, split: &Split, fits: Option<bool>) -> Sentence {
    let line = Sentence::from(stages(&split.layers()));
    match fits {
        Some(false) => line.text(" ").and(shortfall(report, split)),
        Some(true) => line.text(" ").text(fits_on(report, split)),
        None => line,
    }
}

/// Says on how many IPUs a split fits.
fn fits_on(report: &Report, split: &Split) -> String {
    let count = split.stages.len();
    let line = format!("fits on {}", counted(count, "IPU"));
    let framework = report.pipeline.as_ref().map(|pipeline| pipeline.framework);
    match framework {
        _ if count == 1 => line + ": a pipeline is not needed",
        Some(Framework::Poptorch) if !count.is_power_of_two() => {
            let needed = count.next_power_of_two();
            format!("{line}; PopTorch needs a power of 2: use {needed}")
        }
        _ => line,
    }
}

/// Says which stage is nearest to its limit; `None` if the split does not fit.
pub(super) fn most_memory(report: &Report) -> Option<Sentence> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let stage = split.nearest_to_limit()?;
    let tile = &stage.fullest_tile;
    Some(fill(
        "stage {} needs the most memory: {} of {} on tile {}",
        [
            text(stage.stage),
            Amount(tile.bytes),
            Bytes(tile.limit),
            text(tile.tile),
        ],
    ))
}

/// Warns if more than 98 % of the limit is taken: exchange code between IPUs, which a profile of
/// one IPU lacks, may not fit.
pub(super) fn nearly_full(bytes: u64, limit: u64) -> Option<Sentence> {
    let is_close = u128::from(bytes) * 100 > u128::from(limit) * 98;
    let line = "more than 98 % of the limit is taken, and a profile of one IPU has no code for \
                exchange between IPUs: {} keeps room for it";
    (is_close && bytes <= limit).then(|| fill(line, [code("--reserve")]))
}

/// Says that fewer IPUs than the split uses are enough.
pub(super) fn fewer_ipus(report: &Report) -> Option<Sentence> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let fewest = split.fewest_ipus?;
    let are = if fewest == 1 { "is" } else { "are" };
    let ipus = format!("{} {are}", counted(fewest, "IPU"));
    let option = code(format!("--num-ipus {fewest}"));
    (usize::try_from(fewest).ok()? < split.stages.len())
        .then(|| fill("{} enough ({})", [text(ipus), option]))
}

/// Says why a split does not fit, as the end of a sentence that begins with "the split".
pub(super) fn shortfall(report: &Report, split: &Split) -> Sentence {
    if !split.unplaced.is_empty() {
        let line = "is as far as the search got; in no stage: {}";
        return fill(line, [layers(&split.unplaced)]);
    }
    let count = split.stages.len();
    if count > split.max_stages as usize {
        let max_ipus = counted(split.max_stages, "IPU");
        return say(format!("has {} for {max_ipus}", counted(count, "stage")));
    }
    let broken = report.given.as_ref().map(|given| &given.broken_constraints);
    if let Some(broken) = broken.filter(|broken| !broken.is_empty()) {
        return fill("breaks {}", [name(broken.join(", "))]);
    }
    let begin = match split.is_given {
        true => "does not fit: tile",
        false => "is the best, but tile",
    };
    let Some(stage) = split.nearest_to_limit() else {
        return Sentence::default();
    };
    let tile = &stage.fullest_tile;
    let over = Amount(tile.bytes.saturating_sub(tile.limit));
    let of_stage = [
        text(begin),
        Count(tile.tile.into()),
        text(stage.stage),
        over,
        Bytes(tile.limit),
    ];
    fill("{} {} of stage {} is {} over the limit of {}", of_stage)
}

/// Says for each position that it is too large for any number of IPUs.
pub(super) fn too_large(report: &Report) -> Vec<Sentence> {
    let split = report.split.iter();
    let too_large =
        split.flat_map(|split| split.too_large.iter().map(|layer| (layer, split.limit)));
    let is_by_regex = report.provenance.layer_name_regex.is_some();
    let help = match &*report.provenance.memory_model {
        "full" if is_by_regex => {
            "with these layers more IPUs do not help; finer layers may (--layer-name-regex auto)"
        }
        _ => "more IPUs do not help",
    };
    let sentence = |(layer, limit): (&LayerMemory, u64)| {
        let meaning = report.pseudo_layers.meaning(&layer.name);
        let meaning = meaning.map(|meaning| format!(" ({meaning})"));
        let bytes = layer.fullest_tile_bytes;
        fill(
            "{}{} by itself needs {} on tile {}, {} over the limit: {}",
            [
                name(capital(&report.pseudo_layers.named(&layer.name))),
                text(meaning.unwrap_or_default()),
                Amount(bytes),
                text(layer.fullest_tile),
                Bytes(bytes.saturating_sub(limit)),
                text(help),
            ],
        )
    };
    too_large.map(sentence).collect()
}

/// Says how much of the fullest tile is explained, and by what, and how much of it is assigned to
/// several positions only because they use it.
pub(super) fn coverage(coverage: &CoverageFacts) -> Sentence {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    let by_touch = match coverage.by_touch {
        0 => String::new(),
        bytes => format!(" ({} in every place that uses it)", share(bytes.into())),
    };
    let explained = i128::from(coverage.recorded) - i128::from(coverage.rest);
    let [in_layers, assigned, overhead] =
        [coverage.layers, coverage.assigned, coverage.overhead].map(|bytes| share(bytes.into()));
    let rest = format!(
        ", is attributed: {in_layers} to layers, {assigned} to other operations{by_touch}, {overhead} to \
         every stage",
    );
    fill(
        "{} of the fullest tile of the whole model, tile {} with {}{}",
        [
            text(share(explained)),
            text(coverage.tile),
            Amount(coverage.recorded),
            text(rest),
        ],
    )
}

/// Says whether the split is proven to be the best, by which numbers, and what lower numbers would
/// need; `None` without a proof.
pub(super) fn proof(proof: &Proof) -> Option<Sentence> {
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
    let least = proof.step_at_least;
    let least = least.map(|step| fill(", and every step at least {}", [Count(step)]));
    let optimal = say(agree)
        .and(name(numbers.join(", ")).into())
        .and_if(least);
    let lower = proof.bottlenecks.iter().map(|bottleneck| {
        let needs = match bottleneck.stages_needed {
            Some(stages) => format!(" needs {}", counted(stages, "stage")),
            None => " is too little for any split".to_string(),
        };
        let number = format!("{} {}", bottleneck.objective.key(), bottleneck.below);
        fill("{}{}", [name(number), text(needs)])
    });
    let all = [optimal].into_iter().chain(lower);
    let is_proven = proof.optimal || proof.step_at_least.is_some();
    is_proven.then(|| Sentence::join(all, "; "))
}

impl Sentence {
    /// Writes the sentence for a terminal: amounts in `units`, and whole lists of stages.
    pub(super) fn plain(&self, units: Units, pseudo_layers: PseudoLayers) -> String {
        let phrase = |phrase: &Phrase| match phrase {
            Phrase::Text(text) => text.clone(),
            Phrase::Amount(bytes) => units.amount(*bytes),
            Phrase::Bytes(bytes) => units.short(*bytes),
            Phrase::Count(count) => grouped(*count),
            Phrase::Name(name) | Phrase::Code(name) => printable(name),
            Phrase::List(list) => list.clone(),
            Phrase::Layers(layers) => pseudo_layers.few(layers),
            Phrase::Stages(stages) => pseudo_layers.all(stages),
        };
        self.phrases.iter().map(phrase).collect()
    }
}

/// Gives a difference in bytes with its sign, in parentheses.
fn in_parentheses(change: i64) -> Sentence {
    let sign = if change < 0 { "-" } else { "+" };
    fill("({}{})", [text(sign), Bytes(change.unsigned_abs())])
}
