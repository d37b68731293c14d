//! Compiled pipelines, drawn for a model.

use super::super::pipelines::drawn::{self, cases};
use super::super::places;
use popliner::analysis::{Analysis, JudgedSplit, Layers, Request};
use popliner::debug_info::DebugInfo;
use popliner::memory::PipelineOptions;
use popliner::model::{LayerOptions, LayerOrder, LayerSource, LayersByIpu, PositionName};
use popliner::profile::CompiledProfile;
use popliner::report::{self, Against, Detail, Fit, FitInputs, Provenance, Report};
use popliner::solve::Goal;
use std::fmt;
use synthesize::pipeline::{PipelineModel, PipelineTruth, ProfileForm};
use tempfile::TempDir;

/// A model, and one of its pipelines.
pub struct Case {
    pub cuts: Vec<u32>,
    pub compiled: Compiled,
    /// The prediction for this pipeline.
    pub prediction: Report,
    name: String,
    drawn: drawn::Case,
    positions: usize,
    model: PipelineModel,
    analysis: Analysis,
    files: Files,
}

/// The folder of the files, and the contexts, which all compilations share.
struct Files {
    folder: TempDir,
    debug: DebugInfo,
}

/// A pipelined compilation, with the planted truth.
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

/// With code that no prediction contains.
const FORM: ProfileForm = ProfileForm {
    planted: true,
    ..ProfileForm::PLAIN
};

fn layer_options() -> LayerOptions {
    LayerOptions {
        source: LayerSource::Original,
        order: LayerOrder::Natural,
        ..LayerOptions::default()
    }
}

impl Case {
    /// Returns the case of a model; `None` if contexts do not tell its backward pass, or if there is
    /// only one IPU, which is no pipeline.
    pub fn of_model(seed: u64) -> Option<Self> {
        let model_drawn = places::drawn::model(seed);
        if !model_drawn.has_backward_pass() {
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let model = synthesize::write_with_pipeline(folder.path(), &model_drawn.options);
        let model = model.expect("both files");
        let [profile, debug] = ["profile.pop", "debug.cbor"].map(|name| folder.path().join(name));
        let analysis = Analysis::read(&profile, &debug).expect("an analysis");
        let positions = layers(&analysis).placement.positions;
        let (count, is_tensorflow) = (positions.len(), model_drawn.has("tensorflow"));
        let mut cases = cases(seed, count, positions.out_is_first(), is_tensorflow);
        let drawn = cases.swap_remove(seed as usize / 4 % drawn::CASES);
        if drawn.cuts.is_empty() {
            return None;
        }
        let files = Files {
            folder,
            debug: DebugInfo::read(&debug).expect("contexts"),
        };
        Some(Self {
            cuts: drawn.cuts.clone(),
            compiled: files.compile(&model, &drawn.cuts, &drawn, &FORM),
            // The limit is high, so that the prediction always fits.
            prediction: predict(&analysis, &drawn, vec![1 << 40]),
            name: format!("SEEDS={seed}..{}: {}", seed + 1, model_drawn.name()),
            drawn,
            positions: count,
            model,
            analysis,
            files,
        })
    }

    /// Returns this compilation, written in another form.
    pub fn compiled_as(&self, form: ProfileForm) -> Compiled {
        let form = ProfileForm {
            planted: true,
            ..form
        };
        self.files
            .compile(&self.model, &self.cuts, &self.drawn, &form)
    }

    /// Returns the compilation with other cuts.
    pub fn compiled_at(&self, cuts: &[u32]) -> Compiled {
        self.files.compile(&self.model, cuts, &self.drawn, &FORM)
    }

    /// Returns the cuts with one of them moved by one position; `None` if there is no room.
    pub fn other_cuts(&self) -> Option<Vec<u32>> {
        let last = self.positions as u32 - 1;
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

    /// Returns the prediction with these limits, one for each stage.
    pub fn predict(&self, limits: Vec<u64>) -> Report {
        predict(&self.analysis, &self.drawn, limits)
    }

    /// Compares the prediction with the compilation.
    pub fn against(&self, prediction: &Report, fit: &Fit) -> Against {
        Against::new(prediction, fit).expect("a comparison")
    }

    /// Returns the fullest tile of a stage in the prediction.
    pub fn predicted_tile(&self, stage: usize) -> usize {
        let split = self.prediction.split.as_ref().expect("a split");
        split.stages[stage].fullest_tile.tile as usize
    }

    /// Returns the host exchange code on a tile of the one-IPU compilation.
    pub fn host_exchange_on(&self, tile: usize) -> u64 {
        let categories = &self.analysis.model.recorded.categories;
        let found = categories.iter().find(|row| row.name == "hostExchangeCode");
        found.map_or(0, |category| u64::from(category.bytes.get(tile as u32)))
    }
}

fn layers(analysis: &Analysis) -> Layers<'_> {
    let request = Request {
        layers: layer_options(),
        ..Request::default()
    };
    analysis.layers(&request).expect("layers")
}

fn predict(analysis: &Analysis, case: &drawn::Case, limits: Vec<u64>) -> Report {
    let layers = layers(analysis);
    let positions = &layers.placement.positions;
    let stages = drawn::stages(&case.cuts, positions.len());
    let cuts = stages.split_last().expect("a stage").1.iter();
    let names = cuts.map(|stage| match positions.name(stage.end - 1) {
        PositionName::InAndOut => "In".to_owned(),
        name => name.to_string(),
    });
    let pipeline = case.pipeline();
    let request = Request {
        memory_per_tile: limits,
        judged: Some(JudgedSplit::LastLayers(names.collect())),
        goal: Some(Goal::Peak),
        pipeline: PipelineOptions {
            schedule: Some(pipeline.schedule),
            recompute: Some(pipeline.recompute),
            accumulator: pipeline.accumulator,
            ..PipelineOptions::default()
        },
        ..Request::default()
    };
    layers.split(&request).expect("a prediction")
}

impl Files {
    fn compile(
        &self,
        model: &PipelineModel,
        cuts: &[u32],
        case: &drawn::Case,
        form: &ProfileForm,
    ) -> Compiled {
        let path = self.folder.path().join("pipelined.pop");
        let _ = std::fs::remove_file(&path);
        let truth = model.write_profile(&path, cuts, &case.options, form);
        let profile = CompiledProfile::read(&path, true).expect("a compilation");
        let programs = profile.programs.as_ref().expect("programs");
        let layers = LayersByIpu::find(programs, &self.debug, &layer_options(), profile.ipus);
        Compiled {
            truth: truth.expect("a profile"),
            layers: layers.expect("layers"),
            profile,
        }
    }
}

impl Compiled {
    /// Returns whether the compilation fits.
    pub fn fit(&self) -> Fit {
        let target = &self.profile.target;
        let files = report::Files {
            profile: "pipelined.pop".into(),
            debug: None,
            saved_model: false,
        };
        let report = Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: Some(&self.layers),
            limits: vec![target.bytes_per_tile],
            detail: Detail::Full,
            provenance: Provenance {
                memory_model: "recorded".to_owned(),
                ..Provenance::new(target, &self.profile.made, files)
            },
            warnings: Vec::new(),
        });
        report.fit.expect("whether it fits")
    }
}
