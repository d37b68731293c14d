//! Where the live variables of each stage are most, on each tile: the variables of
//! neighbouring tiles are entered into the sums of all stages together.

use super::plan::{Second, StageRow, StagesToWeigh};
use super::{MAX_CELLS, Parts};
use crate::memory::MemoryModel;
use crate::memory::lanes::{Bytes, LANES, add_up};
use crate::memory::liveness::Timeline;
use crate::memory::neighbours::{self, LiveRanges, NeighbourUses};
use crate::memory::pipeline::{Additions, TileFlows};
use rayon::prelude::*;
use std::ops::Range;

/// The step of one stage and tile at which most is live: the first of several.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StagePeak {
    /// Bytes of the stage's own variables.
    pub(super) variables: u64,
    /// Bytes of variables that every stage has.
    pub(super) overhead: u64,
    pub(super) step: u32,
    /// Bytes of both when variables count in the second way; else the same.
    pub(super) second: u64,
    /// What the pipeline adds.
    pub(super) additions: Additions,
    /// All that the other pipeline adds.
    pub(super) beside: u64,
}

/// What one thread uses again for the next tiles: of neighbours together, of single
/// tiles, and of those that have more than any real one.
#[derive(Default)]
struct Scratches {
    together: Scratch<i32, LANES>,
    single: Scratch<i32, 1>,
    wide: Scratch<i64, 1>,
}

/// The sums of some tiles. Bytes are by lane.
struct Scratch<B, const N: usize> {
    uses: NeighbourUses<N>,
    /// By number in `uses`.
    rows: Vec<StageRow>,
    /// The same: first as steps, then as places of `timeline`.
    live: LiveRanges,
    /// By stage, then once more in the second way, and what every stage has.
    timeline: Timeline<B, N>,
    /// The same: bytes live on every step.
    always: Vec<[u64; N]>,
    /// By place: what every stage has there.
    common: Vec<[B; N]>,
    flows: TileFlows<N>,
}

impl<B: Default, const N: usize> Default for Scratch<B, N> {
    fn default() -> Self {
        Self {
            uses: NeighbourUses::default(),
            rows: Vec::new(),
            live: LiveRanges::default(),
            timeline: Timeline::default(),
            always: Vec::new(),
            common: Vec::new(),
            flows: TileFlows::default(),
        }
    }
}

impl MemoryModel<'_> {
    /// By tile: for each stage where its live variables are most.
    pub(super) fn peaks_by_tile(&self, plan: &StagesToWeigh<'_>) -> Vec<Vec<StagePeak>> {
        let tiles = self.model.target.num_tiles;
        let at_once = neighbours::at_once(tiles);
        let firsts = (0..tiles.div_ceil(at_once)).into_par_iter();
        let of_neighbours = |scratches: &mut Scratches, number: u32| {
            let first = number * at_once;
            self.peaks_on(first..tiles.min(first + at_once), plan, scratches)
        };
        let found = firsts.map_init(Scratches::default, of_neighbours);
        found.flatten_iter().collect()
    }

    /// The same of neighbouring tiles.
    fn peaks_on(
        &self,
        tiles: Range<u32>,
        plan: &StagesToWeigh<'_>,
        scratches: &mut Scratches,
    ) -> Vec<Vec<StagePeak>> {
        let Scratches {
            together,
            single,
            wide,
        } = scratches;
        if tiles.len() > 1
            && let Some(peaks) = self.peaks_in_lanes(tiles.clone(), plan, together)
        {
            return peaks;
        }
        let mut on = |tile| {
            let own = tile..tile + 1;
            let peaks = self.peaks_in_lanes(own.clone(), plan, single);
            peaks.or_else(|| self.peaks_in_lanes(own, plan, wide))
        };
        tiles
            .flat_map(|tile| on(tile).unwrap_or_default())
            .collect()
    }

    /// The same; `None` if sums of `B` do not hold what is there, or `N` lanes of them
    /// are too many.
    fn peaks_in_lanes<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        plan: &StagesToWeigh<'_>,
        scratch: &mut Scratch<B, N>,
    ) -> Option<Vec<Vec<StagePeak>>> {
        scratch.uses.gather(self, tiles.clone());
        if scratch.uses.most() > B::HIGHEST {
            return None;
        }
        self.place_steps(plan, scratch);
        if N > 1 && plan.sums() * scratch.timeline.width() * N > MAX_CELLS {
            return None;
        }
        scratch.enter_variables(plan);
        let mut peaks = vec![vec![StagePeak::default(); plan.stages.len()]; tiles.len()];
        for stage in 0..plan.stages.len() {
            scratch.find(stage, plan, &mut peaks);
        }
        self.add_pipeline(plan, scratch, &mut peaks);
        Some(peaks)
    }

    /// Makes places for the steps that matter.
    fn place_steps<B: Bytes, const N: usize>(
        &self,
        plan: &StagesToWeigh<'_>,
        scratch: &mut Scratch<B, N>,
    ) {
        let Scratch {
            uses,
            rows,
            live,
            timeline,
            ..
        } = scratch;
        rows.clear();
        live.clear();
        for (class, set) in uses.all() {
            rows.push(plan.row(self, class, set));
            live.push(self.live_ranges(class));
        }
        timeline.restart(self.model.steps(), live.all(), &plan.windows);
        live.map(|range| timeline.places(range));
    }

    /// Adds what the pipelines add to each stage.
    fn add_pipeline<B: Bytes, const N: usize>(
        &self,
        plan: &StagesToWeigh<'_>,
        scratch: &mut Scratch<B, N>,
        peaks: &mut [Vec<StagePeak>],
    ) {
        let Some(flows) = self.flows.as_ref().filter(|_| !plan.flows.is_empty()) else {
            return;
        };
        scratch.flows.load(self, flows, &scratch.uses);
        for (number, stage) in plan.flows.iter().enumerate() {
            let additions = flows.additions(self, stage, &scratch.flows);
            for (peaks, own) in peaks.iter_mut().zip(additions) {
                peaks[number].additions = own;
            }
        }
        let Some((other, of_stage)) = &plan.other else {
            return;
        };
        let Some(flows) = &other.flows else { return };
        for (number, stage) in of_stage.iter().enumerate() {
            let additions = flows.additions(other, stage, &scratch.flows);
            for (peaks, own) in peaks.iter_mut().zip(additions) {
                peaks[number].beside = Parts::of_additions(own).total();
            }
        }
    }
}

impl<B: Bytes, const N: usize> Scratch<B, N> {
    /// Enters all variables into the sums of each stage that has them.
    fn enter_variables(&mut self, plan: &StagesToWeigh<'_>) {
        let Self {
            uses,
            rows,
            live,
            timeline,
            always,
            common,
            ..
        } = self;
        let count = plan.stages.len();
        timeline.empty(plan.sums());
        always.clear();
        always.resize(plan.sums(), [0; N]);
        for (number, row) in rows.iter().enumerate() {
            let bytes = uses.bytes(number);
            let change = bytes.map(B::change);
            let mut add = |sum: usize| match live.of(number) {
                None => add_up(&mut always[sum], &bytes.map(u64::from)),
                Some(places) => timeline.add(sum, &change, places),
            };
            if plan.is_common(row) {
                add(plan.common());
            }
            for &stage in &plan.stages_of[row.counted.index()] {
                let stage = stage as usize;
                if row.counts {
                    add(stage);
                }
                if plan.is_in_second(row, stage) {
                    add(count + stage);
                }
            }
        }
        timeline.levels(plan.common(), common);
    }

    /// Where the variables of a stage are most, into the peaks by tile.
    fn find(&self, stage: usize, plan: &StagesToWeigh<'_>, peaks: &mut [Vec<StagePeak>]) {
        let Self {
            timeline,
            always,
            common,
            ..
        } = self;
        let Some(window) = plan.windows[stage] else {
            return;
        };
        let (highest, places) = timeline.peak(stage, common, window);
        let second = (plan.second != Second::None).then(|| {
            let sum = plan.stages.len() + stage;
            (timeline.peak(sum, common, window).0, &always[sum])
        });
        let always_common = &always[plan.common()];
        for (lane, peaks) in peaks.iter_mut().enumerate() {
            let everywhere = common[places[lane] as usize][lane].sum();
            let variables = highest[lane].sum() - everywhere + always[stage][lane];
            let overhead = everywhere + always_common[lane];
            peaks[stage] = StagePeak {
                variables,
                overhead,
                step: timeline.step(places[lane]),
                second: match second {
                    None => variables + overhead,
                    Some((highest, always)) => {
                        highest[lane].sum() + always[lane] + always_common[lane]
                    }
                },
                ..StagePeak::default()
            };
        }
    }
}
