//! The report, written to files in the forms that were asked for.

use super::input::{Input, Shown, debug_path};
use super::sections::Sections;
use super::{search, usage};
use crate::atomic;
use crate::cli::{Accounting, Export, Options};
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Placement};
use crate::profile;
use crate::progress::Unit;
use crate::report::document::{BuildOption, Files, Inputs, Made, TargetFacts};
use crate::report::{Report, json, markdown, page, spreadsheet};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// What a report is made from.
pub(super) struct Exported<'a> {
    pub(super) options: &'a Options,
    pub(super) input: &'a Input,
    pub(super) layering: &'a Layering,
    pub(super) memory: &'a MemoryModel<'a>,
    pub(super) placement: &'a Placement,
    pub(super) found: Option<&'a search::Found>,
}

/// Stands for standard output.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// How many forms go to standard output.
pub(super) fn to_standard_output(options: &Options) -> usize {
    let exports = options.exports();
    exports.filter(|(_, path)| is_standard_output(path)).count()
}

/// Refuses two forms for one file, before any work is done.
pub(super) fn check(options: &Options) -> Result<()> {
    let exports: Vec<_> = options.exports().collect();
    for (number, (form, path)) in exports.iter().enumerate() {
        let same = exports[..number].iter().find(|(_, other)| other == path);
        if let Some((other, _)) = same.filter(|_| !is_standard_output(path)) {
            let (form, other) = (form.name(), other.name());
            return Err(usage(format!(
                "--{other} and --{form} name the same file, {}",
                Shown(path)
            )));
        }
    }
    Ok(())
}

/// Makes the report, writes it in all forms, and gives it back. Files come last, so that no
/// form is missing when one cannot be made.
pub(super) fn write(
    exported: &Exported<'_>,
    sections: &mut Sections<'_, impl Write>,
    messages: Messages,
) -> Result<Report> {
    let (made, warnings) = exported.made(messages)?;
    let report = messages.while_showing(|progress| {
        let _task = progress.begin("making the report", Unit::Rows, 0);
        exported.report(made, warnings)
    })?;
    let mut files = Vec::new();
    for (form, path) in exported.options.exports() {
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

fn rendered(report: &Report, form: Export) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match form {
        Export::Json => json::write_report(report, &mut bytes)?,
        Export::Csv => spreadsheet::write(report, &mut bytes)?,
        Export::Markdown => bytes.extend(markdown::text(report).into_bytes()),
        Export::Html => bytes.extend(page::text(report).into_bytes()),
    }
    Ok(bytes)
}

impl Exported<'_> {
    fn report(&self, made: Made, warnings: Vec<String>) -> Result<Report> {
        let model = &self.input.model;
        let inputs = Inputs {
            model,
            layering: self.layering,
            memory: self.memory,
            lookup: self.input.lookup.as_ref(),
            limit: search::limits(self.options, model)?
                .into_iter()
                .max()
                .unwrap_or(0),
            split: self.found.and_then(|found| found.split.as_ref()),
            search: self.found.map(|found| &found.facts),
            cycles: model.layer_cycles(self.layering, self.placement),
            made,
            warnings,
        };
        let path = &self.options.profile;
        Report::new(inputs).with_context(|| Shown(path).to_string())
    }

    /// How the report is made, and all sentences about the files.
    fn made(&self, messages: Messages) -> Result<(Made, Vec<String>)> {
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
                messages.warning(&warning);
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
                Accounting::Full => "full".to_string(),
                Accounting::Classic => "classic".to_string(),
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
fn chosen(made: &profile::Made) -> Vec<BuildOption> {
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

/// The files of real runs have some kilobytes.
const MOST_BYTES: u64 = 1 << 20;

/// A small JSON file beside the profile; `None` when there is none.
fn read_beside(profile: &Path, name: &str) -> Result<Option<Value>> {
    let path = profile.parent().unwrap_or(Path::new("")).join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(&path)?
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        anyhow::bail!("it has more than {MOST_BYTES} bytes");
    }
    Ok(Some(serde_json::from_slice(&bytes)?))
}
