//! Computes the cycles of operations, and of layers by pass (docs/model.md, "Time").
//!
//! Executed (measured) and estimated cycles cover the same work: compute sets and exchanges, each
//! as long as on its slowest tile. Stream copies wait for the host and syncs wait for other tiles,
//! so their executed cycles belong to no layer.
//!
//! If several operations run the same program, as in a function that is called several times, the
//! program's cycles are divided in proportion to how often each operation runs the program. The
//! body of a Repeat runs as often as `program_type_repeat` records, or once if the count is not
//! fixed. Bodies of `while` loops and all branches count as running once.
//!
//! If an operation works on several layers, the cycles of each of its programs are attributed to
//! the layers whose variables the program uses. If an operation runs both before and after the
//! start of the backward pass, its cycles are divided in proportion to its liveness steps before
//! and after this start. An operation that runs after the backward pass of all layers and works on
//! several layers, such as a norm of all gradients, counts as part of the update.

use super::{
    Model, Pass, PlaceSet, Placement,
    operations::UnnamedOperations,
    walk::{Path, StepIndex},
};
use crate::{
    limits,
    message::{OVER_BOUND, Warning},
    profile::{Cycles, ProgramKind, Programs},
    wording::grouped,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use thiserror::Error;

/// Whether the cycles of a model were measured or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CycleSource {
    /// Cycles were measured while the compiled program ran on IPUs.
    Executed {
        /// Number of measured calls of `Engine::run` (rows of the table `runs`). If the profile
        /// does not record the number, it is 0, and all measured cycles count as those of one run.
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

/// The cycles of all operations of a model, and the cycles of programs that belong to no operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCycles {
    /// The source of all cycles in this struct: measured while the program ran (executed), or
    /// estimated by the compiler.
    pub source: CycleSource,
    /// One entry per operation, with the same index as in
    /// [`Model::operations`](super::Model::operations): the cycles of the operation. Executed
    /// cycles are sums over all measured runs of the program.
    pub by_operation: Vec<WorkCycles>,
    /// Cycles of each cluster, that is, of the programs of one operation that use the same
    /// variables. A key has the index of the operation in
    /// [`Model::operations`](super::Model::operations), and the index of the cluster in the
    /// [clusters](super::OperationGroup::clusters) of the operation's group. The sums in
    /// `by_operation` include the cycles of clusters.
    pub by_cluster: BTreeMap<(u32, u32), WorkCycles>,
    /// Cycles of compute sets and exchanges that belong to no operation.
    pub unexplained: WorkCycles,
    /// Executed cycles of stream copies, syncs and control flow, which are neither compute sets nor
    /// exchanges; 0 if cycles are estimated.
    pub other: u64,
}

/// Cycles that compute sets and exchanges take, for example those of one operation. Sums saturate
/// at `u64::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkCycles {
    /// All cycles of compute sets and exchanges, over the forward pass, the backward pass and the
    /// update.
    pub all: u64,
    /// The part of all cycles that exchanges take; compute sets take the rest.
    pub exchange: u64,
    /// The part of the cycles in `all` that is spent after the start of the backward pass, in the
    /// backward pass or the update; 0 in inference.
    pub later: u64,
}

impl WorkCycles {
    fn combined(self, other: Self, sum: fn(u64, u64) -> u64) -> Self {
        Self {
            all: sum(self.all, other.all),
            exchange: sum(self.exchange, other.exchange),
            later: sum(self.later, other.later),
        }
    }
}

/// Sums up the cycles of each operation. They are measured (executed) cycles or, if none were
/// recorded, the compiler's estimates. `cluster_of` has the cluster (programs that use the same
/// variables) of each program within its operation group. `backward` has the liveness steps of each
/// program and the first step of the backward pass; it is `None` for inference. Returns `Ok(None)`
/// if the profile has no cycles.
///
/// # Errors
/// If the cycles exceed [`limits::CYCLES`]; the error is a warning.
pub fn of_operations(
    programs: &Programs,
    cycles: &Cycles,
    found: &UnnamedOperations,
    cluster_of: &[Option<u32>],
    backward: Option<(&StepIndex, u32)>,
) -> Result<Option<OperationCycles>, Warning> {
    let executions = found.walk.executions(programs, &cycles.repeats);
    // One entry per program: how often the program runs, summed over all call paths (the sequences
    // of Calls that lead to the program).
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
            sums.add((None, None), kind, cycles, 0);
        }
    }
    // If several sequences of Calls lead to a program, its cycles are divided among them in
    // proportion to how often the program runs in each. Shares are differences of cumulative sums,
    // so that no cycle is lost to rounding.
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
        let by = (found.operation_of[visit], cluster_of[program]);
        let later = backward.map_or(0, |backward| later(backward, path, number, part));
        sums.add(by, kind, part, later);
    }
    too_many(&sums).map_or(Ok(Some(sums)), Err)
}

/// Returns the source of the cycles, the cycles of each program over all its executions, and the
/// cycles that belong to no program. Executed cycles are taken if any compute set or exchange has
/// them, and otherwise the compiler's estimates. Returns `None` if there are neither. `executions`
/// has the number of executions of each program.
fn recorded(
    programs: &Programs,
    cycles: &Cycles,
    executions: &[u128],
) -> Option<(CycleSource, Vec<u64>, u64)> {
    let is_work = |program: usize| is_work(&programs.all[program].kind);
    let has_any = |cycles: &[u64]| (0..cycles.len()).any(|at| cycles[at] > 0 && is_work(at));
    if let Some(executed) = &cycles.executed
        && has_any(&executed.by_program)
    {
        let runs = executed.runs;
        let by_program = executed.by_program.clone();
        return Some((
            CycleSource::Executed { runs },
            by_program,
            executed.without_program,
        ));
    }
    let estimated = cycles.estimated.as_ref().filter(|all| has_any(all))?;
    // The compiler estimates the cycles of one execution of a compute set or exchange, so they are
    // multiplied by the number of executions. Other programs have no estimates.
    let all = |program: usize| {
        let once = u128::from(estimated[program]) * u128::from(is_work(program));
        u64::try_from(once * executions[program]).unwrap_or(u64::MAX)
    };
    let by_program = (0..estimated.len()).map(all).collect();
    Some((CycleSource::Estimated, by_program, 0))
}

fn too_many(sums: &OperationCycles) -> Option<Warning> {
    let total = sums
        .by_operation
        .iter()
        .chain([&sums.unexplained])
        .fold(sums.other, |total, work| total.saturating_add(work.all));
    if total <= limits::CYCLES {
        return None;
    }
    let what = match sums.source {
        CycleSource::Executed { .. } => "executed cycles are left out: table `steps_by_ipu`",
        CycleSource::Estimated => {
            "cycle estimates are left out: table `compilation_cycles_by_tile`"
        }
    };
    Some(Warning::new(format!(
        "{what}: all programs together take more than {} cycles, more than any real model has; \
         {OVER_BOUND}",
        grouped(limits::CYCLES)
    )))
}

/// Returns whether programs of this kind are compute sets or exchanges. The cycles of all other
/// programs, such as syncs, are attributed to no layer.
fn is_work(kind: &ProgramKind) -> bool {
    matches!(
        kind,
        ProgramKind::OnTileExecute(_) | ProgramKind::DoExchange(_)
    )
}

/// Returns how many of a program's `cycles` are spent at the liveness step `start` or later, where
/// `start` begins the backward pass. The cycles are those on one call path (the Calls that lead to
/// the program). They are divided equally among the program's steps on this path or, if the profile
/// lists none, among all steps of the program.
fn later((steps, start): (&StepIndex, u32), path: Path, program: u32, cycles: u64) -> u64 {
    let all = steps.of(program);
    let on_path: Vec<u32> = all
        .iter()
        .copied()
        .filter(|&step| steps.walk_path(step) == Some(path))
        .collect();
    let counted = if on_path.is_empty() { all } else { &on_path };
    let later = counted.len() - counted.partition_point(|&step| step < start);
    (u128::from(cycles) * later as u128 / counted.len().max(1) as u128) as u64
}

impl OperationCycles {
    fn add(
        &mut self,
        (operation, cluster): (Option<u32>, Option<u32>),
        kind: &ProgramKind,
        all: u64,
        later: u64,
    ) {
        let added = WorkCycles {
            all,
            exchange: match kind {
                ProgramKind::DoExchange(_) => all,
                _ => 0,
            },
            later,
        };
        let of_operation = match operation {
            Some(operation) => &mut self.by_operation[operation as usize],
            None => &mut self.unexplained,
        };
        *of_operation = of_operation.combined(added, u64::saturating_add);
        if let Some(by) = operation.zip(cluster) {
            let of_cluster = self.by_cluster.entry(by).or_default();
            *of_cluster = of_cluster.combined(added, u64::saturating_add);
        }
    }
}

/// Cycles of some operations, divided by the pass of a training step in which they run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassCycles {
    /// Cycles of the forward pass; of all operations in inference.
    pub forward: u64,
    /// Cycles of the backward pass, without recomputation.
    pub backward: u64,
    /// Cycles of forward operations that run again for the backward pass.
    pub recomputed: u64,
    /// Cycles of the weight update.
    pub update: u64,
}

impl PassCycles {
    /// Returns the cycles of the forward, backward, recomputed and update pass together; saturates
    /// at `u64::MAX`.
    pub fn total(self) -> u64 {
        [self.forward, self.backward, self.recomputed, self.update]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Cycles of the program at each position (In, each layer, Out). Each number is for one run of the
/// program: the mean of all measured runs, rounded up.
#[derive(Debug, Clone)]
pub struct CyclesByLayer {
    /// The source of all cycles in this struct: measured while the program ran (executed), or
    /// estimated by the compiler.
    pub source: CycleSource,
    /// One entry per position (In, each layer, Out): the cycles of exchanges, which the position's
    /// entry in `passes_by_layer` includes.
    pub exchange_by_layer: Vec<u64>,
    /// One entry per position (In, each layer, Out): its cycles by pass.
    pub passes_by_layer: Vec<PassCycles>,
    /// The cycles of Out (the operations after the last layer) if Out runs on the first IPU, where
    /// the first position includes them; otherwise 0.
    pub out_in_first: PassCycles,
    /// Cycles that belong to no position: those of operations that are in every stage or in none,
    /// and those of compute sets and exchanges outside all operations.
    pub unplaced: u64,
    /// The part of `unplaced` (cycles that belong to no position) that is spent in exchanges.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow, which belong to no operation.
    pub other: u64,
    /// Clock frequency of a tile in Hz; `None` if the profile does not record it.
    pub clock_hertz: Option<u64>,
}

impl Model {
    /// Sums up the cycles of each position (In, each layer, Out). Returns `None` if the profile has
    /// no cycles ([`NoCycles`]).
    ///
    /// The cycles of an operation at several positions are divided. The cycles of a program that
    /// uses variables of only some of these positions go to those positions. All other cycles are
    /// divided equally (docs/model.md, "Time").
    pub fn layer_cycles(&self, placement: &Placement) -> Option<CyclesByLayer> {
        let cycles = self.cycles.as_ref()?;
        let mut sums = LayerSums {
            by_layer: vec![PassSums::default(); placement.positions.len()],
            ..LayerSums::default()
        };
        let end = self.end_of_passes(cycles, placement);
        for (number, &all) in cycles.by_operation.iter().enumerate() {
            let (operation, place) = (&self.operations[number], placement.operations[number]);
            let is_after = operation.window.is_some_and(|(start, _)| start > end);
            let pass = match operation.pass {
                // An operation of the backward pass that belongs to no single layer, and that runs
                // after the backward passes of all layers, prepares the weight update. An example
                // is a norm of all gradients. So its cycles count as part of the update.
                Pass::Backward if is_after && !place.reason.is_own() => Pass::Update,
                pass => pass,
            };
            let of = |counted| pass_sums(pass, counted, self.recording.recomputes);
            let places = |set| placement.sets.places(set);
            let mut left = all;
            // If an operation is at several places (In, layers, Out), each cluster (its programs
            // that use the same variables) may be at only some of them, which then get the
            // cluster's cycles.
            if places(place.places).len() > 1 {
                let of_cluster = &placement.of_cluster[operation.group as usize];
                let own = (number as u32, 0)..=(number as u32, u32::MAX);
                for (&(_, cluster), &counted) in cycles.by_cluster.range(own) {
                    if let Some(&set) = of_cluster.get(cluster as usize)
                        && !places(set).is_empty()
                    {
                        left = left.combined(counted, u64::saturating_sub);
                        sums.add(placement, set, of(counted));
                    }
                }
            }
            sums.add(placement, place.places, of(left));
        }
        Some(sums.means(cycles, self.made.clock_hertz.filter(|&clock| clock > 0)))
    }

    /// Returns the last liveness step of the backward pass of any position (In, a layer or Out).
    /// Operations without cycles do not count, nor do operations without a position of their own,
    /// such as a norm of all gradients. Returns `u32::MAX` if no operation counts.
    fn end_of_passes(&self, cycles: &OperationCycles, placement: &Placement) -> u32 {
        self.operations
            .iter()
            .zip(&cycles.by_operation)
            .zip(&placement.operations)
            .filter(|((operation, cycles), place)| {
                operation.pass == Pass::Backward && cycles.all > 0 && place.reason.is_own()
            })
            .filter_map(|((operation, _), _)| Some(operation.window?.1))
            .max()
            .unwrap_or(u32::MAX)
    }
}

/// Cycles of passes and exchanges. Entries 0 to 3 are cumulative, in the order of [`PassCycles`]:
/// entry 0 has the forward pass, entry 1 the forward and the backward pass, and so on. So even
/// after entries are divided and rounded up, their differences (the cycles of each pass) add up to
/// the rounded total. Entry 4 has the cycles of exchanges.
type PassSums = [u64; 5];

/// Divides the cycles of an operation among the passes. If the operation runs in both the forward
/// and the backward pass, `is_recomputed` decides whether its cycles after the start of the
/// backward pass count as recomputation.
fn pass_sums(pass: Pass, counted: WorkCycles, is_recomputed: bool) -> PassSums {
    let all = counted.all;
    let earlier = all.saturating_sub(counted.later);
    let [forward, backward, recomputed] = match pass {
        Pass::Forward => [all; 3],
        Pass::Backward => [0, all, all],
        Pass::Update => [0; 3],
        Pass::Both if is_recomputed => [earlier, earlier, all],
        Pass::Both => [earlier, all, all],
    };
    [forward, backward, recomputed, all, counted.exchange]
}

/// Cycles over all runs of the program, for each position (In, each layer, Out), and in `unplaced`
/// for operations without a position.
#[derive(Default)]
struct LayerSums {
    by_layer: Vec<PassSums>,
    /// The cycles of Out (the operations after the last layer), which position 0 includes if Out
    /// runs on the first IPU.
    out: PassSums,
    unplaced: PassSums,
}

impl LayerSums {
    fn add(&mut self, placement: &Placement, set: PlaceSet, sums: PassSums) {
        let places = placement.sets.places(set);
        if places.is_empty() {
            add_all(&mut self.unplaced, sums);
        }
        let count = places.len() as u64;
        for (&place, number) in places.iter().zip(0..) {
            // If the cycles do not divide evenly among several places (In, layers, Out), each of
            // the first places gets one cycle more.
            let parts = sums.map(|sum| sum / count + u64::from(number < sum % count));
            add_all(&mut self.by_layer[place as usize], parts);
            if place == 0 {
                // If Out (the operations after the last layer) runs on the first IPU, place 0 is
                // both In (the operations before the first layer) and Out. The part of its cycles
                // that Out has is also added to `out`: half if they belong to both In and Out, and
                // all if they belong only to Out.
                let places = placement.by_pass.sets.places(set);
                if places.contains(&(placement.positions.len() as u32)) {
                    let count = 1 + u64::from(places.contains(&0));
                    add_all(&mut self.out, parts.map(|cycles| cycles / count));
                }
            }
        }
    }

    /// Turns the sums over all measured runs of the program into means per run, rounded up, and
    /// adds cycles that belong to no operation to `unplaced`. In [`PassSums`], the sum of a pass
    /// includes all passes before it. A pass gets the difference of two rounded sums, so all passes
    /// add up to the rounded total.
    fn means(self, cycles: &OperationCycles, clock_hertz: Option<u64>) -> CyclesByLayer {
        let runs = match cycles.source {
            CycleSource::Executed { runs } => runs.max(1),
            CycleSource::Estimated => 1,
        };
        let mean = |sum: u64| sum.div_ceil(runs);
        let passes = |sums: &PassSums| {
            let [forward, backward, recomputed, update, _] = sums.map(mean);
            PassCycles {
                forward,
                backward: backward - forward,
                recomputed: recomputed - backward,
                update: update - recomputed,
            }
        };
        let layers = self.by_layer.iter();
        let [.., unplaced, unplaced_exchange] = self.unplaced;
        let unexplained = cycles.unexplained;
        CyclesByLayer {
            source: cycles.source,
            exchange_by_layer: layers.clone().map(|sums| mean(sums[4])).collect(),
            passes_by_layer: layers.map(passes).collect(),
            out_in_first: passes(&self.out),
            unplaced: mean(unplaced.saturating_add(unexplained.all)),
            unplaced_exchange: mean(unplaced_exchange.saturating_add(unexplained.exchange)),
            other: mean(cycles.other),
            clock_hertz,
        }
    }
}

fn add_all(sums: &mut PassSums, more: PassSums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// Error: cycles are needed, but the profile has neither executed cycles nor the compiler's
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
