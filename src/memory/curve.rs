//! Bytes of stages and of the whole model, step by step.

use super::stage::meets;
use super::{MemoryModel, Parts, Rules, StageMemory};
use crate::model::EVERYWHERE;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes over the steps of a window: `fixed` + `always_live` + the entry of
/// `points` that holds at the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurve {
    /// The first and last step that count, both inclusive.
    pub window: (u32, u32),
    /// Bytes that do not change with the step: code, state, what no variable
    /// explains, and on one tile of a stage what was learnt.
    pub fixed: u64,
    /// Bytes of the variables that are live on every step.
    pub always_live: u64,
    /// (step, bytes of the other variables from there on), ascending, only
    /// where they change; the first is that of the window's first step.
    pub points: Vec<(u32, u64)>,
}

impl LiveCurve {
    /// The highest bytes, and the first step that has them.
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

/// The curves of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCurves {
    /// The sum over all tiles at each step.
    pub all_tiles: LiveCurve,
    /// On one tile.
    pub on_tile: LiveCurve,
}

impl MemoryModel<'_> {
    /// The curves of each of `stages`: its range of positions (end exclusive),
    /// what it weighs ([`MemoryModel::stages`]) and the tile to look at. On its
    /// fullest tile a stage peaks at the bytes there: what was learnt does not change
    /// with the step. `None` for a stage without steps. All stages take one pass over
    /// the variables.
    pub fn curves(&self, stages: &[(Range<usize>, &StageMemory, u32)]) -> Vec<Option<LiveCurves>> {
        let ranges: Vec<_> = stages.iter().map(|(range, ..)| range.clone()).collect();
        let stages_of = self.stages_of_sets(&ranges);
        let windows = ranges.iter().map(|range| self.window(range.clone()));
        let windows: Vec<_> = windows.collect();
        let counts = |stage: u32, number: u32| {
            let counted = self.uses.known(number).counted;
            let is_in_stage = counted == EVERYWHERE || stages_of[counted.index()].contains(&stage);
            is_in_stage && !self.is_recomputed(number)
        };
        let curves = |(stage, window): (u32, &Option<(u32, u32)>)| {
            let window = (*window)?;
            let (range, memory, tile) = &stages[stage as usize];
            let all = (0u32..).zip(self.uses.all());
            let all = all.filter(|&(number, _)| counts(stage, number));
            let here = self.uses.numbered_on_tile(*tile);
            let here = here.filter(|&(number, _)| counts(stage, number));
            let with_class = |(number, bytes)| (self.uses.known(number).class, bytes);
            let fixed = self.fixed(range, memory);
            let fixed_here = fixed[*tile as usize];
            Some(LiveCurves {
                all_tiles: self.curve(
                    window,
                    fixed.iter().sum(),
                    all.map(|(_, own)| (own.class, own.bytes)),
                ),
                on_tile: self.curve(
                    window,
                    fixed_here.saturating_add_signed(memory.learnt),
                    here.map(with_class),
                ),
            })
        };
        let numbered: Vec<_> = (0u32..).zip(&windows).collect();
        numbered.into_par_iter().map(curves).collect()
    }

    /// The curves of all lowered variables, whichever operations use them, over
    /// all tiles and on `tile`; code counts as recorded. `None` without steps.
    pub fn whole_curves(&self, tile: u32) -> Option<LiveCurves> {
        let window = self.all_steps()?;
        let variables = &self.model.variables;
        let code = |tile: u32| -> u64 {
            let kinds = self.model.recorded_code.iter();
            let code: u64 = kinds.map(|bytes| u64::from(bytes.get(tile))).sum();
            let rest = self.model.recorded.tiles.get(tile as usize);
            code + rest.map_or(0, |tile| tile.beyond_variables())
        };
        let all = variables.uses().iter().map(|own| (own.class, own.bytes));
        let here = variables.on_tile(tile);
        let here = here.map(|own| (own.class, own.bytes.into()));
        let tiles = 0..self.model.target.num_tiles;
        Some(LiveCurves {
            all_tiles: self.curve(window, tiles.map(code).sum(), all),
            on_tile: self.curve(window, code(tile), here),
        })
    }

    /// Does a variable count among those of a stage, by its user set?
    /// By the full rules code does not: it counts by what was recorded of it.
    /// Nor does what a pipeline makes again layer by layer.
    pub fn counts_in(&self, stage: &Range<usize>, (class, set): (u32, u32), is_code: bool) -> bool {
        let counted = self.counted(set);
        let number = self.uses.of_data(class, set);
        let is_recomputed = number.is_some_and(|number| self.is_recomputed(number));
        match self.rules {
            Rules::Full if is_code || is_recomputed => false,
            _ => counted == EVERYWHERE || meets(self.sets.places(counted), stage),
        }
    }

    /// The positions that a variable counts in by its user set,
    /// ascending; none when it counts in every stage.
    pub fn layers_of(&self, set: u32) -> &[u32] {
        self.sets.places(self.counted(set))
    }

    /// By tile: bytes of a stage that do not change with the step.
    fn fixed(&self, range: &Range<usize>, memory: &StageMemory) -> Vec<u64> {
        let code = self.code_of(range, self.rules == Rules::Full).into_iter();
        let tiles = code.zip(&memory.tiles);
        let fixed = |(code, tile): (Parts, &Parts)| code.total() + tile.gaps + tile.of_pipeline();
        tiles.map(fixed).collect()
    }

    /// The curve of what is `fixed` and of variables, each with its class and bytes.
    fn curve(
        &self,
        (first, last): (u32, u32),
        fixed: u64,
        variables: impl Iterator<Item = (u32, u64)>,
    ) -> LiveCurve {
        let classes = &self.model.classes;
        let mut changes = vec![0i64; classes.steps() as usize + 1];
        let mut always_live = 0;
        for (class, bytes) in variables {
            if classes.is_always_live(class) {
                always_live += bytes;
                continue;
            }
            for &(from, to) in classes.ranges(class) {
                changes[from as usize] += bytes as i64;
                changes[to as usize] -= bytes as i64;
            }
        }
        let mut live: i64 = changes[..first as usize].iter().sum();
        let mut points = Vec::new();
        for (step, &change) in (first..=last).zip(&changes[first as usize..]) {
            live += change;
            if change != 0 || step == first {
                points.push((step, live as u64));
            }
        }
        LiveCurve {
            window: (first, last),
            fixed,
            always_live,
            points,
        }
    }
}
