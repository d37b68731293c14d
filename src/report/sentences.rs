//! The sentences that several forms show, each written once.
//!
//! A [`Sentence`] distinguishes text, numbers, and names from files. The terminal writes amounts in
//! the requested units; Markdown and the page escape names. Sentences begin with a small letter and
//! have no full stop. Forms add these if they need them.

mod explain;
mod pipeline;
mod refusal;
mod tied_weights;

pub(super) use explain::explain;
pub(super) use pipeline::{beside_what_fits, named, other_split, pipeline};
pub(super) use refusal::{advice, given, help, in_the_way, refusal};
pub(super) use tied_weights::tied_weights;

use super::text::{self, counted, grouped, share};
use super::{CoverageFacts, LayerMemory, LayerNames, Proof, Report, Split, Units};
use crate::model::{Framework, PseudoLayers};
use schemars::JsonSchema;
use serde::Serialize;

/// Returns `text` followed by `names` with commas between; `None` without names.
pub(super) fn names<'a>(
    text: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Option<Sentence> {
    let names = names.into_iter().map(|name| Sentence::default().code(name));
    let names = Sentence::join(names, ", ");
    (!names.phrases.is_empty()).then(|| Sentence::join([say(text), names], ""))
}

/// Wraps text that is shown unchanged, such as a warning.
pub(super) fn whole(text: String) -> Sentence {
    Sentence::default().phrase(Phrase::List(text))
}

/// A sentence in phrases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Sentence {
    pub(super) phrases: Vec<Phrase>,
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

/// Begins a sentence with `text`.
pub(super) fn say(text: impl Into<String>) -> Sentence {
    Sentence::default().text(text)
}

impl Sentence {
    fn phrase(mut self, phrase: Phrase) -> Self {
        self.phrases.push(phrase);
        self
    }

    pub(super) fn text(self, text: impl Into<String>) -> Self {
        self.phrase(Phrase::Text(text.into()))
    }

    pub(super) fn amount(self, bytes: u64) -> Self {
        self.phrase(Phrase::Amount(bytes))
    }

    pub(super) fn bytes(self, bytes: u64) -> Self {
        self.phrase(Phrase::Bytes(bytes))
    }

    pub(super) fn count(self, count: impl Into<u64>) -> Self {
        self.phrase(Phrase::Count(count.into()))
    }

    pub(super) fn name(self, name: impl Into<String>) -> Self {
        self.phrase(Phrase::Name(name.into()))
    }

    /// Adds names with commas between.
    fn names(self, names: &[String]) -> Self {
        let names: Vec<String> = names.iter().map(|name| text::displayed(name)).collect();
        self.phrase(Phrase::List(names.join(", ")))
    }

    pub(super) fn code(self, code: impl Into<String>) -> Self {
        self.phrase(Phrase::Code(code.into()))
    }

    pub(super) fn layers(self, layers: &LayerNames) -> Self {
        self.phrase(Phrase::Layers(layers.clone()))
    }

    pub(super) fn stages(self, stages: &[LayerNames]) -> Self {
        self.phrase(Phrase::Stages(stages.to_vec()))
    }

    /// Adds the phrases of another sentence.
    fn and(mut self, other: Sentence) -> Self {
        self.phrases.extend(other.phrases);
        self
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
            *text = text::capital(text);
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
        let late = if report.is_in_time() {
            ""
        } else {
            ", but a step takes too long"
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
    let stages = Sentence::default().stages(&split.layers());
    match fits {
        Some(false) => Sentence::join([stages, shortfall(report, split)], " "),
        Some(true) => Sentence::join([stages, fits_on(report, split)], " "),
        None => stages,
    }
}

/// Says on how many IPUs a split fits.
fn fits_on(report: &Report, split: &Split) -> Sentence {
    let stages = split.stages.len();
    let line = say(format!("fits on {}", counted(stages, "IPU")));
    let framework = report.pipeline.as_ref().map(|pipeline| pipeline.framework);
    match framework {
        _ if stages == 1 => line.text(": a pipeline is not needed"),
        Some(Framework::Poptorch) if !stages.is_power_of_two() => line.text(format!(
            "; PopTorch needs a power of 2: use {}",
            stages.next_power_of_two()
        )),
        _ => line,
    }
}

/// Says which stage is nearest to its limit; `None` if the split does not fit.
pub(super) fn most_memory(report: &Report) -> Option<Sentence> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let stage = split.nearest_to_limit()?;
    let tile = &stage.fullest_tile;
    Some(
        say(format!("stage {} needs the most memory: ", stage.stage))
            .amount(tile.bytes)
            .text(" of ")
            .bytes(tile.limit)
            .text(format!(" on tile {}", tile.tile)),
    )
}

/// Warns if more than 98 % of the limit is taken: exchange code between IPUs, which a profile of
/// one IPU lacks, may not fit.
pub(super) fn nearly_full(bytes: u64, limit: u64) -> Option<Sentence> {
    let is_close = u128::from(bytes) * 100 > u128::from(limit) * 98;
    (is_close && bytes <= limit).then(|| {
        say(
            "more than 98 % of the limit is taken, and a profile of one IPU has no code for \
             exchange between IPUs: ",
        )
        .code("--reserve")
        .text(" keeps room for it")
    })
}

/// Says that fewer IPUs than the split uses are enough.
pub(super) fn fewer_ipus(report: &Report) -> Option<Sentence> {
    let split = report.split.as_ref().filter(|split| split.fits)?;
    let fewest = split.fewest_ipus?;
    let are = if fewest == 1 { "is" } else { "are" };
    (usize::try_from(fewest).ok()? < split.stages.len()).then(|| {
        say(format!("{} {are} enough (", counted(fewest, "IPU")))
            .code(format!("--num-ipus {fewest}"))
            .text(")")
    })
}

/// Says why a split does not fit, as the end of a sentence that begins with "the split".
pub(super) fn shortfall(report: &Report, split: &Split) -> Sentence {
    if !split.unplaced.is_empty() {
        return say("is as far as the search got; in no stage: ").layers(&split.unplaced);
    }
    let stages = split.stages.len();
    if stages > split.max_stages as usize {
        let max_ipus = counted(split.max_stages, "IPU");
        return say(format!("has {} for {max_ipus}", counted(stages, "stage")));
    }
    let broken = report.given.as_ref().map(|given| &given.broken_constraints);
    if let Some(broken) = broken.filter(|broken| !broken.is_empty()) {
        return say("breaks ").name(broken.join(", "));
    }
    let begin = if split.is_given {
        "does not fit: tile "
    } else {
        "is the best, but tile "
    };
    match split.nearest_to_limit() {
        Some(stage) => {
            let tile = &stage.fullest_tile;
            say(begin)
                .count(tile.tile)
                .text(format!(" of stage {} is ", stage.stage))
                .amount(tile.bytes.saturating_sub(tile.limit))
                .text(" over the limit of ")
                .bytes(tile.limit)
        }
        None => say(""),
    }
}

/// Says for each position that it is too large for any number of IPUs.
pub(super) fn too_large(report: &Report) -> Vec<Sentence> {
    let split = report.split.iter();
    let layers = split.flat_map(|split| split.too_large.iter().zip(std::iter::repeat(split.limit)));
    let is_by_regex = report.provenance.layer_name_regex.is_some();
    let help = match &*report.provenance.memory_model {
        "full" if is_by_regex => {
            "with these layers more IPUs do not help; finer layers may (--layer-name-regex auto)"
        }
        _ => "more IPUs do not help",
    };
    let sentence = |(layer, limit): (&LayerMemory, u64)| {
        let meaning = report.pseudo_layers.meaning(&layer.name);
        let meaning = meaning.map_or(String::new(), |meaning| format!(" ({meaning})"));
        Sentence::default()
            .name(text::capital(&report.pseudo_layers.named(&layer.name)))
            .text(format!("{meaning} by itself needs "))
            .amount(layer.fullest_tile_bytes)
            .text(format!(" on tile {}, ", layer.fullest_tile))
            .bytes(layer.fullest_tile_bytes.saturating_sub(limit))
            .text(format!(" over the limit: {help}"))
    };
    layers.map(sentence).collect()
}

/// Says how much of the fullest tile is explained, and by what, and how much of it is assigned to
/// several positions only because they use it.
pub(super) fn coverage(coverage: &CoverageFacts) -> Sentence {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    let by_touch = if coverage.by_touch > 0 {
        let by_touch = share(coverage.by_touch.into());
        format!(" ({by_touch} in every place that uses it)")
    } else {
        String::new()
    };
    let explained = i128::from(coverage.recorded) - i128::from(coverage.rest);
    say(format!(
        "{} of the fullest tile of the whole model, tile {} with ",
        share(explained),
        coverage.tile
    ))
    .amount(coverage.recorded)
    .text(format!(
        ", is attributed: {} to layers, {} to other operations{by_touch}, {} to every stage",
        share(coverage.layers.into()),
        share(coverage.assigned.into()),
        share(coverage.overhead.into()),
    ))
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
    let optimal = say(agree).name(numbers.join(", "));
    let optimal = match proof.step_at_least {
        Some(step) => optimal.text(", and every step at least ").count(step),
        None => optimal,
    };
    let lower = proof.bottlenecks.iter().map(|bottleneck| {
        let needs = match bottleneck.stages_needed {
            Some(stages) => format!(" needs {}", counted(stages, "stage")),
            None => " is too little for any split".to_string(),
        };
        Sentence::default()
            .name(format!(
                "{} {}",
                bottleneck.objective.key(),
                bottleneck.below
            ))
            .text(needs)
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
            Phrase::Name(name) | Phrase::Code(name) => text::printable(name),
            Phrase::List(list) => list.clone(),
            Phrase::Layers(layers) => pseudo_layers.few(layers),
            Phrase::Stages(stages) => pseudo_layers.all(stages),
        };
        self.phrases.iter().map(phrase).collect()
    }
}

/// Gives bytes as a share of the limit. More than the limit is never shown as 100 %.
fn of_limit(bytes: u64, limit: u64) -> String {
    format!("{} of the limit", share(bytes, limit))
}
