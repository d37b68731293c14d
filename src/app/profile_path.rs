//! Finds the profile to read. The path that the user gave may lead to a profile, to a report folder
//! of Poplar, or to a saved model.

use super::{Messages, Options, commands::line};
use crate::{
    message::{FileError, GIVE_PROFILE, displayed, usage},
    profile::Outline,
    saved::is_saved,
    wording::{counted, listed},
};
use anyhow::{Context, Result};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file name that Poplar gives to every profile.
const NAME: &str = "profile.pop";

/// Replaces the path in `options` by the path of a profile. Sets `load_from_file` if the path leads
/// to a saved model, which is recognized by its first bytes. A folder stands for the profile in the
/// folder, or for a profile one folder below. If several folders below have a profile, as after a
/// program with several engines, the only profile that can be split (with `--fit`, read) is used.
///
/// # Errors
/// If a folder has no profile, or has several profiles that can be split, or if `--fit` is given
/// with a saved model.
pub fn resolve(options: &mut Options, messages: Messages) -> Result<()> {
    let path = &options.profile;
    if options.load_from_file || !path.is_dir() {
        options.load_from_file |= is_saved(path);
        if options.results.fit && options.load_from_file {
            return Err(usage(format!(
                "--fit judges a profile, and {} is a model that --save-to-file wrote; \
                 {GIVE_PROFILE}",
                displayed(path)
            )));
        }
        return Ok(());
    }
    let profile = match &profiles(path).context(displayed(path))?[..] {
        [] => return Err(no_profile(path)),
        [only] => only.clone(),
        several => only_profile(several, options)?,
    };
    messages.summary(format!("Reading {}", displayed(&profile)));
    options.profile = profile;
    Ok(())
}

/// Returns the path of the profile in `folder`. If there is no such profile, returns the sorted
/// paths of all profiles one folder below.
fn profiles(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let profile = folder.join(NAME);
    match profile.metadata() {
        Ok(metadata) if metadata.is_file() => return Ok(vec![profile]),
        // Without the permission to open the folder, it is unknown whether the folder has a
        // profile. So this is an error, and no profile is looked for one folder below.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error.into()),
        _ => {}
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path().join(NAME);
        // A folder that cannot be opened is skipped: the profile may be in another folder.
        if path.is_file() {
            below.push(path);
        }
    }
    below.sort();
    Ok(below)
}

/// Returns an error which says that `folder` has no profile, and lists the files in the folder.
fn no_profile(folder: &Path) -> anyhow::Error {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| displayed(Path::new(&entry.file_name())))
        .collect();
    names.sort();
    let has = match names.len() {
        0 => "it is empty".to_owned(),
        _ => format!("it has {}", listed(&names)),
    };
    anyhow::anyhow!(
        "{}: there is no {NAME} in this folder or one folder below; {has}; give the folder that \
         autoReport.directory named when the model was compiled, or the profile itself",
        displayed(folder)
    )
}

/// Returns the only profile among `several` that can be split or, with `--fit`, that can be read.
///
/// # Errors
/// If no profile or more than one can be split or read. The error lists all profiles, each with a
/// command that reads it.
fn only_profile(several: &[PathBuf], options: &Options) -> Result<PathBuf> {
    let several: Vec<_> = several
        .iter()
        .map(|path| (path, Outline::read(path)))
        .collect();
    // A model can be split if its profile was compiled for one IPU and has lowered variables.
    let mut able = several.iter().filter(|(_, outline)| {
        outline.as_ref().is_ok_and(|outline| {
            options.results.fit || outline.target.num_ipus == 1 && outline.has_variables
        })
    });
    if let (Some((only, _)), None) = (able.next(), able.next()) {
        return Ok(only.to_path_buf());
    }
    let folder = options.profile.to_string_lossy();
    let lines = several.iter().map(|(path, outline)| {
        let what = outline.as_ref().map_or_else(ToString::to_string, kind);
        let mut arguments = options.arguments.clone();
        for own in arguments.iter_mut().filter(|own| **own == folder) {
            *own = path.to_string_lossy().into_owned();
        }
        format!("\n  {}  {what}", line(&arguments))
    });
    Err(usage(format!(
        "{}: there are {} profiles below this folder; give one of them:{}",
        displayed(&options.profile),
        several.len(),
        lines.collect::<String>()
    )))
}

/// Describes a profile in a phrase: its number of IPUs and replicas, whether it has lowered
/// variables, and whether the program was executed.
fn kind(profile: &Outline) -> String {
    let ipus = counted(profile.target.num_ipus, "IPU");
    let replicas = match profile.target.num_replicas {
        0..=1 => String::new(),
        several => format!(", {}", counted(several, "replica")),
    };
    let without = if profile.has_variables { "" } else { "out" };
    let executed = if profile.is_executed {
        ", executed"
    } else {
        ""
    };
    format!("{ipus}{replicas}, with{without} lowered variables{executed}")
}
