//! Fills the templates of the forms of `--emit` (in the folder `forms`). A template looks like the
//! configuration that is made from it, except for these marks:
//! - `# ` at the start of a line: the rest of the line is a note for the user.
//! - Words in brackets at the start of a line: conditions, which must all hold for the line to be
//!   written; `!` before a word negates the condition.
//! - `$` before a word: the word is replaced by a value or, if it is a condition, by `true` or
//!   `false`.
//! - `@` before the only word of a line: the word selects a function, whose lines replace this
//!   line. Two words select no function: the configuration to paste begins at `@text`, and `@end`
//!   ends the template.

use super::{Draft, EmitForm, FormSource};
use crate::{
    memory::{Recompute, Schedule},
    model::PseudoLayers,
    report::{NO_VERDICT, sentences},
    wording::{capital, grouped, join},
};

/// The template of the notes for the user that every form of `--emit` begins with, such as the
/// warning about a split that does not fit.
const OF_ALL: &str = include_str!("forms/all.txt");

/// The template of the notes for the user of a configuration that only counts the blocks on each
/// IPU: on which IPUs In and Out (the operations before and after the layers) must be, and how many
/// IPUs are unused.
pub const OF_COUNTS: &str = include_str!("forms/counts.txt");

impl Draft<'_> {
    /// Fills the template that all forms of `--emit` share and then the template of `form`, and
    /// adds their lines to the notes for the user and to the configuration to paste.
    pub fn fill(&mut self, form: EmitForm) {
        for line in OF_ALL.lines().chain(form.template().lines()) {
            let (conditions, rest) = conditions_of(line);
            match rest.strip_prefix('@') {
                None => self.add(line),
                Some(_) if !self.source.hold(conditions, self.source.split.stages.len()) => {}
                Some("end") => break,
                // The configuration begins here. Notes for the user from earlier lines of the
                // template stand above it, and all later notes below it.
                Some("text") => self.text.all.append(&mut self.notes.all),
                Some("blocks") => self.blocks(),
                Some("checkpoints") => self.checkpoints(),
                Some("edges") => self.edges(),
                Some("layers") => self.layers(),
                Some("stages") => self.keras_stages(),
                Some("entries") => self.pipeline_splits(),
                Some("generation") => self.generation(),
                Some("parts-of-bert") => self.parts_of_bert(),
                Some(_) => self.count("1"),
            }
        }
    }

    /// Fills in the values of one line of a template, and adds it to the notes for the user or to
    /// the configuration to paste. [`fill`](Self::fill) handles the lines that begin with `@`.
    pub fn add(&mut self, line: &str) {
        let (conditions, line) = conditions_of(line);
        let (lines, line) = match line.strip_prefix("# ") {
            Some(note) => (&mut self.notes, note),
            None => (&mut self.text, line),
        };
        let source = self.source;
        lines.by_stages(|stages| {
            source
                .hold(conditions, stages)
                .then(|| source.filled(line, stages))
                .flatten()
        });
    }
}

/// Separates a line of a template into its conditions, which are in brackets at the start, and the
/// rest of the line. Without brackets, the conditions are empty.
fn conditions_of(line: &str) -> (&str, &str) {
    let conditions = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    conditions.map_or(("", line), |(conditions, line)| {
        (conditions, line.strip_prefix(' ').unwrap_or(line))
    })
}

impl FormSource<'_> {
    /// Returns whether all `conditions` of a line of a template, separated by spaces, hold for a
    /// split into `stages` stages.
    fn hold(self, conditions: &str, stages: usize) -> bool {
        conditions.split_whitespace().all(|condition| {
            let name = condition.trim_start_matches('!');
            self.condition(name, stages) == Some(name == condition)
        })
    }

    /// Returns whether a condition of a template, such as `several`, holds for a split into
    /// `stages` stages; `None` if no condition has this name.
    fn condition(self, name: &str, stages: usize) -> Option<bool> {
        let (training, order) = (self.training(), self.report.pseudo_layers);
        let pipeline = self.report.pipeline.as_ref();

        Some(match name {
            "several" => stages > 1,
            "power-of-two" => stages.is_power_of_two(),
            "out-returns" => self.out_returns(stages),
            "none-first" => order == PseudoLayers::NoneFirst,
            "in-and-out" => order == PseudoLayers::InAndOut,
            "out-with-in" => order == PseudoLayers::OutWithIn,
            "unknown" => pipeline.is_none(),
            "inference" => pipeline.is_some_and(|facts| !facts.is_training),
            "accumulates" => self.accumulation(stages).is_some(),
            "training" => training.is_some(),
            "sequential" => self.report.is_sequential(),
            "popart" | "tf-grouped" | "tf-interleaved" => {
                training.is_some_and(|own| own.schedule.to_string() == name)
            }
            "recomputes" => training.is_some_and(|own| own.recompute != Recompute::None),
            "layer-checkpoints" => self.checkpoints() == Recompute::Layer,
            "stage-checkpoints" => self.checkpoints() == Recompute::Stage,
            "off-chip" => training.is_some_and(|own| own.state.is_off_chip()),
            "sharded" => training.is_some_and(|own| own.state.is_sharded()),
            "replicated" => self.replicas() > 1,
            "verdict" => self.report.has_verdict(),
            "unplaced" => !self.split.unplaced.is_empty(),
            "other" => self.other.is_some(),
            "other-fits" => self.other.is_some_and(|other| other.fits),
            "vit" => self.is_vit(),
            "keras" => self.is_keras(),
            "amp" => !self.amps(stages).is_empty(),
            _ => return None,
        })
    }

    /// Fills in the values of a line of a template: each `$` with a name is replaced by the value
    /// for a split into `stages` stages, or by a placeholder such as [`STAGE`](super::lines::STAGE)
    /// if the value depends on the cuts. Returns `None` if a value is missing; the line is then
    /// left out.
    fn filled(self, line: &str, stages: usize) -> Option<String> {
        let mut pieces = line.split('$');
        let mut text = pieces.next()?.to_string();
        for piece in pieces {
            let end = piece.find(|c: char| c != '-' && !c.is_ascii_lowercase());
            let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
            text += &self.value(name, stages)?;
            text += rest;
        }
        Some(text)
    }

    fn value(self, name: &str, stages: usize) -> Option<String> {
        let forward_stages = self.forward_stages(stages);
        Some(match name {
            "forward-stages" => forward_stages.to_string(),
            "least" => Schedule::Popart
                .least_accumulation(forward_stages)
                .to_string(),
            "steps" => self.accumulation(stages)?.to_string(),
            "ipus" => join(
                (0..stages).chain(self.out_returns(stages).then_some(0)),
                ", ",
            ),
            "replicas" => self.replicas().to_string(),
            "schedule" => self.training()?.schedule.to_string(),
            "no-verdict" => NO_VERDICT.to_string(),
            "limit" => grouped(self.split.limit),
            "pipeline" => {
                let name = sentences::pipeline_name(self.report.pipeline.as_ref()?);
                capital(&self.report.plain(name)) + "."
            }
            "last-forward-stage" => forward_stages.saturating_sub(1).to_string(),
            "root" => self.root.to_string(),
            "other-stages" => self.report.pseudo_layers.plain_stages(&self.other?.stages),
            "other-fullest" => grouped(self.other?.fullest_tile_bytes),
            "proportion" => "the profile's value on each IPU, since the bytes of a stage are of \
                             operations that were compiled with it"
                .to_string(),
            "amps" => join(self.amps(stages), ", "),
            "amps-in-per-cent" => join(
                self.amps(stages)
                    .into_iter()
                    .flat_map(|amp| [amp, amp])
                    .map(|amp| (amp * 1e4).round() / 1e2),
                ", ",
            ),
            // In a template of `--emit`, `$` with the name of a condition becomes `true` or
            // `false`. Any other name, such as `stage`, is a value that depends on the cuts. It
            // becomes a placeholder, which is filled in for each split.
            _ => match self.condition(name, stages) {
                Some(holds) => holds.to_string(),
                None => format!("\0{name}\0"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::emit::MODEL;
    use crate::report::testing::report;
    use clap::ValueEnum;

    #[test]
    fn templates_have_only_conditions_and_values_that_there_are() {
        let report = report();
        let source = FormSource::of(&report, MODEL).unwrap();
        let forms = EmitForm::value_variants()
            .iter()
            .map(|form| form.template());
        for line in forms.chain([OF_ALL, OF_COUNTS]).flat_map(str::lines) {
            let (conditions, line) = conditions_of(line);
            for condition in conditions.split(' ').filter(|name| !name.is_empty()) {
                let name = condition.trim_start_matches('!');
                assert!(source.condition(name, 2).is_some(), "{condition}");
            }
            let filled = source.filled(line, 2).unwrap_or_default();
            for slot in filled.split('\0').skip(1).step_by(2) {
                let of_cuts = "stages last-stage fullest counts numbers lists free shortfall";
                assert!(
                    of_cuts.split(' ').any(|name| name == slot),
                    "{slot} in {line}"
                );
            }
        }
    }
}
