//! The memory and time of the ranges of one layering, in all profiles of the model. Each stage of a
//! split takes its memory and time from one of these profiles.

use super::candidate::Candidate;
use super::pipeline_costs::{PipelineCosts, Question};
use super::profile_tables::{KnownCosts, Reach, Tiles};
use super::space::Space;
use crate::memory::{MemoryModel, Pipeline, PlacedStage};
use anyhow::Result;
use rayon::prelude::*;
use std::sync::Arc;

/// Maximum number of positions for which computing all ranges on all tiles takes only about as long
/// as computing the stages of one split.
const FEW_POSITIONS: usize = 32;

impl<'a> Space<'a> {
    /// Returns whether all profiles have cycle counts.
    pub fn has_cycles(&self) -> bool {
        self.profiles.iter().all(|own| own.cycles.is_some())
    }

    /// Returns the memory model of the main profile (index 0), without a pipeline.
    pub fn memory(&self) -> &MemoryModel<'a> {
        self.profiles[0].memory()
    }

    /// Computes the bytes of the stages of `found` on all tiles. If any stage needs more bytes than
    /// `found` assumes, returns the highest number of bytes on the fullest tile of any stage;
    /// otherwise `None`. The fullest tiles of stages that need more bytes than assumed become
    /// critical.
    pub(super) fn more_bytes(&self, found: &Candidate) -> Result<Option<u64>> {
        let plan = &found.solution.plan;
        let placed = PlacedStage::of_split(plan.stages());
        let (mut highest, mut is_more) = (0, false);
        for (number, tables) in self.profiles.iter().enumerate() {
            let stages = placed.iter().cloned().zip(found.peaks.iter().copied());
            let own: Vec<(PlacedStage, u64)> = stages
                .zip(plan.profiles())
                .filter(|(_, profile)| **profile == number)
                .map(|(stage, _)| stage)
                .collect();
            let peaks = tables.exact_peaks(found.pipeline, &own)?;
            for (peak, (_, assumed)) in peaks.into_iter().zip(own) {
                is_more |= peak > assumed;
                highest = highest.max(peak);
            }
        }
        Ok(is_more.then_some(highest))
    }

    /// Computes the memory of ranges on all tiles in advance, for many requests like `question`
    /// about splits in `pipelines`, if the layering has so few positions that this saves time.
    pub fn prepare(&self, question: &Arc<Question>, pipelines: &[Pipeline]) -> Result<()> {
        if self.memory().layers() <= FEW_POSITIONS {
            let asked = (pipelines, question.reach_of_limits(), Tiles::All);
            self.in_each(question, asked, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Returns the costs (memory and time) in `pipeline`. If `reach` is given, the costs include at
    /// least the ranges of positions within `reach`, with their bytes on all tiles; otherwise, only
    /// the ranges that are already computed.
    pub fn in_pipeline(
        &self,
        question: &Arc<Question>,
        pipeline: Pipeline,
        reach: Option<Reach>,
    ) -> Result<PipelineCosts<'a>> {
        let tiles = reach.map_or(Tiles::Known, |_| Tiles::All);
        let asked = (&[pipeline][..], reach.unwrap_or_default(), tiles);
        let costs = self.in_some(question, asked)?;
        Ok(costs.into_iter().next().expect("the costs in one pipeline"))
    }

    /// Calls `of` with the costs (memory and time) in each of `pipelines`, and returns the results
    /// in the order of `pipelines`. The costs include at least the ranges of positions within
    /// `reach`, with their bytes on at least the tiles that `tiles` selects.
    pub(super) fn in_each<R: Send>(
        &self,
        question: &Arc<Question>,
        (pipelines, reach, tiles): (&[Pipeline], Reach, Tiles),
        of: impl Fn(PipelineCosts<'a>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let mut results = Vec::new();
        for some in pipelines.chunks(self.profiles[0].at_once(reach)) {
            let costs = self.in_some(question, (some, reach, tiles))?;
            let task = self
                .progress
                .begin("choosing the pipeline", costs.len() as u64);
            let found = costs.into_par_iter().map(|costs| {
                task.add(1);
                of(costs)
            });
            results.extend(found.collect::<Result<Vec<R>>>()?);
        }
        Ok(results)
    }

    fn in_some(
        &self,
        question: &Arc<Question>,
        (pipelines, reach, tiles): (&[Pipeline], Reach, Tiles),
    ) -> Result<Vec<PipelineCosts<'a>>> {
        let mut by_pipeline: Vec<Vec<KnownCosts<'a>>> = vec![Vec::new(); pipelines.len()];
        for tables in &self.profiles {
            let costs = tables.in_each(pipelines, (reach, tiles), &self.progress)?;
            for (all, own) in by_pipeline.iter_mut().zip(costs) {
                all.push(own);
            }
        }
        Ok(by_pipeline
            .into_iter()
            .map(|known| PipelineCosts::new(Arc::clone(question), known))
            .collect())
    }
}
