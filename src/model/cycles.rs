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
use crate::profile::{Cycles, Executed, ProgramKind, Programs};
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
    /// Cycles of each cluster (programs of one operation), ascending by operation, then by cluster.
    /// These cycles are also included in `by_operation`.
    pub by_cluster: Vec<ClusterCycles>,
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

/// The cycles of one cluster: the programs of an operation that use variables of the same use sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterCycles {
    /// The operation, as an index into [`Model::operations`](super::Model::operations).
    pub operation: u32,
    /// Index into the [clusters](super::OperationGroup::clusters) of the operation's group.
    pub cluster: u32,
    /// Cycles of the programs of the cluster.
    pub cycles: WorkCycles,
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
    let sums = |source| CycleSums {
        programs,
        found,
        executions: found.walk.executions(programs, &cycles.repeats),
        cluster_of,
        backward,
        all: OperationCycles {
            source,
            by_operation: vec![WorkCycles::default(); found.operations.len()],
            by_cluster: Vec::new(),
            unexplained: WorkCycles::default(),
            other: 0,
        },
        by_cluster: BTreeMap::new(),
    };
    let sums = match (&cycles.executed, &cycles.estimated) {
        (Some(executed), _) if has_any(programs, &executed.by_program) => {
            let runs = executed.runs;
            sums(CycleSource::Executed { runs }).of_executed(executed)
        }
        (_, Some(estimated)) if has_any(programs, estimated) => {
            sums(CycleSource::Estimated).of_estimated(estimated)
        }
        _ => return Ok(None),
    };
    let total = sums
        .by_operation
        .iter()
        .chain([&sums.unexplained])
        .fold(sums.other, |total, work| total.saturating_add(work.all));
    if total > limits::CYCLES {
        return Err(too_many(sums.source));
    }
    Ok(Some(sums))
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

/// Returns whether any compute set or exchange has cycles. `cycles` has the cycles of each program.
fn has_any(programs: &Programs, cycles: &[u64]) -> bool {
    programs
        .all
        .iter()
        .zip(cycles)
        .any(|(program, &cycles)| cycles > 0 && is_work(&program.kind))
}

/// The sums of cycles by operation and by cluster while they are built, and all data from which
/// they are computed. Cycles are added visit by visit. A visit is one program on one call path in
/// the walk over the program tree.
struct CycleSums<'a> {
    programs: &'a Programs,
    found: &'a UnnamedOperations,
    /// One entry per visit (a program on one call path): how often the program runs on this path.
    executions: Vec<u64>,
    /// One entry per program: the index of its cluster in its operation group, or `NO_CLUSTER`.
    cluster_of: &'a [u32],
    /// The steps of each program, and the first step of the backward pass. `None` for inference.
    backward: Option<(&'a StepIndex, u32)>,
    /// All sums of cycles except the sums by cluster.
    all: OperationCycles,
    /// The cycles of each cluster. A key is the index of the operation, and the index of the
    /// cluster in the operation's group.
    by_cluster: BTreeMap<(u32, u32), WorkCycles>,
}

impl<'a> CycleSums<'a> {
    /// Sums up the compiler's estimates. `estimated` has one entry per program: the cycles of one
    /// execution. For each visit of a program, these cycles are added times the number of
    /// executions of the visit.
    fn of_estimated(mut self, estimated: &[u64]) -> OperationCycles {
        for (visit, program) in self.visits() {
            let cycles = estimated[program].saturating_mul(self.executions[visit]);
            self.add_visit(visit, cycles);
        }
        self.finished()
    }

    /// Sums up executed cycles. `executed` has the cycles of all executions of each program. These
    /// cycles are divided among the visits of the program (one for each call path), in proportion
    /// to how often the program runs on the path. No cycle is lost to rounding.
    fn of_executed(mut self, executed: &Executed) -> OperationCycles {
        self.all.other = executed.without_program;
        let mut all = vec![0u128; self.programs.all.len()];
        for (visit, program) in self.visits() {
            all[program] += u128::from(self.executions[visit]);
        }
        for (program, &cycles) in executed.by_program.iter().enumerate() {
            let kind = &self.programs.all[program].kind;
            if !is_work(kind) {
                self.all.other = self.all.other.saturating_add(cycles);
            } else if all[program] == 0 {
                self.add((NO_OPERATION, NO_CLUSTER), kind, cycles, 0);
            }
        }
        let mut before = vec![0u128; all.len()];
        for (visit, program) in self.visits().filter(|&(_, program)| all[program] > 0) {
            let from = before[program];
            let to = from + u128::from(self.executions[visit]);
            before[program] = to;
            let cycles = u128::from(executed.by_program[program]);
            let part = cycles * to / all[program] - cycles * from / all[program];
            self.add_visit(visit, part as u64);
        }
        self.finished()
    }

    /// Iterates over the visits of compute sets and exchanges in the walk over the program tree.
    /// Each item has the index of the visit, and the index of its program in `Programs::all`.
    fn visits(&self) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let programs = self.programs;
        self.found
            .walk
            .visits
            .iter()
            .enumerate()
            .map(|(visit, &(_, program))| (visit, program as usize))
            .filter(|&(_, program)| is_work(&programs.all[program].kind))
    }

    /// Adds the `cycles` of one visit of a program to the operation and cluster of the visit.
    fn add_visit(&mut self, visit: usize, cycles: u64) {
        let (path, program) = self.found.walk.visits[visit];
        let later = self.later(path, program, cycles);
        let kind = &self.programs.all[program as usize].kind;
        let operation = self.found.operation_of[visit];
        let by = (operation, self.cluster_of[program as usize]);
        self.add(by, kind, cycles, later);
    }

    /// Returns how many of `cycles`, the cycles of `program` on the call path `path`, are spent at
    /// or after the start of the backward pass: the same share as that of the program's steps on
    /// `path`. If no step of the program is on `path`, as for a function body that is listed once
    /// for several calls, all steps of the program are used instead. Returns 0 for inference.
    fn later(&self, path: Path, program: u32, cycles: u64) -> u64 {
        let Some((steps, start)) = self.backward else {
            return 0;
        };
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
            return self.all.unexplained.add(added);
        }
        self.all.by_operation[operation as usize].add(added);
        if cluster != NO_CLUSTER {
            self.by_cluster.entry(by).or_default().add(added);
        }
    }

    fn finished(mut self) -> OperationCycles {
        self.all.by_cluster = self
            .by_cluster
            .into_iter()
            .map(|((operation, cluster), cycles)| ClusterCycles {
                operation,
                cluster,
                cycles,
            })
            .collect();
        self.all
    }
}
