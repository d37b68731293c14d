//! Reasons why a profile cannot answer a request.

use thiserror::Error;

/// The profile says nothing of cycles, but the request needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile has no cycles: neither executed steps nor the compiler's estimates; record it \
     again with \
     POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\",\"profiler.includeCycleEstimates\":\"true\"}}' \
     for estimates, or run the model with the engine option autoReport.outputExecutionProfile set \
     to true for measured cycles"
)]
pub struct NoCycles;

/// The profile does not say how long a cycle takes, but the request needs that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile lacks the clock frequency of its target (clock_frequency of target_info), so a \
     step has cycles but no milliseconds; leave the option out, and compare the cycles of the \
     report"
)]
pub struct NoClock;
