//! Cycles of operations and layers.
//!
//! What is counted is the same for both sources: compute sets and exchanges
//! between tiles, each step as long as its slowest tile. Stream copies wait for
//! the host and syncs for other tiles, so what executions say of them is kept
//! apart and belongs to no layer. Exchanges are a part of the sums that is known.
//!
//! A program that several operations run (an outlined body) is shared out by
//! how often each of them runs it in the walk over the program tree. The body
//! of a Repeat counts as often as `program_type_repeat` says, and once when the
//! count is not fixed; bodies of `while` loops and all branches count once.

use super::operations::{Found, NO_OPERATION};
use super::{Model, Placement};
use crate::profile::{Cycles, Executed, ProgramKind, Programs};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Where cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CycleSource {
    /// Measured: the steps that were executed in this number of calls of
    /// `Engine::run`; 0 when the profile does not say, which counts as one.
    Executed {
        /// Rows of the table `runs`.
        runs: u64,
    },
    /// The compiler's estimates, for one run of every control program.
    Estimated,
}

impl fmt::Display for CycleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CycleSource::Executed { runs: 0 | 1 } => f.write_str("executed, in one run"),
            CycleSource::Executed { runs } => write!(f, "executed, mean of {runs} runs"),
            CycleSource::Estimated => f.write_str("estimated by the compiler"),
        }
    }
}

/// The cycles of every operation. Sums stop at `u64::MAX`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCycles {
    /// Where they come from.
    pub source: CycleSource,
    /// By position in [`Model::operations`]: cycles of its compute sets and
    /// exchanges, over all runs if they were executed.
    pub by_operation: Vec<u64>,
    /// The part of each of `by_operation` that exchanges take; the rest is of compute
    /// sets.
    pub exchange_by_operation: Vec<u64>,
    /// Those of compute sets and exchanges that belong to no operation.
    pub unexplained: u64,
    /// The part of `unexplained` that exchanges take.
    pub unexplained_exchange: u64,
    /// Executed cycles of everything else: stream copies, syncs, control flow.
    pub other: u64,
}

/// The cycles of every layer, of one run: the mean, rounded up, where several
/// were executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CyclesByLayer {
    /// Where they come from.
    pub source: CycleSource,
    /// By position of the layer order.
    pub by_layer: Vec<u64>,
    /// The part of each of `by_layer` that exchanges take; the rest is of compute sets.
    pub exchange_by_layer: Vec<u64>,
    /// Those of operations that the placement leaves out or puts into every
    /// stage, and of compute sets and exchanges that belong to no operation.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges take.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow.
    pub other: u64,
}

/// The profile says nothing of cycles, but the request needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile says nothing of cycles: it holds neither executed steps nor the compiler's \
     estimates; record it again with \
     POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\",\"profiler.includeCycleEstimates\":\"true\"}}' \
     for estimates, or run the model with the engine option autoReport.outputExecutionProfile \
     set to true for measured cycles"
)]
pub struct NoCycles;

impl Model {
    /// The cycles of each layer when operations count where `placement` puts
    /// them, those of several places in equal parts; `None` when the profile
    /// says nothing of cycles ([`NoCycles`]).
    pub fn layer_cycles(&self, placement: &Placement) -> Option<CyclesByLayer> {
        let cycles = self.cycles.as_ref()?;
        let runs = match cycles.source {
            CycleSource::Executed { runs } => runs.max(1),
            CycleSource::Estimated => 1,
        };
        // Parts and means of a smaller number are never above those of a larger one:
        // exchanges stay a part of the whole in each layer.
        let (by_layer, unplaced) =
            shared_by_layer(placement, &cycles.by_operation, cycles.unexplained, runs);
        let (exchange_by_layer, unplaced_exchange) = shared_by_layer(
            placement,
            &cycles.exchange_by_operation,
            cycles.unexplained_exchange,
            runs,
        );
        Some(CyclesByLayer {
            source: cycles.source,
            by_layer,
            exchange_by_layer,
            unplaced,
            unplaced_exchange,
            other: cycles.other.div_ceil(runs),
        })
    }
}

/// What operations take, by layer and in none of them, in the mean of the runs.
fn shared_by_layer(
    placement: &Placement,
    by_operation: &[u64],
    unexplained: u64,
    runs: u64,
) -> (Vec<u64>, u64) {
    let mut by_layer = vec![0u64; placement.positions.len()];
    let mut unplaced = unexplained;
    for (operation, &own) in by_operation.iter().enumerate() {
        let places = placement.places_of(operation);
        if places.is_empty() {
            unplaced = unplaced.saturating_add(own);
        }
        // The first places get what cannot be shared out evenly.
        let count = places.len() as u64;
        for (&place, number) in places.iter().zip(0..) {
            let part = own / count + u64::from(number < own % count);
            let sum = &mut by_layer[place as usize];
            *sum = sum.saturating_add(part);
        }
    }
    let means = by_layer.into_iter().map(|sum| sum.div_ceil(runs));
    (means.collect(), unplaced.div_ceil(runs))
}

/// The cycles of each operation: as executed, otherwise as estimated.
pub(super) fn of_operations(
    programs: &Programs,
    cycles: &Cycles,
    found: &Found,
) -> Option<OperationCycles> {
    let executed = cycles.executed.as_ref();
    let executed = executed.filter(|executed| has_any(programs, &executed.by_program));
    let estimated = cycles.estimated.as_deref();
    let estimated = estimated.filter(|estimated| has_any(programs, estimated));
    if executed.is_none() && estimated.is_none() {
        return None;
    }
    let executions = found.walk.executions(programs, &cycles.repeats);
    match (executed, estimated) {
        (Some(executed), _) => Some(share_out(programs, executed, found, &executions)),
        (None, Some(estimated)) => Some(add_up(programs, estimated, found, &executions)),
        (None, None) => None,
    }
}

/// What a program whose work counts in a layer does; `None` for any other.
fn work(programs: &Programs, program: usize) -> Option<Work> {
    match programs.all[program].kind {
        ProgramKind::OnTileExecute(_) => Some(Work::Compute),
        ProgramKind::DoExchange(_) => Some(Work::Exchange),
        _ => None,
    }
}

/// What tiles do in a step that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// They run a compute set.
    Compute,
    /// They exchange data with each other.
    Exchange,
}

/// Has any program whose work counts any cycles?
fn has_any(programs: &Programs, cycles: &[u64]) -> bool {
    let mut all = cycles.iter().enumerate();
    all.any(|(program, &own)| own > 0 && work(programs, program).is_some())
}

/// Estimates are of one execution.
fn add_up(
    programs: &Programs,
    estimated: &[u64],
    found: &Found,
    executions: &[u64],
) -> OperationCycles {
    let mut sums = OperationCycles::none(CycleSource::Estimated, found);
    for (visit, &(_, program)) in found.walk.visits.iter().enumerate() {
        if let Some(work) = work(programs, program as usize) {
            let cycles = estimated[program as usize].saturating_mul(executions[visit]);
            sums.add(found.operation_of[visit], work, cycles);
        }
    }
    sums
}

/// Executed cycles are of all executions: each visit of a program gets its
/// part, and together they get all of it.
fn share_out(
    programs: &Programs,
    executed: &Executed,
    found: &Found,
    executions: &[u64],
) -> OperationCycles {
    let runs = executed.runs;
    let mut sums = OperationCycles::none(CycleSource::Executed { runs }, found);
    sums.other = executed.without_program;
    let mut all = vec![0u128; programs.all.len()];
    for (&(_, program), &count) in found.walk.visits.iter().zip(executions) {
        all[program as usize] += u128::from(count);
    }
    for (program, &cycles) in executed.by_program.iter().enumerate() {
        match work(programs, program) {
            None => sums.other = sums.other.saturating_add(cycles),
            Some(work) if all[program] == 0 => sums.add(NO_OPERATION, work, cycles),
            Some(_) => {}
        }
    }
    let mut before = vec![0u128; programs.all.len()];
    for (visit, &(_, program)) in found.walk.visits.iter().enumerate() {
        let program = program as usize;
        if let Some(work) = work(programs, program).filter(|_| all[program] > 0) {
            let from = before[program];
            let to = from + u128::from(executions[visit]);
            before[program] = to;
            let cycles = u128::from(executed.by_program[program]);
            let part = cycles * to / all[program] - cycles * from / all[program];
            sums.add(found.operation_of[visit], work, part as u64);
        }
    }
    sums
}

impl OperationCycles {
    fn none(source: CycleSource, found: &Found) -> Self {
        let by_operation = vec![0; found.operations.len()];
        Self {
            source,
            exchange_by_operation: by_operation.clone(),
            by_operation,
            unexplained: 0,
            unexplained_exchange: 0,
            other: 0,
        }
    }

    fn add(&mut self, operation: u32, work: Work, cycles: u64) {
        let (all, exchange) = match operation {
            NO_OPERATION => (&mut self.unexplained, &mut self.unexplained_exchange),
            operation => (
                &mut self.by_operation[operation as usize],
                &mut self.exchange_by_operation[operation as usize],
            ),
        };
        *all = all.saturating_add(cycles);
        if work == Work::Exchange {
            *exchange = exchange.saturating_add(cycles);
        }
    }
}
