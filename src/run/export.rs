//! The report, written to files in the forms that were asked for.

use super::input::{Shown, debug_path, read_bounded};
use super::search::{self, SearchResult};
use super::sections::Sections;
use super::subject::Subject;
use super::{ties, usage};
use crate::atomic;
use crate::cli::Options;
use crate::limits;
use crate::model::Rules;
use crate::profile;
use crate::progress::Unit;
use crate::report::document::{BuildOption, Files, Inputs, Made, TargetFacts};
use crate::report::{Report, csv, html, json, markdown};
use crate::solve::Limits;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `--export-json`
    Json,
    /// `--export-csv`
    Csv,
    /// `--export-markdown`
    Markdown,
    /// `--export-html`
    Html,
}

impl Form {
    fn option(self) -> &'static str {
        match self {
            Form::Json => "--export-json",
            Form::Csv => "--export-csv",
            Form::Markdown => "--export-markdown",
            Form::Html => "--export-html",
        }
    }

    /// What the form is called where several results are printed.
    fn name(self) -> &'static str {
        self.option().trim_start_matches('-')
    }
}

/// The forms that were asked for, each with its file.
fn exports(options: &Options) -> impl Iterator<Item = (Form, &Path)> {
    let exports = [
        (Form::Json, &options.export_json),
        (Form::Csv, &options.export_csv),
        (Form::Markdown, &options.export_markdown),
        (Form::Html, &options.export_html),
    ];
    exports
        .into_iter()
        .filter_map(|(form, file)| Some((form, file.as_deref()?)))
}

/// Stands for standard output.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// How many forms go to standard output.
pub(super) fn to_standard_output(options: &Options) -> usize {
    exports(options)
        .filter(|(_, path)| is_standard_output(path))
        .count()
}

/// Refuses to write a file over another that is written, or over one that is
/// read: before any work is done, and so that no profile is lost. Only a saved
/// model may be saved over itself.
pub(super) fn check(options: &Options) -> Result<()> {
    let mut taken = vec![("PROFILE", place(&options.profile))];
    if let (false, Ok(debug)) = (options.load_from_file, debug_path(options)) {
        taken.push(("DEBUG", place(&debug)));
    }
    let others = [
        ("--save-to-file", &options.save_to_file),
        ("--export-lp", &options.export_lp),
    ];
    let others = others.into_iter();
    let others = others.filter_map(|(option, file)| Some((option, file.as_deref()?)));
    let forms = exports(options).filter(|(_, path)| !is_standard_output(path));
    let forms = forms.map(|(form, path)| (form.option(), path));
    for (option, path) in others.chain(forms) {
        let own = place(path);
        let is_itself =
            |other| options.load_from_file && (other, option) == ("PROFILE", "--save-to-file");
        let mut same = taken.iter().filter(|(_, taken)| *taken == own);
        if let Some((other, _)) = same.find(|(other, _)| !is_itself(*other)) {
            return Err(usage(format!(
                "{other} and {option} name the same file, {}",
                Shown(path)
            )));
        }
        taken.push((option, own));
    }
    Ok(())
}

/// A path that is the same for each spelling of one file.
fn place(path: &Path) -> PathBuf {
    let known = path.canonicalize().or_else(|_| std::path::absolute(path));
    known.unwrap_or_else(|_| path.to_owned())
}

/// Makes the report and writes it in all forms. Files come last, so that no
/// form is missing when one cannot be made.
pub(super) fn write(
    subject: &Subject<'_>,
    found: Option<&SearchResult>,
    sections: &mut Sections<'_, impl Write>,
) -> Result<Report> {
    let messages = subject.messages;
    let (made, warnings) = subject.made()?;
    let report = messages.while_showing(|progress| {
        let _task = progress.begin("making the report", Unit::Rows, 0);
        subject.report(found, made, warnings)
    })?;
    let mut files = Vec::new();
    for (form, path) in exports(subject.options) {
        let bytes = rendered(&report, form)?;
        match is_standard_output(path) {
            true => sections.text(form.name(), &bytes)?,
            false => files.push((path, bytes)),
        }
    }
    for (path, bytes) in files {
        atomic::write(path, &bytes).with_context(|| Shown(path).to_string())?;
        messages.info(format_args!("the report is in {}", Shown(path)));
    }
    Ok(report)
}

fn rendered(report: &Report, form: Form) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match form {
        Form::Json => json::write_report(report, &mut bytes)?,
        Form::Csv => csv::write(report, &mut bytes)?,
        Form::Markdown => bytes.extend(markdown::text(report).into_bytes()),
        Form::Html => bytes.extend(html::text(report).into_bytes()),
    }
    Ok(bytes)
}

impl Subject<'_> {
    fn report(
        &self,
        found: Option<&SearchResult>,
        made: Made,
        warnings: Vec<String>,
    ) -> Result<Report> {
        let model = &self.input.model;
        let inputs = Inputs {
            model,
            layering: self.layering,
            positions: &self.placement.positions,
            memory: self.memory,
            lookup: self.input.lookup.as_ref(),
            limit: Limits::new(&search::limits(self.options, model)?).highest(),
            split: found.and_then(|found| found.split.as_ref()),
            search: found.map(|found| &found.facts),
            tied_weights: ties::facts(self.placement, found.and_then(|found| found.split.as_ref())),
            cycles: model.layer_cycles(self.placement),
            made,
            warnings,
        };
        let path = &self.options.profile;
        Report::new(inputs).with_context(|| Shown(path).to_string())
    }

    /// How the report is made, and all sentences about the files.
    fn made(&self) -> Result<(Made, Vec<String>)> {
        let mut warnings = self.input.warnings.clone();
        let options = self.options;
        let target = &self.input.model.target;
        let facts = &self.input.model.made;
        let debug = match options.load_from_file {
            true => None,
            false => Some(debug_path(options)?.to_string_lossy().into_owned()),
        };
        let mut beside = |name: &str| {
            read_beside(&options.profile, name).unwrap_or_else(|error| {
                let warning = format!("{name} beside the profile is left out: {error:#}");
                self.messages.warning(&warning);
                warnings.push(warning);
                None
            })
        };
        let (framework, app) = (beside("framework.json"), beside("app.json"));
        let made = Made {
            popliner: env!("CARGO_PKG_VERSION").to_string(),
            arguments: options.arguments.clone(),
            files: Files {
                profile: options.profile.to_string_lossy().into_owned(),
                debug,
                saved_model: options.load_from_file,
            },
            memory_model: match options.memory_model {
                Rules::Full => "full".to_string(),
                Rules::Classic => "classic".to_string(),
            },
            target: TargetFacts {
                architecture: target.architecture.clone(),
                tiles: target.num_tiles,
                bytes_per_tile: target.bytes_per_tile,
                clock_hz: facts.clock_hertz,
            },
            poplar: facts.poplar.clone(),
            compiled: facts.time.clone(),
            options: Some(chosen(facts)),
            framework,
            app,
        };
        Ok((made, warnings))
    }
}

/// The options that are not their defaults.
fn chosen(made: &profile::BuildInfo) -> Vec<BuildOption> {
    let option = |of: &str, option: &profile::ChosenOption| BuildOption {
        of: of.to_string(),
        name: option.name.clone(),
        value: option.value.clone(),
    };
    let compilation = made.compilation_options.iter();
    let target = made.target_options.iter();
    let compilation = compilation.map(|chosen| option("compilation", chosen));
    compilation
        .chain(target.map(|chosen| option("target", chosen)))
        .collect()
}

/// A small JSON file beside the profile; `None` when there is none.
fn read_beside(profile: &Path, name: &str) -> Result<Option<Value>> {
    let path = profile.parent().unwrap_or(Path::new("")).join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = read_bounded(&path, limits::BESIDE, "")?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}
