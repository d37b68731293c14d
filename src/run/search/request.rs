//! From the options to the solver's question.

use super::given::position;
use crate::cli::{MemPerTile, NumIpus, Options, Solver};
use crate::memory::RangeCosts;
use crate::model::{Model, NoCycles, Placement, Positions};
use crate::run::{ties, usage};
use crate::solve::{Constraint, Goal, Limits, Problem, Rule};
use anyhow::Result;

/// How many IPUs `--num-ipus auto` goes up to.
const MAX_AUTO: usize = 64;
/// How many IPUs there are when nobody says so.
const DEFAULT_IPUS: usize = 16;

/// What the options ask of the solver.
#[derive(Debug)]
pub(in crate::run) struct SearchRequest {
    /// How many IPUs there are; with `--num-ipus auto`, how many to try.
    pub(super) ipus: usize,
    /// Are the fewest IPUs asked for?
    pub(super) is_auto: bool,
    /// Bytes that a stage may take: one for all IPUs, or one for each.
    limits: Vec<u64>,
    /// Orders, and weights that several positions use.
    pub(super) constraints: Vec<Constraint>,
    pub(super) goal: Goal,
    /// By position, when the profile has them.
    cycles: Option<Vec<u64>>,
}

impl SearchRequest {
    /// # Errors
    /// Options that do not go with each other, with the layers or with what
    /// the profile has.
    pub(super) fn new(options: &Options, model: &Model, placement: &Placement) -> Result<Self> {
        let limits = limits(options, model)?;
        let (ipus, is_auto) = ipus(options, limits.len())?;
        let goal = options.objective;
        if options.solver == Solver::Greedy {
            refuse_greedy(options, is_auto, limits.len())?;
        }
        let mut constraints = orders(options, &placement.positions)?;
        if options.solver != Solver::Greedy {
            constraints.extend(ties::constraints(placement));
        }
        let cycles = model.layer_cycles(placement);
        if goal == Goal::Cycles && cycles.is_none() {
            return Err(usage(format!("--objective cycles: {NoCycles}")));
        }
        Ok(Self {
            ipus,
            is_auto,
            limits,
            constraints,
            goal,
            cycles: cycles.map(|cycles| cycles.by_layer),
        })
    }

    /// The question for so many IPUs.
    pub(super) fn problem<'a>(
        &'a self,
        costs: &'a RangeCosts,
        cut_bytes: &'a [u64],
        ipus: usize,
    ) -> Problem<'a> {
        Problem {
            costs,
            cut_bytes,
            cycles: self.cycles.as_deref(),
            ipus,
            limits: self.limits().first(ipus),
            constraints: &self.constraints,
            goal: self.goal,
        }
    }

    /// What a stage may take of each tile.
    pub(in crate::run) fn limits(&self) -> Limits<'_> {
        Limits::new(&self.limits)
    }
}

/// What a stage may take of each tile: one number, or one for each IPU.
pub(in crate::run) fn limits(options: &Options, model: &Model) -> Result<Vec<u64>> {
    let target = MemPerTile(vec![model.target.bytes_per_tile]);
    let memories = options.mem_per_tile.as_ref().unwrap_or(&target);
    let limit = |&memory: &u64| {
        let reserve = options.reserve.of(memory);
        let limit = memory.checked_sub(reserve).filter(|&limit| limit > 0);
        limit.ok_or_else(|| {
            usage(format!(
                "--reserve: {reserve} bytes leave nothing of {memory}"
            ))
        })
    };
    memories.0.iter().map(limit).collect()
}

/// How many IPUs there are, and whether fewer are looked for.
fn ipus(options: &Options, limits: usize) -> Result<(usize, bool)> {
    let several = (limits > 1).then_some(limits);
    match (options.num_ipus, several) {
        (Some(NumIpus::Exactly(ipus)), Some(limits)) if ipus != limits => Err(usage(format!(
            "--mem-per-tile has {limits} amounts, but --num-ipus is {ipus}: give one amount, or \
             one for each IPU"
        ))),
        (Some(NumIpus::Exactly(ipus)), _) => Ok((ipus, false)),
        (Some(NumIpus::Auto), limits) => Ok((limits.unwrap_or(MAX_AUTO), true)),
        (None, limits) => Ok((limits.unwrap_or(DEFAULT_IPUS), false)),
    }
}

/// The greedy search knows one limit and nothing else.
fn refuse_greedy(options: &Options, is_auto: bool, limits: usize) -> Result<()> {
    let asked = [
        (
            options.has_orders(),
            "orders (--pin, --together, --cut-after, --no-cut-after)",
        ),
        (options.objective != Goal::Peak, "--objective"),
        (options.is_given(), "a split to judge"),
        (options.sweep, "--sweep"),
        (options.export_lp.is_some(), "--export-lp"),
        (is_auto, "--num-ipus auto"),
        (limits > 1, "several amounts of --mem-per-tile"),
    ];
    match asked.into_iter().find(|&(is_asked, _)| is_asked) {
        Some((_, what)) => Err(usage(format!(
            "--solver greedy, the search of the original tool, does not know {what}: leave it out"
        ))),
        None => Ok(()),
    }
}

fn orders(options: &Options, positions: &Positions) -> Result<Vec<Constraint>> {
    let mut orders = Vec::new();
    let mut add = |rule, source: String| orders.push(Constraint::order(rule, source));
    for pin in &options.pin {
        let source = format!("--pin {pin}");
        let position = position(positions, &pin.layer, &source)?;
        add(
            Rule::Pin {
                position,
                ipu: pin.ipu,
            },
            source,
        );
    }
    for pair in &options.together {
        let source = format!("--together {pair}");
        let first = position(positions, &pair.0, &source)?;
        let last = position(positions, &pair.1, &source)?;
        add(Rule::Together { first, last }, source);
    }
    for layer in &options.cut_after {
        let source = format!("--cut-after {layer}");
        add(Rule::CutAfter(position(positions, layer, &source)?), source);
    }
    for layer in &options.no_cut_after {
        let source = format!("--no-cut-after {layer}");
        add(
            Rule::NoCutAfter(position(positions, layer, &source)?),
            source,
        );
    }
    Ok(orders)
}
