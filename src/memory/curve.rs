//! The live bytes of stages and of the whole model at each liveness step.

use super::pipeline::PHASES;
use super::steps::StepSums;
use super::{MemoryModel, Parts, Rules, StageMemory};
use crate::model::EVERYWHERE;
use rayon::prelude::*;
use std::ops::Range;

/// The bytes of a stage or model at each step of a window of steps. At a step they are the sum of
/// `fixed`, `always_live`, and the bytes of the last entry of `points` at or before the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurve {
    /// The first and the last step, both inclusive, that the curve covers.
    pub window: (u32, u32),
    /// Bytes that are the same at each step: code, vertex state, fragmentation, and additions of a
    /// pipeline such as the stash.
    pub fixed: u64,
    /// Bytes of the variables that are live at every step, which are not in `points`.
    pub always_live: u64,
    /// Pairs of a step and the bytes of all other variables from this step on, in ascending order:
    /// one for the first step of the window, and one for each change.
    pub points: Vec<(u32, u64)>,
}

impl LiveCurve {
    /// Returns the highest bytes of any step, and the first step that has them.
    pub fn peak(&self) -> (u64, u32) {
        let mut peak = (0, self.window.0);
        for &(step, bytes) in &self.points {
            if bytes > peak.0 {
                peak = (bytes, step);
            }
        }
        (self.fixed + self.always_live + peak.0, peak.1)
    }
}

/// The bytes of one stage or of the whole model at each step, as two curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurves {
    /// The bytes summed over all tiles.
    pub all_tiles: LiveCurve,
    /// The bytes on the one tile that the curves were requested for.
    pub on_tile: LiveCurve,
}

impl MemoryModel<'_> {
    /// Computes the bytes of each stage at each step, in the order of `stages`; `None` for a stage
    /// without steps. An entry of `stages` is the range of positions (end exclusive), the memory of
    /// this stage as [`MemoryModel::placed_stages`] returns it, and the tile for
    /// [`LiveCurves::on_tile`]. On the fullest tile, the curve peaks at the bytes of this tile in
    /// the memory.
    pub fn curves(&self, stages: &[(Range<usize>, &StageMemory, u32)]) -> Vec<Option<LiveCurves>> {
        let ranges: Vec<_> = stages.iter().map(|(range, ..)| range.clone()).collect();
        let stages_of = self.stages_of_sets(&ranges);
        let curves = |stage: usize| {
            let (range, memory, tile) = &stages[stage];
            let window = self.window(range.clone())?;
            let fixed = self.fixed(range, memory);
            let [mut all_tiles, mut on_tile] = [(); 2].map(|()| CurveSums::new(window));
            for (phase, steps) in self.phases.iter().enumerate() {
                let steps = Some(&[(steps.start, steps.end)][..]);
                let in_phase = |tile: &[u64; PHASES]| tile[phase];
                all_tiles.add(steps, memory.transfers.iter().map(in_phase).sum());
                let of_tile = memory.transfers.get(*tile as usize);
                on_tile.add(steps, of_tile.map_or(0, in_phase));
            }
            let add = |sums: &mut CurveSums, number, bytes| {
                self.each_life(number, |(counted, with), live| {
                    let counts = counted == EVERYWHERE
                        || stages_of[counted.index()].contains(&(stage as u32));
                    if counts && with.is_none_or(|with| range.contains(&(with as usize))) {
                        sums.add(live, bytes);
                    }
                });
            };
            for (number, variable) in (0u32..).zip(self.uses.all()) {
                add(&mut all_tiles, number, variable.bytes);
            }
            for (number, bytes) in self.uses.numbered_on_tile(*tile) {
                add(&mut on_tile, number, bytes);
            }
            Some(LiveCurves {
                all_tiles: all_tiles.curve(window, fixed.iter().sum()),
                on_tile: on_tile.curve(window, fixed[*tile as usize]),
            })
        };
        (0..stages.len()).into_par_iter().map(curves).collect()
    }

    /// Computes the live bytes of all variables of the profile at each step, whichever operations
    /// use them: summed over all tiles, and on `tile`. Code counts at every step, with the recorded
    /// bytes. `None` if the profile has no steps.
    pub fn whole_curves(&self, tile: u32) -> Option<LiveCurves> {
        let window = self.all_steps()?;
        let variables = self.uses.data;
        let code = |tile: u32| -> u64 {
            let code: u64 = self
                .model
                .recorded_code
                .iter()
                .map(|bytes| u64::from(bytes.get(tile)))
                .sum();
            let rest = self.model.recorded.tiles.get(tile as usize);
            code + rest.map_or(0, |tile| tile.beyond_variables())
        };
        let classes = &self.model.classes;
        let live = |class| (!classes.is_always_live(class)).then(|| classes.ranges(class));
        let [mut all_tiles, mut on_tile] = [(); 2].map(|()| CurveSums::new(window));
        for variable in variables.uses() {
            all_tiles.add(live(variable.class), variable.bytes);
        }
        for variable in variables.on_tile(tile) {
            on_tile.add(live(variable.class), variable.bytes.into());
        }
        let tiles = 0..self.model.target.num_tiles;
        Some(LiveCurves {
            all_tiles: all_tiles.curve(window, tiles.map(code).sum()),
            on_tile: on_tile.curve(window, code(tile)),
        })
    }

    /// Is a variable with this class and use set live at `step` in a stage with the positions
    /// `stage` (end exclusive), considering recomputation in the pipeline? `is_code` says whether
    /// the variable holds code; in the full memory model such a variable is never live, since its
    /// recorded bytes count instead.
    pub fn is_live_in(
        &self,
        stage: &Range<usize>,
        (class, set): (u32, u32),
        (step, is_code): (u32, bool),
    ) -> bool {
        if is_code && self.rules == Rules::Full {
            return false;
        }
        let Some(number) = self.uses.of_data(class, set) else {
            return self.counts_in(self.counted(set), stage)
                && self.model.classes.is_live(class, step);
        };
        let mut is_live = false;
        self.each_life(number, |(counted, with), live| {
            is_live |= with.is_none_or(|with| stage.contains(&(with as usize)))
                && self.counts_in(counted, stage)
                && live
                    .is_none_or(|live| live.iter().any(|&(from, to)| (from..to).contains(&step)));
        });
        is_live
    }

    /// Returns the positions that count variables with the use set `set`, in ascending order: a
    /// stage with any of them has their bytes. Empty if every stage counts them, or none.
    pub fn layers_of(&self, set: u32) -> &[u32] {
        self.sets.places(self.counted(set))
    }

    /// Returns for each tile the bytes that a stage with the positions `range` takes at every step
    /// besides variables: code, fragmentation, stash, accumulators and optimizer state, as in
    /// `memory`.
    fn fixed(&self, range: &Range<usize>, memory: &StageMemory) -> Vec<u64> {
        let code = self.code_of(range, self.rules == Rules::Full).into_iter();
        let tiles = code.zip(&memory.tiles);
        let of_pipeline = |tile: &Parts| tile.stash + tile.accumulators + tile.state;
        tiles
            .map(|(code, tile)| code.total() + tile.gaps + of_pipeline(tile))
            .collect()
    }
}

/// The sums of the bytes of variables at each step of a window, as variables are added one by one.
struct CurveSums {
    live: StepSums<1>,
    always_live: u64,
}

impl CurveSums {
    /// Starts a sum without variables, for the steps of a window (first, last; both inclusive).
    fn new((first, last): (u32, u32)) -> Self {
        Self {
            live: StepSums::new(first..last + 1),
            always_live: 0,
        }
    }

    /// Adds a variable of `bytes` bytes that is live at the half-open step ranges `live`; `None`
    /// means at every step.
    fn add(&mut self, live: Option<&[(u32, u32)]>, bytes: u64) {
        match live {
            None => self.always_live += bytes,
            Some(ranges) => self.live.add([bytes], ranges),
        }
    }

    /// Turns the sums into a curve for the same `window` as in [`CurveSums::new`] (first, last;
    /// both inclusive). `fixed` is the bytes at every step besides variables.
    fn curve(mut self, window: (u32, u32), fixed: u64) -> LiveCurve {
        let mut points: Vec<(u32, u64)> = self
            .live
            .points()
            .map(|(step, [bytes])| (step, bytes))
            .collect();
        points.dedup_by_key(|&mut (_, bytes)| bytes);
        LiveCurve {
            window,
            fixed,
            always_live: self.always_live,
            points,
        }
    }
}
