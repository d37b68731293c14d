//! Cycles of operations and layers.
//!
//! Both sources count the same work: compute sets and exchanges between tiles,
//! each step as long as its slowest tile. Stream copies wait for the host and
//! syncs for other tiles, so what executions say of them is kept apart and
//! belongs to no layer. Exchanges are a part of the sums that is known.
//!
//! A program that several operations run (an outlined body) is shared out by
//! how often each of them runs it in the walk over the program tree. The body
//! of a Repeat counts as often as `program_type_repeat` says, and once when the
//! count is not fixed; bodies of `while` loops and all branches count once.
//!
//! Each operation's cycles are of its pass. Those of an operation that runs before and
//! after the start of the backward pass are parted by its steps.

use super::operations::{NO_OPERATION, UnnamedOperations};
use super::walk::Path;
use super::windows::StepIndex;
use super::{Model, Pass, Placement};
use crate::profile::{Cycles, Executed, ProgramKind, Programs};
use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// The part of each of `by_operation` from the start of the backward pass on; 0 in
    /// inference.
    pub later_by_operation: Vec<u64>,
    /// Those of compute sets and exchanges that belong to no operation.
    pub unexplained: u64,
    /// The part of `unexplained` that exchanges take.
    pub unexplained_exchange: u64,
    /// Executed cycles of everything else: stream copies, syncs, control flow.
    pub other: u64,
}

/// Cycles by the pass that they are spent in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct PassCycles {
    /// In the forward pass; all of inference.
    pub forward: u64,
    /// In the backward pass, without what is recomputed for it.
    pub backward: u64,
    /// In forward operations that run again for the backward pass.
    pub recomputed: u64,
    /// In updates of weights.
    pub update: u64,
}

impl PassCycles {
    /// Those of an operation in this pass, of which `later` are from the start of the
    /// backward pass on. Where a profile was recorded with recomputation, these are
    /// recomputed.
    fn of(pass: Pass, all: u64, later: u64, is_recomputed: bool) -> Self {
        let mut passes = Self::default();
        match pass {
            Pass::Forward => passes.forward = all,
            Pass::Backward => passes.backward = all,
            Pass::Update => passes.update = all,
            Pass::Both if is_recomputed => {
                (passes.forward, passes.recomputed) = (all.saturating_sub(later), later);
            }
            Pass::Both => (passes.forward, passes.backward) = (all.saturating_sub(later), later),
        }
        passes
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.running_sums()[3]
    }

    /// The sums of the first one, two, three and all passes. Shares and means of these
    /// never fall from one to the next, so those of the passes add up to that of the
    /// whole.
    fn running_sums(self) -> [u64; 4] {
        let mut sum = 0u64;
        [self.forward, self.backward, self.recomputed, self.update].map(|cycles| {
            sum = sum.saturating_add(cycles);
            sum
        })
    }

    fn from_running_sums([forward, backward, recomputed, update]: [u64; 4]) -> Self {
        Self {
            forward,
            backward: backward - forward,
            recomputed: recomputed - backward,
            update: update - recomputed,
        }
    }
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
    /// The passes of each of `by_layer`.
    pub passes_by_layer: Vec<PassCycles>,
    /// The part of the first position that is Out's, where Out runs on the first IPU.
    pub out_in_first: PassCycles,
    /// Those of operations that the placement leaves out or puts into every
    /// stage, and of compute sets and exchanges that belong to no operation.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges take.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow.
    pub other: u64,
    /// Cycles of a tile in a second, if the profile has them.
    pub clock_hertz: Option<u64>,
}

impl Model {
    /// The cycles of each layer when operations count where `placement` puts
    /// them, those of several places in equal parts; `None` when the profile
    /// says nothing of cycles ([`NoCycles`](super::NoCycles)).
    pub fn layer_cycles(&self, placement: &Placement) -> Option<CyclesByLayer> {
        let cycles = self.cycles.as_ref()?;
        let runs = match cycles.source {
            CycleSource::Executed { runs } => runs.max(1),
            CycleSource::Estimated => 1,
        };
        let mut sums = LayerSums::new(placement.positions.len());
        let end = self.end_of_passes(cycles, placement);
        for operation in 0..cycles.by_operation.len() {
            let is_after = self.starts_after(operation, end);
            let reaches = placement.places_of(operation).len() > 1;
            let pass = match self.operations[operation].pass {
                // Over all gradients, before the weights are updated.
                Pass::Backward if is_after && reaches => Pass::Update,
                pass => pass,
            };
            let passes = self.passes_of(cycles, operation, pass);
            let exchange = cycles.exchange_by_operation[operation];
            sums.add(placement, operation, passes.running_sums(), exchange);
        }
        Some(CyclesByLayer {
            clock_hertz: self.made.clock_hertz.filter(|&clock| clock > 0),
            ..sums.means(cycles, runs)
        })
    }

    /// The last step of the backward operations that take time and have one place each; none
    /// without any.
    fn end_of_passes(&self, cycles: &OperationCycles, placement: &Placement) -> Option<u32> {
        let operations = self.operations.iter().enumerate();
        let alone = operations.filter(|&(number, operation)| {
            operation.pass == Pass::Backward
                && cycles.by_operation[number] > 0
                && placement.places_of(number).len() == 1
        });
        let ends = alone.filter_map(|(_, operation)| Some(operation.window?.1));
        ends.max()
    }

    fn starts_after(&self, operation: usize, end: Option<u32>) -> bool {
        let start = self.operations[operation].window.map(|window| window.0);
        start.zip(end).is_some_and(|(start, end)| start > end)
    }

    /// The cycles of an operation of this pass, by pass.
    fn passes_of(&self, cycles: &OperationCycles, operation: usize, pass: Pass) -> PassCycles {
        PassCycles::of(
            pass,
            cycles.by_operation[operation],
            cycles.later_by_operation[operation],
            self.recording.recomputes,
        )
    }
}

/// Cycles of operations, by layer and in none of them, over all runs.
struct LayerSums {
    /// By layer, the running sums of the passes.
    passes: Vec<[u64; 4]>,
    exchange: Vec<u64>,
    /// Those of Out, where it is in one position with In.
    out: [u64; 4],
    unplaced: u64,
    unplaced_exchange: u64,
}

impl LayerSums {
    fn new(layers: usize) -> Self {
        Self {
            passes: vec![[0; 4]; layers],
            exchange: vec![0; layers],
            out: [0; 4],
            unplaced: 0,
            unplaced_exchange: 0,
        }
    }

    /// Adds an operation to the layers that it counts in, in equal parts.
    fn add(&mut self, placement: &Placement, operation: usize, passes: [u64; 4], exchange: u64) {
        let places = placement.places_of(operation);
        if places.is_empty() {
            self.unplaced = self.unplaced.saturating_add(passes[3]);
            self.unplaced_exchange = self.unplaced_exchange.saturating_add(exchange);
        }
        let count = places.len() as u64;
        for (&place, number) in places.iter().zip(0..) {
            // The first places get what cannot be shared out evenly.
            let part = |cycles: u64| cycles / count + u64::from(number < cycles % count);
            add_all(&mut self.passes[place as usize], passes.map(part));
            let sum = &mut self.exchange[place as usize];
            *sum = sum.saturating_add(part(exchange));
            if place == 0 {
                let (out_part, all) = placement.out_in_first(operation);
                let of_out = passes.map(|cycles| share(part(cycles), out_part, all));
                add_all(&mut self.out, of_out);
            }
        }
    }

    /// The means of the runs. Those of a smaller number are never above those of a
    /// larger one: passes and exchanges stay parts of the whole.
    fn means(self, cycles: &OperationCycles, runs: u64) -> CyclesByLayer {
        let mean = |sum: u64| sum.div_ceil(runs);
        let passes = |sums: &[u64; 4]| PassCycles::from_running_sums(sums.map(mean));
        let unexplained = cycles.unexplained_exchange;
        CyclesByLayer {
            source: cycles.source,
            by_layer: self.passes.iter().map(|sums| mean(sums[3])).collect(),
            exchange_by_layer: self.exchange.into_iter().map(mean).collect(),
            passes_by_layer: self.passes.iter().map(passes).collect(),
            out_in_first: passes(&self.out),
            unplaced: mean(self.unplaced.saturating_add(cycles.unexplained)),
            unplaced_exchange: mean(self.unplaced_exchange.saturating_add(unexplained)),
            other: mean(cycles.other),
            clock_hertz: None,
        }
    }
}

fn add_all(sums: &mut [u64; 4], more: [u64; 4]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// `part` of `whole` of these cycles, rounded down; none of nothing.
fn share(cycles: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(cycles) * u128::from(part);
    let share = share.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The cycles of each operation: as executed, otherwise as estimated.
pub(super) fn of_operations(
    programs: &Programs,
    cycles: &Cycles,
    found: &UnnamedOperations,
    backward: Option<(&StepIndex, u32)>,
) -> Option<OperationCycles> {
    let executed = cycles.executed.as_ref();
    let executed = executed.filter(|executed| has_any(programs, &executed.by_program));
    let estimated = cycles.estimated.as_deref();
    let estimated = estimated.filter(|estimated| has_any(programs, estimated));
    if executed.is_none() && estimated.is_none() {
        return None;
    }
    let executions = found.walk.executions(programs, &cycles.repeats);
    let later = LaterSteps::new(found, backward);
    match (executed, estimated) {
        (Some(executed), _) => Some(share_out(programs, executed, found, &executions, &later)),
        (None, Some(estimated)) => Some(add_up(programs, estimated, found, &executions, &later)),
        (None, None) => None,
    }
}

/// Which steps are from the start of the backward pass on.
struct LaterSteps<'a> {
    backward: Option<(&'a StepIndex, u32)>,
    /// By step, the call path that it is on.
    paths: Vec<Option<Path>>,
}

impl<'a> LaterSteps<'a> {
    fn new(found: &UnnamedOperations, backward: Option<(&'a StepIndex, u32)>) -> Self {
        let paths = backward.map(|(steps, _)| steps.walk_paths(&found.walk.paths));
        Self {
            backward,
            paths: paths.unwrap_or_default(),
        }
    }

    /// The part of the cycles of a visit that is later: by how many of its steps are. A
    /// body that is listed once for several calls is told by all steps of the program.
    fn part(&self, (path, program): (Path, u32), cycles: u64) -> u64 {
        let Some((steps, start)) = self.backward else {
            return 0;
        };
        let count = |is_on_path: &dyn Fn(u32) -> bool| {
            let steps = steps.of(program).iter();
            let steps = steps.filter(|&&step| is_on_path(step));
            steps.fold((0, 0), |(later, all), &step| {
                (later + u64::from(step >= start), all + 1)
            })
        };
        let is_on_path = |step: u32| self.paths.get(step as usize) == Some(&Some(path));
        let (later, all) = match count(&is_on_path) {
            (_, 0) => count(&|_| true),
            counted => counted,
        };
        share(cycles, later, all)
    }
}

/// The work of a program that counts in a layer; `None` for any other.
fn work(programs: &Programs, program: usize) -> Option<Work> {
    match programs.all[program].kind {
        ProgramKind::OnTileExecute(_) => Some(Work::Compute),
        ProgramKind::DoExchange(_) => Some(Work::Exchange),
        _ => None,
    }
}

/// The work of tiles in a step that counts.
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
    all.any(|(program, &cycles)| cycles > 0 && work(programs, program).is_some())
}

/// Estimates are of one execution.
fn add_up(
    programs: &Programs,
    estimated: &[u64],
    found: &UnnamedOperations,
    executions: &[u64],
    later: &LaterSteps<'_>,
) -> OperationCycles {
    let mut sums = OperationCycles::none(CycleSource::Estimated, found);
    for (visit, &(path, program)) in found.walk.visits.iter().enumerate() {
        if let Some(work) = work(programs, program as usize) {
            let cycles = estimated[program as usize].saturating_mul(executions[visit]);
            let later = later.part((path, program), cycles);
            sums.add(found.operation_of[visit], work, cycles, later);
        }
    }
    sums
}

/// Executed cycles are of all executions: each visit of a program gets its
/// part, and together they get all of it.
fn share_out(
    programs: &Programs,
    executed: &Executed,
    found: &UnnamedOperations,
    executions: &[u64],
    later: &LaterSteps<'_>,
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
            Some(work) if all[program] == 0 => sums.add(NO_OPERATION, work, cycles, 0),
            Some(_) => {}
        }
    }
    let mut before = vec![0u128; programs.all.len()];
    for (visit, &(path, program)) in found.walk.visits.iter().enumerate() {
        let program = program as usize;
        if let Some(work) = work(programs, program).filter(|_| all[program] > 0) {
            let from = before[program];
            let to = from + u128::from(executions[visit]);
            before[program] = to;
            let cycles = u128::from(executed.by_program[program]);
            let part = cycles * to / all[program] - cycles * from / all[program];
            let part = part as u64;
            let later = later.part((path, program as u32), part);
            sums.add(found.operation_of[visit], work, part, later);
        }
    }
    sums
}

impl OperationCycles {
    fn none(source: CycleSource, found: &UnnamedOperations) -> Self {
        let by_operation = vec![0; found.operations.len()];
        Self {
            source,
            exchange_by_operation: by_operation.clone(),
            later_by_operation: by_operation.clone(),
            by_operation,
            unexplained: 0,
            unexplained_exchange: 0,
            other: 0,
        }
    }

    fn add(&mut self, operation: u32, work: Work, cycles: u64, later: u64) {
        if operation != NO_OPERATION {
            let sum = &mut self.later_by_operation[operation as usize];
            *sum = sum.saturating_add(later);
        }
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
