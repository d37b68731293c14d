//! Compiled pipelines, drawn for a model.

use super::super::pipelines::drawn::{self, cases};
use super::super::places;
use popliner::analysis::Analysis;
use popliner::debug_info::DebugInfo;
use popliner::memory::PipelineOptions;
use popliner::model::{LayerOptions, LayerOrder, LayersByIpu, PlacementOptions, Rules};
use popliner::profile::CompiledProfile;
use popliner::report::{Against, Calibration, Files, Fit, FitInputs, Provenance, Report};
use popliner::search::{IpuCount, SearchRequest};
use popliner::solve::Plan;
use std::fmt;
use synthesize::pipeline::{PipelineModel, PipelineTruth, PlantedBytes, PlantedCode, ProfileForm};
use tempfile::TempDir;

/// A model, and one of its pipelines.
pub struct Case {
    pub cuts: Vec<u32>,
    pub compiled: Compiled,
    name: String,
    drawn: drawn::Case,
    model: PipelineModel,
    analysis: Analysis,
    folder: TempDir,
}

/// A pipelined compilation, with what was planted.
pub struct Compiled {
    pub profile: CompiledProfile,
    pub truth: PipelineTruth,
    layers: LayersByIpu,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.name, self.cuts, self.drawn.options)
    }
}

/// What no prediction knows: more in the middle, a little different from tile to
/// tile.
fn form() -> ProfileForm {
    let bytes = |first, middle, last| PlantedBytes {
        first,
        middle,
        last,
        varying: 64,
    };
    ProfileForm {
        planted: PlantedCode {
            global_exchange: bytes(2048, 4096, 1536),
            host_exchange: bytes(512, 640, 768),
            restore: bytes(1024, 1024, 0),
        },
        ..ProfileForm::default()
    }
}

fn layer_options() -> LayerOptions {
    LayerOptions {
        order: LayerOrder::Natural,
        ..LayerOptions::default()
    }
}

impl Case {
    /// Those of a model; none where it has no backward pass that contexts tell.
    pub fn of_model(seed: u64) -> Vec<Self> {
        let drawn = places::drawn::model(seed);
        let has = |option: &str| drawn.options.iter().any(|own| own == option);
        if !has("training") || has("poplar") {
            return Vec::new();
        }
        let positions = |analysis: &Analysis| {
            let layers =
                analysis.layers(Rules::Full, &layer_options(), &PlacementOptions::default());
            let positions = layers.expect("layers").placement.positions;
            (positions.len(), positions.out_is_first())
        };
        let number = 0..drawn::CASES;
        let cases = number.map(|number| {
            let folder = TempDir::new().expect("a folder");
            let model = synthesize::write_with_pipeline(folder.path(), &drawn.options);
            let model = model.expect("both files");
            let [profile, debug] = ["profile.pop", "debug.cbor"].map(|own| folder.path().join(own));
            let analysis = Analysis::read(&profile, &debug).expect("an analysis");
            let (positions, out_on_first) = positions(&analysis);
            let case = cases(seed, positions, out_on_first, has("tensorflow")).swap_remove(number);
            let compiled = Compiled::new(&folder, &model, &case.cuts, &case);
            Self {
                cuts: case.cuts.clone(),
                compiled,
                name: format!("SEEDS={seed}..{}: {}", seed + 1, drawn.options.join(" ")),
                drawn: case,
                model,
                analysis,
                folder,
            }
        });
        // One IPU is no pipeline.
        cases.filter(|case| !case.cuts.is_empty()).collect()
    }

    /// The compilation with other cuts.
    pub fn compiled_at(&self, cuts: &[u32]) -> Compiled {
        Compiled::new(&self.folder, &self.model, cuts, &self.drawn)
    }

    /// Cuts of which one is elsewhere by one position; `None` where there is no room.
    pub fn other_cuts(&self) -> Option<Vec<u32>> {
        let last = self.positions() as u32 - 1;
        let moved = |place: usize| {
            let cut = self.cuts[place] + 1;
            let next = self.cuts.get(place + 1).copied().unwrap_or(last + 1);
            (cut < next && cut <= last).then_some((place, cut))
        };
        let (place, cut) = (0..self.cuts.len()).rev().find_map(moved)?;
        let mut cuts = self.cuts.clone();
        cuts[place] = cut;
        Some(cuts)
    }

    fn positions(&self) -> usize {
        let layers =
            self.analysis
                .layers(Rules::Full, &layer_options(), &PlacementOptions::default());
        layers.expect("layers").placement.positions.len()
    }

    /// What is predicted of the split that was compiled.
    pub fn predict(&self, calibration: Option<&Calibration>) -> Report {
        self.predict_at(&self.cuts, calibration)
    }

    /// What is predicted of any split.
    pub fn predict_at(&self, cuts: &[u32], calibration: Option<&Calibration>) -> Report {
        let layers =
            self.analysis
                .layers(Rules::Full, &layer_options(), &PlacementOptions::default());
        let layers = layers.expect("layers");
        let positions = layers.placement.positions.len();
        let stages = drawn::stages(cuts, positions);
        let pipeline = self.drawn.pipeline();
        let request = SearchRequest {
            ipus: IpuCount::Exactly(stages.len()),
            limits: vec![u64::MAX >> 16],
            given: Some(Plan::new(stages, positions).expect("a split")),
            pipeline: PipelineOptions {
                schedule: Some(pipeline.schedule),
                recompute: Some(pipeline.recompute),
                accumulator: pipeline.accumulator,
            },
            ..SearchRequest::default()
        };
        layers
            .split_learning(request, calibration)
            .expect("a prediction")
    }

    /// The comparison of both, by way of the JSON form.
    pub fn against(&self, prediction: &Report, fit: &Fit) -> Against {
        Against::new(prediction, fit).expect("a comparison")
    }

    /// Host exchange code that the one IPU has on the fullest tile of a stage.
    pub fn host_exchange(&self, stage: usize) -> u64 {
        let prediction = self.predict(None);
        let stage = &prediction.split.expect("a split").stages[stage];
        self.host_exchange_on(stage.fullest_tile.tile as usize)
    }

    /// The same on any tile.
    pub fn host_exchange_on(&self, tile: usize) -> u64 {
        let categories = &self.analysis.model.recorded.categories;
        let found = categories
            .iter()
            .find(|(name, _)| name == "hostExchangeCode");
        found.map_or(0, |(_, bytes)| u64::from(bytes.get(tile as u32)))
    }
}

impl Compiled {
    fn new(folder: &TempDir, model: &PipelineModel, cuts: &[u32], case: &drawn::Case) -> Self {
        let name = format!("pipelined{:?}.pop", cuts);
        let path = folder.path().join(name);
        let _ = std::fs::remove_file(&path);
        let truth = model.write_profile_as(&path, cuts, &case.options, &form());
        let truth = truth.expect("a profile");
        let profile = CompiledProfile::read(&path, true).expect("a compilation");
        let debug = DebugInfo::read(&folder.path().join("debug.cbor")).expect("contexts");
        let programs = profile.programs.as_ref().expect("programs");
        let layers = LayersByIpu::find(programs, &debug, &layer_options(), profile.ipus);
        Self {
            truth,
            layers: layers.expect("layers"),
            profile,
        }
    }

    /// Whether it fits.
    pub fn fit(&self) -> Fit {
        let target = &self.profile.target;
        let files = Files {
            profile: "pipelined.pop".into(),
            debug: None,
            saved_model: false,
        };
        let report = Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: Some(&self.layers),
            limits: vec![target.bytes_per_tile],
            provenance: Provenance::new(target, &self.profile.made, files, "recorded"),
            warnings: Vec::new(),
        });
        report.fit.expect("whether it fits")
    }
}
