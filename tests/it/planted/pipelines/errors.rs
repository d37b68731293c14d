//! Errors of the prediction for each stage.

use popliner::memory::Parts;
use synthesize::pipeline::{Recompute, StageTruth};

use super::super::places::distribution::Distribution;
use super::super::places::drawn::Drawn;
use super::drawn::Trained;
use crate::support::each;
use crate::support::models::seeds;

/// The errors of one pipelined compilation.
pub struct Errors {
    /// Labels of the pipeline, and of the model.
    pub labels: Vec<String>,
    pub recompute: Recompute,
    pub name: String,
    /// The largest error that is allowed in 95 % of the stages, and in all.
    pub most_over: (f64, f64),
    pub stages: Vec<StageError>,
}

/// The error of one stage, relative to the true bytes of its fullest tile.
#[derive(Debug)]
pub struct StageError {
    /// By how much the prediction is too low on some tile.
    pub under: f64,
    /// By how much the prediction is too high on the fullest tile.
    pub over: f64,
    /// Both errors without the errors of the layers themselves.
    pub added_under: f64,
    pub added_over: f64,
}

type Measure = fn(&StageError) -> f64;

/// The measures of a stage, with their titles: errors of the whole prediction, and without the errors
/// of the layers themselves.
const MEASURES: [(&str, Measure); 4] = [
    ("% of the fullest tile too low on any", |stage| stage.under),
    ("% too high on the fullest tile", |stage| stage.over),
    ("too low, without the layers", |stage| stage.added_under),
    ("too high, without the layers", |stage| stage.added_over),
];

impl Errors {
    /// Returns the errors of some pipelines of this number of models, and prints them.
    pub fn all(models: u64, drawn: fn(u64) -> Drawn) -> Vec<Self> {
        let seeds: Vec<u64> = seeds(models).collect();
        Self::of(&seeds, |&seed| Trained::new(seed, drawn(seed)))
    }

    /// Returns the errors of some pipelines of each of these models, and prints them.
    pub fn of<T: Sync>(models: &[T], trained: impl Fn(&T) -> Option<Trained> + Sync) -> Vec<Self> {
        let all = each(models, |model| {
            trained(model).map_or_else(Vec::new, |trained| Self::of_model(&trained))
        });
        let all: Vec<Self> = all.into_iter().flatten().collect();
        for (title, of) in MEASURES {
            let mut errors = Distribution::default();
            for (model, stage) in stages(&all) {
                errors.add(&model.labels, of(stage), &model.name);
            }
            errors.print(title);
        }
        all
    }

    fn of_model(trained: &Trained) -> Vec<Self> {
        let plain = trained.memory();
        let mut cases = trained.cases();
        cases.retain(|case| trained.holds_weights(case));
        let errors = cases.iter().map(|case| {
            let memory = plain.in_pipeline(case.pipeline()).expect("memory");
            let ranges = trained.stages(case);
            let planted = case.stages(trained.positions());
            let (found, layers) = (memory.split(&ranges), plain.split(&ranges));
            let truth = trained.truth.simulate(&case.cuts, &case.options);
            let name = trained.name(case);
            assert_eq!(found.len(), truth.len(), "{name}");
            let stages = planted.iter().zip(&truth).enumerate();
            let stages = stages.map(|(number, (planted, truth))| {
                let alone = trained.truth.places.bytes(trained.places_of(planted));
                let layers = (&layers[number].tiles[..], &alone[..]);
                StageError::new(&found[number].tiles, truth, layers)
            });
            Self {
                stages: stages.collect(),
                labels: [case.labels(), trained.drawn.labels()].concat(),
                recompute: case.options.recompute,
                most_over: super::most_over(case, &trained.drawn),
                name,
            }
        });
        errors.collect()
    }
}

/// Returns all stages, each with its compilation.
pub fn stages(all: &[Errors]) -> impl Iterator<Item = (&Errors, &StageError)> {
    all.iter()
        .flat_map(|errors| errors.stages.iter().map(move |stage| (errors, stage)))
}

impl StageError {
    /// Compares a stage with the truth; `layers` has the prediction and the truth of its layers
    /// alone.
    fn new(found: &[Parts], truth: &StageTruth, layers: (&[Parts], &[u64])) -> Self {
        let fullest = truth.tiles.iter().copied().max().unwrap_or(1) as f64;
        let highest = found.iter().map(Parts::total).max().unwrap_or(0) as f64;
        let over = |tile: usize| found[tile].total() as i64 - truth.tiles[tile] as i64;
        let added = |tile: usize| {
            let of_layers = layers.0[tile].total() as i64 - layers.1[tile] as i64;
            over(tile) - of_layers
        };
        let tiles = || 0..found.len();
        let part = |bytes: Option<i64>| bytes.unwrap_or(0).max(0) as f64 / fullest;
        let fullest_found = tiles().max_by_key(|&tile| found[tile].total());
        Self {
            under: part(tiles().map(|tile| -over(tile)).max()),
            over: ((highest - fullest) / fullest).max(0.0),
            added_under: part(tiles().map(|tile| -added(tile)).max()),
            added_over: part(fullest_found.map(added)),
        }
    }
}
