//! Turns options into the request of a search.

use super::given::{given, position};
use super::options::{MemPerTile, NumIpus};
use super::{Options, layers, refused, usage};
use crate::analysis::Layers;
use crate::memory::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::{Model, NoClock, NoCycles, Positions, Rules};
use crate::search::{IpuCount, SearchRequest, Solver};
use crate::solve::{Constraint, Goal, Rule};
use anyhow::Result;

/// Upper bound on IPUs for `--num-ipus auto`.
const MAX_AUTO: usize = 64;
/// Number of IPUs that the original tool assumed without an option.
const ORIGINAL_IPUS: usize = 16;

/// Returns the search that the options request; `None` if they request none.
///
/// # Errors
/// When options contradict each other, the layers, or the profile.
pub(super) fn request(
    options: &Options,
    layers: &Layers<'_>,
    limits: Vec<u64>,
) -> Result<Option<SearchRequest>> {
    if !options.wants_search() {
        return Ok(None);
    }
    if layers.layering.is_empty() {
        return Err(layers::none(layers.model(), &layers.layering));
    }
    let positions = &layers.placement.positions;
    let given = given(options, positions)?;
    let ipus = ipus(options, limits.len(), given.as_ref().map(|given| given.1))?;
    if options.search.solver == Solver::Greedy {
        refuse_greedy(options, ipus, limits.len())?;
    }
    let constraints = constraints(options, positions)?;
    let cycles = layers.model().layer_cycles(&layers.placement);
    if let Some(option) = options.needing_cycles().filter(|_| cycles.is_none()) {
        return Err(refused(&NoCycles).context(option));
    }
    let usual = match of_original(options) {
        Some(_) => Goal::Peak,
        None => Goal::usual(cycles.is_some()),
    };
    let goal = options.search.objective.unwrap_or(usual);
    let has_clock = cycles
        .as_ref()
        .is_some_and(|cycles| cycles.clock_hertz.is_some());
    if options.time.max_step_ms.is_some() && !has_clock {
        return Err(refused(&NoClock).context("--max-step-ms"));
    }
    Ok(Some(SearchRequest {
        ipus,
        limits,
        reserve: options.limits.reserve,
        solver: options.search.solver,
        pipeline: options.pipeline.options(options.time.replicas),
        goal,
        constraints,
        cycles,
        step: options.time.options(),
        at_micro_batch: options.time.at_micro_batch,
        given: given.map(|given| given.0),
        split: options.wants_split(),
        sweep: options.results.sweep,
        plan: options.results.plan,
        moves: options.results.explain,
        what_if: options.tries_splits(),
    }))
}

/// Returns the pipeline that the stages are part of. There is none without a search, and for the
/// solver and the rules of the original tool.
///
/// # Errors
/// When a pipeline is requested together with the solver or the rules of the original tool.
pub(super) fn pipeline(options: &Options, model: &Model) -> Result<Pipeline> {
    let asked = options.pipeline.options(options.time.replicas);
    if let Some(what) = of_original(options) {
        let has_schedule = asked.schedule.is_some_and(|given| given != Schedule::None);
        let has_recompute = asked
            .recompute
            .is_some_and(|given| given != Recompute::None);
        let has_state = options.pipeline.optimizer_state.is_some();
        let option = first(&[
            (has_schedule, "--schedule"),
            (has_recompute, "--recompute"),
            (asked.accumulator != Accumulator::default(), "--accumulator"),
            (has_state, "--optimizer-state"),
        ]);
        let refusal = option.map(|option| no_pipeline(option, what));
        return refusal.map_or(Ok(Pipeline::default()), Err);
    }
    if !options.wants_search() {
        return Ok(Pipeline::default());
    }
    let chosen = asked.choose(model);
    // A plan chooses the number of replicas itself, from the number of IPUs.
    let chosen = match options.results.plan && chosen.state.is_sharded() {
        true => chosen.with_state(StatePlace::OnChip, 1),
        false => chosen,
    };
    refuse_impossible(chosen)?;
    Ok(chosen)
}

/// Refuses a pipeline that no framework can run.
fn refuse_impossible(pipeline: Pipeline) -> Result<()> {
    let state = pipeline.state;
    if state.is_sharded() && pipeline.replicas < 2 {
        return Err(usage(format!(
            "--optimizer-state {state}: state can only be shared by several replicas; give \
             --replicas with 2 or more, or use off-chip"
        )));
    }
    Ok(())
}

/// Returns the option that selects the solver or the rules of the original tool, which have no
/// pipelines.
fn of_original(options: &Options) -> Option<&'static str> {
    let is_classic = options.limits.memory_model == Rules::Classic;
    first(&[
        (options.search.solver == Solver::Greedy, "--solver greedy"),
        (is_classic, "--memory-model classic"),
    ])
}

/// Returns the name after the first condition that is true.
fn first(all: &[(bool, &'static str)]) -> Option<&'static str> {
    let found = all.iter().find(|(is_so, _)| *is_so);
    found.map(|&(_, what)| what)
}

fn no_pipeline(option: &str, original: &str) -> anyhow::Error {
    usage(format!(
        "{option}: {original}, as in the original tool, has no pipeline; leave one of the two out"
    ))
}

/// Returns the memory of a tile in bytes, from the option or else from the target: one number, or
/// one for each IPU.
pub(super) fn memories(options: &Options, bytes_per_tile: u64) -> Vec<u64> {
    let asked = options.limits.mem_per_tile.as_ref();
    asked.map_or_else(|| vec![bytes_per_tile], |MemPerTile(all)| all.clone())
}

/// Returns the limit of a stage on each tile in bytes: one number, or one for each IPU.
pub(super) fn limits(options: &Options, bytes_per_tile: u64) -> Result<Vec<u64>> {
    let limit = |memory: u64| {
        let reserve = options.limits.reserve.of(memory);
        let limit = memory.checked_sub(reserve).filter(|&limit| limit > 0);
        limit.ok_or_else(|| {
            usage(format!(
                "--reserve: {reserve} bytes leave nothing of {memory}; keep fewer free"
            ))
        })
    };
    let memories = memories(options, bytes_per_tile).into_iter();
    memories.map(limit).collect()
}

/// Returns the number of IPUs, which must equal the number of limits if there are several. Without
/// an option it is the smallest that is enough, the IPUs of a given split, or the original tool's
/// number.
fn ipus(options: &Options, limits: usize, given: Option<usize>) -> Result<IpuCount> {
    let several = (limits > 1).then_some(limits);
    let of_original = of_original(options).map(|_| ORIGINAL_IPUS);
    match (options.limits.num_ipus, several) {
        (Some(NumIpus::Exactly(ipus)), Some(limits)) if ipus != limits => Err(usage(format!(
            "--mem-per-tile has {limits} amounts, but --num-ipus is {ipus}; give one amount, or \
             one for each IPU"
        ))),
        (Some(NumIpus::Exactly(ipus)), _) => Ok(IpuCount::Exactly(ipus)),
        (Some(NumIpus::Auto), limits) => Ok(IpuCount::UpTo(limits.unwrap_or(MAX_AUTO))),
        (None, limits) => {
            let exactly = limits.or(given).or(of_original);
            Ok(exactly.map_or(IpuCount::UpTo(MAX_AUTO), IpuCount::Exactly))
        }
    }
}

/// Refuses options that the greedy search ignores: it has one limit and no constraints.
fn refuse_greedy(options: &Options, ipus: IpuCount, limits: usize) -> Result<()> {
    let is_auto = matches!(ipus, IpuCount::UpTo(_));
    let asked = first(&[
        (
            options.search.has_constraints(),
            "constraints (--pin, --together, --cut-after, --no-cut-after)",
        ),
        (
            options
                .search
                .objective
                .is_some_and(|goal| goal != Goal::Peak),
            "--objective",
        ),
        (options.results.is_given(), "a split to compare with"),
        (options.results.sweep, "--sweep"),
        (options.results.plan, "--plan"),
        (options.time.at_micro_batch.is_some(), "--at-micro-batch"),
        (is_auto, "--num-ipus auto"),
        (limits > 1, "several amounts of --mem-per-tile"),
    ]);
    asked.map_or(Ok(()), |what| {
        Err(usage(format!(
            "--solver greedy, the search of the original tool, does not support {what}; leave it \
             out"
        )))
    })
}

fn constraints(options: &Options, positions: &Positions) -> Result<Vec<Constraint>> {
    let mut constraints = Vec::new();
    let mut add = |rule, source: String| constraints.push(Constraint::option(rule, source));
    for pin in &options.search.pin {
        let source = format!("--pin {pin}");
        let position = position(positions, &pin.layer, &source)?;
        let ipu = pin.ipu;
        add(Rule::Pin { position, ipu }, source);
    }
    for pair in &options.search.together {
        let source = format!("--together {pair}");
        let first = position(positions, &pair.0, &source)?;
        let last = position(positions, &pair.1, &source)?;
        add(Rule::Together { first, last }, source);
    }
    for layer in &options.search.cut_after {
        let source = format!("--cut-after {layer}");
        let position = position(positions, layer, &source)?;
        add(Rule::CutAfter { position }, source);
    }
    for layer in &options.search.no_cut_after {
        let source = format!("--no-cut-after {layer}");
        let position = position(positions, layer, &source)?;
        add(Rule::NoCutAfter { position }, source);
    }
    Ok(constraints)
}
