//! Turns a request into a report: finds the best split, proves that it is the best, computes the
//! memory of its stages, and finds the best splits for changed requests.

use super::{
    Analysis, Layers, Request,
    answer::{Answer, Answers, Level},
    claims::TRIED_IPUS,
    further::check_same,
    layers::no_layers,
};
use crate::{
    memory::{MemoryModel, StageMemory, StatePlace},
    message::Warning,
    model::Model,
    progress::Progress,
    report::{Inputs, Peaks, Provenance, Report},
    search::{
        Candidate, IpuCount, Outcome, PipelineCosts, Reach, SearchResult, ShownSplit, Solver, Word,
    },
    solve,
    wording::option_name,
};
use anyhow::{Context, Result};
use elsa::FrozenVec;

impl<'a> Layers<'a> {
    pub(crate) fn model(&self) -> &'a Model {
        &self.analysis.model
    }

    /// Returns the position of the layer `name`, that is, its index in the order In, layers, Out.
    /// `name` may also be `In` or `Out` (the operations before or after the layers) or, in the
    /// classic memory model, `None`. Returns no position if the model has no such layer.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.placement.positions.find(name).layer()
    }

    /// Returns the memory model, which computes the bytes of layers and stages.
    ///
    /// # Errors
    /// If the distinct sets of layers that share code or variables have more than 2^24 members in
    /// total. No real model comes near this number.
    pub fn memory(&self) -> Result<MemoryModel<'_>> {
        MemoryModel::new(&self.analysis.model, &self.placement).context(self.analysis.displayed())
    }
}

impl Analysis {
    /// Finds the best split for `request` and builds the report about it.
    ///
    /// # Errors
    /// If options of `request` contradict each other or name layers that do not exist, if the
    /// profile cannot be read again for the names of variables, or if data are too uncertain for a
    /// verdict.
    pub fn split(&self, request: &Request) -> Result<Report> {
        let mut request = request.clone();
        request.options.split = true;
        let (layers, progress) = (FrozenVec::new(), Progress::new());
        Answers::new((self, &[]), &layers, &progress)
            .search(&request)?
            .report(&request, &|_| String::new())
    }
}

impl<'s> Answers<'s> {
    /// Finds the best split for `request`, and returns everything that the report contains. An
    /// error if the model has no layers, or for the reasons that [`Analysis::split`] lists.
    pub fn search(&self, request: &Request) -> Result<SearchedLayers<'s>> {
        self.searched(request)
            .map_err(|error| self.explained(error))
    }

    fn searched(&self, request: &Request) -> Result<SearchedLayers<'s>> {
        let whole = self.whole_layers(request)?;
        for own in &self.by_size()[1..] {
            check_same(whole.layers, own.whole_layers(request)?.layers)?;
        }
        if !request.options.split && !request.options.sweep {
            return Ok(SearchedLayers {
                layers: whole.layers,
                memory: whole.space.memory().clone(),
                result: None,
                others: Vec::new(),
            });
        }
        if whole.layers.layering.is_empty() && request.all_ipus()?.highest() > 1 {
            return Err(no_layers(&self.analysis.model, &whole.layers.layering));
        }
        let (level, mut result) = match request.options.solver {
            Solver::Greedy => self.greedy(request)?,
            Solver::Ilp => self.solved(request)?,
        };
        let (costs, shown) = (&result.costs, &result.shown);
        let mut others = Vec::new();
        for profile in costs.profiles().skip(1) {
            let own: Vec<usize> = (0..shown.profiles.len())
                .filter(|&stage| shown.profiles[stage] == profile)
                .collect();
            if own.is_empty() {
                continue;
            }
            let memory = &costs.memory_by_profile[profile];
            let shown = ShownSplit {
                memory: memory.split(&shown.stages),
                ..shown.clone()
            };
            let result = SearchResult::alone(costs.in_profile(profile), Outcome::Given, shown);
            let searched = SearchedLayers {
                layers: level.in_each_profile[profile],
                memory: MemoryModel::clone(memory),
                result: Some(result),
                others: Vec::new(),
            };
            others.push((own, searched));
        }
        if !others.is_empty() {
            result.shown.memory = costs.memory().split(&shown.stages);
        }
        Ok(SearchedLayers {
            layers: level.layers,
            memory: result.costs.memory().clone(),
            result: Some(result),
            others,
        })
    }

    /// Returns the memory of the whole model as a single stage, on one IPU in each replica, to
    /// compare a split with. Returns `None` if the user's constraints prevent a single stage, or if
    /// replicas share optimizer state and `request` does not give their number.
    pub fn on_one_ipu(&self, request: &Request) -> Result<Option<StageMemory>> {
        let ipus = request.options.replicas() as usize;
        let state = request.options.pipeline.state;
        if ipus == 1 && state.is_some_and(StatePlace::is_sharded) {
            return Ok(None);
        }
        let mut one = request.changed().with_ipus(ipus).request;
        one.options.split = true;
        let Some(answer) = self.answer(&one)? else {
            return Ok(None);
        };
        let mut shown = ShownSplit::of(&answer.costs(None)?, &answer.best)?;
        Ok(shown.memory.pop())
    }

    fn greedy(&self, request: &Request) -> Result<(&Level<'s>, SearchResult<'s>)> {
        let (level, costs) = self.all_costs(request)?;
        let asked = costs.request();
        let greedy = solve::greedy(
            &costs.by_profile[0].ranges,
            asked.highest_limit(),
            asked.ipus.highest(),
        );
        let profiles = vec![0; greedy.stages.len()];
        let shown = ShownSplit::new(&costs, greedy.stages.clone(), profiles)?;
        Ok((
            level,
            SearchResult::alone(costs, Outcome::Greedy(greedy), shown),
        ))
    }

    /// Returns the layering into the layers that `request` asks for, not divided into modules, and
    /// the memory and time of all ranges of these layers in the first pipeline that `request`
    /// allows.
    fn all_costs(&self, request: &Request) -> Result<(&Level<'s>, PipelineCosts<'s>)> {
        let level = self.whole_layers(request)?;
        let question = level.question(request)?;
        let reach = Reach {
            bytes: u64::MAX,
            stages: question.request.ipus.highest(),
        };
        let pipeline = self.pipelines(request)?[0][0];
        Ok((
            level,
            level.space.in_pipeline(&question, pipeline, Some(reach))?,
        ))
    }

    fn solved(&self, request: &Request) -> Result<(&Level<'s>, SearchResult<'s>)> {
        let Some(answer) = self.answer(request)? else {
            return self.contradicted(request);
        };
        let numbers = numbers_to_try(request, &answer)?;
        // The report needs the memory and time of all ranges of layers if it shows splits in which
        // one layer is moved to another stage, or splits on other numbers of IPUs. Otherwise, it
        // needs only the ranges that fit in the memory limits.
        let has_others = request.options.moves || !numbers.is_empty();
        let (best, limit) = (&answer.best, answer.question.request.highest_limit());
        let stages = best.ipus.max(best.solution.score.stages);
        let costs = answer.costs(Some(Reach {
            bytes: if has_others { u64::MAX } else { limit },
            stages: numbers.iter().copied().fold(stages, usize::max),
        }))?;
        let shown = {
            let _task = self.progress.begin("computing stages", 0);
            ShownSplit::of(&costs, best)?
        };
        let outcome = match request.judged {
            Some(_) => Outcome::Given,
            None if best.fits => Outcome::Best(Box::new(costs.prove(best)?)),
            None => Outcome::Refused(Box::new(costs.refused(&shown)?)),
        };
        let has_near = request.options.what_if && numbers.is_empty() && !shown.stages.is_empty();
        let result = SearchResult {
            near: if has_near {
                costs.near(&shown.stages, &self.progress)?
            } else {
                Vec::new()
            },
            outcome,
            shown,
            open_pipelines: self.pipelines(request)?.iter().map(Vec::len).sum(),
            by_ipus: self.by_ipus(request, &answer, &numbers)?,
            claims: self.claims(request, &answer)?,
            costs,
        };
        Ok((answer.level, result))
    }

    /// Returns the search result for a `request` whose constraints (such as required cuts) no split
    /// obeys, whatever the memory limits: the result has the reason, and no split. An error if two
    /// of the constraints contradict each other.
    fn contradicted(&self, request: &Request) -> Result<(&Level<'s>, SearchResult<'s>)> {
        let (level, costs) = self.all_costs(request)?;
        solve::unproven(&costs.problem())?;
        let shown = ShownSplit::new(&costs, Vec::new(), Vec::new())?;
        let outcome = Outcome::Refused(Box::new(costs.refused(&shown)?));
        Ok((level, SearchResult::alone(costs, outcome, shown)))
    }

    /// Returns the best split on each number of IPUs in `numbers`, counted in one replica, with the
    /// layers and the pipeline of `answer`, the best split for `request`. If no split fits on a
    /// number of IPUs, returns the split with the lowest peak.
    fn by_ipus(
        &self,
        request: &Request,
        answer: &Answer<'_, 's>,
        numbers: &[usize],
    ) -> Result<Vec<Candidate>> {
        let (level, best) = (answer.level, &answer.best);
        let pipelines = [best.pipeline];
        let mut candidates = Vec::new();
        for ipus in numbers {
            let changed = request.changed().without_given();
            let request = changed.with_ipus(ipus * best.replicas).request;
            let found = match level.best(&request, &pipelines)? {
                None => level.lowest(&request, &pipelines, None)?,
                fitting => fitting,
            };
            candidates.extend(found.map(|answer| answer.best));
        }
        Ok(candidates)
    }
}

/// Returns the numbers of IPUs in a replica for which the report shows the best split. If `now` is
/// the number that `request` fixes or, if it fixes none, the number that `answer` uses, these are:
///
/// - every number up to 16
/// - if `now` is above 16: the powers of 2 below `now`, and also `now - 1` and `now`
///
/// If each IPU has its own amount of memory, numbers above `now` are left out. The result is empty
/// if `request` does not ask for other splits, or if the model has too many layers.
fn numbers_to_try(request: &Request, answer: &Answer<'_, '_>) -> Result<Vec<usize>> {
    if !request.options.what_if
        || answer.level.layers.placement.positions.len() > PipelineCosts::MAX_TRIED_POSITIONS
    {
        return Ok(Vec::new());
    }
    let now = match request.all_ipus()? {
        IpuCount::Exactly(ipus) => ipus / answer.best.replicas,
        IpuCount::UpTo(_) => answer.best.ipus,
    };
    let most = if request.memory_per_tile.len() > 1 {
        now
    } else {
        now.max(TRIED_IPUS)
    };
    Ok((1..=most)
        .filter(|&ipus| ipus <= TRIED_IPUS || ipus.is_power_of_two() || ipus.abs_diff(now) <= 1)
        .collect())
}

#[derive(Debug)]
pub struct SearchedLayers<'s> {
    /// The layers of the model that the split divides into stages.
    pub layers: &'s Layers<'s>,
    /// The memory model for the pipeline of the best split, or for no pipeline if no search was
    /// requested.
    pub memory: MemoryModel<'s>,
    /// The best split for the request, with the search that led to it; `None` if no search was
    /// requested.
    pub result: Option<SearchResult<'s>>,
    /// The further profiles (recorded with another available memory proportion) that some stages of
    /// the split use for their memory and time. Each entry has the indices of these stages, and the
    /// whole split with the layers and the memory of this profile.
    pub others: Vec<(Vec<usize>, SearchedLayers<'s>)>,
}

impl SearchedLayers<'_> {
    /// Returns warnings about data that the profile lacks, so that the stages of the split may need
    /// more memory than predicted: activations, if the profile was recorded with recomputation, and
    /// operations that update weights.
    pub fn warnings(&self) -> Vec<Warning> {
        let Some(result) = &self.result else {
            return Vec::new();
        };
        self.memory
            .recording_warning()
            .into_iter()
            .chain(self.memory.update_warning(&result.shown.stages))
            .collect()
    }

    /// Builds the report on the best split for `request`. `command` returns the command line that
    /// gives the best split for a changed request. An error if the profile, which is read again for
    /// the names of variables, has changed since it was first read.
    pub fn report(
        &self,
        request: &Request,
        command: &(dyn Fn(&[Word]) -> String + Sync),
    ) -> Result<Report> {
        let Self { layers, memory, .. } = self;
        let result = self.result.as_ref();
        let Analysis { model, lookup, .. } = layers.analysis;
        let bytes_per_tile = model.target.bytes_per_tile;
        let inputs = Inputs {
            model,
            layering: &layers.layering,
            placement: &layers.placement,
            memory,
            search: result,
            peaks: Peaks::new(model, memory, result, request.detail),
            limit: request
                .limits(bytes_per_tile)?
                .into_iter()
                .max()
                .unwrap_or(0),
            detail: request.detail,
            provenance: Provenance {
                arguments: request.arguments.clone(),
                layer_name_regex: layers.layering.regex().map(ToString::to_string),
                memory_model: option_name(&request.rules),
                ..layers.analysis.provenance.clone()
            },
            warnings: layers
                .analysis
                .warnings
                .iter()
                .map(|(_, warning)| warning)
                .chain(&layers.warnings)
                .cloned()
                .chain(self.warnings())
                .collect(),
            command,
        };
        let mut report =
            Report::new(inputs, lookup.as_ref()).context(layers.analysis.displayed())?;
        if let Some(what_if) = &mut report.what_if {
            let memories = request.memories(bytes_per_tile);
            what_if.reserves = memories
                .iter()
                .map(|&own| request.options.reserve.of(own))
                .collect();
            what_if.memories = memories;
        }
        Ok(report)
    }
}
