//! Makes small random models with all their splits, to compare the results of searches with.

use crate::{
    memory::testing::{placed, random_training},
    memory::{MemoryModel, Pipeline},
    model::{
        CycleSource, CyclesByLayer, Framework, Model, OutOn, PassCycles, Placement,
        PlacementOptions,
    },
    time::{StageTimes, StepOptions},
};
use std::{collections::HashMap, ops::Range};

pub struct Case {
    pub(super) model: Model,
    pub(super) placement: Placement,
    pub(super) cycles: CyclesByLayer,
    /// Further compilations of this random model. Each has the same layers but other bytes and
    /// cycles, as if it had been compiled with another available memory proportion.
    pub(super) others: Vec<Case>,
    seed: u64,
}

/// Maximum number of positions (In, layers, Out) of a random model with a second compilation
/// ([`Case::others`]), and of one with a third. The tests try every compilation for each stage of
/// each split, which takes too long for larger models.
const POSITIONS_OF_OTHERS: [usize; 2] = [6, 5];

impl Case {
    pub(super) fn new(seed: u64) -> Self {
        let mut case = Self::compiled(seed, 0);
        let positions = case.placement.positions.len();
        let others = (1..).zip(POSITIONS_OF_OTHERS);
        case.others = others
            .filter(|(_, most)| positions <= *most && !seed.is_multiple_of(4))
            .map(|(compilation, _)| Self::compiled(seed, compilation))
            .collect();
        case
    }

    fn compiled(seed: u64, compilation: u32) -> Self {
        let (mut model, layering) = random_training(seed, compilation);
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
        let cycles = cycles(memory.layers() as u64, seed + 1000 * u64::from(compilation));
        Self {
            model,
            placement,
            cycles,
            others: Vec::new(),
            seed,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Case> {
        [self].into_iter().chain(&self.others)
    }

    pub(super) fn memory(&self, pipeline: Pipeline) -> MemoryModel<'_> {
        let memory = MemoryModel::new(&self.model, &self.placement).expect("few places");
        memory.in_pipeline(pipeline).expect("few sets")
    }

    pub(super) fn times(&self, memory: &MemoryModel<'_>) -> StageTimes {
        let times = StageTimes::new(
            &self.cycles,
            &self.placement.positions,
            (memory.pipeline(), true),
            memory.cut_bytes_by_pass(),
            StepOptions::default(),
        );
        times.streaming(&memory.streamed_state())
    }

    /// Returns the environment setting, such as `SEEDS=7..8`, with which a test runs again with
    /// only this random model.
    pub(super) fn again(&self) -> String {
        format!("SEEDS={}..{}", self.seed, self.seed + 1)
    }
}

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
        exchange_by_layer: vec![0; passes.len()],
        passes_by_layer: passes,
        out_in_first: PassCycles::default(),
        unplaced: 0,
        unplaced_exchange: 0,
        other: 0,
        clock_hertz: Some(1_000),
    }
}

/// Returns all splits of `positions` positions (In, layers, Out) into stages. A split is the list
/// of the ranges of its stages.
pub fn splits(positions: usize) -> Vec<Vec<Range<usize>>> {
    let of_cuts = |cuts: u32| {
        let cuts = (1..positions).filter(|cut| cuts >> (cut - 1) & 1 == 1);
        let bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([positions]).collect();
        bounds.windows(2).map(|ends| ends[0]..ends[1]).collect()
    };
    (0..1u32 << (positions - 1)).map(of_cuts).collect()
}

/// Bytes on the fullest tile of a stage, by its range of positions and the number of stages after
/// it.
pub type Peaks = HashMap<(Range<usize>, usize), u64>;

pub fn peaks(memory: &MemoryModel<'_>) -> Peaks {
    let stages = placed(memory.layers());
    let peaks = memory.peaks(&stages);
    let keys = stages
        .into_iter()
        .map(|stage| (stage.positions, stage.after.expect("a pipeline")));
    keys.zip(peaks).collect()
}

pub struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(super) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}
