//! The whole configurations that fit.

use super::Inputs;
use crate::report::step::{efficiency, nanoseconds, slowest};
use crate::report::{PlanFacts, PlanRow};
use crate::search::{Configuration, SearchResult, free_bytes};
use crate::time::narrow;

impl Inputs<'_> {
    /// Those of a search that looked for them.
    pub(super) fn plan(&self, found: &SearchResult) -> Option<PlanFacts> {
        let front = found.plan.as_ref()?;
        let rows = front.configurations.iter();
        Some(PlanFacts {
            max_ipus: front.ipus as u32,
            ipus_tried: front.numbers.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: rows.map(|own| self.plan_row(found, own)).collect(),
        })
    }

    fn plan_row(&self, found: &SearchResult, own: &Configuration) -> PlanRow {
        let costed = &found.costed;
        let (stages, score) = (own.split.plan.stages(), &own.split.score);
        let limits = (0..stages.len()).map(|ipu| costed.limit_of(ipu));
        let limit = limits.min().unwrap_or(0);
        let clock = own.times.as_ref().and_then(|times| times.clock_hertz());
        let time = score.step.zip(clock);
        let time = time.map(|(step, clock)| nanoseconds(step.cycles, clock));
        let options = costed.request.step;
        let samples = options.micro_batch.zip(score.step).zip(time);
        let samples = samples
            .filter(|&(_, time)| time > 0)
            .map(|((own_samples, step), time)| {
                let all = own_samples as f64 * step.micro_batches as f64 * own.replicas as f64;
                all * 1e9 / time as f64
            });
        let most = options.max_nanoseconds.map(u128::from);
        PlanRow {
            ipus: stages.len() as u32,
            replicas: own.replicas as u32,
            schedule: own.pipeline.schedule,
            recompute: own.pipeline.recompute,
            state: own.pipeline.state,
            streamed_bytes: score
                .step
                .map(|step| narrow(step.streamed))
                .filter(|&own| own > 0),
            lacks_time: own.lacks_time(options.streaming_bandwidth),
            fullest_tile_bytes: score.peak,
            fullest_stage: own.fullest_stage as u32,
            slowest_stage: own
                .times
                .as_ref()
                .map(|times| slowest(times, stages) as u32),
            limit,
            free: free_bytes(limit, score.peak),
            cycles: score.step.map(|step| narrow(step.cycles)),
            micro_batches: score.step.map(|step| step.micro_batches),
            milliseconds: time.map(|time| time as f64 / 1e6),
            efficiency: score.step.map(|step| efficiency(&step)),
            samples_per_second: samples,
            is_within: time.zip(most).is_none_or(|(time, most)| time <= most),
            is_shortest: own.split.step.is_some_and(|proof| proof.is_optimal),
            stages: self.stages_of(&own.split.plan),
            ends: stages.iter().map(|stage| stage.end as u32).collect(),
            command: String::new(),
        }
    }
}
