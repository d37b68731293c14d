//! Defines the user's request, which the command makes from its options before it reads a model,
//! and translates the request into a search in one model. The translation (a [`Question`]) has the
//! memory limits, the number of IPUs, the positions of named layers, the objective and the
//! pipeline.

use super::{Analysis, answer::Level, judged::JudgedSplit, named_layers::LayerConstraint};
use crate::{
    memory::{Accumulator, Pipeline, Recompute, Schedule},
    message::{refused, usage},
    model::{LayerOptions, NoCycles, PlacementOptions, Rules},
    report::Detail,
    search::{IpuCount, Question, SearchOptions, SearchRequest, Solver},
    solve::Goal,
    wording::option_name,
};
use anyhow::Result;
use std::sync::Arc;

/// Everything that the user requests about one model: how to find layers, the limits of a stage,
/// the pipeline, the constraints, and the results to report. The default request asks for the best
/// split on the fewest IPUs, with layers found in the way that describes the model best.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Options of the search, and the results that the user requests.
    /// [`Analysis::split`](super::Analysis::split) finds a split even if `options.split` is false.
    pub options: SearchOptions,
    /// The memory model: which bytes are included, and the rules that attribute operations to
    /// layers.
    pub rules: Rules,
    /// How layers are found in the names of operations: by a regex, by modules, or by the better of
    /// both.
    pub layers: LayerOptions,
    /// On which IPU Out (the operations after the last layer) runs, and which shared weights may be
    /// copied so that the layers that share them may be in different stages.
    pub placement: PlacementOptions,
    /// Memory of each tile in bytes: one amount for all IPUs, or one for each IPU of a replica. If
    /// empty, all IPUs have the tile memory that the profile records.
    pub memory_per_tile: Vec<u64>,
    /// Number of IPUs over all replicas. `None` stands for the first of these that applies:
    ///
    /// - one IPU of each replica per amount in `memory_per_tile`, if this has several amounts
    /// - the number of IPUs in the user's split, `judged`
    /// - 16 with the greedy solver or the classic memory model
    /// - the lowest number of IPUs on which the model fits
    pub ipus: Option<IpuCount>,
    /// The objective by which splits are compared first. If `None`, the objective is the time of a
    /// step or, if the profile has no cycle counts, the number of IPUs. With the greedy solver or
    /// the classic memory model, it is then the peak memory.
    pub goal: Option<Goal>,
    /// Constraints that a split must obey besides the memory limits, such as a layer pinned to an
    /// IPU.
    pub constraints: Vec<LayerConstraint>,
    /// The user's own split, which is evaluated and compared with the best split.
    pub judged: Option<JudgedSplit>,
    /// How much the report contains: only the results about the split, everything except the data
    /// for an HTML page, or everything.
    pub detail: Detail,
    /// The arguments of the command line, which the report repeats.
    pub arguments: Vec<String>,
}

/// Number of IPUs that the Python program that PopLiner replaces assumes if the user gives no
/// number. It is used with the solver or the memory model of that program, to reproduce its
/// results.
const ORIGINAL_IPUS: usize = 16;

impl Request {
    /// Returns the memory of a tile in bytes: one amount for all IPUs, or one for each IPU. If the
    /// user gave no amount, returns `bytes_per_tile`, the tile memory that the profile records.
    pub(crate) fn memories(&self, bytes_per_tile: u64) -> Vec<u64> {
        match self.memory_per_tile.as_slice() {
            [] => vec![bytes_per_tile],
            memories => memories.to_vec(),
        }
    }

    /// Returns the bytes that a stage may take on each tile, that is, the memory of a tile minus
    /// the reserve: one limit for all IPUs, or one for each IPU. An error if the reserve leaves no
    /// memory. `bytes_per_tile` is the tile memory that the profile records.
    pub(crate) fn limits(&self, bytes_per_tile: u64) -> Result<Vec<u64>> {
        self.memories(bytes_per_tile)
            .into_iter()
            .map(|memory| {
                let reserve = self.options.reserve.of(memory);
                let limit = memory.checked_sub(reserve).filter(|&limit| limit > 0);
                limit.ok_or_else(|| {
                    usage(format!(
                        "--reserve: {reserve} bytes leave nothing of {memory}; keep fewer free"
                    ))
                })
            })
            .collect()
    }

    /// Resolves ambiguous forms of the user's split. If `--layers-per-ipu` has the IPU index of
    /// each layer, these become the number of layers on each IPU. If `--splits` has one text of
    /// several words that is not the name of a layer, each word becomes a name. Returns true if a
    /// list of `--layers-per-ipu` could mean either IPU indices or numbers of layers; such a list
    /// stays as it is.
    pub(crate) fn settle(&mut self, analysis: &Analysis) -> Result<bool> {
        if let Some(JudgedSplit::FirstLayers(names)) = &self.judged
            && let [text] = &names[..]
            && text.split_whitespace().nth(1).is_some()
            && analysis.layers(self)?.position(text).is_none()
        {
            let words = text.split_whitespace().map(str::to_owned).collect();
            self.judged = Some(JudgedSplit::FirstLayers(words));
        }
        let Some(ipus) = self.judged.as_ref().and_then(JudgedSplit::ipus_of_layers) else {
            return Ok(false);
        };
        let layers = analysis.layers(self)?;
        let (counts, is_both) = JudgedSplit::counted(&ipus, &layers.placement.positions);
        self.judged = counts.or(self.judged.take());
        Ok(is_both)
    }

    pub(crate) fn named_layers(&self) -> Vec<String> {
        self.judged
            .iter()
            .flat_map(JudgedSplit::layers)
            .chain(self.constraints.iter().flat_map(LayerConstraint::layers))
            .cloned()
            .collect()
    }

    /// Returns the number of IPUs over all replicas, from the first of these sources that applies:
    ///
    /// - `--num-ipus`
    /// - `--mem-per-tile`, if it has several amounts: one IPU of each replica per amount
    /// - the number of IPUs in the user's split
    /// - 16 with `--solver greedy` or `--memory-model classic`
    /// - the lowest number of IPUs on which the model fits
    ///
    /// # Errors
    /// If `--num-ipus` contradicts several amounts of `--mem-per-tile`, or is lower than the number
    /// of replicas.
    pub(crate) fn all_ipus(&self) -> Result<IpuCount> {
        let replicas = usize::try_from(self.options.replicas()).unwrap_or(usize::MAX);
        let of_all = |ipus: usize| ipus.saturating_mul(replicas);
        let amounts = self.memory_per_tile.len();
        let several = (amounts > 1).then_some(of_all(amounts));
        match (self.ipus, several) {
            (Some(IpuCount::Exactly(ipus)), _) if ipus < replicas => Err(usage(format!(
                "--replicas {replicas} takes at least {replicas} IPUs, but --num-ipus is {ipus}, \
                 the number of all IPUs; give more IPUs, or fewer replicas"
            ))),
            (Some(IpuCount::Exactly(ipus)), Some(several)) if ipus != several => {
                Err(usage(format!(
                    "--mem-per-tile has {amounts} amounts, but --num-ipus is {ipus}; give one \
                     amount, or one for each IPU of a replica"
                )))
            }
            (Some(IpuCount::UpTo(_)), Some(several)) => Ok(IpuCount::UpTo(several)),
            (Some(ipus), _) => Ok(ipus),
            (None, several) => Ok(several
                .or(self.judged.as_ref().map(|judged| of_all(judged.ipus())))
                .or(self.of_original().map(|_| ORIGINAL_IPUS))
                .map_or(IpuCount::AUTO, IpuCount::Exactly)),
        }
    }

    /// Returns the objective of the request. The default is the time of a step or, without cycle
    /// counts, the number of IPUs; for the greedy solver and the classic memory model, it is the
    /// peak memory. An error if an option needs cycle counts and the profile has none.
    fn goal(&self, has_cycles: bool) -> Result<Goal> {
        let goal = self
            .goal
            .filter(|goal| goal.needs_cycles())
            .map(|goal| format!("--objective {}", option_name(&goal)));
        let step = &self.options.step;
        let option = first_true(&[
            (step.micro_batches.is_some(), "--micro-batches"),
            (step.micro_batch.is_some(), "--micro-batch"),
            (step.streaming_bandwidth.is_some(), "--streaming-bandwidth"),
        ]);
        if let Some(option) = goal.or(option.map(str::to_owned))
            && !has_cycles
        {
            return Err(refused(&NoCycles).context(option));
        }
        Ok(self.goal.unwrap_or(match self.of_original() {
            Some(_) => Goal::Peak,
            None if has_cycles => Goal::Time,
            None => Goal::Fewest,
        }))
    }

    /// Returns the numbers of replicas that the search tries for optimizer state that is sharded
    /// over replicas: the number that `--replicas` gives or, without it, 2 and 4 if there are
    /// enough IPUs. Without `--replicas`, returns none if the user gives a split or one amount of
    /// memory for each IPU.
    fn sharing_replicas(&self) -> Result<Vec<u64>> {
        let replicas = self.options.replicas();
        if replicas > 1 {
            return Ok(vec![replicas]);
        }
        if self.memory_per_tile.len() > 1 || self.judged.is_some() {
            return Ok(Vec::new());
        }
        let most = self.all_ipus()?.highest() as u64;
        Ok([2, 4].into_iter().filter(|&count| count <= most).collect())
    }

    /// Returns `--solver greedy` or `--memory-model classic` if the user gives one of them; `None`
    /// if neither. They repeat the results of an older tool, which has no pipelines.
    pub(crate) fn of_original(&self) -> Option<&'static str> {
        first_true(&[
            (self.options.solver == Solver::Greedy, "--solver greedy"),
            (self.rules == Rules::Classic, "--memory-model classic"),
        ])
    }

    /// Returns an error if the request has an option that `--solver greedy` would ignore, since the
    /// result would mislead. The error names the first such option.
    fn refuse_greedy(&self, ipus: IpuCount) -> Result<()> {
        first_true(&[
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
            (
                self.memory_per_tile.len() > 1,
                "several amounts of --mem-per-tile",
            ),
        ])
        .map_or(Ok(()), |what| {
            Err(usage(format!(
                "--solver greedy, the search of the original tool, does not support {what}; leave \
                 it out"
            )))
        })
    }
}

impl Level<'_> {
    /// Translates `request` into a search in this layering, with positions (In, layers, Out) in
    /// place of layer names. An error if options contradict each other, name layers that the model
    /// does not have, or need cycle counts that the profile does not have.
    pub fn question(&self, request: &Request) -> Result<Arc<Question>> {
        let placement = &self.layers.placement;
        let positions = &placement.positions;
        let limits = request.limits(self.layers.model().target.bytes_per_tile)?;
        let ipus = request.all_ipus()?;
        if request.options.solver == Solver::Greedy {
            request.refuse_greedy(ipus)?;
        }
        let mut search = SearchRequest {
            options: request.options.clone(),
            ipus,
            limits,
            goal: request.goal(self.space.has_cycles())?,
            constraints: request
                .constraints
                .iter()
                .map(|own| own.at(positions))
                .collect::<Result<_>>()?,
            given: request
                .judged
                .as_ref()
                .map(|judged| judged.plan(positions, request))
                .transpose()?,
        };
        search.options.step = self.step;
        Ok(Question::new(search, placement))
    }

    /// Returns the pipelines that `request` allows, in groups that the search tries in order until
    /// a split fits. Each group is for one place of optimizer state (such as on the chip), or for
    /// several places from which the search takes the fastest. If a micro-batch runs through layers
    /// several times, a second group for the same places may follow, whose pipelines run their
    /// stages one after the other.
    ///
    /// The greedy solver and the classic memory model support no pipeline. Returns an error if
    /// `request` combines one of them with options of a pipeline.
    pub fn pipelines(&self, request: &Request) -> Result<Vec<Vec<Pipeline>>> {
        let (asked, model) = (request.options.pipeline, self.layers.model());
        if let Some(original) = request.of_original() {
            let option = first_true(&[
                (
                    asked.schedule.is_some_and(|own| own != Schedule::None),
                    "--schedule",
                ),
                (
                    asked.recompute.is_some_and(|own| own != Recompute::None),
                    "--recompute",
                ),
                (asked.accumulator != Accumulator::default(), "--accumulator"),
                (asked.state.is_some(), "--optimizer-state"),
            ]);
            return match option {
                Some(option) => Err(usage(format!(
                    "{option}: {original}, as in the original tool, has no pipeline; leave one of \
                     the two out"
                ))),
                None => Ok(vec![vec![Pipeline::default()]]),
            };
        }
        let usual = asked.choose(model);
        let is_training = model.backward_start.is_some();
        let open = usual.open(asked, is_training);
        let in_turns = usual.taking_turns(asked).filter(|own| {
            !self.layers.placement.repeats.is_empty()
                && !open.contains(own)
                && !usual.takes_turns(is_training)
        });
        let mut states = asked.states(request.options.step.streaming_bandwidth.is_some());
        if !self.space.has_state() || !usual.is_on() {
            states.truncate(1);
            states[0].truncate(1);
        }
        let (own, sharing) = ([request.options.replicas()], request.sharing_replicas()?);
        let mut groups = Vec::new();
        for states in states {
            for open in [&*open, in_turns.as_slice()] {
                let mut group = Vec::new();
                for &state in &states {
                    for &replicas in if state.is_sharded() { &*sharing } else { &own } {
                        group.extend(open.iter().map(|open| open.with_state(state, replicas)));
                    }
                }
                groups.push(group);
            }
        }
        groups.retain(|group| !group.is_empty());
        match asked.state {
            Some(state) if groups.is_empty() => Err(usage(format!(
                "--optimizer-state {state}: state can only be shared by several replicas; give \
                 --num-ipus with 2 or more, or use off-chip"
            ))),
            _ => Ok(groups),
        }
    }
}

fn first_true(conditions: &[(bool, &'static str)]) -> Option<&'static str> {
    conditions
        .iter()
        .find_map(|&(is_true, name)| is_true.then_some(name))
}
