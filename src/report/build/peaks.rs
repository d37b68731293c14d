//! Computes how many bytes are live at each step of the program, as curves for the whole model and
//! for each pipeline stage.

use super::{Detail, Inputs, NamedVariables};
use crate::{
    memory::{self, LiveCurves, MemoryModel},
    model::Model,
    report::{Band, Curve, Liveness, Peak, first_highest, thin},
    search::SearchResult,
};
use rayon::prelude::*;

/// Approximate upper bound on the points in each curve of live bytes of the whole model, so that a
/// report stays small.
const MAX_POINTS: usize = 1000;
/// Approximate upper bound on the points in the curves of live bytes of all stages together.
const MAX_STAGE_POINTS: usize = 12_000;

/// The curves of live bytes over liveness steps, of the whole model and of each stage of the split.
#[derive(Debug, Default)]
pub struct Peaks {
    /// The index of the fullest tile of the whole model, and the model's curves of live bytes: over
    /// all tiles, and on that tile. `None` if the model has no steps, or if only the split was
    /// requested. The fullest tile has the most recorded bytes or, without recorded bytes, the most
    /// bytes of variables; of equally full tiles, it is the first one.
    pub(super) whole: Option<(u32, LiveCurves)>,
    /// For each stage, its curves of live bytes, over all tiles and on the stage's fullest tile;
    /// `None` for a stage without steps.
    pub(super) stages: Vec<Option<LiveCurves>>,
}

impl Peaks {
    /// Computes the curves of live bytes of the whole model, and of the stages of the split that
    /// `search` found. Computes none if `detail` requests only the split.
    pub fn new(
        model: &Model,
        memory: &MemoryModel<'_>,
        search: Option<&SearchResult<'_>>,
        detail: Detail,
    ) -> Self {
        if detail < Detail::Full {
            return Self::default();
        }
        let variables = &model.variables;
        let bytes_on = |tile| {
            variables
                .on_tile(tile)
                .map(|own| u64::from(own.bytes))
                .sum()
        };
        let tile = match memory.recorded_fullest_tile() {
            Some((tile, _)) => tile,
            None => {
                let bytes: Vec<u64> = (0..variables.tiles()).map(bytes_on).collect();
                first_highest(&bytes).unwrap_or(0)
            }
        };
        let stages = search.map_or(Vec::new(), |SearchResult { shown, .. }| {
            (shown.stages.par_iter().zip(&shown.memory))
                .map(|(range, computed)| memory.curves(range, computed, computed.max_tile()))
                .collect()
        });
        Self {
            whole: memory.whole_curves(tile).map(|curves| (tile, curves)),
            stages,
        }
    }

    /// Returns two curves of the live bytes of the stage with index `stage`: over all tiles, and on
    /// the stage's fullest tile. The more stages the split has, the fewer points each curve keeps.
    /// Returns `None` if the stage has no steps, or if only the split was requested.
    pub(super) fn of_stage(&self, stage: usize) -> Option<(Curve, Curve)> {
        let curves = self.stages.get(stage)?.as_ref()?;
        let points = (MAX_STAGE_POINTS / (2 * self.stages.len())).clamp(4, MAX_POINTS);
        let curve = |curve| Curve::new(curve, points);
        Some((curve(&curves.all_tiles), curve(&curves.on_tile)))
    }
}

impl Inputs<'_> {
    /// Returns the live bytes of the whole model as curves over the steps, of at most about 1,000
    /// points each, and the variables that are live at the model's peak (from `named`). Returns
    /// `None` if the model has no steps, or if only the split was requested.
    pub(super) fn liveness(&self, named: &NamedVariables) -> Option<Liveness> {
        let (tile, curves) = self.peaks.whole.as_ref()?;
        Some(Liveness {
            steps: self.model.steps(),
            turn: self.model.backward_start,
            all_tiles: Curve::new(&curves.all_tiles, MAX_POINTS),
            fullest_tile: *tile,
            fullest_tile_curve: Curve::new(&curves.on_tile, MAX_POINTS),
            bands: (self.memory.layer_spans().into_iter())
                .map(|span| Band {
                    layer: self.name(span.layer as usize),
                    from: span.from,
                    to: span.to,
                })
                .collect(),
            peak_variables: named.at_peak.clone(),
        })
    }
}

impl Curve {
    /// Converts a computed curve of live bytes to the form that reports contain, and thins it to at
    /// most about `max_points` points.
    pub(in crate::report) fn new(curve: &memory::LiveCurve, max_points: usize) -> Self {
        let (steps, live) = thin(&curve.points, max_points).into_iter().unzip();
        let (bytes, step) = curve.peak();
        Self {
            first_step: curve.window.0,
            last_step: curve.window.1,
            fixed: curve.fixed,
            always_live: curve.always_live,
            peak: Peak { step, bytes },
            steps,
            bytes: live,
        }
    }
}
