//! Suggests commands after a run, as lines that the user can copy.

use super::options::Options;
use crate::escape::shell;
use crate::memory::StatePlace;
use crate::model::Positions;
use crate::report::emit::EmitForm;
use crate::report::{BestSplit, Report};
use crate::search::{IpuCount, Reserve, Solver};
use std::fmt;

/// A command line of popliner that is suggested: its arguments, each option with its value as one
/// argument (`--num-ipus=4`).
#[derive(Debug, Clone)]
struct Command(Vec<String>);

impl Command {
    /// Removes every argument that gives one of `options`, which are names such as `--num-ipus`.
    fn without(mut self, options: &[&str]) -> Self {
        let is_kept = |argument: &String| !options.contains(&option_name(argument));
        self.0.retain(is_kept);
        self
    }

    /// Gives `option` (a name such as `--num-ipus`) the value `value`, replacing an earlier value.
    fn with(self, option: &str, value: impl fmt::Display) -> Self {
        let mut command = self.without(&[option]);
        command.0.push(format!("{option}={value}"));
        command
    }

    /// Gives `option` (a name such as `--num-ipus`) the value `value`, replacing an earlier value;
    /// changes nothing if `value` is `None`.
    fn with_any(self, option: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(option, value),
            None => self,
        }
    }

    /// Adds `option`, a name such as `--solve` that takes no value.
    fn with_flag(mut self, option: &str) -> Self {
        self.0.push(option.to_owned());
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

/// Returns the name of the option in an argument: `--num-ipus` of `--num-ipus=4`, and the whole
/// argument if it has no `=`.
fn option_name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// Writes the commands that are suggested after a run, from the options of that run.
pub(super) struct Commands<'a> {
    options: &'a Options,
    /// The arguments of the run that every suggested command repeats ([`Options::repeated`]), and
    /// `--layer-name-regex=auto` if the tool chose modules as layers.
    pub(super) repeated: Vec<String>,
}

impl<'a> Commands<'a> {
    /// Prepares the commands for a run with `options`. If `by_modules` is set, the tool chose the
    /// model's modules as layers, and each suggested command gets `--layer-name-regex=auto` to
    /// choose them again.
    pub(super) fn new(options: &'a Options, by_modules: bool) -> Self {
        let mut repeated = options.repeated.clone();
        repeated.extend(by_modules.then(|| "--layer-name-regex=auto".to_owned()));
        Self { options, repeated }
    }

    /// Adds `--mem-per-tile` and `--reserve` of the run to `command`, if the run has them. Of a
    /// list of amounts in `--mem-per-tile`, the amounts of the first `ipus` IPUs are kept.
    fn limited(&self, command: Command, ipus: usize) -> Command {
        let limits = &self.options.limits;
        let memory = limits.mem_per_tile.as_ref().map(|amounts| {
            let amounts = amounts.iter().take(ipus).map(u64::to_string);
            amounts.collect::<Vec<_>>().join(",")
        });
        let reserve = Some(limits.reserve).filter(|&reserve| reserve != Reserve::Bytes(0));
        command
            .with_any("--mem-per-tile", memory)
            .with_any("--reserve", reserve)
    }

    /// Returns a command with the [`repeated`](Self::repeated) arguments, `--mem-per-tile` and
    /// `--reserve` of the run. It has no number of IPUs and no option that requests a result.
    fn repeat(&self) -> Command {
        self.limited(Command(self.repeated.clone()), usize::MAX)
    }

    /// Returns the number that `--num-ipus` gives; `None` without the option and for `auto`.
    fn exact_ipus(&self) -> Option<usize> {
        match self.options.limits.num_ipus {
            Some(IpuCount::Exactly(ipus)) => Some(ipus),
            _ => None,
        }
    }

    /// Returns the command that computes only the split of `row`, a row of a plan, with the other
    /// options of the run. `positions` has the names of the layers, which the command names.
    pub(super) fn command_of(&self, row: &BestSplit, positions: &Positions) -> String {
        let is_on_chip = row.state == StatePlace::OnChip;
        let own = ["--objective", "--optimizer-state", "--replicas"];
        // Optimizer state that stays on the chip is not streamed.
        let streaming = is_on_chip.then_some("--streaming-bandwidth");
        let own: Vec<&str> = own.into_iter().chain(streaming).collect();
        let command = Command(self.repeated.clone())
            .without(&own)
            .with("--num-ipus", row.ipus)
            .with("--schedule", row.schedule)
            .with("--recompute", row.recompute)
            .with_any("--optimizer-state", Some(row.state).filter(|_| !is_on_chip))
            .with_any(
                "--replicas",
                Some(row.replicas).filter(|&replicas| replicas > 1),
            );
        let command = self.limited(command, row.ipus as usize);
        let command = if row.cuts.is_empty() {
            command.with_flag("--solve")
        } else {
            command.with("--splits", first_layers(row, positions))
        };
        command.to_string()
    }

    /// Returns the lines to print after a plan whose recommended row is `row`: commands for the
    /// configuration and the page of its split, and a command for a plan on twice the IPUs, unless
    /// each IPU has its own limit. `report` says which framework the configuration is for.
    pub(super) fn after_plan(&self, row: &BestSplit, report: &Report) -> Vec<String> {
        let mut lines = configuration_and_page(&row.command, report);
        let exactly = self.exact_ipus().unwrap_or(0);
        let ipus = (row.ipus as usize).max(exactly).saturating_mul(2);
        let limits = self.options.limits.mem_per_tile.as_ref();
        if limits.is_none_or(|limits| limits.len() == 1) && ipus <= IpuCount::MAX {
            let command = self.repeat().with("--num-ipus", ipus);
            lines.push(format!("  more IPUs:      {command}"));
        }
        lines
    }

    /// Returns the lines to print after a search: commands for the configuration and the page of
    /// the best split; if it takes one IPU, a command for a plan on 4 IPUs; if no split fits,
    /// commands with which the model fits. Empty if there is nothing to suggest, as after `--emit`.
    pub(super) fn after_split(&self, report: &Report) -> Vec<String> {
        let results = &self.options.results;
        let split = report.split.as_ref();
        let is_solved = results.solve && results.emit.is_empty();
        if (is_solved || results.plan) && split.is_some_and(|split| !split.fits) {
            return self.after_refusal(report);
        }
        let has_page = self.options.exports.export_html.is_some();
        let is_proven = self.options.search.solver == Solver::Ilp;
        let is_suggested = is_solved && !has_page && is_proven;
        match split.filter(|split| is_suggested && split.fits) {
            None => Vec::new(),
            Some(split) if split.stages.len() == 1 => self.after_one_ipu(),
            Some(split) => {
                let command = self.repeat().with("--num-ipus", split.max_stages);
                configuration_and_page(&command.to_string(), report)
            }
        }
    }

    /// Returns the lines to print if no split fits: one command for each change of options that
    /// `report` found to be enough. Empty if it found none.
    fn after_refusal(&self, report: &Report) -> Vec<String> {
        let Some(refusal) = &report.refusal else {
            return Vec::new();
        };
        let pipeline = report.pipeline.iter();
        let others = pipeline.flat_map(|pipeline| &pipeline.alternatives);
        let others = others.chain(&refusal.on_more_ipus);
        let lines = others
            .filter(|other| other.fits)
            .map(|other| format!("  this fits:      {}", self.changed(&other.options)));
        with_head(lines.collect())
    }

    /// Returns the command of the run with other values for some options. `changed` is a list such
    /// as `--schedule sequential --recompute stage`: each option is followed by its value.
    fn changed(&self, changed: &str) -> Command {
        let command = self.repeat().with_any("--num-ipus", self.exact_ipus());
        let words: Vec<&str> = changed.split(' ').collect();
        let options = words.chunks_exact(2);
        let command = options.fold(command, |command, own| command.with(own[0], own[1]));
        if self.options.is_bare {
            command
        } else {
            command.with_flag("--solve")
        }
    }

    /// Returns the lines to print if the model fits on one IPU: a command for a plan on 4 IPUs.
    pub(super) fn after_one_ipu(&self) -> Vec<String> {
        let command = self.repeat().with("--num-ipus", 4);
        with_head(vec![format!("  on more IPUs:   {command}")])
    }
}

/// Puts the line `next:` above `lines`, which are suggested commands; keeps an empty list empty.
fn with_head(mut lines: Vec<String>) -> Vec<String> {
    if !lines.is_empty() {
        lines.insert(0, "next:".to_owned());
    }
    lines
}

/// Returns the lines that suggest `command` with `--emit`, in the form for the framework of
/// `report`, and with `--export-html`. `command` is the command that finds the split.
fn configuration_and_page(command: &str, report: &Report) -> Vec<String> {
    let framework = report
        .pipeline
        .as_ref()
        .map(|pipeline| pipeline.recording.framework);
    let form = EmitForm::of_framework(framework).name();
    let unsolved = command.trim_end_matches(" --solve");
    with_head(vec![
        format!("  configuration:  {command} --emit {form}"),
        format!("  page:           {unsolved} --solve --export-html report.html"),
    ])
}

/// Returns the name of the first layer of each stage of `row` but stage 0, separated by commas, as
/// `--splits` reads them. `positions` has the names of the layers.
fn first_layers(row: &BestSplit, positions: &Positions) -> String {
    let names = row.cuts.iter().map(|&first| {
        let name = positions.name(first as usize).to_string();
        name.replace('\\', r"\\").replace(',', r"\,")
    });
    names.collect::<Vec<String>>().join(",")
}
