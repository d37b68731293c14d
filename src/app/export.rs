//! Writes the report to the files of `--export-json`, `--export-markdown` and `--export-html`, and
//! refuses file names with which the command would overwrite its own input or output.

use super::{
    Messages, Options,
    input::{BESIDE, debug_path},
    stdout::{self, Sections},
};
use crate::{
    atomic::{self, target},
    message::{displayed, usage},
    profile::companions,
    report::{Report, html, json, markdown},
};
use anyhow::{Context, Result};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

pub type Writer = fn(&Report) -> io::Result<String>;

/// Returns one entry per requested export: its option, its path, and the function that writes a
/// report in the form of the export.
pub fn exports(options: &Options) -> impl Iterator<Item = (&'static str, &Path, Writer)> {
    let forms: [(_, _, Writer); 3] = [
        ("--export-json", &options.export_json, |report| {
            Ok(json(report)? + "\n")
        }),
        ("--export-markdown", &options.export_markdown, |report| {
            Ok(markdown(report))
        }),
        ("--export-html", &options.export_html, |report| {
            Ok(html(report))
        }),
    ];
    forms
        .into_iter()
        .filter_map(|(option, file, write)| Some((option, file.as_deref()?, write)))
}

/// Returns whether a result that is written to `path` goes to standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Checks the files that the command will write. Call this function before any work, so that no
/// profile is lost. Returns an error for
/// - a file that the command also reads, except a saved model, which may be saved over itself
/// - a file that the command would write twice
/// - a name that SQLite would read as changes to the profile, such as `profile.pop-wal`
/// - a folder that cannot be written to
pub fn check(options: &Options) -> Result<()> {
    let mut used = inputs(options);
    let saved = options.save_to_file.as_deref();
    if saved.is_some_and(is_standard_output) {
        return Err(usage(
            "--save-to-file - would mix with results on standard output; name a file, or ./- for \
             one of this name",
        ));
    }
    let forms = exports(options)
        .map(|(option, path, _)| (option, path))
        .filter(|(_, path)| !is_standard_output(path));
    for (option, path) in saved
        .map(|path| ("--save-to-file", path))
        .into_iter()
        .chain(forms)
    {
        let written = target(path);
        let is_itself =
            |other| options.load_from_file && (other, option) == ("PROFILE", "--save-to-file");
        let same = used
            .iter()
            .find(|(other, path)| *path == written && !is_itself(*other));
        if companions(&target(&options.profile)).contains(&written) {
            return Err(usage(format!(
                "{option} names {}, which SQLite would read as changes to the profile; give \
                 another name",
                displayed(&written)
            )));
        }
        let is_stdout = || stdout::is_file(&written).then_some("standard output");
        if let Some(other) = same.map(|&(other, _)| other).or_else(is_stdout) {
            return Err(usage(format!(
                "{other} and {option} name the same file, {}; give each its own file",
                displayed(path)
            )));
        }
        atomic::check_folder(path).context(displayed(path))?;
        used.push((option, written));
    }
    Ok(())
}

/// Returns one entry per file that the command reads or may read: the option (or argument) that
/// names the file, and its path after all links are followed.
fn inputs(options: &Options) -> Vec<(&'static str, PathBuf)> {
    let [framework, app] = BESIDE.map(|name| (name, Some(options.profile.with_file_name(name))));
    [
        ("PROFILE", Some(options.profile.clone())),
        (
            "DEBUG",
            (!options.load_from_file)
                .then(|| debug_path(options).ok())
                .flatten(),
        ),
        framework,
        app,
        ("--compare", options.compare.clone()),
    ]
    .into_iter()
    .filter_map(|(name, file)| Some((name, target(&file?))))
    .collect()
}

/// Writes the report in all requested forms. An export whose path is `-` goes to `sections`
/// (standard output), every other export to its file. Files are written last: if the text of any
/// export cannot be made, no file is written.
pub fn write(
    options: &Options,
    report: &Report,
    sections: &mut Sections<'_, impl Write>,
    messages: Messages,
) -> Result<()> {
    let mut files = Vec::new();
    for (option, path, write) in exports(options) {
        let text = write(report)?;
        if is_standard_output(path) {
            sections.text(option.trim_start_matches('-'), text)?;
        } else {
            files.push((path, text));
        }
    }
    for (path, text) in files {
        atomic::write(path, text.as_bytes()).context(displayed(path))?;
        messages.info(format!("the report is in {}", displayed(path)));
    }
    Ok(())
}
