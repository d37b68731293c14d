//! The templates of the forms (`forms`), which look like the text that they become.
//!
//! A line after `# ` is a note. Words in brackets at the start of a line are conditions, which must
//! all hold; `!` negates one. A word after `$` is a value, or `true` or `false` for a condition. A
//! line with only a word after `@` stands for the lines of a function; `@text` is where the lines to
//! paste begin, and `@end` ends the form.

use super::form_source::FormSource;
use super::lines::Lines;
use super::{EmitForm, counts, entries, poptorch};
use crate::memory::{Recompute, Schedule};
use crate::model::PseudoLayers;
use crate::report::{NO_VERDICT, sentences, with_commas};
use crate::wording::{capital, grouped};

/// The template of the notes that every form begins with, such as the warning about a split that
/// does not fit.
const OF_ALL: &str = include_str!("forms/all.txt");

/// The value of a form's option for the available memory proportion, with the reason, as each form
/// writes it after the option's name.
const PROPORTION: &str = "the profile's value on each IPU, since the bytes of a stage are of \
                          operations that were compiled with it";

/// Fills the template of the common notes and the template of `form`. Adds notes to `notes` and
/// lines to paste to `text`, for every split that `source` stands for.
pub fn write<'a>(
    form: EmitForm,
    source: FormSource<'a>,
    notes: &mut Lines<'a>,
    text: &mut Lines<'a>,
) {
    for line in OF_ALL.lines().chain(form.template().lines()) {
        let (conditions, line) = conditions_of(line);
        let hold = |stages| {
            conditions
                .split_whitespace()
                .all(|condition| source.holds(condition, stages))
        };
        match (line.strip_prefix('@'), line.strip_prefix("# ")) {
            (Some(_), _) if !hold(source.split.stages.len()) => {}
            (Some("end"), _) => break,
            // Notes of the template before `@text` stand above the configuration, all others below.
            (Some("text"), _) => text.all.append(&mut notes.all),
            (Some("blocks"), _) => poptorch::blocks(source, notes, text),
            (Some("checkpoints"), _) => poptorch::checkpoints(source, notes, text),
            (Some("edges"), _) => entries::mmcv(source, notes, text),
            (Some("layers"), _) => entries::popart(source, text),
            (Some("stages"), _) => entries::keras(source, notes, text),
            (Some("entries"), _) => entries::pipeline_splits(source, text),
            (Some("generation"), _) => counts::generation(source, notes),
            (Some(items), _) => {
                let items = match items {
                    "parts-of-bert" => counts::parts_of_bert(source, notes),
                    _ => counts::items(source, "1", notes),
                };
                (notes.items, text.items) = (items.clone(), items);
            }
            (None, note) => {
                let (lines, line) = match note {
                    Some(note) => (&mut *notes, note),
                    None => (&mut *text, line),
                };
                lines.by_stages(|stages| {
                    hold(stages).then(|| source.filled(line, stages)).flatten()
                });
            }
        }
    }
}

/// Separates a template's line into the conditions in brackets at its beginning, without the
/// brackets, and the rest; without brackets, the conditions are empty.
fn conditions_of(line: &str) -> (&str, &str) {
    let conditions = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    conditions.map_or(("", line), |(conditions, line)| {
        (conditions, line.strip_prefix(' ').unwrap_or(line))
    })
}

impl FormSource<'_> {
    fn holds(self, condition: &str, stages: usize) -> bool {
        let (name, expected) = match condition.strip_prefix('!') {
            Some(name) => (name, false),
            None => (condition, true),
        };
        self.condition(name, stages) == Some(expected)
    }

    /// Returns whether the condition `name`, a word in brackets in a template, holds for a split
    /// into `stages` stages; `None` if no condition has the name.
    fn condition(self, name: &str, stages: usize) -> Option<bool> {
        let (training, order) = (self.training(), self.report.pseudo_layers);
        let pipeline = self.report.pipeline.as_ref();

        Some(match name {
            "several" => stages > 1,
            "power-of-two" => stages.is_power_of_two(),
            "pipelined" => stages > 1 && !self.is_sequential(),
            "out-returns" => self.out_returns(stages),
            "none-first" => order == PseudoLayers::NoneFirst,
            "in-and-out" => order == PseudoLayers::InAndOut,
            "out-with-in" => order == PseudoLayers::OutWithIn,
            "unknown" => pipeline.is_none(),
            "inference" => pipeline.is_some_and(|facts| !facts.is_training),
            "accumulates" => self.accumulation(stages).is_some(),
            "training" => training.is_some(),
            "sequential" => self.is_sequential(),
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

    /// Replaces each `$` and name in a template's line by its value for a split into `stages`
    /// stages; values that depend on where it is cut become placeholders such as
    /// [`STAGE`](super::lines::STAGE). `None` if a value is missing, so that the line is left out.
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
            "ipus" => with_commas((0..stages).chain(self.out_returns(stages).then_some(0))),
            "replicas" => self.replicas().to_string(),
            "schedule" => self.training()?.schedule.to_string(),
            "strategy" if self.is_sequential() => "ShardedExecution".to_string(),
            "strategy" => "PipelinedExecution".to_string(),
            "auto-stage" if self.out_returns(stages) => "AutoIncrement".to_string(),
            "auto-stage" => "SameAsIpu".to_string(),
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
            "proportion" => PROPORTION.to_string(),
            "amps" => with_commas(self.amps(stages).iter()),
            "amps-by-name" => with_commas(
                (0..)
                    .zip(self.amps(stages))
                    .map(|(ipu, amp)| format!("\"IPU{ipu}\": {amp}")),
            ),
            "amps-of-stages" => {
                let amps = self.amps(stages);
                let of_out = amps.first().filter(|_| self.out_returns(stages));
                with_commas(amps.iter().chain(of_out))
            }
            "amps-in-per-cent" => {
                let pairs = self.amps(stages).into_iter().flat_map(|amp| [amp, amp]);
                with_commas(pairs.map(|amp| (amp * 1e4).round() / 1e2))
            }
            // Other values depend on where the split is cut.
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
        for line in forms.chain([OF_ALL]).flat_map(str::lines) {
            let (conditions, line) = conditions_of(line);
            for condition in conditions.split(' ').filter(|name| !name.is_empty()) {
                let name = condition.trim_start_matches('!');
                assert!(source.condition(name, 2).is_some(), "{condition}");
            }
            let filled = source.filled(line, 2).unwrap_or_default();
            for slot in filled.split('\0').skip(1).step_by(2) {
                let of_cuts = "stages last-stage fullest counts numbers lists shortfall";
                assert!(
                    of_cuts.split(' ').any(|name| name == slot),
                    "{slot} in {line}"
                );
            }
        }
    }
}
