//! The candidates for an answer: the best split of each pipeline on each number of IPUs.
//!
//! Each pipeline that the request leaves open is searched separately. The answer is in the pipeline
//! whose split is best by the goal of the request, or has the lowest peak if none fits.

use super::pipeline_costs::compute_costs;
use super::{IpuCount, PipelineCosts, SearchError, Solver};
use crate::memory::{Pipeline, PlacedStage};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Goal, Plan, Solution};
use crate::time::StepTime;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Number of IPUs up to which the best split is computed at least, if other numbers can be tried:
/// the IPUs of a POD16.
pub(super) const TRIED_IPUS: usize = 16;

/// Maximum number of range costs that are stored at a time, of 8 bytes each.
const MAX_NUMBERS: usize = 1 << 25;

/// The best split of one pipeline on one number of IPUs.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Number of IPUs.
    pub ipus: usize,
    /// Does the split fit? Otherwise it is the split with the lowest peak.
    pub fits: bool,
    /// The split.
    pub solution: Solution,
    /// Bytes on the fullest tile of each stage.
    pub peaks: Vec<u64>,
}

impl Candidate {
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        ipus: usize,
        fits: bool,
        solution: Solution,
    ) -> Self {
        let stages = solution.plan.with_after();
        let peaks = stages.filter_map(|(range, after)| costs.ranges.peak(range.clone(), after));
        Self {
            pipeline: costs.pipeline(),
            ipus,
            fits,
            peaks: peaks.collect(),
            solution,
        }
    }

    /// Orders candidates by number of IPUs; then those that fit come first, the best by `goal`, and
    /// then the others, the lowest peak first.
    fn compare(&self, other: &Self, goal: Goal) -> Ordering {
        let goal = if self.fits { goal } else { Goal::Peak };
        let scores = [&self.solution.score, &other.solution.score];
        let by_ipus = self.ipus.cmp(&other.ipus);
        by_ipus
            .then(other.fits.cmp(&self.fits))
            .then_with(|| scores[0].compare(scores[1], goal))
    }
}

/// All pipelines that a request leaves open, the usual one first.
pub(super) struct Candidates<'a> {
    pipelines: Vec<PipelineCosts<'a>>,
}

/// The pipeline in which a request is answered.
pub(super) struct Choice {
    /// Index of the pipeline.
    pub(super) place: usize,
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

impl<'a> Candidates<'a> {
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
        each.try_for_each(PipelineCosts::estimate)?;
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

    /// Is there only one pipeline?
    pub(super) fn is_one(&self) -> bool {
        self.pipelines.len() == 1
    }

    /// Takes a pipeline with its costs; all pipelines stay without costs.
    pub(super) fn take(&mut self, place: usize) -> PipelineCosts<'a> {
        let all = self.pipelines.iter().map(PipelineCosts::without_costs);
        let without_costs = all.collect();
        let mut all = std::mem::replace(&mut self.pipelines, without_costs);
        all.swap_remove(place)
    }

    /// Chooses the pipeline with the best split that fits, or the one that comes closest if none
    /// fits.
    pub(super) fn choose(&mut self, progress: &Progress) -> Result<Choice, SearchError> {
        let request = self.usual().request();
        if self.is_one() || request.given.is_some() {
            let place = request.given.as_ref();
            let place = place.map_or(0, |plan| self.fastest(plan));
            return Ok(Choice {
                place,
                is_refused: self.pipelines[place].cannot_fit(),
                of_all: None,
            });
        }
        let (limit, goal, ipus) = (request.highest_limit(), request.goal, request.ipus);
        let stages = self.usual().more_stages();
        let is_refused = request.options.solver == Solver::Ilp;
        let may_fit =
            |costs: &PipelineCosts<'_>| costs.rough.is_some_and(|rough| rough.fits(limit));
        if self.pipelines.iter().any(may_fit) {
            let limit = |costs: &PipelineCosts<'a>| if may_fit(costs) { limit } else { 0 };
            let offers = self.in_each(ipus.highest(), limit, progress, |costs| costs.offer())?;
            let by_goal = |one: &Candidate, other: &Candidate| one.compare(other, goal);
            if let Some(choice) = Choice::of(offers, false, (by_goal, goal)) {
                return Ok(choice);
            }
        }
        let limit = PipelineCosts::limit_of_best;
        let offers = self.in_each(stages, limit, progress, |costs| costs.refused(progress))?;
        let peak = |candidate: &Candidate| candidate.solution.score.peak;
        let by_peak = |one: &Candidate, other: &Candidate| peak(one).cmp(&peak(other));
        let choice = Choice::of(offers, is_refused, (by_peak, goal));
        Ok(choice.unwrap_or(Choice {
            place: 0,
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
        best.map_or(0, |(place, _)| place)
    }

    /// The best candidate of all pipelines for each of these numbers of IPUs.
    pub(super) fn sweep(
        &mut self,
        numbers: &[usize],
        progress: &Progress,
    ) -> Result<Vec<Candidate>, SearchError> {
        let goal = self.usual().request().goal;
        let stages = numbers.last().copied().unwrap_or(0);
        let of_each = self.in_each(stages, |_| u64::MAX, progress, |costs| costs.sweep(numbers))?;
        let mut all: Vec<Candidate> = of_each.into_iter().flatten().collect();
        // Of equals, the one of the first pipeline stays the first.
        all.sort_by(|one, other| one.compare(other, goal));
        all.dedup_by_key(|candidate| candidate.ipus);
        Ok(all)
    }

    /// Results of `of` for each pipeline, with the costs of ranges up to `limit`, for at most
    /// `stages` stages. If memory allows no table for all pipelines at a time, no costs are kept.
    fn in_each<R: Send>(
        &mut self,
        stages: usize,
        limit: impl Fn(&PipelineCosts<'a>) -> u64,
        progress: &Progress,
        of: impl Fn(&mut PipelineCosts<'a>) -> Result<R, SearchError> + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let at_once = self.usual().at_once(stages);
        let keeps_costs = self.pipelines.len() <= at_once;
        let task = ("choosing the pipeline", progress);
        let mut found = Vec::new();
        for some in self.pipelines.chunks_mut(at_once) {
            found.extend(in_each(some, (stages, &limit), task, &of)?);
            if !keeps_costs {
                some.iter_mut().for_each(|one| *one = one.without_costs());
            }
        }
        Ok(found)
    }
}

impl Choice {
    /// The first of the pipelines with the best offer; `None` if there is none.
    fn of(
        mut offers: Vec<Offer>,
        is_refused: bool,
        (compare, goal): (impl Fn(&Candidate, &Candidate) -> Ordering, Goal),
    ) -> Option<Self> {
        let best = offers.iter_mut().map(|offer| offer.best.take()).enumerate();
        let best = best.filter_map(|(place, best)| Some((place, best?)));
        let (place, best) = best.min_by(|(_, one), (_, other)| compare(one, other))?;
        let fewest = offers.iter().filter_map(|offer| offer.fewest).min();
        let on_more = offers.into_iter().filter_map(|offer| offer.on_more_ipus);
        Some(Self {
            place,
            is_refused,
            of_all: Some(Offer {
                best: Some(best),
                fewest,
                on_more_ipus: on_more.min_by(|one, other| one.compare(other, goal)),
            }),
        })
    }
}

/// Results of `of` for `some` pipelines, with the costs of ranges up to `limit` for at most `stages`
/// stages, in one pass over the tiles.
pub(super) fn in_each<'a, R: Send>(
    some: &mut [PipelineCosts<'a>],
    (stages, limit): (usize, &dyn Fn(&PipelineCosts<'a>) -> u64),
    (task, progress): (&'static str, &Progress),
    of: impl Fn(&mut PipelineCosts<'a>) -> Result<R, SearchError> + Sync,
) -> Result<Vec<R>, SearchError> {
    some.iter_mut().for_each(|one| one.up_to = limit(one));
    compute_costs(&mut some.iter_mut().collect::<Vec<_>>(), stages, progress)?;
    let task = progress.begin(task, Unit::Rows, some.len() as u64);
    let of_each = some.par_iter_mut().map(|one| {
        task.add(1);
        of(one)
    });
    of_each.collect()
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

    /// Numbers of IPUs for which a sweep has candidates, ascending: all numbers if requested. If
    /// other splits are to be tried: all numbers up to a POD16, and beyond that powers of 2 and the
    /// neighbours of the given number, since each takes as long as the answer itself. With limits
    /// by IPU, no more than the given IPUs; `stages` is the number of stages with costs.
    pub(super) fn swept(&self, stages: usize) -> Vec<usize> {
        let request = self.request();
        let is_open = self.question.tries_all_ranges || matches!(request.ipus, IpuCount::UpTo(_));
        let most = match is_open && request.limits.len() <= 1 {
            true => TRIED_IPUS.min(stages).min(self.positions()),
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
        let answers = answers.filter_map(|(place, (&ipus, solution))| {
            Some(Candidate::new(self, ipus, place >= refused, solution?))
        });
        Ok(answers.collect())
    }
}

/// Orders steps by cycles for each micro-batch, the fastest first; without cycles all are equal.
pub(super) fn by_rate(one: Option<StepTime>, other: Option<StepTime>) -> Ordering {
    let both = one.zip(other);
    both.map_or(Ordering::Equal, |(one, other)| one.by_rate(&other))
}

/// Bytes that are free of `limit` if `bytes` are in use; negative if they exceed it. Saturates at
/// the bounds of `i64`.
pub fn free_bytes(limit: u64, bytes: u64) -> i64 {
    let free = i128::from(limit) - i128::from(bytes);
    i64::try_from(free).unwrap_or(if free < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_keep_their_sign() {
        assert_eq!(free_bytes(5, 7), -2);
        assert_eq!(free_bytes(u64::MAX, 0), i64::MAX);
        assert_eq!(free_bytes(0, u64::MAX), i64::MIN);
    }
}
