//! Why there is no plan, and what would help.

use super::certificate::{Certificate, Needed, certificate};
use super::error::SolveError;
use super::objectives::Goal;
use super::problem::{Limit, Problem};
use super::{Solution, solve};

/// What stands in the way of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why there is no plan.
    pub cause: Cause,
    /// The proof. It says nothing of pins and of limits that differ; see
    /// [`Cause::PinsOrLimits`].
    pub certificate: Certificate,
    /// The plan with the lowest peak when every stage may take any number of
    /// bytes, with the same orders on the same IPUs: its peak is the smallest
    /// tile memory that is enough. `None` without IPUs or positions, and when
    /// the range costs were computed for a limit.
    pub lowest_peak: Option<Solution>,
    /// The fewest IPUs that would be enough, at most one for each position;
    /// `None` when no number is. With limits by IPU only as many IPUs as have
    /// one are considered.
    pub fewest: Option<usize>,
    /// The best plan by the same goal and limits without any order. `None`
    /// when there is none either, or when there are no orders.
    pub without_orders: Option<Solution>,
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A single position, or several that orders keep together, is over every
    /// limit: no number of IPUs helps. The certificate's only range is it.
    TooLarge,
    /// More stages are needed than there are IPUs, as the certificate shows.
    TooFewIpus,
    /// There are IPUs enough for the highest limit and the orders on cuts:
    /// pins or the lower limits of some IPUs stand in the way.
    PinsOrLimits,
}

/// Explains why `problem` has no plan; `None` when it has one.
///
/// # Errors
/// As those of [`solve`].
pub fn refusal(problem: &Problem<'_>) -> Result<Option<Refusal>, SolveError> {
    if solve(problem)?.is_some() {
        return Ok(None);
    }
    let certificate = certificate(problem)?;
    let cause = match certificate.needed {
        Needed::Unsplittable => Cause::TooLarge,
        Needed::Stages(needed) if needed > problem.ipus => Cause::TooFewIpus,
        Needed::Stages(_) => Cause::PinsOrLimits,
    };
    let without_orders = match problem.orders {
        [] => None,
        _ => solve(&Problem {
            orders: &[],
            ..*problem
        })?,
    };
    Ok(Some(Refusal {
        cause,
        certificate,
        lowest_peak: best_effort(problem)?,
        fewest: fewest_stages(problem)?,
        without_orders,
    }))
}

/// The plan with the lowest peak when every stage may take any number of
/// bytes, with the same orders. The range costs must hold every range; a
/// missing one stays ruled out.
///
/// # Errors
/// As those of [`solve`].
pub fn best_effort(problem: &Problem<'_>) -> Result<Option<Solution>, SolveError> {
    solve(&Problem {
        limit: Limit::Same(u64::MAX),
        goal: Goal::Peak,
        ..*problem
    })
}

/// The fewest IPUs that are enough with the same limit and orders, at most one
/// for each position; `None` when no number is. With limits by IPU only as
/// many IPUs as have one are considered.
///
/// # Errors
/// As those of [`solve`].
pub fn fewest_stages(problem: &Problem<'_>) -> Result<Option<usize>, SolveError> {
    let ipus = match problem.limit {
        Limit::Same(_) => problem.layers().max(problem.ipus),
        Limit::PerIpu(_) => problem.ipus,
    };
    let solution = solve(&Problem {
        ipus,
        goal: Goal::Fewest,
        ..*problem
    })?;
    Ok(solution.map(|solution| solution.score.stages))
}
