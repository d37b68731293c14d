//! The pipelines that a request leaves open, and the table of candidates: the best splits of
//! pipelines on numbers of IPUs.
//!
//! [`in_each`] computes all entries of the table, as many pipelines as memory allows in one pass
//! over the tiles. It is called for these questions, which need different entries and costs:
//!
//! | question | pipelines | numbers of IPUs | costs of ranges |
//! |---|---|---|---|
//! | the answer ([`choose`](OpenPipelines::choose)) | open ones | that of the request, or with `auto` the fewest | up to the limits |
//! | nothing fits (`choose`) | open ones | that of the request, and the fewest that are enough | up to the lowest peak |
//! | `--sweep` ([`sweep`](OpenPipelines::sweep)) | open ones | [`swept`](PipelineCosts::swept) | all |
//! | `--plan` (`plan`) | all of the framework, with each place of the state | up to that of the request | up to the limits |
//!
//! Only the first two keep costs, which the solver then proves the answer with, and which estimates
//! for another micro-batch compare with. A plan has several splits for each entry, the faster ones
//! with more memory, and proves none of them. Other pipelines that a refusal names (`advice`) are in
//! the pass of the answer, and tried one by one, since one that fits makes others unnecessary.

use super::candidate::{Candidate, by_rate};
use super::error::SearchError;
use super::pipeline_costs::{PipelineCosts, compute_costs};
use super::request::{IpuCount, Solver};
use crate::memory::{Pipeline, PlacedStage};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Goal, Plan};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Number of IPUs up to which the best split is computed at least, if other numbers can be tried:
/// the IPUs of a POD16.
pub(super) const TRIED_IPUS: usize = 16;

/// Maximum number of range costs that are stored at a time, of 8 bytes each.
const MAX_NUMBERS: usize = 1 << 25;

/// All pipelines that a request leaves open, the usual one first.
pub(super) struct OpenPipelines<'a> {
    pipelines: Vec<PipelineCosts<'a>>,
}

/// The pipeline in which a request is answered.
pub(super) struct ChosenPipeline {
    /// Index of the pipeline.
    pub(super) index: usize,
    /// Is it certain that nothing fits, so that the answer explains why?
    pub(super) is_refused: bool,
    /// Results over all pipelines; `None` if they were not compared.
    pub(super) of_all: Option<Offer>,
}

/// Results in one pipeline, by which pipelines are compared, or the best ones of all.
pub(super) struct Offer {
    /// The best split, which fits or has the lowest peak.
    best: Option<Candidate>,
    /// Smallest number of stages that fit.
    pub(super) fewest: Option<usize>,
    /// If nothing fits: the best split on the smallest sufficient number of IPUs.
    pub(super) on_more_ipus: Option<Candidate>,
}

impl<'a> OpenPipelines<'a> {
    /// All pipelines that the request of `usual` leaves open, still without costs.
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

    /// The request in any pipeline, without costs.
    pub(super) fn in_pipeline(&self, pipeline: Pipeline) -> Result<PipelineCosts<'a>, SearchError> {
        // Live ranges depend only on recomputation, so a model with the same recomputation is
        // reused.
        let mut all = self.pipelines.iter();
        let like = all.find(|costs| costs.pipeline().recompute == pipeline.recompute);
        like.unwrap_or(self.usual()).in_pipeline(pipeline)
    }

    /// The usual pipeline.
    pub(super) fn usual(&self) -> &PipelineCosts<'a> {
        &self.pipelines[0]
    }

    /// Number of open pipelines, at least 1.
    pub(super) fn len(&self) -> usize {
        self.pipelines.len()
    }

    /// Takes a pipeline with its costs; all pipelines stay without costs.
    pub(super) fn take(&mut self, index: usize) -> PipelineCosts<'a> {
        let all = self.pipelines.iter().map(PipelineCosts::without_costs);
        let without_costs = all.collect();
        let mut all = std::mem::replace(&mut self.pipelines, without_costs);
        all.swap_remove(index)
    }

    /// Chooses the pipeline with the best split that fits, or the one that comes closest if none
    /// fits.
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

    /// The pipeline in which the given split is fastest, among those in which it fits; or has the
    /// lowest peak if it fits in none.
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

    /// The offer of each pipeline, with the costs of ranges up to `limit`, for at most `stages`
    /// stages. Keeps these costs if memory allows a table for all pipelines at a time.
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

    /// The best split of each pipeline on each of these ascending numbers of IPUs.
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
    /// The first of the pipelines with the best offer; `None` if there is none.
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

/// Results of `of` for each of `pipelines`, with the costs of ranges up to the limit of each
/// (`up_to`) for at most `stages` stages. One pass over the tiles computes `at_once` pipelines.
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
        let task = progress.begin(task, Unit::Rows, some.len() as u64);
        let of_each = some.into_par_iter().map(|costs| {
            task.add(1);
            of(costs)
        });
        results.extend(of_each.collect::<Result<Vec<R>, _>>()?);
    }
    Ok(results)
}

impl PipelineCosts<'_> {
    /// Number of pipelines that memory allows to compute in one pass over the tiles, for at most
    /// `stages` stages each. The ranges within the limit are estimated from the costs of this
    /// pipeline, if they were computed.
    pub(super) fn at_once(&self, stages: usize) -> usize {
        let positions = self.positions();
        let ranges = match self.ranges.iter().count() {
            0 => positions.saturating_mul(positions),
            // With the state off the chip or sharded, longer ranges fit.
            ranges => ranges.saturating_mul(2),
        };
        let numbers = ranges.saturating_mul(stages.min(positions) + 1);
        (MAX_NUMBERS / numbers.max(1)).max(1)
    }

    /// The best split that fits, from the dynamic program only.
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

    /// The split with the lowest peak, and the best one on more IPUs.
    fn refused(&mut self, progress: &Progress) -> Result<Offer, SearchError> {
        let best = self.best(progress)?;
        let fewest = solve::fewest_stages(&self.problem())?;
        Ok(Offer {
            best,
            fewest,
            on_more_ipus: self.on_more_ipus(fewest)?,
        })
    }

    /// The best split on the fewest IPUs that the framework supports and that `stages` need.
    pub(super) fn on_more_ipus(
        &self,
        stages: Option<usize>,
    ) -> Result<Option<Candidate>, SearchError> {
        let Some(ipus) = stages.map(|stages| self.supported(stages)) else {
            return Ok(None);
        };
        let best = solve::solve(&self.problem_on(ipus))?;
        Ok(best.map(|best| Candidate::new(self, ipus, true, best)))
    }

    /// Numbers of IPUs for which a sweep has candidates, ascending: all numbers if requested. If
    /// other splits are to be tried: all numbers up to a POD16, and beyond that powers of 2 and the
    /// neighbours of the given number, since each takes as long as the answer itself. With limits
    /// by IPU, no more than the given IPUs.
    pub(super) fn swept(&self) -> Vec<usize> {
        let request = self.request();
        let is_open = self.question.tries_all_ranges || matches!(request.ipus, IpuCount::UpTo(_));
        let most = match is_open && request.limits.len() <= 1 {
            true => TRIED_IPUS
                .min(self.memory.most_stages())
                .min(self.positions()),
            false => 0,
        };
        let is_tried = |&ipus: &usize| {
            let is_near = ipus.is_power_of_two() || ipus.abs_diff(self.ipus) <= 1;
            request.options.sweep || ipus <= TRIED_IPUS || is_near
        };
        (1..=self.ipus.max(most)).filter(is_tried).collect()
    }

    /// The best split on each of these ascending numbers of IPUs; if none fits, the one with the
    /// lowest peak.
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
