//! Memory of splits other than the report's split. The page of `--export-html` computes this memory
//! from the numbers in this file when the reader moves cuts.

use super::answer::broken;
use crate::memory::RangeCosts;
use crate::search::SearchResult;
use crate::search::near_cuts;
use crate::solve::Rule;
use crate::time::PositionCycles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::ops::RangeInclusive;

/// The exact bytes and cycles from which the page computes any split that a reader tries, and the
/// best split for each number of IPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// Positions of the layer order at which a stage may begin or end, ascending, from 0 (In) to
    /// the number of positions. If `bytes` would be too long with all positions, only positions
    /// near the cuts of the report's split and, if there is room, of the splits in `best`.
    pub boundaries: Vec<u32>,
    /// The highest number of stages of a split that the reader can try.
    pub max_stages: u32,
    /// Whether the bytes of a stage depend on the number of stages after it, as in a pipeline that
    /// keeps copies.
    pub by_stages_after: bool,
    /// The numbers of each profile that a stage may have; one without `--amp VALUE=PROFILE`.
    pub profiles: Vec<ProfileNumbers>,
    /// The best split for each number of IPUs, ascending, within the limits of the run; if none
    /// fits, the one with the lowest peak. Above 16 IPUs, without `--sweep`, only for powers of 2
    /// and the neighbours of the number of the run.
    pub best: Vec<SplitCuts>,
    /// The constraints that the page checks beside the limits: the user's pins, required cuts and
    /// layers to keep together, and ties of weights.
    pub constraints: Vec<CheckedConstraint>,
    /// Bytes of memory of a tile, from the command line or the profile: one number for all IPUs, or
    /// one for each IPU. Empty in a report that no command made.
    pub memories: Vec<u64>,
    /// For each entry of `memories`, the bytes of a tile that are kept free. The limit is the rest.
    pub reserves: Vec<u64>,
    /// The words about the model and the constraints with which a command line for another split
    /// begins. Empty in a report that no command made.
    pub arguments: Vec<String>,
}

/// The bytes and cycles of one profile, from which the page computes the stages that have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileNumbers {
    /// The available memory proportion of the profile; `null` without `--amp`.
    pub amp: Option<f64>,
    /// Bytes on the fullest tile of each range of layers from one boundary to a later one as a
    /// stage, by start, then by end. With `by_stages_after`, each range has several numbers, by the
    /// number of stages after it: 0 for a range up to the last boundary, otherwise 1, 2, ... up to
    /// `max_stages` less 1, or to the number of boundaries after its end.
    pub bytes: Vec<u64>,
    /// Bytes that cross a cut, over all tiles, for a cut at each boundary except the first and the
    /// last.
    pub cut_bytes: Vec<u64>,
    /// The cycles of one micro-batch by position of the layer order; `null` if any profile has no
    /// cycles.
    pub cycles: Option<PositionCycles>,
}

/// The best split on a number of IPUs, by its cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SplitCuts {
    /// The number of IPUs that the split may use.
    pub ipus: u32,
    /// Whether the split fits.
    pub fits: bool,
    /// The first layer of each stage but stage 0, as a position in the layer order (0 for In).
    pub cuts: Vec<u32>,
}

/// A constraint on the split that the page can check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckedConstraint {
    /// The name of the constraint, for the message that a split breaks it.
    pub name: String,
    /// The rule that a split must keep to.
    #[serde(flatten)]
    pub rule: Rule,
}

impl WhatIf {
    /// Returns the numbers of stages after a range of layers for which `bytes` has an entry. `end`
    /// is the index of the boundary at which the range ends, and `boundaries` is the number of
    /// boundaries.
    fn after(&self, boundaries: usize, end: usize) -> RangeInclusive<usize> {
        let later = boundaries.saturating_sub(end + 1);
        match (self.by_stages_after, later) {
            (false, _) | (true, 0) => 0..=0,
            (true, later) => 1..=later.min((self.max_stages as usize).saturating_sub(1)),
        }
    }

    /// Returns the length that the `bytes` of each profile would have if there were `boundaries`
    /// boundaries.
    fn numbers(&self, boundaries: usize) -> usize {
        (1..boundaries)
            .map(|end| end * self.after(boundaries, end).count())
            .sum()
    }

    /// Returns what each entry of `bytes` stands for if `boundaries` are the boundaries, in the
    /// order of the entries: the start and the end (exclusive) of a range of positions, and the
    /// number of stages after the range.
    pub(super) fn ranges(&self, boundaries: &[u32]) -> impl Iterator<Item = (u32, u32, usize)> {
        let places = 0..boundaries.len();
        places.clone().flat_map(move |start| {
            places.clone().skip(start + 1).flat_map(move |end| {
                let after = self.after(boundaries.len(), end);
                after.map(move |after| (boundaries[start], boundaries[end], after))
            })
        })
    }

    /// Returns the boundaries among `all` (positions, ascending) with which the `bytes` of a profile
    /// have at most `max_numbers` entries, in ascending order: all of them or, if that is too much,
    /// both ends of the layer order, and the boundaries near the cuts `split` and near the cuts of
    /// the best splits, up to the largest distance that `max_numbers` allows. If it allows no
    /// distance, the cuts of the best splits are ignored. Returns `None` if even the cuts `split`
    /// need more entries.
    fn chosen(&self, all: &[u32], split: &[u32], max_numbers: usize) -> Option<Vec<u32>> {
        /// Maximum distance of a kept boundary from the nearest cut, in positions.
        const FAR: u32 = 64;
        let fits = |boundaries: usize| self.numbers(boundaries) <= max_numbers;
        if fits(all.len()) {
            return Some(all.to_vec());
        }
        let of_split: BTreeSet<u32> = all
            .first()
            .into_iter()
            .chain(all.last())
            .chain(split)
            .copied()
            .collect();
        let of_best = self.best.iter().flat_map(|best| &best.cuts);
        let kept = of_split.iter().chain(of_best).copied().collect();
        let within = |cuts: &BTreeSet<u32>| near_cuts(all, cuts, FAR, fits);
        within(&kept).or_else(|| within(&of_split))
    }

    /// Returns `self` with other `boundaries` and with the numbers `profiles` for them. Leaves out
    /// best splits with cuts at other boundaries.
    fn between(mut self, boundaries: Vec<u32>, profiles: Vec<ProfileNumbers>) -> Self {
        self.best.retain(|best| {
            best.cuts
                .iter()
                .all(|cut| boundaries.binary_search(cut).is_ok())
        });
        Self {
            profiles,
            boundaries,
            ..self
        }
    }

    /// Returns a copy with at most `max_numbers` entries in the `bytes` of each profile, in which
    /// the cuts `split` are still possible. Returns `None` if these cuts need more entries.
    pub(super) fn narrowed(&self, max_numbers: usize, split: &[u32]) -> Option<Self> {
        let kept = self.chosen(&self.boundaries, split, max_numbers)?;
        let place = |at: &u32| kept.binary_search(at).ok();
        let is_kept = |(start, end, after): (u32, u32, usize)| {
            let is_end = |end| self.after(kept.len(), end).contains(&after);
            place(&start).is_some() && place(&end).is_some_and(is_end)
        };
        let profiles = self.profiles.iter().map(|own| ProfileNumbers {
            bytes: (self.ranges(&self.boundaries).zip(&own.bytes))
                .filter_map(|(range, &bytes)| is_kept(range).then_some(bytes))
                .collect(),
            cut_bytes: (self.boundaries.iter().skip(1).zip(&own.cut_bytes))
                .filter_map(|(at, &bytes)| place(at).map(|_| bytes))
                .collect(),
            ..own.clone()
        });
        let profiles = profiles.collect();
        Some(self.clone().between(kept, profiles))
    }
}

/// Maximum number of entries in [`ProfileNumbers::bytes`], summed over all profiles; they take
/// about 1.2 MB of JSON.
const MAX_NUMBERS: usize = 150_000;

impl WhatIf {
    /// Returns the bytes and cycles of splits other than the report's split. Returns `None` if
    /// these were not requested, if the report's split lacks layers or has more stages than the
    /// bytes were computed for, or if the bytes of any range are missing.
    pub(super) fn new(search: &SearchResult<'_>) -> Option<Self> {
        let all_costs: Vec<_> = match &search.near[..] {
            [] => search
                .costs
                .by_profile
                .iter()
                .map(|own| &*own.ranges)
                .collect(),
            near => near.iter().collect(),
        };
        let costs = all_costs[0];
        let stages = &search.shown.stages;
        if !search.costs.request().options.what_if
            || stages.last().is_none_or(|last| last.end < costs.layers())
            || stages.len() > costs.stages()
        {
            return None;
        }
        let without_numbers = Self::without_numbers(search, costs);
        let positions = costs.layers() as u32;
        let is_whole = |at: u32| {
            all_costs
                .iter()
                .all(|costs| costs.reach(at as usize) == costs.layers())
        };
        let all: Vec<u32> = (0..positions)
            .filter(|&at| is_whole(at))
            .chain([positions])
            .collect();
        let most = MAX_NUMBERS / all_costs.len();
        let boundaries = without_numbers.chosen(&all, &cuts(stages), most)?;
        let inner = boundaries.get(1..boundaries.len() - 1)?;
        let has_cycles = search.costs.problem().has_cycles();
        let numbers = |profile: usize| {
            let bytes_of = |(start, end, after): (u32, u32, usize)| {
                all_costs[profile].peak(start as usize..end as usize, after)
            };
            let bytes = without_numbers.ranges(&boundaries).map(bytes_of);
            let cut_bytes = |&at: &u32| search.costs.cut_bytes(profile, at as usize);
            let times = search.costs.by_profile[profile].times.as_ref();
            Some(ProfileNumbers {
                amp: search.costs.proportion(profile),
                bytes: bytes.collect::<Option<_>>()?,
                cut_bytes: inner.iter().map(cut_bytes).collect(),
                cycles: times
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

    /// Returns the best splits, the constraints and the number of stages that the reader can try,
    /// without boundaries and without numbers. `costs` has the bytes of ranges.
    fn without_numbers(search: &SearchResult<'_>, costs: &RangeCosts) -> Self {
        let best = best(search);
        let max_stages = best
            .iter()
            .map(|best| best.ipus as usize)
            .max()
            .unwrap_or(search.costs.ipus)
            .max(search.shown.stages.len())
            .min(costs.stages());
        Self {
            max_stages: max_stages as u32,
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

/// Returns the best split for each number of IPUs that the search tried, in the pipeline of the
/// report's split. If the search tried no other numbers, returns only the report's split, or an
/// empty list if the user gave that split.
fn best(search: &SearchResult<'_>) -> Vec<SplitCuts> {
    let split = |ipus: usize, fits: bool, stages: &[Range<usize>]| SplitCuts {
        ipus: ipus as u32,
        fits,
        cuts: cuts(stages),
    };
    let shown = split(search.costs.ipus, search.shown.fits, &search.shown.stages);
    let is_best = search.by_ipus.is_empty() && search.costs.request().given.is_none();
    search
        .by_ipus
        .iter()
        .map(|best| split(best.ipus, best.fits, best.solution.plan.stages()))
        .chain(is_best.then_some(shown))
        .collect()
}

/// Returns the first position of each stage except stage 0.
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

    /// Returns numbers for `positions` positions of 10, 11, ... bytes, plus 100 for each stage
    /// after.
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
            // From 0: to 1 with 1 or 2 stages after, to 2 with 1, to 3 with 0. Then two ranges from
            // 1, and one from 2.
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
        // Position 20 is a cut of the best split.
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
        // If that is too much, only the split stays, or nothing.
        let few = all.narrowed(4, &split).unwrap();
        assert_eq!((few.boundaries, few.best), (vec![0, 10, 40], vec![]));
        assert_eq!(all.narrowed(2, &split), None);
    }
}
