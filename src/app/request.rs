//! From the options to the question of a search.

use super::cli::{MemPerTile, NumIpus};
use super::given::{given, position};
use super::{Options, layers, refused, usage};
use crate::analysis::Layers;
use crate::memory::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::{Model, NoClock, NoCycles, Positions, Rules};
use crate::search::{IpuCount, SearchRequest, Solver};
use crate::solve::{Constraint, Goal, Rule};
use anyhow::Result;

/// How many IPUs `--num-ipus auto` goes up to.
const MAX_AUTO: usize = 64;
/// How many IPUs the original tool took when no option said so.
const ORIGINAL_IPUS: usize = 16;

/// The search that the options ask for; `None` when they ask for none.
///
/// # Errors
/// Options that do not go with each other, with the layers or with what the
/// profile has.
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

/// The pipeline that stages are part of; none where no search is requested,
/// and for what the original tool did.
///
/// # Errors
/// When a pipeline is requested of a search or of rules that know none.
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
    // A plan has as many replicas as there are IPUs for.
    let chosen = match options.results.plan && chosen.state.is_sharded() {
        true => chosen.with_state(StatePlace::OnChip, 1),
        false => chosen,
    };
    refuse_impossible(chosen)?;
    Ok(chosen)
}

/// Refuses what no framework can do.
fn refuse_impossible(pipeline: Pipeline) -> Result<()> {
    let state = pipeline.state;
    if state.is_sharded() && pipeline.replicas < 2 {
        return Err(usage(format!(
            "--optimizer-state {state}: one replica has all of the state; give --replicas with 2 or \
             more, or take off-chip"
        )));
    }
    Ok(())
}

/// The option by which the original tool's ways are requested, which know no
/// pipeline.
fn of_original(options: &Options) -> Option<&'static str> {
    let is_classic = options.limits.memory_model == Rules::Classic;
    first(&[
        (options.search.solver == Solver::Greedy, "--solver greedy"),
        (is_classic, "--memory-model classic"),
    ])
}

/// The first of these that is so.
fn first(all: &[(bool, &'static str)]) -> Option<&'static str> {
    let found = all.iter().find(|(is_so, _)| *is_so);
    found.map(|&(_, what)| what)
}

fn no_pipeline(option: &str, original: &str) -> anyhow::Error {
    usage(format!(
        "{option}: {original}, as the original tool has it, knows no pipeline; leave one of both out"
    ))
}

/// The memory of a tile, by option or else of the target: one number, or one for each
/// IPU.
pub(super) fn memories(options: &Options, bytes_per_tile: u64) -> Vec<u64> {
    let asked = options.limits.mem_per_tile.as_ref();
    asked.map_or_else(|| vec![bytes_per_tile], |MemPerTile(all)| all.clone())
}

/// The limit of a stage on each tile: one number, or one for each IPU.
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

/// How many IPUs there are, with as many limits: without an option the fewest that are
/// enough, those of a split that is given, or as many as the original tool took.
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

/// The greedy search knows one limit and nothing else.
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
            "--solver greedy, the search of the original tool, does not know {what}; leave it out"
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
