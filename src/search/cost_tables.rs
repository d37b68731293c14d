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
            let own = placed.iter().zip(&found.peaks).zip(plan.profiles());
            let (stages, known): (Vec<PlacedStage>, Vec<u64>) = own
                .filter(|(_, profile)| **profile == number)
                .map(|((stage, &known), _)| (stage.clone(), known))
                .unzip();
            if stages.is_empty() {
                continue;
            }
            let peaks = tables.exact_peaks(found.pipeline, (&stages, &known))?;
            is_more |= peaks.iter().zip(&known).any(|(peak, known)| peak > known);
            highest = peaks.into_iter().fold(highest, u64::max);
        }
        Ok(is_more.then_some(highest))
    }

    /// Returns the costs (memory and time) for `question` in `pipeline`, with only the ranges that
    /// are already computed.
    pub fn known(&self, question: &Arc<Question>, pipeline: Pipeline) -> Result<PipelineCosts<'a>> {
        let known = self
            .profiles
            .iter()
            .map(|tables| tables.known(pipeline))
            .collect::<Result<_>>()?;
        Ok(PipelineCosts::new(Arc::clone(question), known))
    }

    /// Computes the memory of ranges on all tiles in advance, for many requests like `question`
    /// about splits in `pipelines`, in those profiles where this saves time.
    pub fn prepare(&self, question: &Question, pipelines: &[Pipeline]) -> Result<()> {
        let reach = question.reach_of_limits();
        for tables in self.profiles.iter().filter(|tables| tables.is_small()) {
            for some in pipelines.chunks(tables.at_once(reach)) {
                tables.in_each(some, (reach, Tiles::All), &self.progress)?;
            }
        }
        Ok(())
    }

    /// Returns the costs (memory and time) in `pipeline`. They include at least the ranges of
    /// positions within `reach`, with their bytes on all tiles.
    pub fn on_all_tiles(
        &self,
        question: &Arc<Question>,
        (pipeline, reach): (Pipeline, Reach),
    ) -> Result<PipelineCosts<'a>> {
        let costs = self.in_some(question, (&[pipeline], reach, Tiles::All))?;
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
