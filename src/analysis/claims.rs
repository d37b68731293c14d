//! Finds the best splits for changed copies of the user's request, such as one with fewer IPUs. The
//! statements of the report about other memory limits, numbers of IPUs, pipelines and constraints
//! come from these splits.

use super::{
    Request,
    answer::{Answer, Answers},
    changed::Changed,
    judged::other_counts,
};
use crate::{
    memory::{Pipeline, Recompute, StatePlace},
    message::UsageError,
    model::Placement,
    search::{Candidate, Claim, Claims, Front, IpuCount},
    solve::Goal,
};
use anyhow::Result;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Number of IPUs in a POD16. Plans (`--plan`) and the what-if results of a report cover every
/// number of IPUs up to this one, and only some larger numbers. If the number of IPUs is open and
/// no split fits, a sweep (`--sweep`) ends here.
pub const TRIED_IPUS: usize = 16;

/// If no split fits on the requested IPUs, larger numbers of IPUs are tried up to this number.
const MOST_IPUS: usize = 64;

/// Maximum number of constraints and tied weights (weights that several layers share) that are
/// restored one by one, to find out which of them the user must give up. More trials would take too
/// long.
const MAX_TRIED: usize = 100;

/// Maximum number of rows that `--plan` prints, so that users can compare them at a glance.
const MAX_ROWS: usize = 8;

impl<'s> Answers<'s> {
    /// Returns the best splits for all changed copies of `request` (such as one with fewer IPUs)
    /// that the report mentions. `answer` is the best split for `request` itself, and whether it
    /// fits.
    pub fn claims(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Claims<'s>> {
        let options = &request.options;
        let is_refused = options.split && !answer.best.fits && request.judged.is_none();
        let mut claims = Claims {
            sweep: self.sweep(request, answer)?,
            sizes: self.of_sizes(request)?,
            ..Claims::default()
        };
        if request.judged.is_some() {
            let ipus = request.all_ipus()?.highest();
            claims.without_given =
                self.answered(request.changed().without_given().with_ipus(ipus))?;
        } else if is_refused {
            claims.ipus_tried = (request.memory_per_tile.len() <= 1)
                .then_some(request.all_ipus()?.highest().max(MOST_IPUS));
            claims.on_more_ipus = self.on_more_ipus(request)?;
            claims.with_memory = self.with_memory(request, answer)?;
            claims.relaxed = self.relaxed(request, answer)?;
        } else if options.split {
            claims.fewest = self.on_fewer_ipus(request, answer)?;
            claims.with_replicas = self.with_replicas(request, answer)?;
        }
        if options.split && (is_refused || options.moves) {
            claims.with_options = self.with_options(request, answer)?;
        }
        if options.counts {
            claims.by_counts = self.by_counts(request, answer)?;
        }
        if options.plan {
            claims.plan = Some(self.plan(request, answer)?);
        }
        Ok(claims)
    }

    fn answered(&self, changed: Changed) -> Result<Option<Claim<'s>>> {
        let answer = self.answer(&changed.request)?;
        answer
            .map(|answer| answer.claim(changed.change))
            .transpose()
    }

    fn answered_if_fitting(&self, changed: Changed) -> Result<Option<Claim<'s>>> {
        let answer = self.fitting(&changed.request)?;
        answer
            .map(|answer| answer.claim(changed.change))
            .transpose()
    }

    /// Returns the best split on the smallest number of IPUs on which the layers of `answer` fit.
    /// `answer` is the best split for `request`, and optimizer state stays where `answer` keeps it
    /// (on the chip, off the chip or sharded). Returns `None` if this number is not smaller than the
    /// number of IPUs that `answer` uses, or if `request` leaves the number of IPUs open.
    fn on_fewer_ipus(
        &self,
        request: &Request,
        answer: &Answer<'_, 's>,
    ) -> Result<Option<Claim<'s>>> {
        let best = &answer.best;
        if let IpuCount::UpTo(_) = request.all_ipus()? {
            return Ok(None);
        }
        let stages = best.solution.score.stages;
        let mut like = self.pipelines(request)?.concat();
        like.retain(|own| {
            (own.state, own.replicas) == (best.pipeline.state, best.pipeline.replicas)
        });
        let space = &answer.level.space;
        let Some(ipus) = space
            .fewest_stages(&answer.question, &like, stages)?
            .map(|fewest| self.supported(fewest))
            .filter(|&ipus| ipus < self.supported(stages))
        else {
            return Ok(None);
        };
        let claim = self.answered_if_fitting(request.changed().with_ipus(ipus * best.replicas))?;
        Ok(claim.filter(|claim| claim.best.pipeline.state == best.pipeline.state))
    }

    /// Returns the best split on the fewest IPUs on which the model fits, if `request` has too few.
    /// Returns `None` if the model does not fit on 64 IPUs either, or if `request` leaves the
    /// number of IPUs open or gives each IPU its own amount of memory.
    fn on_more_ipus(&self, request: &Request) -> Result<Option<Claim<'s>>> {
        let IpuCount::Exactly(now) = request.all_ipus()? else {
            return Ok(None);
        };
        if request.memory_per_tile.len() > 1 || now >= MOST_IPUS {
            return Ok(None);
        }
        let most = request.changed().with_ipus(MOST_IPUS).request;
        let mut pipelines = self.pipelines(&most)?.concat();
        let replicas_in = |pipeline: &Pipeline| most.options.replicas_in(*pipeline);
        pipelines.sort_by_key(replicas_in);
        let mut fewest = MOST_IPUS + 1;
        for level in self.levels(&most) {
            let level = level?;
            let question = level.question(&most)?;
            for alike in pipelines.chunk_by(|one, other| replicas_in(one) == replicas_in(other)) {
                let replicas = replicas_in(&alike[0]);
                let stages = (fewest - 1) / replicas;
                if fewest - 1 > now
                    && stages > 0
                    && let Some(found) = level.space.fewest_stages(&question, alike, stages)?
                {
                    fewest = fewest.min(self.supported(found) * replicas);
                }
            }
        }
        if fewest > MOST_IPUS {
            return Ok(None);
        }
        self.answered_if_fitting(request.changed().with_ipus(fewest))
    }

    /// Returns the best split for the smallest tile memory with which the model fits on the IPUs of
    /// `request`. This memory, the same on every IPU, is the peak memory of `answer` plus the
    /// reserve that is kept free; `answer` must be the split with the lowest peak.
    fn with_memory(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Option<Claim<'s>>> {
        let memory = request.options.reserve.beside(answer.best.peak_bytes());
        let mut changed = request.changed().with_memory(memory);
        if request.memory_per_tile.len() > 1 {
            changed = changed.with_ipus(request.all_ipus()?.highest());
        }
        self.answered_if_fitting(changed)
    }

    /// Some users' code takes only the number of blocks (numbered layers) on each IPU, and decides
    /// itself where all other layers run. Returns the split that such code makes from the numbers
    /// of blocks in the best split, `answer`. Returns `None` if both splits are the same, or if the
    /// numbers give no valid split.
    fn by_counts(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Option<Claim<'s>>> {
        let positions = &answer.level.layers.placement.positions;
        let Some(counts) = other_counts(&answer.best.solution.plan, positions) else {
            return Ok(None);
        };
        match self.answered(request.changed().with_counts(counts, answer.best.pipeline)) {
            Err(error) if error.is::<UsageError>() => Ok(None),
            claim => claim,
        }
    }

    /// Returns the best splits for copies of `request` with one change each: another recomputation,
    /// another schedule or another place of optimizer state than the best split `answer` has.
    /// Returns none for inference or without a pipeline. If `answer` does not fit, options that
    /// `request` leaves open are skipped, since the search for `answer` tried them already.
    fn with_options(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Vec<Claim<'s>>> {
        let (now, model) = (answer.best.pipeline, &self.analysis.model);
        if !now.is_on() || model.backward_start.is_none() {
            return Ok(Vec::new());
        }
        let asked = request.options.pipeline;
        let is_news = |is_open: bool| answer.best.fits || !is_open;
        let open = asked.choose(model).open(asked, true);
        let is_open = |schedule| open.iter().any(|pipeline| pipeline.schedule == schedule);
        let recompute = [Recompute::Layer, Recompute::Stage, Recompute::None]
            .into_iter()
            .filter(|&other| other != now.recompute && is_news(asked.recompute.is_none()))
            .map(|other| request.changed().with_recompute(other));
        let schedules = now
            .other_schedules()
            .iter()
            .filter(|&&other| is_news(is_open(other)))
            .map(|&other| request.changed().with_schedule(other));
        let has_state = self.whole_layers(request)?.space.has_state();
        let states = [StatePlace::OnChip, StatePlace::OffChip, StatePlace::Sharded]
            .into_iter()
            .filter(|&other| has_state && other != now.state && is_news(asked.state.is_none()))
            .map(|other| request.changed().with_state(other));
        let mut claims = Vec::new();
        for changed in recompute.chain(schedules).chain(states) {
            // With `--explain`, the report shows the best split for each other recomputation,
            // schedule or place of optimizer state, even if it does not fit.
            let answered = if request.options.moves {
                self.answered(changed)
            } else {
                self.answered_if_fitting(changed)
            };
            match answered.map_err(|error| self.explained(error)) {
                Ok(claim) => claims.extend(claim),
                // Leave out sharded optimizer state if `request` has fewer than the two IPUs that
                // it needs.
                Err(error) if error.is::<UsageError>() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(claims)
    }

    /// Returns the best splits that fit if the user gives up some constraints, or lets several
    /// stages use tied weights (which several layers share). No more constraints and weights are
    /// given up than necessary:
    ///
    /// - one split without some of the constraints
    /// - one split without some of the tied weights
    /// - only if neither exists, one split without some of both
    fn relaxed(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Vec<Claim<'s>>> {
        let own = request.constraints.len();
        let ties = tied_weights(&answer.level.layers.placement);
        let all = own + ties.len();
        let mut found = Vec::new();
        for removable in [0..own, own..all] {
            found.extend(self.minimal(request, &ties, removable)?);
        }
        if found.is_empty() && own > 0 && own < all {
            found.extend(self.minimal(request, &ties, 0..all)?);
        }
        Ok(found)
    }

    /// Chooses which constraints and tied weights (shared by several layers) the user should give
    /// up so that a split fits, and returns the best split without them. Starts without all
    /// candidates, then restores each of the first [`MAX_TRIED`] with which a split still fits.
    /// Returns `None` if no split fits even without all candidates. `removable` has the indices of
    /// the candidates: constraints of `request` come first, then `ties`.
    fn minimal(
        &self,
        request: &Request,
        ties: &[String],
        removable: Range<usize>,
    ) -> Result<Option<Claim<'s>>> {
        let own = request.constraints.len();
        let without = |gone: &[usize]| {
            let untied = gone.iter().filter_map(|index| index.checked_sub(own));
            request
                .changed()
                .without_constraints(|index| gone.contains(&index))
                .with_untied(untied.map(|index| ties[index].clone()))
        };
        let mut gone: Vec<usize> = removable.clone().collect();
        if gone.is_empty() || self.fitting(&without(&gone).request)?.is_none() {
            return Ok(None);
        }
        for index in removable.take(MAX_TRIED) {
            let mut fewer = gone.clone();
            fewer.retain(|&other| other != index);
            if self.fitting(&without(&fewer).request)?.is_some() {
                gone = fewer;
            }
        }
        self.answered_if_fitting(without(&gone))
    }

    /// Returns the fastest split with several replicas of a smaller pipeline, if these replicas
    /// process more samples in a second than the best split `answer` does. Returns `None` unless
    /// the goal is the shortest step, the number of IPUs is fixed, there is one amount of memory
    /// for all IPUs, and the user requests no replicas.
    fn with_replicas(
        &self,
        request: &Request,
        answer: &Answer<'_, 's>,
    ) -> Result<Option<Claim<'s>>> {
        let IpuCount::Exactly(ipus) = request.all_ipus()? else {
            return Ok(None);
        };
        let is_open = request.options.replicas() == 1 && request.memory_per_tile.len() <= 1;
        let is_by_time = answer.question.request.goal == Goal::Time;
        if !is_open || !is_by_time || answer.best.replicas > 1 {
            return Ok(None);
        }
        let mut counts: Vec<usize> = (1..=ipus / 2).map(|of_one| ipus / of_one).collect();
        counts.dedup();
        let mut fastest: Option<Claim<'s>> = None;
        // Replicas on more IPUs are tried first. The loop ends at the first that do not fit, since
        // replicas on fewer IPUs do not fit either.
        for replicas in counts.into_iter().rev() {
            let changed = request
                .changed()
                .with_replicas(replicas)
                .with_state(answer.best.pipeline.state);
            let Some(claim) = self.answered_if_fitting(changed)? else {
                break;
            };
            // A `Claim` (the best split for a changed request) holds the memory and time of many
            // ranges of layers. To save memory, only the claim with the fastest split is kept.
            let best = fastest.as_ref().map_or(&answer.best, |own| &own.best);
            if claim.best.by_rate(best).is_lt() {
                fastest = Some(claim);
            }
        }
        Ok(fastest)
    }

    /// Returns the best split for each micro-batch size that the model was recorded with, in
    /// ascending order of size; empty if there is only one size.
    fn of_sizes(&self, request: &Request) -> Result<Vec<Claim<'s>>> {
        let mut sizes = Vec::new();
        for own in &self.sizes {
            sizes.extend(own.answered(request.changed())?);
        }
        sizes.sort_by_key(|claim| claim.best.samples);
        Ok(sizes)
    }

    /// Returns the best split on each number of IPUs, in ascending order; empty unless a sweep
    /// (`--sweep`) was requested.
    fn sweep(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Vec<Claim<'s>>> {
        let options = &request.options;
        if !options.sweep {
            return Ok(Vec::new());
        }
        let most = match request.all_ipus()? {
            IpuCount::Exactly(ipus) => ipus,
            IpuCount::UpTo(_) if answer.best.fits => answer.best.all_ipus(),
            IpuCount::UpTo(most) => most.min(TRIED_IPUS),
        };
        let replicas = options.replicas() as usize;
        let mut claims = Vec::new();
        for ipus in (replicas..=most).step_by(replicas) {
            claims.extend(self.answered(request.changed().without_given().with_ipus(ipus))?);
        }
        Ok(claims)
    }

    /// Returns the rows of a plan (`--plan`): first the best split `answer`, then the best split of
    /// each pipeline on each number of IPUs, with optimizer state in the same place as in `answer`
    /// or off the chip. A row is left out if an earlier row is at least as good in number of IPUs,
    /// time and memory, or differs little from it. Returns no rows if `answer` does not fit, or if
    /// the user gave a split.
    fn plan(&self, request: &Request, answer: &Answer<'_, 's>) -> Result<Front<'s>> {
        if !answer.best.fits || request.judged.is_some() {
            return Ok(Front::default());
        }
        let most = answer.best.all_ipus().max(match request.all_ipus()? {
            IpuCount::Exactly(ipus) => ipus,
            IpuCount::UpTo(_) => 0,
        });
        let pipelines = self.planned_pipelines(request, answer)?;
        // The numbers of IPUs to try: every number up to 16 (`TRIED_IPUS`), above that powers of 2,
        // and the maximum. With PopTorch, only powers of 2 are tried.
        let ipus: Vec<usize> = (1..=most)
            .filter(|&ipus| ipus <= TRIED_IPUS || ipus.is_power_of_two() || ipus == most)
            .filter(|&ipus| self.supported(ipus) == ipus)
            .collect();
        let question = answer
            .level
            .question(&request.changed().with_ipus(most).request)?;
        answer.level.space.prepare(&question, &pipelines)?;
        let mut rows = Vec::new();
        for &pipeline in &pipelines {
            rows.extend(self.rows(request, pipeline, &ipus)?);
        }
        Ok(Front {
            rows: selected(answer.claim(Vec::new())?, rows),
            ipus,
            pipelines,
        })
    }

    /// Returns the rows of a plan (`--plan`) for `pipeline`. `ipus` has the numbers of IPUs to try,
    /// in ascending order. A number of IPUs has a row if the best split on these IPUs fits and uses
    /// all of them.
    fn rows(
        &self,
        request: &Request,
        pipeline: Pipeline,
        ipus: &[usize],
    ) -> Result<Vec<Claim<'s>>> {
        let (mut rows, mut most) = (Vec::new(), usize::MAX);
        for &ipus in ipus.iter().rev() {
            if ipus > most || !ipus.is_multiple_of(request.options.replicas_in(pipeline)) {
                continue;
            }
            let changed = request.changed().with_ipus(ipus).with_pipeline(pipeline);
            // Keep optimizer state where `pipeline` has it (such as off the chip), since other
            // places have their own rows in the plan.
            let mut groups = self.pipelines(&changed.request)?;
            groups.retain(|group| group.iter().any(|own| own.state == pipeline.state));
            let Some(row) = self.fitting_in(&changed.request, &groups)? else {
                // The loop goes from more to fewer IPUs, and ends here: if no split fits on `ipus`
                // IPUs, none fits on fewer.
                break;
            };
            // The best split on `ipus` IPUs may use only `most` of them. It is then also the best
            // split on every number of IPUs from `most` to `ipus`, so larger numbers than `most`
            // are skipped.
            most = self.supported(row.best.solution.score.stages) * row.best.replicas;
            if most >= ipus {
                rows.push(row.claim(changed.change)?);
            }
        }
        Ok(rows)
    }

    /// Returns the pipelines that a plan (`--plan`) tries: all that the framework supports and
    /// `request` allows, with optimizer state in the same place as in the best split `answer` and,
    /// if `request` leaves the place open, also off the chip.
    fn planned_pipelines(
        &self,
        request: &Request,
        answer: &Answer<'_, 's>,
    ) -> Result<Vec<Pipeline>> {
        let (best, model) = (answer.best.pipeline, &self.analysis.model);
        let mut states = vec![(best.state, best.replicas)];
        let open = self.pipelines(request)?.concat();
        let is_open = open.iter().any(|open| open.state != StatePlace::OnChip);
        if best.state == StatePlace::OnChip && is_open {
            states.push((StatePlace::OffChip, request.options.replicas()));
        }
        let asked = request.options.pipeline;
        let all = asked
            .choose(model)
            .possible(asked, model.backward_start.is_some());
        let in_state =
            |(state, replicas)| all.iter().map(move |own| own.with_state(state, replicas));
        Ok(states.into_iter().flat_map(in_state).collect())
    }
}

/// Returns the names of tied weights: several layers share such a weight, so these layers must be
/// on one IPU. Weights that the user untied are left out.
fn tied_weights(placement: &Placement) -> Vec<String> {
    placement
        .ties
        .iter()
        .filter(|tie| tie.binds(&placement.positions).is_some())
        .map(|tie| tie.weight.clone())
        .collect()
}

/// Returns the rows to show in a plan: `first` (the best split for the request itself), then rows
/// of `rows`, the fastest first and rows with a partly unknown time last. A row is left out if an
/// earlier row is at least as good in number of IPUs, time and memory at once, or if it differs
/// little from the row before it.
fn selected<'s>(first: Claim<'s>, mut rows: Vec<Claim<'s>>) -> Vec<Claim<'s>> {
    rows.sort_by(|one, other| {
        let (one, other) = (&one.best, &other.best);
        one.lacks_time
            .cmp(&other.lacks_time)
            .then(one.by_rate(other))
            .then(one.all_ipus().cmp(&other.all_ipus()))
            .then(one.by_peak(other))
    });
    let mut selected = vec![first];
    for row in rows {
        let is_beaten = selected.iter().any(|other| {
            other.best.lacks_time <= row.best.lacks_time
                && other.best.all_ipus() <= row.best.all_ipus()
                && other.best.by_rate(&row.best).is_le()
                && other.best.by_peak(&row.best).is_le()
        });
        let differs = selected
            .last()
            .is_some_and(|last| differs(&last.best, &row.best));
        if !is_beaten && differs && selected.len() < MAX_ROWS {
            selected.push(row);
        }
    }
    selected
}

/// Returns whether two rows of a plan differ in the number of IPUs, or by at least 5 % in time or
/// peak memory.
fn differs(one: &Candidate, other: &Candidate) -> bool {
    let apart = |one: u128, other: u128| one.abs_diff(other) * 20 >= one.max(other);
    let rate = |row: &Candidate| {
        let step = row.solution.score.step?;
        let samples = u128::from(step.micro_batches) * row.samples as u128;
        Some(step.cycles / samples.max(1))
    };
    let times = rate(one).zip(rate(other));
    one.all_ipus() != other.all_ipus()
        || times.is_some_and(|(one, other)| apart(one, other))
        || apart(one.peak_bytes().into(), other.peak_bytes().into())
}
