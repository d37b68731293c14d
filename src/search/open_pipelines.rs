//! The pipelines that a request leaves open, and the table of candidates: the best split of each
//! pipeline on each number of IPUs.
//!
//! [`in_each`] computes all entries of the table, as many pipelines as memory allows in one pass
//! over the tiles. It is called for these questions, which need different entries and costs:
//!
//! * The answer ([`choose`](OpenPipelines::choose)): all open pipelines, on the requested number of
//!   IPUs (with `auto`, the fewest on which the model fits), with the costs of ranges up to the
//!   limits.
//! * Nothing fits (`choose`): all open pipelines, on the requested number of IPUs and on the fewest
//!   that are enough, with the costs of ranges up to the lowest peak.
//! * `--sweep` ([`sweep`](OpenPipelines::sweep)): all open pipelines, on
//!   [`swept_ipus`](PipelineCosts::swept_ipus), with the costs of all ranges.
//! * `--plan` (`plan`): all pipelines of the framework with each place of the optimizer state, on
//!   up to the requested number of IPUs, with the costs of ranges up to the limits.
//!
//! Only the first two questions keep costs, from which the solver then proves the answer, and with
//! which estimates for another micro-batch compare. A plan has several splits for each entry, the
//! faster ones with more memory, and proves none of them. Other pipelines that a refusal names
//! (`advice`) are computed in the pass of the answer and tried one by one, since one that fits
//! makes others unnecessary.

use super::candidate::{Candidate, by_rate};
use super::error::SearchError;
use super::pipeline_costs::{PipelineCosts, compute_costs};
use super::request::{IpuCount, Solver};
use crate::memory::{Pipeline, PlacedStage};
use crate::progress::Progress;
use crate::solve::{self, Goal, Plan};
use rayon::prelude::*;
use std::cmp::Ordering;

/// If a search tries numbers of IPUs other than the requested one, it tries all numbers from 1 to
/// this one, the IPUs of a POD16.
pub(super) const TRIED_IPUS: usize = 16;

/// Maximum number of range costs (8 bytes each: one range with one number of later stages) that are
/// stored at a time, over all pipelines.
const MAX_NUMBERS: usize = 1 << 25;

/// The request in each of the pipelines that it leaves open, the usual one first.
pub(super) struct OpenPipelines<'a> {
    pipelines: Vec<PipelineCosts<'a>>,
}

/// The pipeline in which a request is answered, and how it was chosen.
pub(super) struct ChosenPipeline {
    /// Index of the chosen pipeline in the list of [`OpenPipelines`].
    pub(super) index: usize,
    /// Whether it is certain that nothing fits, so that the answer must explain why.
    pub(super) is_refused: bool,
    /// The best results over all open pipelines; `None` if the pipelines were not compared: only
    /// one is open, the user gave the split, or none has a split.
    pub(super) of_all: Option<Offer>,
}

/// Results of one pipeline, by which pipelines are compared; or the best results of all pipelines.
pub(super) struct Offer {
    /// The best split that fits, or the split with the lowest peak if none fits; `None` if there is
    /// no split.
    best: Option<Candidate>,
    /// Smallest number of stages of a split that fits; `None` if no split fits on any number of
    /// IPUs.
    pub(super) fewest: Option<usize>,
    /// If nothing fits on the requested IPUs: the best split on the smallest number of IPUs on
    /// which the model fits. `None` if it fits on no number, or on the requested one.
    pub(super) on_more_ipus: Option<Candidate>,
}

impl<'a> OpenPipelines<'a> {
    /// Lists all pipelines that the request of `usual` leaves open, before their costs are
    /// computed.
    pub(super) fn new(usual: PipelineCosts<'a>) -> Result<Self, SearchError> {
        let (asked, is_training) = (usual.request().options.pipeline, usual.memory.is_training());
        let open = usual.pipeline().open(asked, is_training);
        let pipelines = vec![usual];
        let mut all = Self { pipelines };
        for &pipeline in open.iter().skip(1) {
            all.pipelines.push(all.in_pipeline(pipeline)?);
        }
        let mut each = all.pipelines.iter_mut();
        each.try_for_each(PipelineCosts::try_few_tiles)?;
        Ok(all)
    }

    /// Returns the request in `pipeline`, which need not be an open one, before its costs are
    /// computed.
    pub(super) fn in_pipeline(&self, pipeline: Pipeline) -> Result<PipelineCosts<'a>, SearchError> {
        // Live ranges only depend on recomputation, so a model with the same recomputation is
        // reused.
        let mut all = self.pipelines.iter();
        let like = all.find(|costs| costs.pipeline().recompute == pipeline.recompute);
        like.unwrap_or(self.usual()).in_pipeline(pipeline)
    }

    /// Returns the request in the usual pipeline: the framework's own, with the options of the
    /// request in place of its own settings.
    pub(super) fn usual(&self) -> &PipelineCosts<'a> {
        &self.pipelines[0]
    }

    /// Returns the number of open pipelines, at least 1.
    pub(super) fn len(&self) -> usize {
        self.pipelines.len()
    }

    /// Returns the request in the open pipeline at `index`, with the costs that were computed. The
    /// list keeps all pipelines at their indices, but drops the costs of every one.
    pub(super) fn take(&mut self, index: usize) -> PipelineCosts<'a> {
        let all = self.pipelines.iter().map(PipelineCosts::without_costs);
        let without_costs = all.collect();
        let mut all = std::mem::replace(&mut self.pipelines, without_costs);
        all.swap_remove(index)
    }

    /// Chooses the pipeline with the best split that fits by the goal or, if none fits, with the
    /// lowest peak. Computes the costs of all open pipelines if there are several and the user gave
    /// no split.
    pub(super) fn choose(&mut self, progress: &Progress) -> Result<ChosenPipeline, SearchError> {
        let request = self.usual().request();
        if self.len() == 1 || request.given.is_some() {
            let index = request.given.as_ref();
            let index = index.map_or(0, |plan| self.fastest(plan));
            return Ok(ChosenPipeline {
                index,
                is_refused: self.pipelines[index].cannot_fit(),
                of_all: None,
            });
        }
        let (limit, goal, ipus) = (request.highest_limit(), request.goal, request.ipus);
        let stages = self.usual().more_stages();
        let is_refused = request.options.solver == Solver::Ilp;
        let may_fit =
            |costs: &PipelineCosts<'_>| costs.on_few_tiles.is_some_and(|peak| peak.fits(limit));
        if self.pipelines.iter().any(may_fit) {
            let limit = |costs: &PipelineCosts<'a>| if may_fit(costs) { limit } else { 0 };
            let offers = self.offers(ipus.highest(), limit, progress, |costs| costs.offer())?;
            let by_goal = |one: &Candidate, other: &Candidate| one.compare(other, goal);
            if let Some(chosen) = ChosenPipeline::of(offers, false, (by_goal, goal)) {
                return Ok(chosen);
            }
        }
        let limit = PipelineCosts::limit_of_best;
        let offers = self.offers(stages, limit, progress, |costs| costs.refused(progress))?;
        let peak = |candidate: &Candidate| candidate.solution.score.peak;
        let by_peak = |one: &Candidate, other: &Candidate| peak(one).cmp(&peak(other));
        let chosen = ChosenPipeline::of(offers, is_refused, (by_peak, goal));
        Ok(chosen.unwrap_or(ChosenPipeline {
            index: 0,
            is_refused,
            of_all: None,
        }))
    }

    /// Returns the index of the pipeline in which the stages of `plan`, a split of the user, fit
    /// and are fastest or, if they fit in none, have the lowest peak.
    fn fastest(&self, plan: &Plan) -> usize {
        let judged = self.pipelines.iter().map(|costs| {
            let peaks = costs.memory.peaks(&PlacedStage::of_split(plan.stages()));
            let is_over = !costs.are_within_limits(&peaks);
            let times = costs.times.as_ref().filter(|_| !is_over);
            let step = times.and_then(|times| times.step(plan.stages()));
            (is_over, step, peaks.into_iter().max())
        });
        let best = judged.enumerate().min_by(|(_, one), (_, other)| {
            let by_fit = one.0.cmp(&other.0);
            by_fit
                .then_with(|| by_rate(one.1, other.1))
                .then(one.2.cmp(&other.2))
        });
        best.map_or(0, |(index, _)| index)
    }

    /// Computes, in each pipeline, the costs of ranges with at most `limit` bytes for at most
    /// `stages` stages, and returns the results that `offer` computes from them, in the order of
    /// the pipelines. Keeps the costs only if memory allows to store those of all pipelines at a
    /// time.
    fn offers(
        &mut self,
        stages: usize,
        limit: impl Fn(&PipelineCosts<'a>) -> u64,
        progress: &Progress,
        offer: impl Fn(&mut PipelineCosts<'a>) -> Result<Offer, SearchError> + Sync,
    ) -> Result<Vec<Offer>, SearchError> {
        let at_once = self.usual().at_once(stages);
        let keeps_costs = self.pipelines.len() <= at_once;
        let task = ("choosing the pipeline", progress);
        let all = std::mem::take(&mut self.pipelines).into_iter();
        let all = all.map(|costs| {
            Ok(PipelineCosts {
                up_to: limit(&costs),
                ..costs
            })
        });
        let offers = in_each(all, (at_once, stages), task, |mut costs| {
            let offer = offer(&mut costs)?;
            Ok(match keeps_costs {
                true => (costs, offer),
                false => (costs.without_costs(), offer),
            })
        })?;
        let (pipelines, offers) = offers.into_iter().unzip();
        self.pipelines = pipelines;
        Ok(offers)
    }

    /// Returns the best split of each open pipeline on each of `numbers` IPUs (ascending), pipeline
    /// after pipeline; where none fits, the split with the lowest peak.
    pub(super) fn sweep(
        &self,
        numbers: &[usize],
        progress: &Progress,
    ) -> Result<Vec<Candidate>, SearchError> {
        let stages = numbers.last().copied().unwrap_or(0);
        let all = self.pipelines.iter().map(|costs| {
            Ok(PipelineCosts {
                up_to: u64::MAX,
                ..costs.without_costs()
            })
        });
        let (at_once, task) = (
            self.usual().at_once(stages),
            ("choosing the pipeline", progress),
        );
        let of_each = in_each(all, (at_once, stages), task, |costs| costs.sweep(numbers))?;
        Ok(of_each.into_iter().flatten().collect())
    }
}

impl ChosenPipeline {
    /// Chooses the pipeline whose best split comes first by `compare`; the first of several equal
    /// ones. `offers` has the results of each open pipeline; `goal` compares their splits on more
    /// IPUs. `None` if no pipeline has a split.
    fn of(
        mut offers: Vec<Offer>,
        is_refused: bool,
        (compare, goal): (impl Fn(&Candidate, &Candidate) -> Ordering, Goal),
    ) -> Option<Self> {
        let best = offers.iter_mut().map(|offer| offer.best.take()).enumerate();
        let best = best.filter_map(|(index, best)| Some((index, best?)));
        let (index, best) = best.min_by(|(_, one), (_, other)| compare(one, other))?;
        let fewest = offers.iter().filter_map(|offer| offer.fewest).min();
        let on_more = offers.into_iter().filter_map(|offer| offer.on_more_ipus);
        Some(Self {
            index,
            is_refused,
            of_all: Some(Offer {
                best: Some(best),
                fewest,
                on_more_ipus: on_more.min_by(|one, other| one.compare(other, goal)),
            }),
        })
    }
}

/// Computes the costs of ranges in each of `pipelines`, up to its own limit (`up_to`) and for at
/// most `stages` stages, and returns the result of `of` for each, in order. Each pass over the
/// tiles computes `at_once` pipelines. `task` names the calls of `of` in the progress.
pub(super) fn in_each<'a, R: Send>(
    mut pipelines: impl ExactSizeIterator<Item = Result<PipelineCosts<'a>, SearchError>>,
    (at_once, stages): (usize, usize),
    (task, progress): (&'static str, &Progress),
    of: impl Fn(PipelineCosts<'a>) -> Result<R, SearchError> + Sync,
) -> Result<Vec<R>, SearchError> {
    let mut results = Vec::new();
    while pipelines.len() > 0 {
        let some = pipelines.by_ref().take(at_once);
        let mut some = some.collect::<Result<Vec<_>, _>>()?;
        compute_costs(&mut some.iter_mut().collect::<Vec<_>>(), stages, progress)?;
        let task = progress.begin(task, some.len() as u64);
        let of_each = some.into_par_iter().map(|costs| {
            task.add(1);
            of(costs)
        });
        results.extend(of_each.collect::<Result<Vec<R>, _>>()?);
    }
    Ok(results)
}

impl PipelineCosts<'_> {
    /// Returns how many pipelines one pass over the tiles may compute without storing more than
    /// [`MAX_NUMBERS`] costs, for at most `stages` stages each; at least 1. Estimates the number of
    /// ranges from this pipeline's own if they are computed, and otherwise assumes all ranges.
    pub(super) fn at_once(&self, stages: usize) -> usize {
        let positions = self.positions();
        let ranges = match self.ranges.iter().count() {
            0 => positions.saturating_mul(positions),
            // With optimizer state off the chip or sharded, longer ranges fit.
            ranges => ranges.saturating_mul(2),
        };
        let numbers = ranges.saturating_mul(stages.min(positions) + 1);
        (MAX_NUMBERS / numbers.max(1)).max(1)
    }

    /// Finds the best split that fits and the smallest number of stages with which one fits, from
    /// the computed costs. Only runs the dynamic program, not the integer program that would prove
    /// the split.
    fn offer(&self) -> Result<Offer, SearchError> {
        let fewest = solve::fewest_stages(&self.problem())?;
        let mut best = None;
        if let Some(fewest) = fewest {
            let ipus = match self.request().ipus {
                IpuCount::Exactly(ipus) => ipus,
                IpuCount::UpTo(most) => self.supported(fewest).min(most),
            };
            let unproven = solve::unproven(&self.problem_on(ipus))?;
            best = unproven.map(|best| Candidate::new(self, ipus, true, best));
        }
        Ok(Offer {
            fewest,
            best,
            on_more_ipus: None,
        })
    }

    /// Finds the split with the lowest peak, and the best split on the smallest number of IPUs on
    /// which the model fits, for a request that no split fits.
    fn refused(&mut self, progress: &Progress) -> Result<Offer, SearchError> {
        let best = self.best(progress)?;
        let fewest = solve::fewest_stages(&self.problem())?;
        Ok(Offer {
            best,
            fewest,
            on_more_ipus: self.on_more_ipus(fewest)?,
        })
    }

    /// Finds the best split on the smallest supported number of IPUs that is at least `stages`;
    /// `None` without `stages`.
    pub(super) fn on_more_ipus(
        &self,
        stages: Option<usize>,
    ) -> Result<Option<Candidate>, SearchError> {
        let Some(ipus) = stages.map(|stages| self.supported(stages)) else {
            return Ok(None);
        };
        let best = solve::unproven(&self.problem_on(ipus))?;
        Ok(best.map(|best| Candidate::new(self, ipus, true, best)))
    }

    /// Returns the numbers of IPUs for which a sweep computes the best split, ascending from 1. If
    /// a sweep was requested: all numbers. If other splits are to be tried: all up to
    /// [`TRIED_IPUS`], and beyond it powers of 2 and the neighbours of the answer's number, since
    /// each takes as long as the answer itself. If each IPU has a limit of its own, none above the
    /// number of IPUs of the answer.
    pub(super) fn swept_ipus(&self) -> Vec<usize> {
        let request = self.request();
        let is_open = self.question.tries_all_ranges || matches!(request.ipus, IpuCount::UpTo(_));
        let mut most = self.ipus;
        if is_open && request.limits.len() <= 1 {
            let stages = self.memory.most_stages().min(self.positions());
            most = most.max(TRIED_IPUS.min(stages));
        }
        let is_tried = |&ipus: &usize| {
            let is_near = ipus.is_power_of_two() || ipus.abs_diff(self.ipus) <= 1;
            request.options.sweep || ipus <= TRIED_IPUS || is_near
        };
        (1..=most).filter(is_tried).collect()
    }

    /// Returns the best split of this pipeline on each of `numbers` IPUs (ascending); where none
    /// fits, the split with the lowest peak. Numbers without any split are left out.
    pub(super) fn sweep(&self, numbers: &[usize]) -> Result<Vec<Candidate>, SearchError> {
        let problem = self.problem_on(numbers.last().copied().unwrap_or(0));
        let mut solutions = solve::sweep(&problem, numbers)?;
        let refused = solutions.iter().take_while(|found| found.is_none()).count();
        let of_refused = solve::sweep(&problem.at_any_limit(), &numbers[..refused])?;
        solutions.splice(..refused, of_refused);
        let answers = numbers.iter().zip(solutions).enumerate();
        let answers = answers.filter_map(|(index, (&ipus, solution))| {
            Some(Candidate::new(self, ipus, index >= refused, solution?))
        });
        Ok(answers.collect())
    }
}
