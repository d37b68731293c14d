//! Errors between range costs and a plan.

use std::ops::Range;

use super::conflict::Conflict;
use super::constraints::Constraint;
use super::objectives::Objective;
use crate::message::{OVER_BOUND, REPORT_THIS};

/// Why a problem is not solved. A problem without any split is not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// `cut_bytes` does not belong to the costs.
    #[error(
        "internal error: {found} boundaries have bytes over a cut, but the layer order has {expected}; {REPORT_THIS}"
    )]
    CutBytes {
        /// Boundaries between the positions of the costs.
        expected: usize,
        /// Length of `cut_bytes`.
        found: usize,
    },
    /// The number of positions with cycles differs from the number of positions with costs.
    #[error(
        "internal error: {found} layers have cycles, but the layer order has {expected}; {REPORT_THIS}"
    )]
    CycleCount {
        /// Positions of the costs.
        expected: usize,
        /// Number of positions with cycles.
        found: usize,
    },
    /// The goal needs cycles, and the problem has none.
    #[error(
        "--objective cycles: the profile has no cycles of layers; choose another objective, or \
         record the profile with cycles"
    )]
    NoCycles,
    /// The number of limits differs from the number of IPUs.
    #[error("internal error: {found} limits for {ipus} IPUs; {REPORT_THIS}")]
    LimitCount {
        /// IPUs of the problem.
        ipus: usize,
        /// Number of limits.
        found: usize,
    },
    /// The plan has another layer order.
    #[error(
        "internal error: the split has {end} layers, but the model has {layers}; {REPORT_THIS}"
    )]
    OtherPlan {
        /// Positions of the plan.
        end: usize,
        /// Positions of the costs.
        layers: usize,
    },
    /// A constraint refers to a position, or to a cut after a position, that does not exist.
    #[error("{}: there are {layers} layers, and no cut after the last; name an earlier layer", constraint.origin)]
    NoSuchPosition {
        /// The constraint.
        constraint: Constraint,
        /// Positions of the costs.
        layers: usize,
    },
    /// No split obeys the constraints, whatever the memory.
    #[error("no split obeys all constraints: {0}; change one of them or leave it out")]
    Contradiction(Box<Conflict>),
    /// A range costs less than a range inside it, which is impossible for memory of a stage
    /// (docs/model.md, "The memory of a stage").
    #[error(
        "internal error: the layers at positions {}..{} need {peak} bytes, but those at {}..{} \
         inside them {}; {REPORT_THIS}",
        range.start, range.end, inner.start, inner.end, or_over(.inner_peak)
    )]
    NotMonotone {
        /// The longer range.
        range: Range<usize>,
        /// Peak of the longer range in bytes.
        peak: u64,
        /// The range inside the longer range.
        inner: Range<usize>,
        /// The peak of the inner range in bytes; `None` if it is over the limit.
        inner_peak: Option<u64>,
    },
    /// A sum of squared peaks would not fit in 128 bits.
    #[error(
        "{peak} bytes on one tile for the layers at positions {}..{} are too many to compare splits; {OVER_BOUND}",
        range.start, range.end
    )]
    TooLarge {
        /// The range with the highest peak.
        range: Range<usize>,
        /// Peak of that range in bytes.
        peak: u64,
    },
    /// The integer program and the dynamic program found different optima.
    #[error(
        "internal error: the integer program found {} as {objective}, the dynamic program {}; \
         {REPORT_THIS}",
        or_none(.integer_program), or_none(.dynamic_program)
    )]
    Disagreement {
        /// The first objective in which the programs differ.
        objective: Objective,
        /// The integer program's number; `None`: it found no split.
        integer_program: Option<u128>,
        /// The dynamic program's number; `None`: it found no split.
        dynamic_program: Option<u128>,
    },
    /// The integer program could not be solved to a proven optimum.
    #[error("internal error: no proven {objective}: {reason}; {REPORT_THIS}")]
    Unproven {
        /// The objective that was minimised.
        objective: Objective,
        /// The message of the solver, or the defect of its answer.
        reason: String,
    },
}

impl SolveError {
    /// Is it an error in this program, rather than in a profile or an option?
    pub fn is_internal(&self) -> bool {
        match self {
            Self::CutBytes { .. }
            | Self::CycleCount { .. }
            | Self::LimitCount { .. }
            | Self::OtherPlan { .. }
            | Self::NotMonotone { .. }
            | Self::Disagreement { .. }
            | Self::Unproven { .. } => true,
            Self::NoCycles
            | Self::NoSuchPosition { .. }
            | Self::Contradiction(_)
            | Self::TooLarge { .. } => false,
        }
    }
}

fn or_none(value: &Option<u128>) -> String {
    value.map_or_else(|| "no split".to_owned(), |value| value.to_string())
}

fn or_over(peak: &Option<u64>) -> String {
    peak.map_or_else(
        || "are over the limit".to_owned(),
        |peak| format!("need {peak}"),
    )
}
