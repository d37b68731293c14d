//! The models that are checked.

use std::path::{Path, PathBuf};

use popliner::debug_info::DebugInfo;
use popliner::memory::MemoryModel;
use popliner::model::{
    DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model, Placement, PlacementOptions,
};
use popliner::profile::Profile;
use regex::Regex;
use tempfile::TempDir;

use crate::support::models;
use crate::support::{self, FIXTURES, root, sample};

/// Number of seeds for each kind of generated model.
const SEEDS: u64 = 1;

/// A profile with its model.
pub struct Subject {
    /// The name in failures.
    pub name: String,
    files: [PathBuf; 2],
    pub model: Model,
    pub layering: Layering,
}

impl Subject {
    fn new(name: String, files: [PathBuf; 2], layer_regex: &str) -> Self {
        let model = Model::build(profile(&files), &contexts(&files), true).expect("a model");
        let options = LayerOptions {
            order: LayerOrder::Natural,
            ..LayerOptions::default()
        };
        let regex = Regex::new(layer_regex).expect("a regex");
        let layering = Layering::by_regex(&model.operations, &regex, &options);
        assert!(!layering.is_empty(), "{name}: no layer");
        let tiles = model.target.num_tiles as usize;
        assert_eq!(
            model.recorded.tiles.len(),
            tiles,
            "{name}: nothing recorded"
        );
        Self {
            name,
            files,
            model,
            layering,
        }
    }

    /// Reads the profile again.
    pub fn profile(&self) -> Profile {
        profile(&self.files)
    }

    /// Builds the model of a changed profile.
    pub fn changed(&self, profile: Profile) -> Model {
        Model::build(profile, &contexts(&self.files), false).expect("a model")
    }

    /// Reads the planted truth of the generator.
    pub fn planted(&self) -> serde_json::Value {
        let path = self.files[0].with_file_name("planted.json");
        let text = std::fs::read(path).expect("what was planted");
        serde_json::from_slice(&text).expect("JSON")
    }

    pub fn placement(&self) -> Placement {
        let options = PlacementOptions::default();
        Placement::full(&self.model, &self.layering, &options).expect("few sets")
    }

    /// Returns the memory model for this placement.
    pub fn memory<'a>(&'a self, placement: &'a Placement) -> MemoryModel<'a> {
        MemoryModel::new(&self.model, placement).expect("few sets")
    }
}

fn profile(files: &[PathBuf; 2]) -> Profile {
    Profile::read(&files[0]).expect("a profile")
}

fn contexts(files: &[PathBuf; 2]) -> DebugInfo {
    DebugInfo::read(&files[1]).expect("debug contexts")
}

/// Checks every fixture.
pub fn each_fixture(check: impl Fn(&Subject)) {
    for name in FIXTURES {
        let files = [support::profile(name), support::debug(name)].map(|file| root().join(file));
        check(&Subject::new(name.to_string(), files, DEFAULT_LAYER_REGEX));
    }
}

/// Checks generated models of every kind, by default a fifth of them, with all frameworks.
pub fn each_generated(check: impl Fn(&Subject)) {
    let all = models::every_kind(SEEDS).into_iter();
    for mut options in all.step_by(models::share(5)) {
        let name = options.join(" ");
        let folder = TempDir::new().expect("a folder");
        options.extend(["--planted".to_string(), planted_path(folder.path())]);
        let files = models::generate(folder.path(), &options);
        check(&Subject::new(name, files, DEFAULT_LAYER_REGEX));
    }
}

fn planted_path(folder: &Path) -> String {
    let path = folder.join("planted.json");
    path.to_str().expect("a plain path").to_string()
}

/// Checks the real sample, or skips if it is missing.
pub fn the_sample(check: impl Fn(&Subject)) {
    let files = ["firehose.profile.pop", "firehose.debug.cbor"].map(sample);
    if let [Some(profile), Some(debug)] = files {
        let files = [profile, debug];
        check(&Subject::new("real sample".to_string(), files, r"CS (\d+)"));
    }
}
