//! Errors of the prediction for each stage.

use std::fmt;
use std::ops::Range;

use crate::support::model_in;
use popliner::memory::{MemoryModel, Parts};
use popliner::model::{Placement, PlacementOptions};
use synthesize::pipeline::{PipelineModel, Recompute, StageTruth};
use synthesize::places::Places;
use tempfile::TempDir;

use super::super::places::drawn::Drawn;
use super::super::places::planted::layering;
use super::drawn::{Case, cases};

/// The errors of one pipelined compilation.
pub struct Errors {
    pub labels: Vec<String>,
    /// Labels of the model.
    pub model: Vec<String>,
    pub recompute: Recompute,
    pub name: String,
    /// The largest error that is allowed in 95 % of the stages, and in all.
    pub most_over: (f64, f64),
    pub stages: Vec<StageError>,
}

/// The error of one stage, relative to the true bytes of its fullest tile.
pub struct StageError {
    number: usize,
    /// By how much the prediction is too low on some tile.
    pub under: f64,
    /// By how much the prediction is too high on the fullest tile.
    pub over: f64,
    /// Both errors without the errors of the layers themselves.
    pub added_under: f64,
    pub added_over: f64,
    /// Predicted parts and true bytes, stash and accumulators of the tile with the lowest
    /// prediction.
    lowest: (Parts, u64, u64, u64),
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (under, over) = (100.0 * self.under, 100.0 * self.over);
        let (parts, truth, stash, accumulators) = &self.lowest;
        write!(
            f,
            "{under:6.2} % under, {over:6.2} % over (beside the layers {:.2} and {:.2}): stage {}, \
             {} for {truth} (stash {stash}, accumulators {accumulators}) {parts:?}",
            100.0 * self.added_under,
            100.0 * self.added_over,
            self.number,
            parts.total()
        )
    }
}

impl Errors {
    /// Returns the errors of some pipelines of a model; empty if contexts do not tell its backward
    /// pass.
    pub fn of_model(seed: u64, drawn: &Drawn) -> Vec<Self> {
        let has = |option: &str| drawn.options.iter().any(|given| given == option);
        if !has("training") || has("poplar") {
            return Vec::new();
        }
        let folder = TempDir::new().expect("a folder");
        let truth = synthesize::write_with_pipeline(folder.path(), &drawn.options);
        let truth = truth.expect("both files");
        let model = model_in(folder.path());
        let layering = layering(&model, truth.places());
        let placement = Placement::full(&model, &layering, &PlacementOptions::default());
        let placement = placement.expect("places");
        let memory = MemoryModel::new(&model, &placement).expect("memory");
        let out_on_first = placement.positions.out_is_first();
        let places = |range: &Range<usize>| places_of(range, &truth, out_on_first);
        let cases = cases(seed, memory.layers(), out_on_first, has("tensorflow"));
        let is_possible = |case: &&Case| holds_weights(case, &truth, memory.layers());
        let errors = cases.iter().filter(is_possible).map(|case| {
            let plain = &memory;
            let memory = memory.in_pipeline(case.pipeline()).expect("memory");
            let ranges = case.stages(memory.layers());
            let found = memory.split(&ranges);
            let layers = plain.split(&ranges);
            let alone = ranges
                .iter()
                .map(|range| truth.places().bytes(places(range)));
            let alone: Vec<Vec<u64>> = alone.collect();
            let truth = truth.simulate(&case.cuts, &case.options).stages;
            assert_eq!(found.len(), truth.len(), "SEEDS={seed}..{}", seed + 1);
            let stages = found.iter().zip(&truth).enumerate();
            Self {
                labels: case.labels(),
                model: drawn.labels.clone(),
                recompute: case.options.recompute,
                name: format!(
                    "SEEDS={seed}..{}: {:?} {:?} {}",
                    seed + 1,
                    case.cuts,
                    case.options,
                    drawn.options.join(" ")
                ),
                most_over: super::most_over(case),
                stages: stages
                    .map(|(number, (found, truth))| {
                        let layers = (&layers[number].tiles[..], &alone[number][..]);
                        error(number, &found.tiles, truth, layers)
                    })
                    .collect(),
            }
        });
        errors.collect()
    }
}

fn places_of(range: &Range<usize>, truth: &PipelineModel, out_on_first: bool) -> Places {
    let positions = range.start as u32..=range.end as u32 - 1;
    let set = Places::positions(truth.places().layers(), positions);
    match out_on_first && range.start == 0 {
        true => set | Places::OUT,
        false => set,
    }
}

/// Is each weight on only one IPU? No framework puts a weight on two.
pub fn holds_weights(case: &Case, truth: &PipelineModel, positions: usize) -> bool {
    let mut stages = case.stages(positions).into_iter();
    stages.all(|range| {
        let set = places_of(&range, truth, case.options.out_on_first);
        let mut ties = truth.places().ties().iter();
        ties.all(|(_, tied)| !set.meets(*tied) || set.holds(*tied))
    })
}

/// Compares a stage with the truth; `layers` has the prediction and the truth of its layers alone.
fn error(
    number: usize,
    found: &[Parts],
    truth: &StageTruth,
    layers: (&[Parts], &[u64]),
) -> StageError {
    let fullest = truth.tiles.iter().copied().max().unwrap_or(1) as f64;
    let low = |tile: &usize| truth.tiles[*tile] as i64 - found[*tile].total() as i64;
    let lowest = (0..found.len()).max_by_key(low).expect("a tile");
    let highest = found.iter().map(Parts::total).max().unwrap_or(0) as f64;
    let added = |tile: usize| {
        let of_layers = layers.0[tile].total() as i64 - layers.1[tile] as i64;
        found[tile].total() as i64 - truth.tiles[tile] as i64 - of_layers
    };
    let added_under = (0..found.len()).map(|tile| -added(tile)).max().unwrap_or(0);
    let fullest_found = (0..found.len()).max_by_key(|&tile| found[tile].total());
    let added_over = fullest_found.map_or(0, added);
    StageError {
        number,
        added_under: added_under.max(0) as f64 / fullest,
        added_over: added_over.max(0) as f64 / fullest,
        under: low(&lowest).max(0) as f64 / fullest,
        over: ((highest - fullest) / fullest).max(0.0),
        lowest: (
            found[lowest],
            truth.tiles[lowest],
            truth.stash[lowest],
            truth.accumulators[lowest],
        ),
    }
}
