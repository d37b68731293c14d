//! Compiled pipelines, drawn for a model.

use super::super::pipelines::drawn::{self, cases};
use super::super::places;
use popliner::analysis::{Analysis, Compilation, CompilationOptions, JudgedSplit, Layers, Request};
use popliner::memory::{PipelineOptions, StatePlace};
use popliner::model::{LayerOptions, LayerOrder, LayerSource};
use popliner::report::{Fit, FitComparison, Report};
use popliner::search::SearchOptions;
use popliner::solve::Goal;
use std::fmt;
use synthesize::pipeline::{PipelineModel, ProfileForm, StageTruth};
use tempfile::TempDir;

/// A model, and one of its pipelines.
pub struct Case {
    pub compiled: Compiled,
    /// The prediction for this pipeline.
    pub prediction: Report,
    name: String,
    drawn: drawn::Case,
    model: PipelineModel,
    analysis: Analysis,
    folder: TempDir,
}

/// A pipelined compilation, with the planted truth.
pub struct Compiled {
    pub read: Compilation,
    pub truth: Vec<StageTruth>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawn::Case { cuts, options, .. } = &self.drawn;
        write!(f, "{} {cuts:?} {options:?}", self.name)
    }
}

fn layer_options() -> LayerOptions {
    LayerOptions {
        source: LayerSource::Original,
        order: LayerOrder::Natural,
        ..LayerOptions::default()
    }
}

impl Case {
    /// Returns the case of a model; `None` if contexts do not identify its backward pass, or if
    /// there is only one IPU, which is no pipeline.
    pub fn of_model(seed: u64) -> Option<Self> {
        let model_drawn = places::drawn::model(seed);
        if !model_drawn.has_backward_pass() {
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let model = synthesize::write(folder.path(), &model_drawn.options).expect("both files");
        let model = model.pipeline();
        let files = ["profile.pop", "debug.cbor"].map(|name| folder.path().join(name));
        let analysis = Analysis::read(&files[0], &files[1]).expect("an analysis");
        let positions = layers(&analysis).placement.positions;
        let out_is_first = positions.out_is_first();
        let is_tensorflow = model_drawn.has("tensorflow");
        let mut cases = cases(seed, positions.len(), out_is_first, is_tensorflow);
        let drawn = cases.swap_remove(seed as usize / 4 % drawn::CASES);
        if drawn.cuts.is_empty() {
            return None;
        }
        Some(Self {
            compiled: compile(&folder, &model, &drawn.cuts, &drawn, ProfileForm::PLAIN),
            // The limit is high, so that the prediction always fits.
            prediction: predict(&analysis, &drawn, vec![1 << 40]),
            name: format!("SEEDS={seed}..{}: {}", seed + 1, model_drawn.name()),
            drawn,
            model,
            analysis,
            folder,
        })
    }

    /// Returns this compilation, written in another form.
    pub fn compiled_as(&self, form: ProfileForm) -> Compiled {
        self.compiled_with(&self.drawn.cuts, form)
    }

    fn compiled_with(&self, cuts: &[u32], form: ProfileForm) -> Compiled {
        compile(&self.folder, &self.model, cuts, &self.drawn, form)
    }

    /// Returns the compilation with one of the cuts moved by one position; `None` if there is no room.
    pub fn cut_elsewhere(&self) -> Option<Compiled> {
        let last = layers(&self.analysis).placement.positions.len() as u32 - 1;
        let mut cuts = self.drawn.cuts.clone();
        let is_free = |&place: &usize| {
            let next = cuts.get(place + 1).copied().unwrap_or(last + 1);
            cuts[place] + 1 < next
        };
        let place = (0..cuts.len()).rev().find(is_free)?;
        cuts[place] += 1;
        Some(self.compiled_with(&cuts, ProfileForm::PLAIN))
    }

    /// Returns the prediction with these limits, one for each stage.
    pub fn predict(&self, limits: Vec<u64>) -> Report {
        predict(&self.analysis, &self.drawn, limits)
    }

    /// Compares the prediction with the compilation.
    pub fn comparison(&self, fit: &Fit) -> FitComparison {
        FitComparison::new(&self.prediction, fit).expect("a comparison")
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
    let later = stages.iter().skip(1);
    let names = later.map(|stage| positions.name(stage.start).to_string());
    let pipeline = case.pipeline();
    let request = Request {
        layers: layer_options(),
        memory_per_tile: limits,
        judged: Some(JudgedSplit::FirstLayers(names.collect())),
        goal: Some(Goal::Peak),
        options: SearchOptions {
            pipeline: PipelineOptions {
                schedule: Some(pipeline.schedule),
                recompute: Some(pipeline.recompute),
                accumulator: pipeline.accumulator,
                state: Some(StatePlace::OnChip),
                ..PipelineOptions::default()
            },
            ..SearchOptions::default()
        },
        ..Request::default()
    };
    analysis.split(&request).expect("a prediction")
}

/// Writes the compilation with these cuts, and reads it.
fn compile(
    folder: &TempDir,
    model: &PipelineModel,
    cuts: &[u32],
    case: &drawn::Case,
    form: ProfileForm,
) -> Compiled {
    let path = folder.path().join("pipelined.pop");
    let _ = std::fs::remove_file(&path);
    let truth = model.write_profile(&path, cuts, &case.options, &form);
    let options = CompilationOptions {
        debug: Some(folder.path().join("debug.cbor")),
        is_debug_named: true,
        allow_incomplete: true,
        layers: layer_options(),
    };
    let read = Compilation::read(&path, &options);
    Compiled {
        truth: truth.expect("a profile"),
        read: read.expect("a compilation"),
    }
}

impl Compiled {
    /// Returns whether the compilation fits.
    pub fn fit(&self) -> Fit {
        let report = self.read.fit(&Request::default()).expect("a report");
        report.fit.expect("whether it fits")
    }
}
