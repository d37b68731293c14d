//! Cycles of operations.
//!
//! Executed cycles and estimated cycles cover the same work: compute sets and exchanges between
//! tiles, where each step is as long as its slowest tile. Stream copies wait for the host, and
//! syncs wait for other tiles, so their executed cycles are kept apart and belong to no layer. The
//! cycles of exchanges are also summed separately.
//!
//! If several operations run the same program (an outlined body), the cycles of the program are
//! divided in proportion to how often each operation runs it in the walk over the program tree. The
//! body of a Repeat runs as often as `program_type_repeat` records, or once if the count is not
//! fixed. Bodies of `while` loops and all branches count as running once.
//!
//! Clusters, the programs of an operation that use the same variables, have separate sums. If an
//! operation works on the whole model, the cycles of each of its clusters are attributed to the
//! places of that cluster.
//!
//! If an operation runs both before and after the start of the backward pass, its cycles are
//! divided in proportion to its numbers of steps before and after this start.

use super::code::NO_CLUSTER;
use super::operations::{NO_OPERATION, UnnamedOperations};
use super::walk::Path;
use super::windows::StepIndex;
use crate::limits;
use crate::message::{OVER_BOUND, Warning};
use crate::profile::{Cycles, ProgramKind, Programs};
use crate::wording::grouped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Whether the cycles of a model were measured or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CycleSource {
    /// Cycles were measured while the program ran.
    Executed {
        /// Number of calls of `Engine::run` whose steps were measured (rows of the table `runs`). 0
        /// if the profile does not record this number; then all steps count as one run.
        runs: u64,
    },
    /// Cycles are the compiler's estimates for one execution of each control program, since the
    /// profile does not record how often control programs run.
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

/// The cycles of all operations of a model, and of everything that belongs to no operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCycles {
    /// Whether the cycles in all fields are executed or estimated.
    pub source: CycleSource,
    /// One entry per operation, with the same index as in
    /// [`Model::operations`](super::Model::operations): the cycles of the operation. Executed
    /// cycles are summed over all runs.
    pub by_operation: Vec<WorkCycles>,
    /// Cycles of each cluster: the programs of an operation that use variables of the same use
    /// sets. A key is the operation, as an index into
    /// [`Model::operations`](super::Model::operations), and the cluster, as an index into the
    /// [clusters](super::OperationGroup::clusters) of the operation's group. These cycles are also
    /// included in `by_operation`.
    pub by_cluster: BTreeMap<(u32, u32), WorkCycles>,
    /// Cycles of compute sets and exchanges that belong to no operation.
    pub unexplained: WorkCycles,
    /// Executed cycles of all programs that are neither compute sets nor exchanges: stream copies,
    /// syncs and control flow. 0 if cycles are estimated.
    pub other: u64,
}

/// Cycles of compute sets and exchanges. Sums saturate at `u64::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkCycles {
    /// All cycles of compute sets and exchanges, in all passes.
    pub all: u64,
    /// The part of `all` that exchanges take; compute sets take the rest.
    pub exchange: u64,
    /// The part of `all` that is spent at or after the start of the backward pass; 0 in inference.
    pub later: u64,
}

impl WorkCycles {
    fn add(&mut self, more: Self) {
        self.all = self.all.saturating_add(more.all);
        self.exchange = self.exchange.saturating_add(more.exchange);
        self.later = self.later.saturating_add(more.later);
    }

    /// Returns these cycles minus `part`: each field minus the field of `part` with the same name,
    /// but at least 0.
    pub(super) fn without(self, part: Self) -> Self {
        Self {
            all: self.all.saturating_sub(part.all),
            exchange: self.exchange.saturating_sub(part.exchange),
            later: self.later.saturating_sub(part.later),
        }
    }
}

/// Returns the share of `cycles` that belongs to `part` out of `whole`: `cycles * part / whole`,
/// rounded down; 0 if `whole` is 0.
pub(super) fn share(cycles: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(cycles) * u128::from(part);
    let share = share.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Sums up the cycles of each operation from executed steps or, if none were recorded, from the
/// compiler's estimates. `cluster_of` has one entry per program: the index of its cluster in its
/// group. `backward` has the steps of each program and the first step of the backward pass; it is
/// `None` for inference. Returns `Ok(None)` if the profile has no cycles.
///
/// # Errors
/// Returns a warning in place of the cycles if they exceed [`limits::CYCLES`].
pub(super) fn of_operations(
    programs: &Programs,
    cycles: &Cycles,
    found: &UnnamedOperations,
    cluster_of: &[u32],
    backward: Option<(&StepIndex, u32)>,
) -> Result<Option<OperationCycles>, Warning> {
    let executions = found.walk.executions(programs, &cycles.repeats);
    // One entry per program: how often it runs on all call paths together.
    let mut all_executions = vec![0u128; programs.all.len()];
    for (&(_, program), &count) in found.walk.visits.iter().zip(&executions) {
        all_executions[program as usize] += u128::from(count);
    }
    let Some((source, by_program, without_program)) = recorded(programs, cycles, &all_executions)
    else {
        return Ok(None);
    };
    let mut sums = OperationCycles {
        source,
        by_operation: vec![WorkCycles::default(); found.operations.len()],
        by_cluster: BTreeMap::new(),
        unexplained: WorkCycles::default(),
        other: without_program,
    };
    for (program, &cycles) in by_program.iter().enumerate() {
        let kind = &programs.all[program].kind;
        if !is_work(kind) {
            sums.other = sums.other.saturating_add(cycles);
        } else if all_executions[program] == 0 {
            sums.add((NO_OPERATION, NO_CLUSTER), kind, cycles, 0);
        }
    }
    // The cycles of a program are divided among its visits (one for each call path), in proportion
    // to how often the program runs on the path. No cycle is lost to rounding.
    let mut earlier = vec![0u128; all_executions.len()];
    for (visit, &(path, number)) in found.walk.visits.iter().enumerate() {
        let program = number as usize;
        let (all, kind) = (all_executions[program], &programs.all[program].kind);
        if all == 0 || !is_work(kind) {
            continue;
        }
        let from = earlier[program];
        let to = from + u128::from(executions[visit]);
        earlier[program] = to;
        let cycles = u128::from(by_program[program]);
        let part = (cycles * to / all - cycles * from / all) as u64;
        let later = backward.map_or(0, |backward| later(backward, path, number, part));
        let by = (found.operation_of[visit], cluster_of[program]);
        sums.add(by, kind, part, later);
    }
    let total = sums
        .by_operation
        .iter()
        .chain([&sums.unexplained])
        .fold(sums.other, |total, work| total.saturating_add(work.all));
    if total > limits::CYCLES {
        return Err(too_many(source));
    }
    Ok(Some(sums))
}

/// Returns the source of the cycles; one entry per program: the cycles of all its executions; and
/// the cycles without a program. Returns `None` if no compute set or exchange has cycles.
/// `executions` has one entry per program: how often it runs.
fn recorded(
    programs: &Programs,
    cycles: &Cycles,
    executions: &[u128],
) -> Option<(CycleSource, Vec<u64>, u64)> {
    let is_work = |program: usize| is_work(&programs.all[program].kind);
    let has_any = |cycles: &[u64]| (0..cycles.len()).any(|at| cycles[at] > 0 && is_work(at));
    if let Some(executed) = cycles.executed.as_ref()
        && has_any(&executed.by_program)
    {
        let runs = executed.runs;
        return Some((
            CycleSource::Executed { runs },
            executed.by_program.clone(),
            executed.without_program,
        ));
    }
    let estimated = cycles.estimated.as_ref().filter(|all| has_any(all))?;
    // An estimate is for one execution of a program. Other programs than compute sets and exchanges
    // have no estimates.
    let all = |program: usize| {
        let once = u128::from(estimated[program]) * u128::from(is_work(program));
        u64::try_from(once * executions[program]).unwrap_or(u64::MAX)
    };
    let by_program = (0..estimated.len()).map(all).collect();
    Some((CycleSource::Estimated, by_program, 0))
}

fn too_many(source: CycleSource) -> Warning {
    let what = match source {
        CycleSource::Executed { .. } => "executed cycles are left out: table `steps_by_ipu`",
        CycleSource::Estimated => {
            "cycle estimates are left out: table `compilation_cycles_by_tile`"
        }
    };
    Warning::new(format!(
        "{what}: all programs together take more than {} cycles, more than any real model has; \
         {OVER_BOUND}",
        grouped(limits::CYCLES)
    ))
}

/// Returns whether programs of kind `kind` compute or exchange data. Only the cycles of such
/// programs are attributed to the layers of their operations.
fn is_work(kind: &ProgramKind) -> bool {
    matches!(
        kind,
        ProgramKind::OnTileExecute(_) | ProgramKind::DoExchange(_)
    )
}

/// Returns how many of `cycles`, the cycles of `program` on the call path `path`, are spent at or
/// after the start of the backward pass: the same share as that of the program's steps on `path`.
/// If no step of the program is on `path`, as for a function body that is listed once for several
/// calls, all steps of the program are used instead. `steps` has the steps of each program, and
/// `start` is the first step of the backward pass.
fn later((steps, start): (&StepIndex, u32), path: Path, program: u32, cycles: u64) -> u64 {
    let all = steps.of(program);
    let on_path: Vec<u32> = all
        .iter()
        .copied()
        .filter(|&step| steps.walk_path(step) == Some(path))
        .collect();
    let counted = if on_path.is_empty() { all } else { &on_path };
    let later = counted.len() - counted.partition_point(|&step| step < start);
    share(cycles, later as u64, counted.len() as u64)
}

impl OperationCycles {
    /// Adds the cycles of a program of the kind `kind` to the sums of its operation and cluster,
    /// whose indices are in `by`. `all` has the program's cycles in both passes, `later` its cycles
    /// in the backward pass.
    fn add(&mut self, by: (u32, u32), kind: &ProgramKind, all: u64, later: u64) {
        let exchange = match kind {
            ProgramKind::DoExchange(_) => all,
            _ => 0,
        };
        let added = WorkCycles {
            all,
            exchange,
            later,
        };
        let (operation, cluster) = by;
        if operation == NO_OPERATION {
            return self.unexplained.add(added);
        }
        self.by_operation[operation as usize].add(added);
        if cluster != NO_CLUSTER {
            self.by_cluster.entry(by).or_default().add(added);
        }
    }
}
