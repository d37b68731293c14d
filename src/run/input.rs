//! From the arguments to a model.

use super::usage;
use crate::cli::Options;
use crate::debug_info::DebugInfo;
use crate::messages::Messages;
use crate::model::{Model, VariableLookup};
use crate::profile::Profile;
use crate::progress::{Progress, Unit};
use crate::report::printable;
use crate::saved;
use anyhow::{Context, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What was read.
pub(super) struct Input {
    pub(super) model: Model,
    /// Finds variables by name: only for a report, and not of a saved model.
    pub(super) lookup: Option<VariableLookup>,
    /// Sentences about the files, those of the model included.
    pub(super) warnings: Vec<String>,
}

/// Reads the model from the files that the arguments name, and saves it if
/// that was asked for.
pub(super) fn read(options: &Options, messages: Messages) -> Result<Input> {
    let start = Instant::now();
    let path = &options.profile;
    let mut input = match options.load_from_file {
        true => load(options, messages)?,
        false => analyse(options, messages)?,
    };
    let model = &input.model;
    for warning in &model.warnings {
        messages.warning(format_args!("{}: {}", Shown(path), printable(warning)));
    }
    messages.detail(format_args!("model after {:.2?}", start.elapsed()));
    if let Some(file) = &options.save_to_file {
        let saved = messages.while_showing(|progress| {
            let _task = progress.begin("saving the model", Unit::Bytes, 0);
            saved::save(model, file)
        });
        saved.with_context(|| Shown(file).to_string())?;
        messages.info(format_args!("the model is saved in {}", Shown(file)));
    }
    input.warnings.extend_from_slice(&input.model.warnings);
    Ok(input)
}

fn load(options: &Options, messages: Messages) -> Result<Input> {
    if options.debug.is_some() {
        return Err(usage(
            "with --load-from-file the saved file is the only argument: leave DEBUG out",
        ));
    }
    let path = &options.profile;
    let loaded = messages.while_showing(|progress| {
        let _task = progress.begin("loading the model", Unit::Bytes, 0);
        saved::load(path)
    });
    Ok(Input {
        model: loaded.with_context(|| Shown(path).to_string())?,
        lookup: None,
        warnings: Vec::new(),
    })
}

/// Reads both files, one beside the other, and joins them.
fn analyse(options: &Options, messages: Messages) -> Result<Input> {
    let start = Instant::now();
    let path = &options.profile;
    let (profile, debug_info) = messages.while_showing(|progress| {
        rayon::join(
            || Profile::read_with(path, progress).with_context(|| Shown(path).to_string()),
            || read_debug_info(options, progress),
        )
    });
    let mut warnings = Vec::new();
    let debug_info = debug_info.map(|(debug_info, path)| {
        for warning in debug_info.warnings() {
            messages.warning(format_args!("{}: {warning}", Shown(&path)));
            warnings.push(warning.to_string());
        }
        debug_info
    });
    let (profile, debug_info) = (profile?, debug_info?);
    messages.detail(format_args!(
        "read {} variables and {} contexts in {:.2?}",
        profile.variables.len(),
        debug_info.len(),
        start.elapsed()
    ));
    let with_bottleneck = options.diagnose || options.save_to_file.is_some();
    let model = messages.while_showing(|progress| {
        let _task = progress.begin("joining programs and variables", Unit::Rows, 0);
        Model::build_with_lookup(profile, &debug_info, with_bottleneck)
    });
    let (model, lookup) = model.with_context(|| Shown(path).to_string())?;
    Ok(Input {
        model,
        lookup: Some(lookup).filter(|_| options.wants_report()),
        warnings,
    })
}

/// The contexts, and the path that they came from.
fn read_debug_info(options: &Options, progress: &Progress) -> Result<(DebugInfo, PathBuf)> {
    let path = debug_path(options)?;
    let debug_info = DebugInfo::read_with(&path, progress);
    Ok((debug_info.with_context(|| Shown(&path).to_string())?, path))
}

/// The second argument, or where Poplar writes the file.
pub(super) fn debug_path(options: &Options) -> Result<PathBuf> {
    if let Some(path) = &options.debug {
        return Ok(path.clone());
    }
    let folder = options.profile.parent().unwrap_or(Path::new(""));
    let places = [
        folder.join("debug.cbor"),
        folder.join("..").join("debug.cbor"),
    ];
    let found = places.iter().find(|place| place.exists()).cloned();
    found.ok_or_else(|| {
        anyhow::anyhow!(
            "no debug.cbor stands beside {} or one folder above; give its path as the second \
             argument",
            Shown(&options.profile)
        )
    })
}

/// A whole file, unless it has more than `most` bytes; `why` ends the sentence
/// that says so.
pub(super) fn read_bounded(path: &Path, most: u64, why: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it has more than {most} bytes{why}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// A path in a message.
pub(super) struct Shown<'a>(pub(super) &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0.to_string_lossy()))
    }
}
