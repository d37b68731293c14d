//! Writes the report in the requested forms.

use super::Options;
use super::input::{BESIDE, beside, debug_path};
use super::messages::Messages;
use super::stdout::{self, Sections};
use crate::atomic::{self, target};
use crate::message::{displayed, usage};
use crate::profile::companions;
use crate::report::{Report, html, markdown, write_csv, write_json};
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The forms of a report that can be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportForm {
    /// `--export-json`
    Json,
    /// `--export-csv`
    Csv,
    /// `--export-markdown`
    Markdown,
    /// `--export-html`
    Html,
}

impl ExportForm {
    fn option(self) -> &'static str {
        match self {
            ExportForm::Json => "--export-json",
            ExportForm::Csv => "--export-csv",
            ExportForm::Markdown => "--export-markdown",
            ExportForm::Html => "--export-html",
        }
    }

    /// Returns the form's name, for when several results are printed.
    fn name(self) -> &'static str {
        self.option().trim_start_matches('-')
    }
}

/// Returns the requested forms, each with its file.
fn exports(options: &Options) -> impl Iterator<Item = (ExportForm, &Path)> {
    let exports = [
        (ExportForm::Json, &options.exports.export_json),
        (ExportForm::Csv, &options.exports.export_csv),
        (ExportForm::Markdown, &options.exports.export_markdown),
        (ExportForm::Html, &options.exports.export_html),
    ];
    exports
        .into_iter()
        .filter_map(|(form, file)| Some((form, file.as_deref()?)))
}

/// Does the path mean standard output?
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the number of forms that go to standard output.
pub(super) fn to_standard_output(options: &Options) -> usize {
    exports(options)
        .filter(|(_, path)| is_standard_output(path))
        .count()
}

/// Refuses to overwrite a file that is also read or written by this run. Checked before any work,
/// so that no profile is lost. Only a saved model may be saved over itself.
pub(super) fn check(options: &Options) -> Result<()> {
    let mut taken = inputs(options);
    for (option, path) in outputs(options)? {
        let written = target(path);
        let is_itself = |other| {
            options.saved.load_from_file && (other, option) == ("PROFILE", "--save-to-file")
        };
        let mut same = taken.iter().filter(|(_, taken)| *taken == written);
        let same = same.find(|(other, _)| !is_itself(*other));
        refuse_companion(option, &written, &options.input.profile)?;
        let printed = stdout::is_file(&written).then_some("standard output");
        if let Some(other) = same.map(|(other, _)| *other).or(printed) {
            return Err(usage(format!(
                "{other} and {option} name the same file, {}; give each its own file",
                displayed(path)
            )));
        }
        if !is_standard_output(path) {
            atomic::check_folder(path).with_context(|| displayed(path))?;
        }
        taken.push((option, written));
    }
    Ok(())
}

/// Refuses the names of files that SQLite would read as changes to the profile.
fn refuse_companion(option: &str, written: &Path, profile: &Path) -> Result<()> {
    match companions(&target(profile))
        .iter()
        .any(|other| other == written)
    {
        true => Err(usage(format!(
            "{option} names {}, which SQLite would read as changes to the profile; give another name",
            displayed(written)
        ))),
        false => Ok(()),
    }
}

/// Returns all files that are read, or may be, with the option that names each.
fn inputs(options: &Options) -> Vec<(&'static str, PathBuf)> {
    let [framework, app] = BESIDE.map(|name| (name, Some(beside(&options.input.profile, name))));
    let debug = (!options.saved.load_from_file).then(|| debug_path(options).ok());
    let inputs = [
        ("PROFILE", Some(options.input.profile.clone())),
        ("DEBUG", debug.flatten()),
        framework,
        app,
        ("--compare", options.exports.compare.clone()),
        ("--against", options.compiled.against.clone()),
    ];
    let inputs = inputs.into_iter();
    inputs
        .filter_map(|(name, file)| Some((name, target(&file?))))
        .collect()
}

/// Returns all files that are written. `-` is standard output for exports, which are printed under
/// their names, but is refused for a saved model.
fn outputs(options: &Options) -> Result<Vec<(&'static str, &Path)>> {
    let saved = options.saved.save_to_file.as_deref();
    if saved.is_some_and(is_standard_output) {
        return Err(usage(
            "--save-to-file - would mix with results on standard output; name a file, or ./- for \
             one of this name",
        ));
    }
    let saved = saved.map(|path| ("--save-to-file", path));
    let forms = exports(options).filter(|(_, path)| !is_standard_output(path));
    let forms = forms.map(|(form, path)| (form.option(), path));
    Ok(saved.into_iter().chain(forms).collect())
}

/// Writes the report in all requested forms. Files are written last, so that none is written if a
/// form cannot be made.
pub(super) fn write(
    options: &Options,
    report: &Report,
    sections: &mut Sections<'_, impl Write>,
    messages: Messages,
) -> Result<()> {
    let mut files = Vec::new();
    for (form, path) in exports(options) {
        let bytes = rendered(report, form)?;
        if is_standard_output(path) {
            sections.text(form.name(), &bytes)?;
        } else {
            files.push((path, bytes));
        }
    }
    for (path, bytes) in files {
        atomic::write(path, &bytes).with_context(|| displayed(path))?;
        messages.info(format_args!("the report is in {}", displayed(path)));
    }
    Ok(())
}

fn rendered(report: &Report, form: ExportForm) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match form {
        ExportForm::Json => write_json(report, &mut bytes)?,
        ExportForm::Csv => write_csv(report, &mut bytes)?,
        ExportForm::Markdown => bytes.extend(markdown(report).into_bytes()),
        ExportForm::Html => bytes.extend(html(report).into_bytes()),
    }
    Ok(bytes)
}
