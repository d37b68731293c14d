//! Answers a request: finds the best split of the layers into stages, and chooses the layers, the
//! pipeline, and where optimizer state is kept.
//!
//! The first of these choices for which a split fits gives the answer:
//!
//! - Optimizer state is on the chip, then off the chip, then sharded over replicas, then both.
//! - For each of these places, layers are whole, then (on several IPUs) divided into modules.
//!
//! This order also ensures that more IPUs or more memory never turn a model that fits into one that
//! does not. If nothing fits, the answer is the split with the lowest peak memory. If the model was
//! recorded with several micro-batch sizes, the answer is the best over all sizes.
//!
//! `claims.rs` asks for the answers to changed requests (other options, limits or numbers of IPUs),
//! which the report also states.

use super::{Analysis, FurtherProfile, Layers, Request, further::check_same};
use crate::{
    memory::Pipeline,
    message::{refused, usage},
    model::{PlacementOptions, Repeat, TooManyPlaces},
    progress::Progress,
    search::{Candidate, Claim, PipelineCosts, ProfileTables, Question, Reach, Space, Word},
    solve::{Plan, SolveError},
    time::StepOptions,
};
use anyhow::{Error, Result};
use elsa::FrozenVec;
use std::{cmp::Ordering, sync::Arc};

/// Finds the best split for each request about one model. Keeps every layering (assignment of
/// operations to layers) that a request has needed, with the memory and time of ranges of its
/// layers, for later requests.
pub struct Answers<'s> {
    pub analysis: &'s Analysis,
    /// Number of samples in a micro-batch; `None` stands for the micro-batch size of the main
    /// profile (the first that the user names).
    samples: Option<u64>,
    /// The profiles whose micro-batch size is `samples`. They differ only in their available memory
    /// proportion (`--amp`). If `samples` is `None`, the first of them is the main profile.
    profiles: Vec<&'s Analysis>,
    /// If the model was recorded with several micro-batch sizes: one `Answers` per size, which uses
    /// only the profiles of this size. First comes the size of the main profile. Empty otherwise.
    pub sizes: Vec<Self>,
    layers: &'s FrozenVec<Box<Layers<'s>>>,
    levels: FrozenVec<Box<Level<'s>>>,
    /// Cache of the layerings (assignments of operations to layers). The key has the options that
    /// determine a layering. The value is its index in `levels`, or `None` if the layers cannot be
    /// divided as finely as the key asks.
    known: FrozenVec<Box<(Choice, Option<usize>)>>,
    pub progress: Progress,
}

/// Key by which a layering (an assignment of operations to layers) is cached: the options that it
/// depends on, and its index from the coarsest layering (0) to the finest.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    named: Vec<String>,
    placement: PlacementOptions,
    number: usize,
}

/// One layering (assignment of operations to layers) of one profile, such as whole layers or the
/// modules inside them, with the memory and time of the ranges of layers that may become stages.
#[derive(Debug)]
pub struct Level<'s> {
    pub layers: &'s Layers<'s>,
    /// The layers of the model in each profile of one micro-batch size. If there are several, they
    /// differ in the available memory proportion (`--amp`). The main profile, which the user names
    /// first, is the first entry if it has this size.
    pub in_each_profile: Vec<&'s Layers<'s>>,
    pub space: Space<'s>,
    /// The numbers from which, besides cycles, the time of one step of the whole pipeline is
    /// computed, such as the number of micro-batches in this step and the bandwidth between IPUs.
    pub step: StepOptions,
}

/// The answer to a request: the best split or, if none fits, the split with the lowest peak.
#[derive(Debug, Clone)]
pub struct Answer<'l, 's> {
    pub level: &'l Level<'s>,
    pub question: Arc<Question>,
    pub best: Candidate,
}

impl<'s> Answers<'s> {
    pub fn new(
        (analysis, further): (&'s Analysis, &'s [FurtherProfile]),
        layers: &'s FrozenVec<Box<Layers<'s>>>,
        progress: &Progress,
    ) -> Self {
        let with_size = |samples: Option<u64>| {
            let main = samples.is_none().then_some(analysis);
            let further = further.iter().filter(|own| own.samples == samples);
            Self {
                analysis,
                samples,
                profiles: main
                    .into_iter()
                    .chain(further.map(|own| &own.analysis))
                    .collect(),
                sizes: Vec::new(),
                layers,
                levels: FrozenVec::new(),
                known: FrozenVec::new(),
                progress: progress.clone(),
            }
        };
        let others = further.iter().map(|own| own.samples);
        let mut sizes: Vec<Self> = others.filter(Option::is_some).map(with_size).collect();
        if !sizes.is_empty() {
            sizes.insert(0, with_size(None));
        }
        Self {
            sizes,
            ..with_size(None)
        }
    }

    /// Returns the layering (assignment of operations to layers) of the main profile in which each
    /// layer is whole, not divided into modules.
    pub fn whole_layers(&self, request: &Request) -> Result<&Level<'s>> {
        let whole = self.by_size()[0].nth_level(request, 0)?;
        Ok(whole.expect("there are always whole layers"))
    }

    /// Returns one `Answers` per micro-batch size in which the model was recorded. Each uses only
    /// the profiles of its size. The size of the main profile comes first.
    pub fn by_size(&self) -> &[Self] {
        if self.sizes.is_empty() {
            std::slice::from_ref(self)
        } else {
            &self.sizes
        }
    }

    /// Returns the answer to `request`: the user's own split if `request` has one, otherwise the
    /// best split that fits or, if no split fits, the split with the lowest peak memory. Returns
    /// `None` if no split obeys constraints such as `--pin`.
    pub fn answer(&self, request: &Request) -> Result<Option<Answer<'_, 's>>> {
        match self.fitting(request)? {
            None if request.judged.is_none() => self.lowest(request),
            answer => Ok(answer),
        }
    }

    /// Returns the best split for `request`, or `None` if no split fits. If the user gave a split,
    /// returns this split, whether it fits or not.
    pub fn fitting(&self, request: &Request) -> Result<Option<Answer<'_, 's>>> {
        self.fitting_in(request, &self.pipelines_to_try(request)?)
    }

    /// Returns the best split for `request` over all micro-batch sizes, or `None` if no split fits.
    /// Each group in `groups` has pipelines to try (schedule, recomputation, place of optimizer
    /// state); the groups are tried in order, until a split fits. If the user gave a split and it
    /// fits in no pipeline, returns it in the pipeline in which its peak memory is lowest.
    pub fn fitting_in(
        &self,
        request: &Request,
        groups: &[Vec<Pipeline>],
    ) -> Result<Option<Answer<'_, 's>>> {
        let found = self
            .by_size()
            .iter()
            .map(|own| own.fitting_with_size(request, groups))
            .collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().min_by(Answer::compare))
    }

    fn fitting_with_size(
        &self,
        request: &Request,
        groups: &[Vec<Pipeline>],
    ) -> Result<Option<Answer<'_, 's>>> {
        let mut lowest: Option<Answer<'_, 's>> = None;
        for pipelines in groups {
            for level in self.own_levels(request) {
                let Some(answer) = level?.best(request, pipelines)? else {
                    continue;
                };
                if answer.best.fits {
                    return self.with_whole_layers(request, answer, pipelines).map(Some);
                }
                lowest = lowest.into_iter().chain([answer]).min_by(Answer::compare);
            }
        }
        Ok(lowest)
    }

    /// Returns the split with the lowest peak memory over all profiles, layerings and pipelines
    /// that `request` allows, whether it fits or not; `None` if no split obeys the constraints.
    fn lowest(&self, request: &Request) -> Result<Option<Answer<'_, 's>>> {
        let pipelines = self.pipelines(request)?.concat();
        let mut lowest: Option<Answer<'_, 's>> = None;
        for level in self.levels(request) {
            let below = lowest.as_ref().map(|lowest| lowest.best.peak_bytes());
            lowest = level?.lowest(request, &pipelines, below)?.or(lowest);
        }
        Ok(lowest)
    }

    /// Returns the pipelines that `request` allows, in groups to try in order. If the user's split
    /// cuts between layers that a micro-batch runs through several times, only pipelines whose
    /// stages never run at the same time are returned. Returns an error if `request` rules these
    /// pipelines out.
    fn pipelines_to_try(&self, request: &Request) -> Result<Vec<Vec<Pipeline>>> {
        if request.judged.is_none() {
            return self.pipelines(request);
        }
        let whole = self.whole_layers(request)?;
        let given = &whole.question(request)?.request.given;
        let cuts: Vec<usize> = given.iter().flat_map(Plan::cuts).collect();
        let mut groups = self.pipelines(request)?;
        let is_cut = |repeat: &&Repeat| cuts.iter().any(|&cut| repeat.is_cut_before(cut));
        let Some(Repeat { runs, .. }) = whole.layers.placement.repeats.iter().find(is_cut) else {
            return Ok(groups);
        };
        let is_training = self.analysis.model.backward_start.is_some();
        for pipelines in &mut groups {
            pipelines.retain(|pipeline| pipeline.takes_turns(is_training));
        }
        groups.retain(|pipelines| !pipelines.is_empty());
        if groups.is_empty() {
            return Err(usage(format!(
                "the split cuts layers that run {runs} times in a forward pass, so that IPUs can only \
                 take turns; leave --schedule and --recompute out, or cut elsewhere"
            )));
        }
        Ok(groups)
    }

    /// Returns the best split of layers that are divided into modules only where `answer` cuts
    /// them, since whole layers are easier to configure. Returns `answer` itself if none of its
    /// layers is divided, or if no split of these layers fits.
    fn with_whole_layers<'l>(
        &'l self,
        request: &Request,
        answer: Answer<'l, 's>,
        pipelines: &[Pipeline],
    ) -> Result<Answer<'l, 's>> {
        if !answer.level.layers.are_parts {
            return Ok(answer);
        }
        let level = answer.level;
        let positions = &level.layers.placement.positions;
        let cuts = answer.best.solution.plan.cuts();
        let starts: Vec<_> = cuts.map(|cut| positions.name(cut).to_string()).collect();
        let all = level
            .in_each_profile
            .iter()
            .map(|layers| layers.analysis.layers_with_parts(request, &starts))
            .collect::<Result<Vec<_>>>()?;
        let Some(all) = self.in_common(request, all)? else {
            return Ok(answer);
        };
        let index = self.index_of(all, request)?;
        let whole = self.levels[index].best(request, pipelines)?;
        Ok(whole.unwrap_or(answer))
    }

    /// Returns the number of IPUs that the framework reserves if a replica needs `ipus` IPUs:
    /// PopTorch, for example, reserves a power of 2.
    pub fn supported(&self, ipus: usize) -> usize {
        self.analysis.model.recording.framework.supported(ipus)
    }

    pub fn pipelines(&self, request: &Request) -> Result<Vec<Vec<Pipeline>>> {
        self.whole_layers(request)?.pipelines(request)
    }

    /// Iterates over the layerings (assignments of operations to layers) that `request` allows: for
    /// each micro-batch size, first whole layers, then the finer modules inside them.
    pub fn levels<'l>(&'l self, request: &Request) -> impl Iterator<Item = Result<&'l Level<'s>>> {
        self.by_size()
            .iter()
            .flat_map(move |own| own.own_levels(request))
    }

    fn own_levels<'l>(&'l self, request: &Request) -> impl Iterator<Item = Result<&'l Level<'s>>> {
        (0..).map_while(move |number| self.nth_level(request, number).transpose())
    }

    fn nth_level(&self, request: &Request, number: usize) -> Result<Option<&Level<'s>>> {
        if number > 0 && (request.judged.is_some() || request.all_ipus()?.highest() < 2) {
            return Ok(None);
        }
        let choice = Choice {
            named: request.named_layers(),
            placement: request.placement.clone(),
            number,
        };
        let index = match self.known.iter().find(|known| known.0 == choice) {
            Some(&(_, index)) => index,
            None => {
                let index = self
                    .nth_layers(request, number)?
                    .map(|layers| self.index_of(layers, request))
                    .transpose()?;
                self.known.push(Box::new((choice, index)));
                index
            }
        };
        Ok(index.map(|index| &self.levels[index]))
    }

    /// Returns the layers of the model in each of [`profiles`](Self::profiles): whole layers if
    /// `number` is 0, and finer ones the higher `number` is. Returns `None` if the layers cannot be
    /// divided so finely.
    fn nth_layers(&self, request: &Request, number: usize) -> Result<Option<Vec<Layers<'s>>>> {
        if number == 0 {
            return (self.profiles.iter())
                .map(|analysis| analysis.layers(request).map(Some))
                .collect();
        }
        let whole = self.whole_layers(request)?;
        let finer = whole
            .in_each_profile
            .iter()
            .map(|layers| layers.finer_layers(request, number))
            .collect::<Result<Option<Vec<_>>>>()?;
        finer.map_or(Ok(None), |finer| self.in_common(request, finer))
    }

    /// Returns the layers that all profiles of the model have in common: joins layers at each
    /// boundary that one of the profiles lacks. `all` has the layers of each profile. Returns
    /// `None` if the layers still differ after this.
    fn in_common(
        &self,
        request: &Request,
        all: Vec<Layers<'s>>,
    ) -> Result<Option<Vec<Layers<'s>>>> {
        let are_alike = |all: &[Layers<'s>]| {
            all.windows(2)
                .all(|two| two[0].layering.names == two[1].layering.names)
        };
        if are_alike(&all) {
            return Ok(Some(all));
        }
        let mut common = all[0].layering.names[1..].to_vec();
        common.retain(|name| all.iter().all(|own| own.layering.names.contains(name)));
        let all = all
            .iter()
            .map(|own| {
                Ok(Layers {
                    are_parts: own.are_parts,
                    ..own.analysis.layers_with_parts(request, &common)?
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(are_alike(&all).then_some(all))
    }

    /// Returns the index in `levels` (the layerings found so far) of the layering `all`, which has
    /// the layers of the model in each profile. Adds the layering if it is new. An error if the
    /// profiles are of different models.
    fn index_of(&self, all: Vec<Layers<'s>>, request: &Request) -> Result<usize> {
        let is_known = |level: &Level<'_>| level.layers.are_as(&all[0]);
        if let Some(index) = self.levels.iter().position(is_known) {
            return Ok(index);
        }
        for other in &all[1..] {
            check_same(&all[0], other)?;
        }
        let step = request.options.step.with_size(self.samples);
        let (mut in_each_profile, mut tables) = (Vec::new(), Vec::new());
        for layers in all {
            let layers: &'s Layers<'s> = self.layers.push_get(Box::new(layers));
            let cycles = layers.model().layer_cycles(&layers.placement);
            tables.push(ProfileTables::new(layers.memory()?, cycles, step));
            in_each_profile.push(layers);
        }
        self.levels.push(Box::new(Level {
            layers: in_each_profile[0],
            in_each_profile,
            space: Space::new(tables, self.progress.clone()),
            step,
        }));
        Ok(self.levels.len() - 1)
    }

    /// Converts an error of a search into the error that the command reports: contradictory
    /// constraints or tied weights are wrong usage, with exit code 2.
    pub fn explained(&self, error: Error) -> Error {
        match error.downcast_ref() {
            Some(error @ (SolveError::Contradiction(_) | SolveError::NoSuchPosition(..))) => {
                refused(error)
            }
            // Add the path of the profile to the error, unless a context of the error already names
            // it.
            _ if error.is::<TooManyPlaces>() && error.chain().len() == 1 => {
                error.context(self.analysis.displayed())
            }
            _ => error,
        }
    }
}

impl<'s> Level<'s> {
    /// Returns the best split of the layers of this layering, in one of `pipelines`, that fits the
    /// memory limits of `request`; `None` if no split fits. If the user gave a split, returns the
    /// user's split, whether it fits or not.
    pub fn best(
        &self,
        request: &Request,
        pipelines: &[Pipeline],
    ) -> Result<Option<Answer<'_, 's>>> {
        let question = self.question(request)?;
        let best = match &question.request.given {
            Some(plan) => self.space.given(&question, plan, pipelines)?,
            None => self.space.best(&question, pipelines)?,
        };
        Ok(best.map(|best| self.answer(question, best)))
    }

    /// Returns the split of the layers of this layering that has the lowest peak memory in any of
    /// `pipelines`, whatever the memory limits; `None` if no split obeys the constraints of
    /// `request` with a peak of fewer than `below` bytes.
    pub fn lowest(
        &self,
        request: &Request,
        pipelines: &[Pipeline],
        below: Option<u64>,
    ) -> Result<Option<Answer<'_, 's>>> {
        let question = self.question(request)?;
        let best = self.space.lowest(&question, pipelines, below)?;
        Ok(best.map(|best| self.answer(question, best)))
    }

    fn answer(&self, question: Arc<Question>, best: Candidate) -> Answer<'_, 's> {
        Answer {
            level: self,
            question,
            best,
        }
    }
}

impl<'s> Answer<'_, 's> {
    /// Returns the memory and time of ranges of layers in the pipeline of the best split. To save
    /// time, ranges may be left out if they take more bytes, or matter only for splits with more
    /// stages, than `reach` says. If `reach` is `None`, returns only the ranges that the search has
    /// already computed.
    pub fn costs(&self, reach: Option<Reach>) -> Result<PipelineCosts<'s>> {
        let (best, space) = (&self.best, &self.level.space);
        Ok(PipelineCosts {
            ipus: best.ipus,
            ..space.in_pipeline(&self.question, best.pipeline, reach)?
        })
    }

    /// Turns the best split for a changed request into a claim, that is, a statement of the report
    /// about this split that names the changed options (`change`).
    pub fn claim(&self, change: Vec<Word>) -> Result<Claim<'s>> {
        Ok(Claim {
            change,
            costs: self.costs(None)?,
            best: self.best.clone(),
        })
    }

    /// Orders two splits for one request, the better first. Splits that fit come before splits that
    /// do not. Among splits that fit, a completely known time comes before a partly unknown time,
    /// then the objective decides. Among splits that do not fit, the lower peak memory comes first.
    /// The two splits may be for different profiles, layerings or pipelines.
    fn compare(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (&self.best, &other.best);
        let by_value = if mine.fits {
            (mine.lacks_time.cmp(&theirs.lacks_time)).then(self.question.compare(mine, theirs))
        } else {
            mine.by_peak(theirs)
        };
        theirs.fits.cmp(&mine.fits).then(by_value)
    }
}
