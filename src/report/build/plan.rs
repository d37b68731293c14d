//! Whole configurations that fit.

use super::Inputs;
use super::answer::free_of_stages;
use crate::report::step::{is_within, nanoseconds_of, slowest};
use crate::report::{PlanFacts, PlanRow};
use crate::search::{Candidate, SearchResult, free_bytes};
use crate::time::narrow;

impl Inputs<'_> {
    /// Returns the configurations, when a search for them was requested.
    pub(super) fn plan(&self, found: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = found.plan.as_ref()?;
        let rows = front.configurations.iter();
        Some(PlanFacts {
            max_ipus: front.ipus as u32,
            ipus_tried: front.numbers.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: rows
                .map(|row| self.plan_row(found, front.ipus, row))
                .collect(),
            has_recommendation: front.has_answer,
        })
    }

    fn plan_row(&self, found: &SearchResult<'_>, all_ipus: usize, row: &Candidate) -> PlanRow {
        let costs = &found.costs;
        let (stages, score) = (row.solution.plan.stages(), &row.solution.score);
        let limits = (0..stages.len()).map(|ipu| costs.limit_of(ipu));
        let limit = limits.min().unwrap_or(0);
        let free = free_of_stages(found, row).enumerate();
        let fullest = free.min_by_key(|&(_, free)| free);
        let times = costs.times.as_ref();
        let times = times.map(|times| times.in_pipeline(row.pipeline));
        let time = nanoseconds_of(score.step, costs);
        let options = costs.request().step;
        let replicas = (all_ipus / row.ipus).max(1);
        let samples = options.micro_batch.zip(score.step).zip(time);
        let samples = samples
            .filter(|&(_, time)| time > 0)
            .map(|((samples, step), time)| {
                let all = samples as f64 * step.micro_batches as f64 * replicas as f64;
                all * 1e9 / time as f64
            });
        PlanRow {
            ipus: row.ipus as u32,
            replicas: replicas as u32,
            schedule: row.pipeline.schedule,
            recompute: row.pipeline.recompute,
            state: row.pipeline.state,
            streamed_bytes: score
                .step
                .map(|step| narrow(step.streamed))
                .filter(|&bytes| bytes > 0),
            lacks_time: row.lacks_time(options.streaming_bandwidth),
            fullest_tile_bytes: score.peak,
            fullest_stage: fullest.map_or(0, |(stage, _)| stage as u32),
            stage_bytes: row.peaks.clone(),
            slowest_stage: times.map(|times| slowest(&times, stages) as u32),
            limit,
            free: free_bytes(limit, score.peak),
            cycles: score.step.map(|step| narrow(step.cycles)),
            micro_batches: score.step.map(|step| step.micro_batches),
            milliseconds: time.map(|time| time as f64 / 1e6),
            efficiency: score.step.map(|step| step.efficiency()),
            samples_per_second: samples,
            is_within: is_within(time, options.max_nanoseconds),
            is_shortest: row.solution.step.is_some_and(|proof| proof.is_optimal),
            stages: self.stages_of(&row.solution.plan),
            ends: stages.iter().map(|stage| stage.end as u32).collect(),
            command: String::new(),
        }
    }
}
