//! Suggests commands after a run, as lines that the user can copy.

use super::Options;
use crate::analysis::LayerConstraint;
use crate::escape::shell;
use crate::model::{Framework, Rules};
use crate::report::emit::EmitForm;
use crate::report::{BestSplit, FullestTile, Report, Stage};
use crate::search::{IpuCount, Reserve, Solver, Word};
use std::fmt;

/// A command line of popliner that is suggested to the user. There is one entry per argument; an
/// option and its value are one argument (`--num-ipus=4`).
#[derive(Clone, PartialEq)]
struct Command(Vec<String>);

impl Command {
    /// Removes from the suggested command every argument that is `option` (a name such as
    /// `--num-ipus`), with or without a value.
    fn without(mut self, option: &str) -> Self {
        self.0
            .retain(|argument| argument.split('=').next() != Some(option));
        self
    }

    /// Sets `option` (a name such as `--num-ipus`) of the suggested command to `value`, and removes
    /// its earlier values.
    fn with(self, option: &str, value: impl fmt::Display) -> Self {
        self.without(option).and(option, value)
    }

    /// Adds `option` with the value `value` to the suggested command, and keeps earlier values:
    /// some options, such as `--pin`, may be given several times.
    fn and(mut self, option: &str, value: impl fmt::Display) -> Self {
        self.0.push(format!("{option}={value}"));
        self
    }

    /// Removes from the suggested command the argument that gives `constraint`, a constraint on
    /// layers (such as that of `--pin`) as messages write it.
    fn without_constraint(mut self, constraint: &str) -> Self {
        let is_it = |argument: &String| {
            argument
                .split_once('=')
                .and_then(|(option, value)| LayerConstraint::parse(option, value))
                .is_some_and(|own| own.to_string() == constraint)
        };
        if let Some(index) = self.0.iter().position(is_it) {
            self.0.remove(index);
        }
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("popliner")?;
        self.0
            .iter()
            .try_for_each(|word| write!(f, " {}", shell(word)))
    }
}

impl Options {
    /// Returns a command with those options of the user that describe the model, the limits and the
    /// pipeline, but with no option that requests a result.
    fn own_command(&self) -> Command {
        let (limits, mut own) = (&self.limits, Command(self.repeated.clone()));
        if let Some(amounts) = &limits.mem_per_tile {
            let amounts: Vec<_> = amounts.iter().map(u64::to_string).collect();
            own = own.and("--mem-per-tile", amounts.join(","));
        }
        if limits.reserve != Reserve::Bytes(0) {
            own = own.and("--reserve", limits.reserve);
        }
        match limits.num_ipus {
            Some(IpuCount::Exactly(ipus)) => own.and("--num-ipus", ipus),
            Some(IpuCount::UpTo(_)) => own.and("--num-ipus", "auto"),
            None => own,
        }
    }

    /// Returns a command line that repeats the user's request with the changes `change`, such as
    /// another number of IPUs.
    pub(super) fn changed_command(&self, change: &[Word]) -> String {
        let mut own = self.own_command();
        own.0.extend(self.judged.iter().cloned());
        let mut changed = change.iter().fold(own, |command, word| match word {
            Word::Set(option, value) => command.with(option, value),
            Word::Add(option, value) => command.and(option, value),
            Word::Without(option) => command.without(option),
            Word::Drop(constraint) => command.without_constraint(constraint),
        });
        changed.0.push("--solve".to_owned());
        changed.to_string()
    }

    /// Returns the commands to print after a plan whose recommended row is `row`: two that write
    /// the configuration and the page of this row's split and, if all IPUs have the same memory
    /// limit, one that makes a plan for twice as many IPUs. `report` names the framework, which
    /// determines the form of the configuration.
    pub(super) fn after_plan(&self, row: &BestSplit, report: &Report) -> String {
        let mut text = configuration_and_page(&row.command, report);
        let most = report
            .plan
            .as_ref()
            .map_or(0, |plan| plan.max_ipus as usize);
        let ipus = (row.ipus as usize).max(most).saturating_mul(2);
        let limits = self.limits.mem_per_tile.as_ref();
        if limits.is_none_or(|limits| limits.len() == 1) && ipus <= IpuCount::MAX {
            let command = self.own_command().with("--num-ipus", ipus);
            text += &format!("\n  more IPUs:      {command}");
        }
        text
    }

    /// Returns the text to print after a search. It has commands that write the configuration and
    /// the page of the best split; if the best split takes one IPU, a command for a plan on 4 IPUs;
    /// if no split fits, commands with which the model fits. The text is empty if there is nothing
    /// to suggest, as after `--emit`.
    pub(super) fn after_split(&self, report: &Report) -> String {
        let results = &self.results;
        let split = report.split.as_ref();
        let is_solved = results.solve && results.emit.is_empty();
        if (is_solved || results.plan) && split.is_some_and(|split| !split.fits) {
            return after_refusal(report);
        }
        let is_suggested =
            is_solved && self.exports.export_html.is_none() && self.search.solver == Solver::Ilp;
        match split.filter(|split| is_suggested && split.fits) {
            None => String::new(),
            Some(split) if split.stages.len() == 1 => self.after_one_ipu(),
            Some(_) => configuration_and_page(&self.changed_command(&[]), report),
        }
    }

    /// Returns a text that explains how to record the model also with a lower available memory
    /// proportion. Returns `None` unless the split of `report` does not fit or takes more than 95 %
    /// of a limit, and the options allow further profiles.
    pub(super) fn lower_proportion(&self, report: &Report) -> Option<String> {
        let is_full = |stage: &Stage| {
            let FullestTile { bytes, limit, .. } = stage.fullest_tile;
            u128::from(bytes) * 100 > u128::from(limit) * 95
        };
        let takes_others = self.results.solve
            && self.results.emit.is_empty()
            && self.time.micro_batch.len() < 2
            && self.search.solver == Solver::Ilp
            && self.limits.memory_model == Rules::Full;
        if !takes_others || !report.stages().iter().any(is_full) {
            return None;
        }
        let setting = match report.framework() {
            Some(Framework::Poptorch) => "options.setAvailableMemoryProportion({\"IPU0\": LOWER})",
            Some(Framework::Popart) => "builder.setAvailableMemoryProportion(..., LOWER)",
            Some(Framework::Tensorflow) => {
                "availableMemoryProportion in poplar_options of config.convolutions and config.matmuls"
            }
            _ => "a lower availableMemoryProportion in the options of products and convolutions",
        };
        let own = if self.pipeline.amp.is_empty() {
            "--amp=VALUE "
        } else {
            ""
        };
        Some(format!(
            "Each stage can have an available memory proportion of its own: record the model also with \
             {setting}, and add {own}--amp=LOWER=FOLDER"
        ))
    }

    /// Returns the text to print if the model fits on one IPU: a command for a plan on 4 IPUs in
    /// each replica. The text is empty if the user gave that command.
    pub(super) fn after_one_ipu(&self) -> String {
        let ipus = 4 * self.time.replicas;
        let own = self.own_command();
        let command = own.clone().with("--num-ipus", ipus);
        if self.is_bare && command == own {
            return String::new();
        }
        with_head(format!("\n  on more IPUs:   {command}"))
    }
}

/// Returns the text to print if no split fits: one command for each change to the request with
/// which, according to `report`, the model fits. The text is empty if there is no such change.
fn after_refusal(report: &Report) -> String {
    let Some(refusal) = &report.refusal else {
        return String::new();
    };
    with_head(
        report
            .pipeline
            .iter()
            .flat_map(|pipeline| &pipeline.alternatives)
            .chain(&refusal.on_more_ipus)
            .filter(|other| other.fits)
            .map(|other| format!("\n  this fits:      {}", other.command))
            .collect(),
    )
}

/// Puts the line `next:` above the suggested commands in `lines`, each on a new line. Returns an
/// empty text if there are no commands.
fn with_head(lines: String) -> String {
    if lines.is_empty() {
        return lines;
    }
    format!("next:{lines}")
}

/// Returns a text that suggests two commands for the split that `command` finds. The first command
/// prints the split with `--emit`, as configuration for the framework of `report` (or with
/// `--export-json`, if no configuration is known), the second writes a page with `--export-html`.
fn configuration_and_page(command: &str, report: &Report) -> String {
    let unsolved = command.trim_end_matches(" --solve");
    let to_paste = match EmitForm::of_report(report) {
        Some(form) => format!("configuration:  {unsolved} --emit {}", form.name()),
        None => format!("as JSON:        {unsolved} --solve --export-json split.json"),
    };
    format!("next:\n  {to_paste}\n  page:           {unsolved} --solve --export-html report.html")
}
