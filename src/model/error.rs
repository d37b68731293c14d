//! Errors for requests that need data which the profile lacks.

use thiserror::Error;

/// Error: the request needs cycles, but the profile has neither executed cycles nor the compiler's
/// estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile has no cycles: neither executed steps nor the compiler's estimates; record it \
     again with \
     POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\",\"profiler.includeCycleEstimates\":\"true\"}}' \
     for estimates, or run the model with the engine option autoReport.outputExecutionProfile set \
     to true for measured cycles"
)]
pub struct NoCycles;

/// Error: the request needs a time in seconds, but the profile does not record the clock frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile lacks the clock frequency of its target (clock_frequency of target_info), so a \
     step has cycles but no milliseconds; leave the option out, and compare the cycles of the \
     report"
)]
pub struct NoClock;
