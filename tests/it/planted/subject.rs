//! The models that are checked.

use std::collections::HashSet;
use std::path::PathBuf;

use popliner::debug_info::DebugInfo;
use popliner::memory::{MemoryModel, StageMemory};
use popliner::model::{
    DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model, OwnedKind, Placement,
    PlacementOptions,
};
use popliner::profile::Profile;
use popliner::saved::{from_bytes, to_bytes};
use regex::Regex;
use synthesize::Written;
use tempfile::TempDir;

use crate::support::{self, FIXTURES, models, root, sample_pair};

/// Number of seeds for each kind of generated model.
const SEEDS: u64 = 1;

/// Where a model comes from.
pub enum Kind {
    Fixture(&'static str),
    /// Options of the generator.
    Generated(Vec<String>),
    Sample([PathBuf; 2]),
}

/// A profile with its model.
pub struct Subject {
    /// The name in failures.
    pub name: String,
    files: [PathBuf; 2],
    /// The planted truth of a generated model, and its folder.
    pub planted: Option<(Written, TempDir)>,
    pub model: Model,
    pub layering: Layering,
}

impl Kind {
    pub fn subject(&self) -> Subject {
        match self {
            Kind::Fixture(name) => {
                let files = [support::profile(name), support::debug(name)];
                let files = files.map(|file| root().join(file));
                Subject::new(name.to_string(), files, None, DEFAULT_LAYER_REGEX)
            }
            Kind::Generated(options) => {
                let folder = TempDir::new().expect("a folder");
                let planted = synthesize::write(folder.path(), options).expect("both files");
                let files = ["profile.pop", "debug.cbor"].map(|name| folder.path().join(name));
                let planted = Some((planted, folder));
                Subject::new(options.join(" "), files, planted, DEFAULT_LAYER_REGEX)
            }
            Kind::Sample(files) => {
                let name = "real sample".to_string();
                Subject::new(name, files.clone(), None, r"CS (\d+)")
            }
        }
    }
}

impl Subject {
    /// Returns every fixture, by default a fifth of the generated models, with all frameworks, and
    /// the real sample.
    pub fn all() -> Vec<Kind> {
        let fixtures = FIXTURES.into_iter().map(Kind::Fixture);
        let generated = models::every_kind(SEEDS).into_iter();
        let generated = generated.step_by(models::share(5)).map(Kind::Generated);
        let sample = sample_pair().map(Kind::Sample);
        fixtures.chain(generated).chain(sample).collect()
    }

    fn new(
        name: String,
        files: [PathBuf; 2],
        planted: Option<(Written, TempDir)>,
        layer_regex: &str,
    ) -> Self {
        let built = Model::build(profile(&files), contexts(&files), true);
        let (model, _) = built.expect("a model");
        let options = LayerOptions {
            order: LayerOrder::Natural,
            ..LayerOptions::default()
        };
        let regex = Regex::new(layer_regex).expect("a regex");
        let layering = Layering::by_regex(&model.operations, &regex, &options);
        assert!(!layering.is_empty(), "{name}: no layer");
        let (tiles, recorded) = (model.target.num_tiles, model.recorded.tiles.len());
        assert_eq!(recorded, tiles as usize, "{name}: nothing recorded");
        Self {
            name,
            files,
            planted,
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
        let built = Model::build(profile, contexts(&self.files), false);
        built.expect("a model").0
    }

    pub fn placement(&self) -> Placement {
        let options = PlacementOptions::default();
        Placement::full(&self.model, &self.layering, &options).expect("few sets")
    }

    /// A saved model is smaller than its profile, comes back, and is saved in the same bytes.
    pub fn is_saved_and_loaded(&self) {
        let bytes = to_bytes(&self.model).expect("a file");
        let loaded = from_bytes(&bytes).expect("a model");
        assert!(loaded == self.model && to_bytes(&loaded).expect("a file") == bytes);
        let profile = self.files[0].metadata().expect("a profile").len();
        assert!((bytes.len() as u64) < profile, "{}", bytes.len());
    }

    /// No program counts twice: a program that owns code or state belongs to at most one group, and
    /// a group's bytes are the bytes of its programs. `src/memory/tests/no_double_count.rs` checks
    /// that a stage counts each group and each variable once.
    pub fn programs_have_one_owner(&self) {
        let model = &self.model;
        let mut seen = HashSet::new();
        let mut owned = vec![[0u64; 2]; model.operation_groups.len()];
        for program in &model.programs {
            assert!(seen.insert(program.id), "program {}", program.id);
            let Some(group) = program.group else { continue };
            let is_exchange = program.kind == OwnedKind::DoExchange;
            owned[group as usize][usize::from(is_exchange)] += program.bytes;
        }
        for (group, owned) in model.operation_groups.iter().zip(owned) {
            let bytes = [&group.code.vertex_state, &group.code.exchange_code];
            assert_eq!(bytes.map(|bytes| bytes.total()), owned, "{group:?}");
        }
        assert!(!seen.is_empty(), "no programs");
    }
}

/// Returns the stage of all layers.
pub fn whole(memory: &MemoryModel<'_>) -> StageMemory {
    let mut stages = memory.stages(std::slice::from_ref(&(0..memory.layers())));
    stages.pop().expect("one stage")
}

fn profile(files: &[PathBuf; 2]) -> Profile {
    Profile::read(&files[0]).expect("a profile")
}

fn contexts(files: &[PathBuf; 2]) -> DebugInfo {
    DebugInfo::read(&files[1]).expect("debug contexts")
}
