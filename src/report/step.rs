//! The time of one step of the pipeline (docs/model.md, "Time").

use super::first_highest;
use crate::{
    search::{PipelineCosts, SearchResult},
    solve::{CompiledStage, Plan},
    time::{StepTime, narrow},
    wording::grouped,
};
use serde::{Deserialize, Serialize};

/// The time of one step: all micro-batches through all stages, and the weight update.
// The search compares the same numbers as 128-bit integers (`StepTime`). Not every reader of JSON
// can read integers of that size, so the report has a type of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepFacts {
    /// Number of micro-batches of a step, over which gradients are accumulated. A profile does
    /// not record this number: it is what the user gave, otherwise 128, or more if the schedule
    /// requires it.
    pub micro_batches: u64,
    /// Number of micro-batches that the user gave; `null` if the user gave none.
    pub given_micro_batches: Option<u64>,
    /// Number of samples of a micro-batch; `null` if the user gave no number.
    pub micro_batch: Option<u64>,
    /// Number of replicas that run the step in parallel.
    pub replicas: u64,
    /// Cycles of the whole step, including the weight update and, if the clock is known, the
    /// copies between IPUs.
    pub cycles: u64,
    /// Cycles by which one more micro-batch lengthens the step while the pipeline is full.
    pub steady_cycles: u64,
    /// Cycles of the part of the step in which the pipeline fills and drains, so that some
    /// stages are idle.
    pub ramp_cycles: u64,
    /// Cycles of the weight update. They include loading and storing optimizer state if the
    /// streaming bandwidth is given.
    pub update_cycles: u64,
    /// Cycles of the copies between IPUs in the step. They need the clock, without which this
    /// is `null` and `cycles` includes no copies.
    pub copy_cycles: Option<u64>,
    /// Bytes that the IPUs of one replica load from and store to memory outside the IPUs in the
    /// step; `null` if all optimizer state is on the chip.
    pub streamed_bytes: Option<u64>,
    /// Whether `cycles` includes the time of loading and storing `streamed_bytes`. This time is
    /// known only with `--streaming-bandwidth` and the clock. `null` if `streamed_bytes` is `null`.
    pub streaming_is_counted: Option<bool>,
    /// The index of the slowest stage, which has the most cycles for a micro-batch; of equally
    /// slow stages, the first one.
    pub slowest_stage: u32,
    /// The efficiency of the pipeline, from 0 to 1: the cycles that an always full pipeline
    /// would take for the step, divided by `cycles`.
    pub efficiency: f64,
    /// The time of the step in milliseconds; `null` if the profile lacks the target's clock.
    pub milliseconds: Option<f64>,
    /// Number of samples that all replicas process in a second; `null` if the samples of a
    /// micro-batch or the clock are unknown.
    pub samples_per_second: Option<f64>,
}

impl StepFacts {
    /// Computes the time of a step of the report's split. Returns `None` if the profile has no
    /// cycles, or if a layer is in no stage.
    pub(super) fn new(search: &SearchResult<'_>) -> Option<Self> {
        let (costs, shown) = (&search.costs, &search.shown);
        let compiled = (shown.stages.iter().cloned().zip(&shown.profiles))
            .map(|(positions, &profile)| CompiledStage { positions, profile });
        let plan = Plan::new(compiled, costs.times()?.positions())?;
        Self::of(costs, &plan, costs.problem().step(&plan))
    }

    /// Makes the report's facts about the time of one step. `step` is this time, `plan` the split
    /// that the pipeline runs, and `costs` has the memory and the time of stages in this pipeline.
    /// Returns `None` if `step` is `None` or the profile has no cycles.
    pub(super) fn of(
        costs: &PipelineCosts<'_>,
        plan: &Plan,
        step: Option<StepTime>,
    ) -> Option<Self> {
        let (times, step) = (costs.times()?, step?);
        let (options, replicas) = (costs.request().options.step, costs.replicas());
        let clock = times.clock_hertz;
        let nanoseconds = clock.map(|clock| nanoseconds(step.cycles, clock) as f64);
        let seconds = nanoseconds
            .map(|time| time / 1e9)
            .filter(|&time| time > 0.0);
        let streamed = Some(narrow(step.streamed)).filter(|&bytes| bytes > 0);
        Some(Self {
            micro_batches: step.micro_batches,
            given_micro_batches: options.micro_batches,
            micro_batch: options.micro_batch,
            replicas: replicas as u64,
            cycles: narrow(step.cycles),
            steady_cycles: narrow(step.steady),
            ramp_cycles: narrow(step.ramps),
            update_cycles: narrow(step.update),
            copy_cycles: step.copies.map(narrow),
            streamed_bytes: streamed,
            streaming_is_counted: streamed
                .map(|_| options.streaming_bandwidth.is_some() && clock.is_some()),
            slowest_stage: first_highest(&costs.problem().cycles(plan)).unwrap_or(0),
            efficiency: step.efficiency(),
            milliseconds: nanoseconds.map(|time| time / 1e6),
            samples_per_second: options.micro_batch.zip(seconds).map(|(samples, seconds)| {
                samples as f64 * step.micro_batches as f64 * replicas as f64 / seconds
            }),
        })
    }
}

/// Converts cycles to nanoseconds, rounded up.
pub fn nanoseconds(cycles: u128, clock_hertz: u64) -> u128 {
    cycles
        .saturating_mul(1_000_000_000)
        .div_ceil(u128::from(clock_hertz.max(1)))
}

/// Formats a number with three significant digits and at most three decimals. A number of 100 or
/// more becomes a whole number with all its digits.
pub fn three_digits(number: f64) -> String {
    let decimals = match number {
        _ if number >= 1000.0 => return grouped(number.round() as u64),
        _ if number >= 100.0 => 0,
        _ if number >= 10.0 => 1,
        _ if number >= 1.0 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(nanoseconds(3, 2), 1_500_000_000);
        assert_eq!(nanoseconds(1, 3), 333_333_334);
    }

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.01234, "0.012"),
            (1.2345, "1.23"),
            (12.345, "12.3"),
            (123.45, "123"),
        ];
        for (number, expected) in cases {
            assert_eq!(three_digits(number), expected);
        }
        assert_eq!(three_digits(12_345.6), "12,346");
    }
}
