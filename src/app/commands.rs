//! Suggests commands after a run, as lines that the user can copy.

use super::Options;
use crate::{
    analysis::LayerConstraint,
    escape::shell,
    model::Framework,
    report::emit::EmitForm,
    report::{BestSplit, Report},
    search::{IpuCount, Reserve, Solver, Word},
    wording::join,
};

/// Returns the line that runs popliner with `arguments`, in which an option and its value are one
/// argument (`--num-ipus=4`).
pub fn line(arguments: &[String]) -> String {
    arguments.iter().fold("popliner".to_owned(), |line, word| {
        line + " " + &shell(word)
    })
}

/// Makes a change, such as another number of IPUs, to the arguments of a suggested command.
fn apply(word: &Word, arguments: &mut Vec<String>) {
    match word {
        Word::Set(option, _) | Word::Without(option) => {
            arguments.retain(|argument| argument.split('=').next() != Some(option));
        }
        Word::Drop(constraint) => {
            let is_it = |argument: &String| {
                argument
                    .split_once('=')
                    .and_then(|(option, value)| LayerConstraint::parse(option, value))
                    .is_some_and(|own| own.to_string() == *constraint)
            };
            if let Some(index) = arguments.iter().position(is_it) {
                arguments.remove(index);
            }
        }
        Word::Add(..) => {}
    }
    if let Word::Set(option, value) | Word::Add(option, value) = word {
        arguments.push(format!("{option}={value}"));
    }
}

impl Options {
    /// Returns the options that the user gave for the model, the limits and the pipeline, as
    /// arguments of a suggested command. Options that request a result are left out.
    fn own_arguments(&self) -> Vec<String> {
        let mut own = self.repeated.clone();
        if let Some(amounts) = &self.mem_per_tile {
            own.push(format!("--mem-per-tile={}", join(amounts, ",")));
        }
        if self.reserve != Reserve::Bytes(0) {
            own.push(format!("--reserve={}", self.reserve));
        }
        own.extend(self.num_ipus.map(|ipus| match ipus {
            IpuCount::Exactly(ipus) => format!("--num-ipus={ipus}"),
            IpuCount::UpTo(_) => "--num-ipus=auto".to_owned(),
        }));
        own
    }

    /// Returns the arguments of a command that sets `--num-ipus` to `ipus` and requests no result.
    /// Such a command prints a plan.
    fn plan_on(&self, ipus: impl ToString) -> Vec<String> {
        let mut arguments = self.own_arguments();
        apply(&Word::Set("--num-ipus", ipus.to_string()), &mut arguments);
        arguments
    }

    /// Returns a command line that repeats the user's request with the changes `change`, such as
    /// another number of IPUs.
    pub(super) fn changed_command(&self, change: &[Word]) -> String {
        let mut arguments = self.own_arguments();
        arguments.extend_from_slice(&self.judged);
        for word in change {
            apply(word, &mut arguments);
        }
        arguments.push("--solve".to_owned());
        line(&arguments)
    }

    /// Returns the commands to print after a plan (the table of `--plan`), whose recommended split
    /// is `row`. Two commands write the configuration and the HTML page of this split. If all IPUs
    /// have the same memory limit, a third command makes a plan for double the number of IPUs.
    /// `report` names the framework, which determines the form of the configuration.
    pub(super) fn after_plan(&self, row: &BestSplit, report: &Report) -> String {
        let mut text = configuration_and_page(&row.command, report);
        let most = report
            .plan
            .as_ref()
            .map_or(0, |plan| plan.max_ipus as usize);
        let ipus = (row.ipus as usize).max(most).saturating_mul(2);
        let limits = self.mem_per_tile.as_ref();
        if limits.is_none_or(|limits| limits.len() == 1) && ipus <= IpuCount::MAX {
            text += &format!("\n  more IPUs:      {}", line(&self.plan_on(ipus)));
        }
        text
    }

    /// Returns the text to print after a search:
    /// - if a split fits on several IPUs, commands that write its configuration and its HTML page
    /// - if the best split takes one IPU, a command for a plan on 4 IPUs in each replica
    /// - if no split fits, commands with which the model fits
    ///
    /// The text is empty if there is nothing to suggest, as after `--emit`.
    pub(super) fn after_split(&self, report: &Report) -> String {
        let Some(split) = &report.split else {
            return String::new();
        };
        let results = &self.results;
        let is_solved = results.solve && results.emit.is_empty();
        if let Some(refusal) = &report.refusal
            && (is_solved || results.plan)
            && !split.fits
        {
            return report
                .pipeline
                .iter()
                .flat_map(|pipeline| &pipeline.alternatives)
                .chain(&refusal.on_more_ipus)
                .filter(|other| other.fits)
                .fold(String::new(), |text, other| {
                    let head = if text.is_empty() { "next:" } else { &text };
                    format!("{head}\n  this fits:      {}", other.command)
                });
        }
        let is_suggested = is_solved && split.fits && self.search.solver == Solver::Ilp;
        if !is_suggested || self.export_html.is_some() {
            String::new()
        } else if split.stages.len() == 1 {
            self.after_one_ipu()
        } else {
            configuration_and_page(&self.changed_command(&[]), report)
        }
    }

    /// Returns a text that advises the user to record the model also with a lower available memory
    /// proportion (`--amp`). Returns `None` if each stage of the split takes at most 95 % of its
    /// limit, or if the other options rule this advice out, as `--emit` does.
    pub(super) fn lower_proportion(&self, report: &Report) -> Option<String> {
        let takes_others = self.results.solve
            && self.results.emit.is_empty()
            && self.time.micro_batch.len() < 2
            && self.request().of_original().is_none();
        let is_full = report.stages().iter().any(|stage| {
            let tile = &stage.fullest_tile;
            i128::from(tile.free) * 20 < i128::from(tile.limit)
        });
        if !takes_others || !is_full || !report.has_verdict() {
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
        let arguments = self.plan_on(4 * self.time.replicas);
        if self.is_bare && arguments == self.own_arguments() {
            return String::new();
        }
        format!("next:\n  on more IPUs:   {}", line(&arguments))
    }
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
