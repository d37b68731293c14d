//! The report, written to files in the requested forms.

use super::input::debug_path;
use super::messages::Messages;
use super::stdout::Sections;
use super::{Options, usage};
use crate::analysis::shown;
use crate::atomic;
use crate::report::{Report, html, markdown, write_csv, write_json};
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A form of the report.
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

    /// What the form is called where several results are printed.
    fn name(self) -> &'static str {
        self.option().trim_start_matches('-')
    }
}

/// The requested forms, each with its file.
fn exports(options: &Options) -> impl Iterator<Item = (ExportForm, &Path)> {
    let exports = [
        (ExportForm::Json, &options.export_json),
        (ExportForm::Csv, &options.export_csv),
        (ExportForm::Markdown, &options.export_markdown),
        (ExportForm::Html, &options.export_html),
    ];
    exports
        .into_iter()
        .filter_map(|(form, file)| Some((form, file.as_deref()?)))
}

/// Does it mean standard output?
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
    let read = [
        ("--against", &options.against),
        ("--calibration", &options.calibration),
    ];
    let read = read.into_iter();
    let read = read.filter_map(|(option, file)| Some((option, place(file.as_deref()?))));
    taken.extend(read);
    let others = [
        ("--save-to-file", &options.save_to_file),
        ("--export-lp", &options.export_lp),
        ("--calibrate", &options.calibrate),
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
                "{other} and {option} name the same file, {}; give each a file of its own",
                shown(path)
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

/// Writes the report in all forms. Files come last, so that no form is missing
/// when one cannot be made.
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
        atomic::write(path, &bytes).with_context(|| shown(path))?;
        messages.info(format_args!("the report is in {}", shown(path)));
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
