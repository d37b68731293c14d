//! Memory of splits other than the report's split. The page of `--export-html` computes this memory
//! from the numbers in this file when the reader moves cuts.

use super::Inputs;
use super::answer::broken;
use crate::search::{SearchResult, near_cuts};
use crate::solve::Rule;
use crate::time::PositionCycles;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

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
    fn ranges(&self, boundaries: &[u32]) -> impl Iterator<Item = (u32, u32, usize)> {
        let places = 0..boundaries.len();
        places.clone().flat_map(move |start| {
            places.clone().skip(start + 1).flat_map(move |end| {
                let after = self.after(boundaries.len(), end);
                after.map(move |after| (boundaries[start], boundaries[end], after))
            })
        })
    }

    /// Fills in, for each of `profiles`, the bytes of all ranges between the boundaries `all`
    /// (positions, ascending), and the bytes that cross a cut at each boundary. If one profile
    /// would have more than `max_numbers` bytes of ranges, keeps only boundaries around the cuts
    /// `split` and the cuts of the best splits, as many as `max_numbers` allows, and removes best
    /// splits with cuts at other boundaries. The arguments of `bytes_of` are the index of a
    /// profile, and a start, an end and a number of stages after the range. The arguments of
    /// `cut_bytes_of` are the index of a profile and a boundary. Returns `None` if the cuts `split`
    /// alone need more than `max_numbers` bytes of ranges, or if `bytes_of` or `cut_bytes_of`
    /// returns `None`.
    pub(super) fn between(
        self,
        all: &[u32],
        split: &[u32],
        max_numbers: usize,
        bytes_of: impl Fn(usize, (u32, u32, usize)) -> Option<u64>,
        cut_bytes_of: impl Fn(usize, u32) -> Option<u64>,
    ) -> Option<Self> {
        let boundaries = chosen(all, split, &self.best, |boundaries| {
            self.numbers(boundaries) <= max_numbers
        })?;
        let inner = boundaries.get(1..boundaries.len().checked_sub(1)?)?;
        let numbers = |(profile, own): (usize, &ProfileNumbers)| {
            let bytes = self.ranges(&boundaries);
            Some(ProfileNumbers {
                bytes: bytes
                    .map(|range| bytes_of(profile, range))
                    .collect::<Option<_>>()?,
                cut_bytes: inner
                    .iter()
                    .map(|&at| cut_bytes_of(profile, at))
                    .collect::<Option<_>>()?,
                ..own.clone()
            })
        };
        let profiles = self
            .profiles
            .iter()
            .enumerate()
            .map(numbers)
            .collect::<Option<_>>()?;
        let mut best = self.best;
        best.retain(|best_split| {
            let mut cuts = best_split.cuts.iter();
            cuts.all(|cut| boundaries.binary_search(cut).is_ok())
        });
        Some(Self {
            profiles,
            best,
            boundaries,
            ..self
        })
    }

    /// Returns a copy with at most `max_numbers` entries in the `bytes` of each profile, in which
    /// the cuts `split` are still possible. Returns `None` if these cuts need more entries.
    pub(super) fn narrowed(&self, max_numbers: usize, split: &[u32]) -> Option<Self> {
        let place_of_range: FxHashMap<_, _> = self.ranges(&self.boundaries).zip(0..).collect();
        let bytes_of = |profile: usize, range| {
            let place: usize = *place_of_range.get(&range)?;
            self.profiles[profile].bytes.get(place).copied()
        };
        let cut_bytes_of = |profile: usize, at: u32| {
            let place = self.boundaries.binary_search(&at).ok()?.checked_sub(1)?;
            self.profiles[profile].cut_bytes.get(place).copied()
        };
        self.clone()
            .between(&self.boundaries, split, max_numbers, bytes_of, cut_bytes_of)
    }
}

/// Returns the boundaries to keep, in ascending order. If `fits` accepts the number of all
/// `boundaries`, all are kept. Otherwise, both ends of the layer order are kept, and the boundaries
/// near the cuts `split` and near the cuts of the `best` splits, up to the largest distance that
/// `fits` accepts. If `fits` accepts no distance, the cuts of the `best` splits are ignored.
/// Returns `None` if `fits` does not even accept the cuts `split`.
fn chosen(
    boundaries: &[u32],
    split: &[u32],
    best: &[SplitCuts],
    fits: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    /// Maximum distance of a kept boundary from the nearest cut, in positions.
    const FAR: u32 = 64;
    if fits(boundaries.len()) {
        return Some(boundaries.to_vec());
    }
    let mut kept: BTreeSet<u32> = boundaries
        .first()
        .into_iter()
        .chain(boundaries.last())
        .chain(split)
        .copied()
        .collect();
    let of_split = kept.clone();
    kept.extend(best.iter().flat_map(|best_split| &best_split.cuts));
    let within = |cuts: &BTreeSet<u32>| near_cuts(boundaries, cuts, FAR, &fits);
    within(&kept).or_else(|| within(&of_split))
}

/// Maximum number of entries in [`ProfileNumbers::bytes`], summed over all profiles; they take
/// about 1.2 MB of JSON.
const MAX_NUMBERS: usize = 150_000;

impl Inputs<'_> {
    /// Returns the bytes and cycles of splits other than the report's split. Returns `None` if
    /// these were not requested, if the report's split lacks layers or has more stages than the
    /// bytes were computed for, or if the bytes of any range are missing.
    pub(super) fn what_if(&self, search: &SearchResult<'_>) -> Option<WhatIf> {
        let question = &search.costs.question;
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
        if !question.request.options.what_if
            || stages.last().is_none_or(|last| last.end < costs.layers())
            || stages.len() > costs.stages()
        {
            return None;
        }
        let best = best(search);
        let max_stages = best
            .iter()
            .map(|best| best.ipus as usize)
            .max()
            .unwrap_or(search.costs.ipus)
            .max(stages.len())
            .min(costs.stages());
        let constraints = search.costs.constraints().iter();
        let constraints = constraints.map(|constraint| CheckedConstraint {
            name: broken(constraint),
            rule: constraint.rule,
        });
        let has_cycles = search.costs.problem().has_cycles();
        let profiles = search.costs.profiles().map(|profile| ProfileNumbers {
            amp: search.costs.proportion(profile),
            cycles: search.costs.by_profile[profile]
                .times
                .as_ref()
                .filter(|_| has_cycles)
                .map(|times| times.by_position()),
            ..ProfileNumbers::default()
        });
        let without_numbers = WhatIf {
            max_stages: max_stages as u32,
            by_stages_after: costs.is_by_depth(),
            best,
            constraints: constraints.collect(),
            profiles: profiles.collect(),
            ..WhatIf::default()
        };
        let cut_bytes_of = |profile: usize, at: u32| {
            let is_inner = (1..costs.layers()).contains(&(at as usize));
            is_inner.then(|| search.costs.cut_bytes(profile, at as usize))
        };
        let bytes_of = |profile: usize, (start, end, after): (u32, u32, usize)| {
            all_costs[profile].peak(start as usize..end as usize, after)
        };
        let positions = costs.layers() as u32;
        let is_whole = |at: u32| {
            let mut all = all_costs.iter();
            all.all(|costs| costs.reach(at as usize) == costs.layers())
        };
        let all: Vec<u32> = (0..positions)
            .filter(|&at| is_whole(at))
            .chain([positions])
            .collect();
        let most = MAX_NUMBERS / all_costs.len();
        without_numbers.between(&all, &cuts(stages), most, bytes_of, cut_bytes_of)
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
