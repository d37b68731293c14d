//! Defines what a report says about its origin, that is, the files and options that it was made
//! from.

use crate::{
    escape::printable,
    profile::{BuildInfo, Target},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The origin of a report: the files, the options and the program that made it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Provenance {
    /// The version of popliner that made the report.
    pub popliner: String,
    /// The command-line arguments of the run, without the name of the command.
    pub arguments: Vec<String>,
    /// The files that the run read, such as the profile.
    pub files: Files,
    /// The memory model of the predictions: `full` or `classic`; `recorded` if nothing was
    /// predicted.
    pub memory_model: String,
    /// The regex that finds the layer of an operation in the operation's name; `null` if none
    /// was used.
    pub layer_name_regex: Option<String>,
    /// The IPU that the model was compiled for.
    pub target: TargetFacts,
    /// The version of Poplar that compiled the model; `null` if unknown.
    pub poplar: Option<String>,
    /// The time of the compilation, as the profile writes it; `null` if unknown.
    pub compiled: Option<String>,
    /// Options of the compilation and of the target that are not defaults; `null` if the report
    /// has no record of them.
    pub options: Option<Vec<BuildOption>>,
    /// The contents of `framework.json`, a file that the framework writes beside the profile;
    /// `null` if there is no such file.
    pub framework: Option<Value>,
    /// The contents of `app.json`, a file that the application writes beside the profile;
    /// `null` if there is no such file.
    pub app: Option<Value>,
}

/// The paths of the files that a run read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Files {
    /// The path of the profile or, if `saved_model` is true, of the file that an earlier run wrote
    /// with `--save-to-file`.
    pub profile: String,
    /// The path of the file with the debug contexts (`debug.cbor`); `null` if the run read no such
    /// file, for example because a file of `--save-to-file` already contains the contexts.
    pub debug: Option<String>,
    /// Whether `profile` is the path of a file that an earlier run wrote with `--save-to-file`.
    pub saved_model: bool,
}

/// The IPU that the model was compiled for, as the profile describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TargetFacts {
    /// Poplar's name of the hardware, such as `ipu2`.
    pub architecture: String,
    /// Number of tiles that the model was compiled for, over all IPUs.
    pub tiles: u32,
    /// Bytes of memory that each tile has, without any reserve.
    pub bytes_per_tile: u64,
    /// The clock frequency of the IPU in cycles per second; `null` if unknown.
    pub clock_hz: Option<u64>,
}

/// An option of Poplar that was set to another value than its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct BuildOption {
    /// Whether Poplar's option belongs to the compilation (`compilation`) or to the device
    /// (`target`).
    pub of: String,
    /// Poplar's name of the option.
    pub name: String,
    /// The value that Poplar's option was set to, as the profile writes it.
    pub value: String,
}

impl Files {
    /// Returns the paths of a profile and of its debug contexts, for a run that reads the profile
    /// itself and not a file of `--save-to-file`.
    pub fn of(profile: &Path, debug: Option<&Path>) -> Self {
        Self {
            profile: profile.to_string_lossy().into_owned(),
            debug: debug.map(|debug| debug.to_string_lossy().into_owned()),
            saved_model: false,
        }
    }

    /// Returns the printable paths of the profile and of the debug file, as messages show them.
    /// Without a debug file, both paths are that of the profile.
    pub(crate) fn displayed(&self) -> [String; 2] {
        let debug = self.debug.as_ref().unwrap_or(&self.profile);
        [&self.profile, debug].map(|path| printable(path))
    }
}

impl Provenance {
    /// Collects the origin of a report: the IPU that the model was compiled for (`target`), the
    /// version and options of the compilation (`made`), and the files that were read. The caller
    /// adds the arguments, the memory model and the regex for names of layers.
    pub fn new(target: &Target, made: &BuildInfo, files: Files) -> Self {
        let options = [
            ("compilation", &made.compilation_options),
            ("target", &made.target_options),
        ]
        .into_iter()
        .flat_map(|(of, list)| {
            list.iter().map(|chosen| BuildOption {
                of: of.to_string(),
                name: chosen.name.clone(),
                value: chosen.value.clone(),
            })
        });
        Self {
            popliner: env!("CARGO_PKG_VERSION").to_string(),
            files,
            target: TargetFacts {
                architecture: target.architecture.clone(),
                tiles: target.num_tiles,
                bytes_per_tile: target.bytes_per_tile,
                clock_hz: made.clock_hertz,
            },
            poplar: made.poplar.clone(),
            compiled: made.time.clone(),
            options: Some(options.collect()),
            ..Self::default()
        }
    }
}
