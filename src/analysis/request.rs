//! The request of a run, independent of a model, and its translation into a search in one model.
//!
//! The command makes a [`Request`] from its options before it reads the model. Everything that
//! depends on the model is resolved here: limits, the number of IPUs, the positions of named
//! layers, the objective, and the pipeline. The result is the
//! [`SearchRequest`] of the solver.

use super::judged::JudgedSplit;
use super::named_layers::LayerConstraint;
use crate::memory::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::message::{refused, usage};
use crate::model::{
    CyclesByLayer, LayerOptions, Model, NoCycles, Placement, PlacementOptions, Rules,
};
use crate::report::Detail;
use crate::search::{IpuCount, SearchOptions, SearchRequest, Solver};
use crate::solve::Goal;
use anyhow::Result;

/// Everything that the user requests about one model: how layers are found, the limits of a stage,
/// the pipeline, the constraints, and the results to report. The default asks for the best split of
/// the layers that describe the model best, on the fewest IPUs.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The options of the search, and which results are requested.
    /// [`Layers::split`](super::Layers::split) finds a split whatever `options.split` says.
    pub options: SearchOptions,
    /// The memory model: which memory counts, and by which rules operations belong to layers.
    pub rules: Rules,
    /// How layers are found in the names of operations: by a regex, by modules, or by the better of
    /// both.
    pub layers: LayerOptions,
    /// Whether the layers of the default regex stay even if one of them, as a stage of its own, is
    /// over the limit. If false, modules replace all layers in that case, if they are finer.
    pub keeps_layers: bool,
    /// On which IPU Out (the operations after the last layer) runs, and which shared weights may be
    /// copied, so that the layers that share them may be in different stages.
    pub placement: PlacementOptions,
    /// Memory of each tile in bytes: one amount for all IPUs, or one for each IPU. If empty, all
    /// IPUs have the memory that the profile gives for a tile.
    pub memory_per_tile: Vec<u64>,
    /// Number of IPUs. If `None`, it is the number of amounts in `memory_per_tile` if there are
    /// several, else the number of IPUs of `judged`, else the fewest on which the model fits.
    pub ipus: Option<IpuCount>,
    /// The objective by which splits are compared first. If `None`, it is the time of a step, or
    /// the number of IPUs if the profile has no cycles.
    pub goal: Option<Goal>,
    /// Constraints that a split obeys besides the memory limits.
    pub constraints: Vec<LayerConstraint>,
    /// A split of the user to evaluate beside the best one.
    pub judged: Option<JudgedSplit>,
    /// How much the report contains beside the split.
    pub detail: Detail,
    /// The arguments of the command, which the report repeats.
    pub arguments: Vec<String>,
}

/// The number of IPUs that the original tool assumed if no option gave it.
const ORIGINAL_IPUS: usize = 16;

impl Request {
    /// Returns the memory of a tile in bytes: one amount for all IPUs, or one for each IPU. Without
    /// amounts in the request it is `bytes_per_tile`, the memory of a tile of the target.
    pub(crate) fn memories(&self, bytes_per_tile: u64) -> Vec<u64> {
        match self.memory_per_tile.as_slice() {
            [] => vec![bytes_per_tile],
            memories => memories.to_vec(),
        }
    }

    /// Returns the bytes that a stage may take on each tile, which is the memory of a tile less the
    /// reserve: one limit for all IPUs, or one for each IPU. `bytes_per_tile` is the memory of a
    /// tile of the target.
    ///
    /// # Errors
    /// If the reserve is the whole memory of a tile or more.
    pub(crate) fn limits(&self, bytes_per_tile: u64) -> Result<Vec<u64>> {
        let limit = |memory: u64| {
            let reserve = self.options.reserve.of(memory);
            let limit = memory.checked_sub(reserve).filter(|&limit| limit > 0);
            limit.ok_or_else(|| {
                usage(format!(
                    "--reserve: {reserve} bytes leave nothing of {memory}; keep fewer free"
                ))
            })
        };
        self.memories(bytes_per_tile)
            .into_iter()
            .map(limit)
            .collect()
    }

    /// Returns the names of all layers in the split to evaluate and in constraints, in this order.
    pub(crate) fn named_layers(&self) -> Vec<&str> {
        let judged = self.judged.iter().flat_map(JudgedSplit::layers);
        let constraints = self.constraints.iter().flat_map(LayerConstraint::layers);
        judged.chain(constraints).collect()
    }

    /// Is a split or the best split for each number of IPUs requested, so that memory of ranges of
    /// layers must be computed?
    pub(crate) fn has_search(&self) -> bool {
        self.options.split || self.options.sweep
    }

    /// Translates the request into a search in `model`, whose layers have the positions of
    /// `placement`. Returns `None` if no search is requested.
    ///
    /// # Errors
    /// If options contradict each other, name layers that the model does not have, or need cycles
    /// that the profile does not have.
    pub(super) fn search(
        &self,
        model: &Model,
        placement: &Placement,
    ) -> Result<Option<SearchRequest>> {
        if !self.has_search() {
            return Ok(None);
        }
        let positions = &placement.positions;
        let limits = self.limits(model.target.bytes_per_tile)?;
        let ipus_and_amounts = (self.ipus, self.memory_per_tile.len());
        let judged = self.judged.as_ref();
        let judged = judged.map(|judged| judged.plan(positions, ipus_and_amounts));
        let judged = judged.transpose()?;
        let ipus = self.ipus(limits.len(), judged.as_ref().map(|judged| judged.ipus))?;
        if self.options.solver == Solver::Greedy {
            self.refuse_greedy(ipus, limits.len())?;
        }
        let constraints = self.constraints.iter();
        let constraints = constraints
            .map(|own| own.at(positions))
            .collect::<Result<_>>()?;
        let cycles = model.layer_cycles(placement);
        Ok(Some(SearchRequest {
            options: self.options.clone(),
            ipus,
            limits,
            goal: self.goal(cycles.as_ref())?,
            constraints,
            cycles,
            given: judged.map(|judged| judged.plan),
        }))
    }

    /// Returns the number of IPUs: that of the request, else the number of limits if there are
    /// several, else that of the split to evaluate (`judged`), else the number that the original
    /// tool assumed, if its solver or rules are selected, else the smallest on which the model
    /// fits. An error if `--num-ipus` differs from the number of several limits.
    fn ipus(&self, limits: usize, judged: Option<usize>) -> Result<IpuCount> {
        let several = (limits > 1).then_some(limits);
        let of_original = self.of_original().map(|_| ORIGINAL_IPUS);
        match (self.ipus, several) {
            (Some(IpuCount::Exactly(ipus)), Some(limits)) if ipus != limits => Err(usage(format!(
                "--mem-per-tile has {limits} amounts, but --num-ipus is {ipus}; give one \
                     amount, or one for each IPU"
            ))),
            (Some(IpuCount::UpTo(_)), Some(limits)) => Ok(IpuCount::UpTo(limits)),
            (Some(ipus), _) => Ok(ipus),
            (None, limits) => {
                let exactly = limits.or(judged).or(of_original);
                Ok(exactly.map_or(IpuCount::AUTO, IpuCount::Exactly))
            }
        }
    }

    /// Returns the requested objective, or the default one if the request has none.
    ///
    /// # Errors
    /// If an option needs cycles, and the profile has none.
    fn goal(&self, cycles: Option<&CyclesByLayer>) -> Result<Goal> {
        if let Some(option) = self.needing_cycles().filter(|_| cycles.is_none()) {
            return Err(refused(&NoCycles).context(option));
        }
        let usual = match self.of_original() {
            Some(_) => Goal::Peak,
            None => Goal::usual(cycles.is_some()),
        };
        Ok(self.goal.unwrap_or(usual))
    }

    /// Returns the first requested option that needs cycles of layers; `None` if there is no such
    /// option.
    fn needing_cycles(&self) -> Option<String> {
        let goal = self.goal.filter(|goal| goal.needs_cycles());
        let goal = goal.map(|goal| format!("--objective {}", goal.key()));
        let step = &self.options.step;
        let option = first_true(&[
            (step.micro_batches.is_some(), "--micro-batches"),
            (step.micro_batch.is_some(), "--micro-batch"),
            (step.streaming_bandwidth.is_some(), "--streaming-bandwidth"),
        ]);
        goal.or(option.map(str::to_owned))
    }

    /// Returns the pipeline whose stages are computed. It is the empty default pipeline if no
    /// search is requested, or with the solver or the rules of the original tool.
    ///
    /// # Errors
    /// If a pipeline is requested together with the solver or the rules of the original tool, or if
    /// optimizer state is to be shared by replicas and there is only one.
    pub(super) fn pipeline(&self, model: &Model) -> Result<Pipeline> {
        let asked = &self.options.pipeline;
        if let Some(original) = self.of_original() {
            let has_schedule = asked.schedule.is_some_and(|own| own != Schedule::None);
            let recomputes = asked.recompute.is_some_and(|own| own != Recompute::None);
            let has_state = asked.state.is_some() || asked.tries_states;
            let has_accumulator = asked.accumulator != Accumulator::default();
            let option = first_true(&[
                (has_schedule, "--schedule"),
                (recomputes, "--recompute"),
                (has_accumulator, "--accumulator"),
                (has_state, "--optimizer-state"),
            ]);
            let refusal = option.map(|option| no_pipeline(option, original));
            return refusal.map_or(Ok(Pipeline::default()), Err);
        }
        if !self.has_search() {
            return Ok(Pipeline::default());
        }
        let pipeline = asked.choose(model);
        let state = pipeline.state;
        // `--plan` tries several numbers of replicas, so the pipeline starts with one.
        if self.options.plan && state.is_sharded() {
            return Ok(pipeline.with_state(StatePlace::OnChip, 1));
        }
        if state.is_sharded() && pipeline.replicas < 2 {
            return Err(usage(format!(
                "--optimizer-state {state}: state can only be shared by several replicas; give \
                 --replicas with 2 or more, or use off-chip"
            )));
        }
        Ok(pipeline)
    }

    /// Returns the option that selects the solver or the rules of the original tool, neither of
    /// which has pipelines; `None` if neither is selected.
    fn of_original(&self) -> Option<&'static str> {
        first_true(&[
            (self.options.solver == Solver::Greedy, "--solver greedy"),
            (self.rules == Rules::Classic, "--memory-model classic"),
        ])
    }

    /// Returns an error for the first option that the greedy search would ignore, since it has one
    /// limit, a fixed number of IPUs and no constraints.
    fn refuse_greedy(&self, ipus: IpuCount, limits: usize) -> Result<()> {
        let ignored = first_true(&[
            (
                !self.constraints.is_empty(),
                "constraints (--pin, --together, --cut-before)",
            ),
            (
                self.goal.is_some_and(|goal| goal != Goal::Peak),
                "--objective",
            ),
            (self.judged.is_some(), "a split to compare with"),
            (self.options.sweep, "--sweep"),
            (self.options.plan, "--plan"),
            (matches!(ipus, IpuCount::UpTo(_)), "--num-ipus auto"),
            (limits > 1, "several amounts of --mem-per-tile"),
        ]);
        ignored.map_or(Ok(()), |what| {
            Err(usage(format!(
                "--solver greedy, the search of the original tool, does not support {what}; leave \
                 it out"
            )))
        })
    }
}

/// Returns the name beside the first condition that is true.
fn first_true(conditions: &[(bool, &'static str)]) -> Option<&'static str> {
    let found = conditions.iter().find(|(is_true, _)| *is_true);
    found.map(|&(_, name)| name)
}

fn no_pipeline(option: &str, original: &str) -> anyhow::Error {
    usage(format!(
        "{option}: {original}, as in the original tool, has no pipeline; leave one of the two out"
    ))
}
