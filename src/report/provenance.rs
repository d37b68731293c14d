//! The files and options that a report was made from.

use crate::profile::{BuildInfo, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The files and options that a report was made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The version of the tool.
    pub popliner: String,
    /// The arguments of the run, without the name of the command.
    pub arguments: Vec<String>,
    /// The files that were read.
    pub files: Files,
    /// The memory model: `full` or `classic`; `recorded` if nothing was predicted.
    pub memory_model: String,
    /// The regex that found the layers; `null` if none was used.
    pub layer_name_regex: Option<String>,
    /// The machine that the model was compiled for.
    pub target: TargetFacts,
    /// The version of Poplar that compiled the model; `null` if unknown.
    pub poplar: Option<String>,
    /// The time of the compilation in the profile's format; `null` if unknown.
    pub compiled: Option<String>,
    /// Options of the compilation that are not defaults; `null` if the profile does not have them.
    pub options: Option<Vec<BuildOption>>,
    /// The contents of `framework.json` beside the profile.
    pub framework: Option<Value>,
    /// The contents of `app.json` beside the profile.
    pub app: Option<Value>,
}

/// The files that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// The profile, or the saved model.
    pub profile: String,
    /// The debug contexts; `null` for a saved model, which contains them.
    pub debug: Option<String>,
    /// Was the profile a saved model?
    pub saved_model: bool,
}

/// The machine that the model was compiled for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Poplar's name of the hardware, such as `ipu2`.
    pub architecture: String,
    /// Number of tiles.
    pub tiles: u32,
    /// Bytes of memory of each tile.
    pub bytes_per_tile: u64,
    /// Cycles per second; `null` if unknown.
    pub clock_hz: Option<u64>,
}

/// An option that is not a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildOption {
    /// The owner of the option: `compilation` or `target`.
    pub of: String,
    /// The option's name.
    pub name: String,
    /// The option's value.
    pub value: String,
}

impl Files {
    /// Returns the files that were read.
    pub fn of(profile: &Path, debug: Option<&Path>) -> Self {
        Self {
            profile: profile.to_string_lossy().into_owned(),
            debug: debug.map(|debug| debug.to_string_lossy().into_owned()),
            saved_model: false,
        }
    }
}

impl Provenance {
    /// Returns the provenance of a profile and its files, without the arguments and the memory
    /// model.
    pub fn new(target: &Target, made: &BuildInfo, files: Files) -> Self {
        let compilation = ("compilation", &made.compilation_options);
        let lists = [compilation, ("target", &made.target_options)].into_iter();
        let chosen = lists.flat_map(|(of, list)| list.iter().map(move |chosen| (of, chosen)));
        let options = chosen.map(|(of, chosen)| BuildOption {
            of: of.to_string(),
            name: chosen.name.clone(),
            value: chosen.value.clone(),
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
