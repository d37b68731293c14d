//! Reads the files that the options name, and the files of the framework beside the profile.

use super::{Messages, Options};
use crate::{
    analysis::{Analysis, ReadOptions},
    atomic::first_bytes,
    limits,
    message::{FileError, FileWarnings, Warning, displayed, unusable, usage},
    profile::Outline,
    report::{Provenance, printable},
};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Reads the model that the options name, from a profile and a debug file or from a saved model.
/// Also
/// - saves the model if `--save-to-file` is given
/// - takes the layer regexes of a saved model, unless the user gave others
/// - reads `framework.json` and `app.json` beside the profile if a report needs them
pub fn read(options: &mut Options, messages: Messages) -> Result<Analysis> {
    let profile = &options.profile;
    let allow_incomplete = options.results.allow_incomplete;
    let mut analysis = if options.load_from_file {
        if options.debug.is_some() {
            return Err(usage(
                "a saved model already has its debug contexts; leave DEBUG out",
            ));
        }
        let analysis = messages.while_showing(|progress| {
            let _task = progress.begin("loading the model", 0);
            Analysis::load(profile, allow_incomplete)
        })?;
        options
            .layers
            .take_saved(&analysis.model.layer_regexes)
            .context(displayed(profile))?;
        analysis
    } else {
        let debug = debug_path(options)?;
        let read = ReadOptions {
            memory_peak: options.tables.diagnose || options.save_to_file.is_some(),
            names: options.wants_report() || options.wants_split(),
            allow_incomplete,
        };
        messages.while_showing(|progress| Analysis::read_with(profile, &debug, read, progress))?
    };
    if let Some((variables, contexts)) = analysis.counts {
        messages.detail(format!(
            "read {variables} variables and {contexts} contexts"
        ));
    }
    messages.warn_of_files(&analysis.warnings);
    if let Some(file) = &options.save_to_file {
        analysis.model.layer_regexes = options.layers.regexes();
        messages.while_showing(|progress| {
            let _task = progress.begin("saving the model", 0);
            analysis.save(file)
        })?;
        messages.info(format!("the model is saved in {}", displayed(file)));
    }
    read_beside(
        options,
        messages,
        &mut analysis.provenance,
        &mut analysis.warnings,
    );
    Ok(analysis)
}

/// Names of the files that frameworks write into the folder of the profile.
pub const BESIDE: [&str; 2] = ["framework.json", "app.json"];

/// Reads `framework.json` and `app.json` beside the profile into `provenance`, if they exist and a
/// report needs them. For each of these files that exists but cannot be read, prints a warning and
/// adds it to `warnings`.
pub fn read_beside(
    options: &Options,
    messages: Messages,
    provenance: &mut Provenance,
    warnings: &mut FileWarnings,
) {
    let profile = &options.profile;
    if !options.wants_report() {
        return;
    }
    [provenance.framework, provenance.app] = BESIDE.map(|name| {
        json_beside(profile, name).unwrap_or_else(|error| {
            let error = printable(&error.to_string());
            let warning = Warning::new(format!("{name} beside the profile is ignored: {error}"));
            messages.warn(&warning);
            warnings.push((displayed(profile), warning));
            None
        })
    });
}

/// Reads the small JSON file `name` in the folder of the profile; `None` if there is no such file.
fn json_beside(profile: &Path, name: &str) -> Result<Option<Value>, FileError> {
    let path = profile.with_file_name(name);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = read_bounded(&path, limits::BESIDE, "such file", "the framework")?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        FileError::new(format!(
            "it is not JSON: {error}; remove it, or let the framework write it again"
        ))
    })
}

/// Returns the path of the debug file: the second argument of the command, or else the file
/// `debug.cbor` in the folder of the profile or one folder above.
///
/// # Errors
/// If no debug file is found. If the profile is also unreadable, the error is about the profile.
pub fn debug_path(options: &Options) -> Result<PathBuf> {
    if let Some(path) = &options.debug {
        return Ok(path.clone());
    }
    let profile = &options.profile;
    let mut places = ["debug.cbor", "../debug.cbor"]
        .iter()
        .map(|name| profile.with_file_name(name));
    if let Some(found) = places.find(|place| place.is_file()) {
        return Ok(found);
    }
    Outline::read(profile).context(displayed(profile))?;
    anyhow::bail!(
        "there is no debug.cbor beside {} or one folder above; give its path as the second argument",
        displayed(profile)
    )
}

/// Reads a whole file of at most `max` bytes. If the file is larger, the error names the kind of
/// file that was expected (`what`), and the program that writes such files (`writer`).
pub fn read_bounded(path: &Path, max: u64, what: &str, writer: &str) -> Result<Vec<u8>, FileError> {
    let bytes = first_bytes(path, max + 1)?;
    if bytes.len() as u64 > max {
        return unusable(format!(
            "it has more than {max} bytes, and no {what} is that large; give the file as {writer} \
             wrote it"
        ));
    }
    Ok(bytes)
}
