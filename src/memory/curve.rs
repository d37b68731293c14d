//! The live bytes of stages and of the whole model at each liveness step.

use super::{
    MemoryModel, Rules, StageMemory, lanes,
    steps::{StepSums, has_step},
};
use std::ops::Range;

/// The bytes of a stage or of the whole model at each step of a window of liveness steps. The bytes
/// at a step are the sum of `fixed`, `always_live` and the bytes of the last entry of `points` at
/// or before the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurve {
    /// The first and the last liveness step, both inclusive, that the curve of live bytes covers.
    pub window: (u32, u32),
    /// Bytes that the stage or model takes at every step: code, vertex state, fragmentation, and
    /// additions of a pipeline such as the stash.
    pub fixed: u64,
    /// Bytes of the variables that are live at every step. They are not part of the bytes in
    /// `points`, which change from step to step.
    pub always_live: u64,
    /// The bytes of the variables that are not always live, as pairs of a step and the bytes from
    /// this step on, in ascending order of steps. The first pair is for the first step of `window`;
    /// each further pair is for a step at which the bytes change.
    pub points: Vec<(u32, u64)>,
}

impl LiveCurve {
    /// Returns the highest bytes that the stage or model of this curve takes at any liveness step,
    /// and the first step at which it takes them.
    pub fn peak(&self) -> (u64, u32) {
        let &(step, bytes) = self
            .points
            .iter()
            .rev()
            .max_by_key(|(_, bytes)| bytes)
            .unwrap_or(&(self.window.0, 0));
        (self.fixed + self.always_live + bytes, step)
    }
}

/// The live bytes of one stage or of the whole model at each liveness step. There are two curves:
/// the bytes summed over all tiles, and the bytes on one tile, which the caller chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurves {
    /// The live bytes of the stage or model at each liveness step, summed over all tiles.
    pub all_tiles: LiveCurve,
    /// The live bytes of the stage or model at each liveness step, on the one tile that the curves
    /// were requested for.
    pub on_tile: LiveCurve,
}

impl MemoryModel<'_> {
    /// Computes the live bytes of a stage at each liveness step. `range` has the positions of the
    /// stage (end exclusive), and `memory` its memory as [`MemoryModel::placed_stages`] returns it.
    /// [`LiveCurves::on_tile`] is the curve of `tile`. Returns `None` for a stage without liveness
    /// steps. On the fullest tile of a stage, the peak of the curve equals the bytes that
    /// `placed_stages` computes.
    pub fn curves(
        &self,
        range: &Range<usize>,
        memory: &StageMemory,
        tile: u32,
    ) -> Option<LiveCurves> {
        let window = self.window(range.clone())?;
        let fixed = self.fixed(range, memory);
        let mut sums = CurveSums::new(window);
        for (phase, steps) in self.phases.iter().enumerate() {
            let all_tiles = memory.transfers.iter().map(|tile| tile[phase]).sum();
            let on_tile = memory.transfers[tile as usize][phase];
            sums.add(Some(&[(steps.start, steps.end)]), [all_tiles, on_tile]);
        }
        let mut add = |number, bytes| {
            self.each_life(number, |part, live| {
                if self.has_part(part, range) {
                    sums.add(live, bytes);
                }
            });
        };
        for (number, variable) in (0u32..).zip(self.uses.all()) {
            add(number, [variable.bytes, 0]);
        }
        for (number, bytes) in self.uses.numbered_on_tile(tile) {
            add(number, [0, bytes]);
        }
        Some(sums.curves(window, [fixed.iter().sum(), fixed[tile as usize]]))
    }

    /// Computes the live bytes of the whole model at each liveness step, summed over all tiles and
    /// on `tile`. Variables that no stage has are included. The recorded bytes of code and
    /// fragmentation are included at every step. Returns `None` if the profile has no steps.
    pub fn whole_curves(&self, tile: u32) -> Option<LiveCurves> {
        let window = self.all_steps()?;
        let variables = self.uses.data;
        let code = |tile: u32| -> u64 {
            let of_tile = self.model.recorded.tiles.get(tile as usize);
            self.model
                .recorded_code
                .iter()
                .map(|bytes| u64::from(bytes.get(tile)))
                .chain(of_tile.map(|tile| tile.beyond_variables()))
                .sum()
        };
        let mut sums = CurveSums::new(window);
        for variable in variables.uses() {
            sums.add(self.live_ranges(variable.class), [variable.bytes, 0]);
        }
        for variable in variables.on_tile(tile) {
            sums.add(self.live_ranges(variable.class), [0, variable.bytes.into()]);
        }
        let tiles = 0..self.tiles();
        Some(sums.curves(window, [tiles.map(code).sum(), code(tile)]))
    }

    /// Returns whether certain variables are live at `step` in a stage with the positions `stage`
    /// (end exclusive). In a pipeline, this may differ from the profile, for example if layers are
    /// recomputed. `class` is the equivalence class of the variables (variables that are live at
    /// the same steps), and `set` their use set (the operations that use them). `is_code` says
    /// whether the variables hold code: in the full memory model such variables are never live,
    /// since recorded bytes of code replace them.
    pub fn is_live_in(
        &self,
        stage: &Range<usize>,
        (class, set): (u32, u32),
        (step, is_code): (u32, bool),
    ) -> bool {
        if is_code && self.rules == Rules::Full {
            return false;
        }
        let Some(number) = self.uses.data.number(class, set) else {
            return self.counts_in(self.counted(set), stage)
                && self.model.classes.is_live(class, step);
        };
        let mut is_live = false;
        self.each_life(number, |part, live| {
            is_live |= self.has_part(part, stage) && live.is_none_or(|live| has_step(live, step));
        });
        is_live
    }

    /// Returns the positions to which variables with the use set `set` (the operations that use
    /// them) are attributed, in ascending order. A stage has these variables if it has any of the
    /// positions. The result is empty if every stage has the variables, or if no stage has them.
    pub fn layers_of(&self, set: u32) -> &[u32] {
        self.sets.places(self.counted(set))
    }

    /// Returns one entry per tile: the bytes of a stage that are the same at every liveness step,
    /// which are all bytes except variables and transfers between stages. `memory` is the memory of
    /// the stage.
    fn fixed(&self, range: &Range<usize>, memory: &StageMemory) -> Vec<u64> {
        self.code_of(range, true)
            .iter()
            .zip(&memory.tiles)
            .map(|(code, tile)| {
                code.total() + tile.gaps + tile.stash + tile.accumulators + tile.state
            })
            .collect()
    }
}

/// Sums of live bytes at each liveness step, over all tiles and on one tile, from which curves are
/// made. Variables are added one by one.
struct CurveSums {
    live: StepSums<2>,
    always_live: [u64; 2],
}

impl CurveSums {
    fn new((first, last): (u32, u32)) -> Self {
        Self {
            live: StepSums::new(first..last + 1),
            always_live: [0; 2],
        }
    }

    /// Adds the bytes of a variable, over all tiles and on one tile, to the curves. `live` has the
    /// half-open ranges of steps at which the variable is live; `None` stands for all steps.
    fn add(&mut self, live: Option<&[(u32, u32)]>, bytes: [u64; 2]) {
        match live {
            None => lanes::add(&mut self.always_live, &bytes),
            Some(ranges) => self.live.add(bytes, ranges),
        }
    }

    /// Turns sums of live bytes into two curves: over all tiles, and on one tile. `fixed` has the
    /// bytes of each curve that are the same at every step, such as code.
    fn curves(mut self, window: (u32, u32), fixed: [u64; 2]) -> LiveCurves {
        let points: Vec<_> = self.live.points().collect();
        let [all_tiles, on_tile] = [0, 1].map(|lane| {
            let mut points: Vec<_> = points
                .iter()
                .map(|(step, bytes)| (*step, bytes[lane]))
                .collect();
            points.dedup_by_key(|&mut (_, bytes)| bytes);
            LiveCurve {
                window,
                fixed: fixed[lane],
                always_live: self.always_live[lane],
                points,
            }
        });
        LiveCurves { all_tiles, on_tile }
    }
}
