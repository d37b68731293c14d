//! All splits of small random models with all choices of layers, each tried: searches are held
//! against them.

use crate::memory::testing::{placed, random_training};
use crate::memory::{LayerChoice, MemoryModel, Pipeline, PlacedStage, Recompute};
use crate::model::{
    CycleSource, CyclesByLayer, Framework, Model, OutOn, PassCycles, Placement, PlacementOptions,
};
use crate::time::{StageTimes, StepOptions};
use std::collections::HashMap;
use std::ops::Range;
use std::slice::from_ref;

/// A model that looks random, its places and cycles.
pub(super) struct Case {
    pub(super) model: Model,
    pub(super) placement: Placement,
    pub(super) cycles: CyclesByLayer,
    seed: u64,
}

impl Case {
    /// With Out apart or on the first IPU.
    pub(super) fn new(seed: u64) -> Self {
        let (mut model, layering) = random_training(seed);
        model.recording.framework = match seed % 3 {
            0 => Framework::Poptorch,
            _ => Framework::Popart,
        };
        let options = PlacementOptions {
            out_on: match seed % 2 {
                0 => OutOn::Last,
                _ => OutOn::First,
            },
            ..PlacementOptions::default()
        };
        let placement = Placement::full(&model, &layering, &options).expect("few places");
        let memory = MemoryModel::new(&model, &placement).expect("few places");
        let cycles = cycles(memory.layers() as u64, seed);
        Self {
            model,
            placement,
            cycles,
            seed,
        }
    }

    pub(super) fn memory(&self, pipeline: Pipeline) -> MemoryModel<'_> {
        let memory = MemoryModel::new(&self.model, &self.placement).expect("few places");
        memory.in_pipeline(pipeline).expect("few sets")
    }

    /// The times of stages of a model in its pipeline, on so many IPUs.
    pub(super) fn times(&self, memory: &MemoryModel<'_>, ipus: usize) -> StageTimes {
        let times = StageTimes::new(
            &self.cycles,
            &self.placement.positions,
            (memory.pipeline(), true),
            memory.cut_bytes_by_pass().expect("few sets"),
            StepOptions::default(),
        );
        times
            .streaming(&memory.streamed().expect("few sets"))
            .for_stages(ipus)
    }

    /// How to have this case alone.
    pub(super) fn again(&self) -> String {
        format!("SEEDS={}..{}", self.seed, self.seed + 1)
    }
}

/// Cycles of layers that look random.
fn cycles(layers: u64, seed: u64) -> CyclesByLayer {
    let cycles = |number: u64| (seed + 1).wrapping_mul(6_364_136_223_846_793_005 + number) >> 58;
    let passes = (0..layers).map(|position| PassCycles {
        forward: cycles(3 * position),
        backward: cycles(3 * position + 1),
        recomputed: 0,
        update: cycles(3 * position + 2),
    });
    let passes: Vec<PassCycles> = passes.collect();
    CyclesByLayer {
        source: CycleSource::Estimated,
        by_layer: passes.iter().map(|passes| passes.total()).collect(),
        exchange_by_layer: vec![0; passes.len()],
        passes_by_layer: passes,
        out_in_first: PassCycles::default(),
        unplaced: 0,
        unplaced_exchange: 0,
        other: 0,
        clock_hertz: Some(1_000),
    }
}

/// All splits of so many positions.
pub(super) fn splits(positions: usize) -> Vec<Vec<Range<usize>>> {
    let of_cuts = |cuts: u32| {
        let cuts = (1..positions).filter(|cut| cuts >> (cut - 1) & 1 == 1);
        let bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([positions]).collect();
        bounds.windows(2).map(|ends| ends[0]..ends[1]).collect()
    };
    (0..1u32 << (positions - 1)).map(of_cuts).collect()
}

/// The bytes of a stage on its fullest tile with one choice, and what is kept.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) peak: u64,
    pub(super) recomputed: u128,
    pub(super) kept: Vec<usize>,
}

/// The choices for each range with so many stages after it, of which no other needs as little
/// and recomputes as little. Without layers to choose there is one.
pub(super) type Choices = HashMap<(Range<usize>, usize), Vec<Choice>>;

/// Those of a pipeline.
pub(super) fn choices(memory: &MemoryModel<'_>, times: &StageTimes) -> Choices {
    let of_stage = |stage: PlacedStage| {
        let after = stage.after.expect("a pipeline");
        let all = match memory.pipeline().recompute {
            Recompute::Chosen => all_choices(memory, times, &stage),
            _ => vec![Choice {
                peak: memory.peaks(from_ref(&stage))[0],
                recomputed: 0,
                kept: Vec::new(),
            }],
        };
        ((stage.positions, after), undominated(all))
    };
    placed(memory.layers()).into_iter().map(of_stage).collect()
}

fn all_choices(memory: &MemoryModel<'_>, times: &StageTimes, stage: &PlacedStage) -> Vec<Choice> {
    let (positions, out) = (stage.positions.clone(), memory.out());
    let layers: Vec<usize> = positions.filter(|&at| Some(at) != out).collect();
    let kept = (0..1u32 << layers.len()).map(|set| {
        let kept = layers.iter().enumerate();
        let kept = kept.filter(|(place, _)| set >> place & 1 == 1);
        kept.map(|(_, &at)| at).collect::<Vec<usize>>()
    });
    // In goes with the first layer of its stage.
    let is_allowed =
        |kept: &Vec<usize>| !layers.starts_with(&[0, 1]) || kept.contains(&0) == kept.contains(&1);
    let choice = |kept: Vec<usize>| {
        let again = layers.iter().filter(|at| !kept.contains(at));
        Choice {
            peak: keeping(memory, &kept).peaks(from_ref(stage))[0],
            recomputed: again.map(|&at| times.forward_again(&(at..at + 1))).sum(),
            kept,
        }
    };
    kept.filter(is_allowed).map(choice).collect()
}

/// The model where these positions are kept, and Out.
pub(super) fn keeping<'a>(memory: &MemoryModel<'a>, kept: &[usize]) -> MemoryModel<'a> {
    let state = |at| LayerChoice::keeping(Some(at) == memory.out() || kept.contains(&at));
    let states: Vec<LayerChoice> = (0..memory.layers()).map(state).collect();
    memory.choosing(&states).expect("few sets")
}

fn undominated(mut all: Vec<Choice>) -> Vec<Choice> {
    all.sort_by_key(|choice| (choice.peak, choice.recomputed));
    let mut best: Vec<Choice> = Vec::new();
    for choice in all {
        let last = best.last();
        if last.is_none_or(|last| choice.recomputed < last.recomputed) {
            best.push(choice);
        }
    }
    best
}
