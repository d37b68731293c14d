//! The numbers from which the HTML page of `--export-html` computes the memory and the time of
//! other splits than the report's, when its reader moves cuts.

use super::answer::broken;
use crate::{
    memory::RangeCosts,
    search::{SearchResult, near_cuts},
    solve::Rule,
    time::PositionCycles,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ops::{Range, RangeInclusive},
};

/// The exact bytes and cycles from which an HTML page computes any split that its reader tries,
/// and the best split for each number of IPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WhatIf {
    /// Positions of the layer order at which the reader of an HTML page can begin or end a stage,
    /// ascending, from 0 (In) to the number of positions. If the model has too many layers to list
    /// the bytes of all possible stages, only positions near cuts are listed: cuts of the report's
    /// split and, if there is room, of the splits in `best` (the best for each number of IPUs).
    pub boundaries: Vec<u32>,
    /// The highest number of stages in a split that the reader of an HTML page can try.
    pub max_stages: u32,
    /// Whether the bytes of a stage depend on the number of stages after it, as in a pipeline
    /// whose stages keep copies of activations for these stages.
    pub by_stages_after: bool,
    /// The bytes of possible stages and the cycles of layers, one entry for each profile of the
    /// model. There is only one, unless `--amp` names further profiles with other available memory
    /// proportions: each stage may then be compiled with the proportion of any profile.
    pub profiles: Vec<ProfileNumbers>,
    /// The best split for each number of IPUs, ascending, or the split with the lowest peak
    /// where no split fits. Above 16 IPUs, without `--sweep`, only powers of 2 and numbers next
    /// to the run's number of IPUs have an entry.
    pub best: Vec<SplitCuts>,
    /// The constraints that the HTML page checks beside the limits: the user's pins, required
    /// cuts and layers to keep together, and ties of weights.
    pub constraints: Vec<CheckedConstraint>,
    /// Bytes of memory of a tile, from the command line or the profile: one number for all
    /// IPUs, or one for each IPU. Empty if the report was made without a command line.
    pub memories: Vec<u64>,
    /// Bytes that stay free on each tile (`--reserve`): one number for all IPUs, or one for each
    /// IPU, as in `memories` (the memory of a tile). A stage may take the memory less these bytes.
    pub reserves: Vec<u64>,
    /// The arguments about the model and the constraints with which the HTML page begins a
    /// command line for another split. Empty if the report was made without a command line.
    pub arguments: Vec<String>,
}

/// The bytes and cycles of one profile. With `--amp`, an HTML page uses them for the stages that
/// are compiled with the available memory proportion of this profile; without, for all stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct ProfileNumbers {
    /// The available memory proportion of the profile; `null` without `--amp`.
    pub amp: Option<f64>,
    /// Bytes on the fullest tile of each possible stage, sorted by the beginning of the stage and
    /// then by its end, which can be any two of `boundaries`. With `by_stages_after`, a stage that
    /// ends before the last boundary has one number for each number of stages that can follow it,
    /// ascending: from 1 to the number of later boundaries, but less than `max_stages`. Any other
    /// stage has one number.
    pub bytes: Vec<u64>,
    /// For each boundary except the first and the last, the bytes that cross a cut there, over
    /// all tiles.
    pub cut_bytes: Vec<u64>,
    /// The cycles of one micro-batch by position of the layer order; `null` if any profile has
    /// no cycles.
    pub cycles: Option<PositionCycles>,
}

/// The best split on a number of IPUs, as the list of its cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SplitCuts {
    /// The number of IPUs that the best split may use.
    pub ipus: u32,
    /// Whether the split is within the limits of all its stages.
    pub fits: bool,
    /// The first layer of each stage but stage 0, as a position in the layer order (0 for In).
    pub cuts: Vec<u32>,
}

/// A constraint on the split, such as a pin, that an HTML page checks when its reader moves
/// cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct CheckedConstraint {
    /// The name of the constraint, for the message that a split breaks the constraint.
    pub name: String,
    /// The condition on a split, such as that two layers are in one stage.
    #[serde(flatten)]
    pub rule: Rule,
}

impl WhatIf {
    /// Returns the possible numbers of stages after a stage that ends at the boundary with index
    /// `end`; [`ProfileNumbers::bytes`] has one entry for each. The result is `0..=0` if bytes do
    /// not depend on this number. `boundaries` is the number of positions where a stage may begin
    /// or end.
    fn after(&self, boundaries: usize, end: usize) -> RangeInclusive<usize> {
        let later = boundaries.saturating_sub(end + 1);
        match (self.by_stages_after, later) {
            (false, _) | (true, 0) => 0..=0,
            (true, later) => 1..=later.min((self.max_stages as usize).saturating_sub(1)),
        }
    }

    /// Computes how many entries [`ProfileNumbers::bytes`] would have with this number of
    /// `boundaries` (positions where a stage may begin or end).
    fn numbers(&self, boundaries: usize) -> usize {
        (1..boundaries)
            .map(|end| end * self.after(boundaries, end).count())
            .sum()
    }

    /// Returns one triple for each entry of [`ProfileNumbers::bytes`]. The triple describes the
    /// stage that has these bytes: its first position in the layer order, its end (exclusive), and
    /// the number of stages after it.
    pub(super) fn ranges(&self, boundaries: &[u32]) -> impl Iterator<Item = (u32, u32, usize)> {
        let places = 0..boundaries.len();
        places.clone().flat_map(move |start| {
            places.clone().skip(start + 1).flat_map(move |end| {
                let after = self.after(boundaries.len(), end);
                after.map(move |after| (boundaries[start], boundaries[end], after))
            })
        })
    }

    /// Chooses the boundaries (positions where a stage may begin or end) among the positions `all`,
    /// so that [`ProfileNumbers::bytes`] has at most `max_numbers` entries. Takes the first of
    /// these choices that is small enough:
    /// - all positions
    /// - positions near the cuts of the report's split (`split`) and of the best splits
    /// - positions near the cuts of the report's split
    ///
    /// Returns `None` if no choice is small enough, not even the cuts of the report's split alone.
    fn chosen(&self, all: &[u32], split: &[u32], max_numbers: usize) -> Option<Vec<u32>> {
        /// Maximum distance, in positions of the layer order, at which a position counts as near a
        /// cut.
        const FAR: u32 = 64;
        let fits = |boundaries: usize| self.numbers(boundaries) <= max_numbers;
        if fits(all.len()) {
            return Some(all.to_vec());
        }
        let ends = all.first().into_iter().chain(all.last());
        let of_split: BTreeSet<u32> = ends.chain(split).copied().collect();
        let of_best = self.best.iter().flat_map(|best| &best.cuts);
        let kept = of_split.iter().chain(of_best).copied().collect();
        let within = |cuts: &BTreeSet<u32>| near_cuts(all, cuts, FAR, fits);
        within(&kept).or_else(|| within(&of_split))
    }

    /// Sets the fields `boundaries` (the positions where a stage may begin or end) and `profiles`.
    /// Drops from `best` each split that has a cut at another position.
    fn between(mut self, boundaries: Vec<u32>, profiles: Vec<ProfileNumbers>) -> Self {
        self.best
            .retain(|best| best.cuts.iter().all(|cut| boundaries.contains(cut)));
        Self {
            profiles,
            boundaries,
            ..self
        }
    }

    /// Returns a copy of this [`WhatIf`] without some boundaries (positions where a stage may begin
    /// or end), so that [`ProfileNumbers::bytes`] has at most `max_numbers` entries. The cuts of
    /// the report's split (`split`) stay boundaries. Returns `None` if these cuts alone need more
    /// entries.
    pub(super) fn narrowed(&self, max_numbers: usize, split: &[u32]) -> Option<Self> {
        let kept = self.chosen(&self.boundaries, split, max_numbers)?;
        let place = |at: &u32| kept.binary_search(at).ok();
        let is_kept = |(start, end, after): (u32, u32, usize)| {
            let is_end = |end| self.after(kept.len(), end).contains(&after);
            place(&start).is_some() && place(&end).is_some_and(is_end)
        };
        let narrowed = |own: &ProfileNumbers| ProfileNumbers {
            bytes: (self.ranges(&self.boundaries).zip(&own.bytes))
                .filter_map(|(range, &bytes)| is_kept(range).then_some(bytes))
                .collect(),
            cut_bytes: (self.boundaries.iter().skip(1).zip(&own.cut_bytes))
                .filter_map(|(at, &bytes)| place(at).map(|_| bytes))
                .collect(),
            ..own.clone()
        };
        let profiles = self.profiles.iter().map(narrowed).collect();
        Some(self.clone().between(kept, profiles))
    }
}

/// Maximum number of entries of [`ProfileNumbers::bytes`] over all profiles, so that they take at
/// most about 1.2 MB of an HTML page.
const MAX_NUMBERS: usize = 150_000;

impl WhatIf {
    /// Collects the bytes and cycles from which the HTML page computes other splits than the
    /// report's. Returns `None` if the page was not requested, if the report's split lacks layers,
    /// or if bytes are missing for a stage that a person could make by moving cuts on the page.
    pub(super) fn new(search: &SearchResult<'_>) -> Option<Self> {
        let by_profile = &search.costs.by_profile;
        let all_costs: Vec<_> = match &search.near[..] {
            [] => by_profile.iter().map(|own| &*own.ranges).collect(),
            near => near.iter().collect(),
        };
        let (costs, stages) = (all_costs[0], &search.shown.stages);
        if !search.costs.request().options.what_if
            || stages.last().is_none_or(|last| last.end < costs.layers())
            || stages.len() > costs.stages()
        {
            return None;
        }
        let without_numbers = Self::without_numbers(search, costs);
        let positions = costs.layers() as u32;
        let is_whole =
            |&at: &u32| (all_costs.iter()).all(|costs| costs.reach(at as usize) == costs.layers());
        let all = Vec::from_iter((0..positions).filter(is_whole).chain([positions]));
        let most = MAX_NUMBERS / all_costs.len();
        let boundaries = without_numbers.chosen(&all, &cuts(stages), most)?;
        let inner = boundaries.get(1..boundaries.len() - 1)?;
        let has_cycles = search.costs.problem().has_cycles();
        let numbers = |profile: usize| {
            Some(ProfileNumbers {
                amp: search.costs.proportion(profile),
                bytes: (without_numbers.ranges(&boundaries))
                    .map(|(start, end, after)| {
                        all_costs[profile].peak(start as usize..end as usize, after)
                    })
                    .collect::<Option<_>>()?,
                cut_bytes: (inner.iter())
                    .map(|&at| by_profile[profile].bytes_over_cut(at as usize))
                    .collect(),
                cycles: (by_profile[profile].times.as_ref())
                    .filter(|_| has_cycles)
                    .map(|times| times.by_position()),
            })
        };
        let profiles = search
            .costs
            .profiles()
            .map(numbers)
            .collect::<Option<_>>()?;
        Some(without_numbers.between(boundaries, profiles))
    }

    /// Collects what the HTML page needs when its reader moves cuts, except bytes and cycles: the
    /// best splits, the constraints and the highest number of stages. The fields `boundaries` and
    /// `profiles` stay empty, and [`between`](Self::between) fills them later. `costs` has the
    /// bytes of ranges of layers.
    fn without_numbers(search: &SearchResult<'_>, costs: &RangeCosts) -> Self {
        let split = |ipus: usize, fits: bool, stages: &[Range<usize>]| SplitCuts {
            ipus: ipus as u32,
            fits,
            cuts: cuts(stages),
        };
        let (ipus, shown) = (search.costs.ipus, &search.shown);
        // List the report's split as the best one on its number of IPUs if no other number was
        // tried, unless the user gave this split.
        let is_best = search.by_ipus.is_empty() && search.costs.request().given.is_none();
        let best: Vec<_> = (search.by_ipus.iter())
            .map(|best| split(best.ipus, best.fits, best.solution.plan.stages()))
            .chain(is_best.then(|| split(ipus, shown.fits, &shown.stages)))
            .collect();
        let max_ipus = best.iter().map(|best| best.ipus as usize).max();
        Self {
            max_stages: max_ipus
                .unwrap_or(ipus)
                .max(shown.stages.len())
                .min(costs.stages()) as u32,
            by_stages_after: costs.is_by_depth(),
            best,
            constraints: (search.costs.constraints().iter())
                .map(|constraint| CheckedConstraint {
                    name: broken(constraint),
                    rule: constraint.rule,
                })
                .collect(),
            ..Self::default()
        }
    }
}

/// Returns the cuts of a split, that is, the first position of each stage except stage 0.
fn cuts(stages: &[Range<usize>]) -> Vec<u32> {
    stages
        .iter()
        .skip(1)
        .map(|stage| stage.start as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a [`WhatIf`] in which a stage has 10 bytes for In (position 0), 11 for the first
    /// layer, 12 for the next, and so on, and 100 more bytes for each stage after it.
    fn what_if(positions: u32, max_stages: u32, by_stages_after: bool) -> WhatIf {
        let boundaries: Vec<u32> = (0..=positions).collect();
        let mut made = WhatIf {
            max_stages,
            by_stages_after,
            profiles: vec![ProfileNumbers {
                cut_bytes: (1..positions).map(u64::from).collect(),
                ..ProfileNumbers::default()
            }],
            best: vec![SplitCuts {
                ipus: 2,
                fits: true,
                cuts: vec![positions / 2],
            }],
            boundaries,
            ..WhatIf::default()
        };
        made.profiles[0].bytes = expected(&made);
        made
    }

    fn expected(made: &WhatIf) -> Vec<u64> {
        let bytes_of = |(start, end, after)| {
            let bytes: u64 = (start..end).map(|at| 10 + u64::from(at)).sum();
            bytes + 100 * after as u64
        };
        made.ranges(&made.boundaries).map(bytes_of).collect()
    }

    #[test]
    fn there_are_as_many_numbers_as_the_shape_says() {
        for (positions, stages, by_stages_after, numbers) in [
            (1, 1, true, 1),
            (3, 2, false, 6),
            // With boundaries 0 to 3 and at most 3 stages, 7 numbers are expected. The stage from 0
            // to 1 has two of them, since 1 or 2 stages can follow it. The stages from 0 to 2, 0 to
            // 3, 1 to 2, 1 to 3 and 2 to 3 have one each.
            (3, 3, true, 4 + 2 + 1),
            (3, 1, true, 3),
        ] {
            let made = what_if(positions, stages, by_stages_after);
            assert_eq!(
                made.profiles[0].bytes.len(),
                numbers,
                "{positions} {stages}"
            );
            assert_eq!(
                made.numbers(made.boundaries.len()),
                numbers,
                "{positions} {stages}"
            );
        }
        assert_eq!(
            what_if(3, 3, true).profiles[0].bytes[..4],
            [110, 210, 121, 33]
        );
    }

    #[test]
    fn fewer_numbers_are_those_around_the_cuts() {
        let all = what_if(40, 4, true);
        let split = [10];
        assert_eq!(all.narrowed(usize::MAX, &split).as_ref(), Some(&all));
        let some = all.narrowed(500, &split).unwrap();
        let numbers = &some.profiles[0];
        assert!(numbers.bytes.len() <= 500, "{}", numbers.bytes.len());
        for boundary in [0, 9, 10, 11, 19, 20, 21, 39, 40] {
            assert!(some.boundaries.contains(&boundary), "{:?}", some.boundaries);
        }
        assert!(!some.boundaries.contains(&15), "{:?}", some.boundaries);
        assert_eq!(numbers.bytes, expected(&some));
        let inner = some.boundaries.iter().filter(|&&at| at > 0 && at < 40);
        assert!(
            inner
                .copied()
                .map(u64::from)
                .eq(numbers.cut_bytes.iter().copied())
        );
        // If there is room for only one cut, `narrowed` keeps the cut of the report's split and
        // drops the best split, which has other cuts.
        let few = all.narrowed(4, &split).unwrap();
        assert_eq!((few.boundaries, few.best), (vec![0, 10, 40], vec![]));
        assert_eq!(all.narrowed(2, &split), None);
    }
}
