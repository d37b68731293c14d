//! Makes random problems of splitting a model, and finds their best splits by trying all splits.

use clap::ValueEnum;
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

use super::{Constraint, Goal, Origin, Plan, Problem, ProfileCosts, Rule, Score, TiedWeight};
use crate::memory::RangeCosts;

/// Makes a table of the bytes of ranges of positions. A range takes the sum of the bytes of its
/// positions (In, layers, Out), which are `weights`.
pub fn additive(weights: &[u64], limit: u64) -> RangeCosts {
    table(weights.len(), limit, |range| weights[range].iter().sum())
}

/// Makes a table of the bytes of ranges of positions; `cost` computes those of one range. From each
/// start, the table has longer and longer ranges, and ends before the first one that takes more
/// than `limit` bytes.
pub fn table(layers: usize, limit: u64, cost: impl Fn(Range<usize>) -> u64) -> RangeCosts {
    let row = |from: usize| {
        let costs = (from + 1..=layers).map(|end| cost(from..end));
        costs.take_while(|&peak| peak <= limit).collect()
    };
    RangeCosts::new((0..layers).map(row).collect())
}

impl<'a> Problem<'a> {
    /// Makes a problem with the goal of the lowest peak on at most `ipus` IPUs with at most `limit`
    /// bytes on each tile.
    pub fn new(profile: &'a ProfileCosts, ipus: usize, limit: &'a u64) -> Self {
        Self {
            by_profile: std::slice::from_ref(profile),
            ipus,
            limits: std::slice::from_ref(limit),
            constraints: &[],
            goal: Goal::Peak,
        }
    }
}

impl ProfileCosts {
    /// Makes the costs of a profile without cycle counts, from the bytes of ranges and the bytes
    /// that flow over each cut.
    pub fn new(ranges: RangeCosts, cut_bytes: &[u64]) -> Self {
        Self {
            ranges: ranges.into(),
            cut_bytes: cut_bytes.into(),
            times: None,
        }
    }
}

impl Score {
    /// Computes the score of `plan` from the costs of `problem`; `None` if costs of a stage are
    /// missing.
    pub fn of(problem: &Problem<'_>, plan: &Plan) -> Option<Self> {
        Self::of_peaks(problem, plan, &problem.peaks(plan)?)
    }
}

/// A random problem of splitting a model into stages. It owns the data that a `Problem` borrows.
#[derive(Debug, Clone)]
pub struct Case {
    /// The bytes and times of ranges of positions. The model has only this profile, whose times are
    /// computed from `cycles`.
    pub profile: ProfileCosts,
    pub cycles: Option<Vec<u64>>,
    pub ipus: usize,
    pub limits: Vec<u64>,
    pub limit_by_ipu: bool,
    pub constraints: Vec<Constraint>,
    pub goal: Goal,
}

impl Case {
    pub fn problem(&self) -> Problem<'_> {
        Problem {
            by_profile: std::slice::from_ref(&self.profile),
            ipus: self.ipus,
            limits: match self.limit_by_ipu {
                true => &self.limits,
                false => &self.limits[..1],
            },
            constraints: &self.constraints,
            goal: self.goal,
        }
    }

    pub fn costs(&self) -> &RangeCosts {
        &self.profile.ranges
    }

    pub fn with_costs(self, costs: RangeCosts) -> Self {
        let profile = ProfileCosts {
            ranges: costs.into(),
            ..self.profile
        };
        Self { profile, ..self }
    }

    fn limit(&self, stage: usize) -> u64 {
        self.limits[if self.limit_by_ipu { stage } else { 0 }]
    }
}

/// The values of a split in the objectives of the goal, and its cuts. Splits are compared by the
/// values first, then by the cuts.
pub type Rank = (Vec<u128>, Vec<usize>);

/// Returns the cuts of every split that obeys the constraints and has at most as many stages as
/// there are IPUs.
pub fn obedient(case: &Case) -> impl Iterator<Item = Vec<usize>> + '_ {
    let layers = case.costs().layers();
    assert!((1..=16).contains(&layers), "too many splits to try");
    let splits = 0_u32..1 << (layers - 1);
    let cuts = move |bits: u32| -> Vec<usize> {
        let is_cut = |cut: &usize| bits >> (cut - 1) & 1 == 1;
        (1..layers).filter(is_cut).collect()
    };
    splits.map(cuts).filter(|cuts| obeys(case, cuts))
}

/// Returns whether the split with `cuts` has at most as many stages as IPUs and obeys all
/// constraints. Does not use the code of [`Constraint`], so that tests can compare with it.
fn obeys(case: &Case, cuts: &[usize]) -> bool {
    let stage = |position: usize| cuts.iter().filter(|&&cut| cut <= position).count();
    cuts.len() < case.ipus
        && case
            .constraints
            .iter()
            .all(|constraint| match constraint.rule {
                Rule::Pin { position, ipu } => stage(position) == ipu,
                Rule::Together { first, last } => stage(first) == stage(last),
                Rule::CutBefore { position } => cuts.contains(&position),
            })
}

/// Finds the best split by trying all splits, for comparison with the solvers.
pub fn brute_force(case: &Case) -> Option<Rank> {
    obedient(case).filter_map(|cuts| rank(case, cuts)).min()
}

/// Returns the values of a split and its cuts; `None` if a stage exceeds its limit. Does not use
/// the code of [`Score`](super::Score), so that tests can compare with it.
pub fn rank(case: &Case, cuts: Vec<usize>) -> Option<Rank> {
    let bounds = [&[0], cuts.as_slice(), &[case.costs().layers()]].concat();
    let peaks: Vec<u64> = bounds
        .windows(2)
        .enumerate()
        .map(|(stage, ends)| {
            let after = cuts.len() - stage;
            let peak = case.costs().peak(ends[0]..ends[1], after);
            peak.filter(|&peak| peak <= case.limit(stage))
        })
        .collect::<Option<_>>()?;
    let cut_bytes = cuts
        .iter()
        .map(|&cut| u128::from(case.profile.cut_bytes[cut - 1]))
        .sum();
    let cycles = |ends: &[usize]| {
        let cycles = case
            .cycles
            .iter()
            .flat_map(|cycles| &cycles[ends[0]..ends[1]]);
        cycles.map(|&cycles| u128::from(cycles)).sum::<u128>()
    };
    let slowest = bounds.windows(2).map(cycles).max()?;
    let peak = u128::from(*peaks.iter().max()?);
    let stages = peaks.len() as u128;
    let squares = peaks.iter().map(|&peak| u128::from(peak).pow(2)).sum();
    let numbers = match case.goal {
        Goal::Peak => vec![peak, stages, slowest, squares, cut_bytes],
        Goal::Fewest => vec![stages, peak, slowest, squares, cut_bytes],
        Goal::Communication => vec![cut_bytes, peak, stages, slowest, squares],
        Goal::Cycles | Goal::Time => vec![slowest, peak, stages, squares, cut_bytes],
    };
    Some((numbers, cuts))
}

/// Generates the set of numbers from which a random model draws its bytes: few values (many ties),
/// multiples of 4, nearly equal values, sizes of tiles, or values far beyond any tile.
fn palette() -> impl Strategy<Value = (u64, u64, u64)> {
    // Each tuple stands for a set of possible byte counts: the lowest, the distance between
    // neighbours, and how many there are.
    prop_oneof![
        Just((0, 1, 3)),
        Just((0, 4, 200)),
        Just((600_000, 1, 4)),
        Just((1 << 40, 1, 3)),
        Just((0, 1, 1 << 20)),
        Just((0, 1, 1 << 40)),
        Just((0, 1, 1 << 58)),
    ]
}

/// Generates random tables of the bytes of ranges of positions. As in real models, the bytes never
/// fall when a range grows.
fn monotone_table(layers: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    let draws = move |(first, distance, n): (u64, u64, u64)| {
        vec(
            (0..n).prop_map(move |i| first + distance * i),
            layers * layers,
        )
    };
    palette().prop_flat_map(draws).prop_map(move |draws| {
        let mut peaks = vec![vec![0; layers]; layers];
        for length in 0..layers {
            for from in 0..layers - length {
                let inner = if length == 0 {
                    0
                } else {
                    let shorter: u64 = peaks[from][length - 1];
                    shorter.max(peaks[from + 1][length - 1])
                };
                peaks[from][length] = draws[from * layers + length].max(inner);
            }
        }
        peaks
    })
}

/// Generates the bytes of ranges of layers as in a model. On each tile, a layer has bytes of its
/// own, and shares some variables with other layers. A range takes a shared variable once, if any
/// of its layers has it.
fn tile_model(layers: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    const TILES: usize = 3;
    let scale = prop_oneof![Just(1_u64), Just(4), Just(1 << 12), Just(1 << 30)];
    let unshared = vec(vec(0..40_u64, TILES), layers);
    let shared = vec((0..TILES, vec(any::<bool>(), layers), 0..60_u64), 0..6);
    (scale, unshared, shared).prop_map(move |(scale, unshared, shared)| {
        let on_tile = |tile: usize, range: Range<usize>| {
            let unshared: u64 = unshared[range.clone()]
                .iter()
                .map(|tiles| tiles[tile])
                .sum();
            let held = shared
                .iter()
                .filter(|(at, users, _)| *at == tile && users[range.clone()].contains(&true));
            (unshared + held.map(|(_, _, bytes)| bytes).sum::<u64>()) * scale
        };
        let peak = |range: Range<usize>| (0..TILES).map(|tile| on_tile(tile, range.clone())).max();
        (0..layers)
            .map(|from| {
                (from + 1..=layers)
                    .filter_map(|end| peak(from..end))
                    .collect()
            })
            .collect()
    })
}

/// Generates problems without constraints that have up to `layers` positions and any goal except
/// the shortest step. The number of IPUs is at most 5, or half of `layers` if that is more.
pub fn plain_case(layers: usize) -> impl Strategy<Value = Case> {
    let peaks = (1..=layers).prop_flat_map(|layers| {
        prop_oneof![monotone_table(layers).boxed(), tile_model(layers).boxed()]
    });
    let small_or_large = |large: u64| prop_oneof![0..3_u64, 0..large];
    let cuts = vec(small_or_large(1 << 60), layers);
    let cycles = vec(small_or_large(u64::MAX), layers);
    // Generate no problems with [`Goal::Time`] (the shortest step), which the tests of `fastest`
    // cover.
    let goal = proptest::sample::select(&Goal::value_variants()[..4]);
    let limits = vec(0..40_usize, (layers / 2).max(5));
    let ipus = 1..=(layers / 2).max(5);
    (peaks, cuts, cycles, ipus, limits, goal).prop_map(
        |(peaks, mut cut_bytes, mut cycles, ipus, limits, goal)| {
            let layers = peaks.len();
            cut_bytes.truncate(layers - 1);
            cycles.truncate(layers);
            let costs = table(layers, u64::MAX, |range| {
                peaks[range.start][range.len() - 1]
            });
            Case {
                limits: limits_among(&peaks, &limits[..ipus]),
                limit_by_ipu: false,
                profile: ProfileCosts {
                    times: Some(crate::time::tests::forward_times(&cycles).into()),
                    ..ProfileCosts::new(costs, &cut_bytes)
                },
                cycles: Some(cycles),
                ipus,
                constraints: Vec::new(),
                goal,
            }
        },
    )
}

/// Returns memory limits that some ranges of positions just fit: each limit is the bytes of one of
/// the ranges in `peaks`. `places` has one entry per limit, which selects a range from the list of
/// all ranges sorted by bytes, in twentieths of its length: 0 is the range with the fewest bytes,
/// 10 the median. From 20 on, there is no limit.
fn limits_among(peaks: &[Vec<u64>], places: &[usize]) -> Vec<u64> {
    let mut all: Vec<u64> = peaks.iter().flatten().copied().collect();
    all.sort_unstable();
    let at = |&place: &usize| all.get(place * all.len() / 20).copied();
    places
        .iter()
        .map(|place| at(place).unwrap_or(u64::MAX))
        .collect()
}

/// Generates random constraints of the kinds that users set by options, on `layers` positions and
/// `ipus` IPUs. Some are pins to an IPU that does not exist.
fn option(layers: usize, ipus: usize) -> impl Strategy<Value = Constraint> {
    let position = 0..layers;
    let rule = (0..4, position.clone(), position, 0..ipus + 1).prop_map(
        move |(kind, first, last, ipu)| match kind {
            // Draw mostly pins (positions fixed to IPUs) that a split can obey: position n can only
            // be on IPU n or before.
            0 => Rule::Pin {
                position: first,
                ipu: if ipu < ipus { ipu.min(first) } else { ipu },
            },
            1 => Rule::Together { first, last },
            _ if layers == 1 => Rule::Together { first, last },
            2 => Rule::CutBefore {
                position: first.max(1),
            },
            _ => Rule::Together {
                first: first.max(1) - 1,
                last: first.max(1),
            },
        },
    );
    rule.prop_map(|rule| Constraint::option(rule, format!("{rule:?}")))
}

/// Generates random weights that two of `layers` positions share. Mostly, the two positions are
/// near each other; sometimes they are any two, or the first and the last.
fn tie(layers: usize) -> impl Strategy<Value = Constraint> {
    let last = layers - 1;
    let near = (0..layers, 1..4_usize).prop_map(move |(first, n)| (first, (first + n).min(last)));
    let pair = prop_oneof![6 => near, 1 => (0..layers, 0..layers), 1 => Just((0, last))];
    (pair, 0..1000_u64).prop_map(|((first, second), bytes)| {
        let weight = TiedWeight {
            name: format!("w{bytes}"),
            bytes,
            users: [first, second].map(|user| user.to_string()).to_vec(),
            ways_out: vec![format!("--untie w{bytes}")],
        };
        let (first, last) = (first.min(second), first.max(second));
        Constraint {
            rule: Rule::Together { first, last },
            origin: Origin::Weight(weight),
        }
    })
}

/// Makes the bytes of ranges as in a pipeline, where they depend on the number of later stages.
/// They are the lower bounds in `costs`, plus random bytes from `draws`. With `place_matters`, the
/// random bytes of a range differ for each number of later stages. Otherwise each later stage adds
/// the same number of bytes to a range.
fn in_pipeline(
    costs: &RangeCosts,
    stages: usize,
    draws: &[(u64, u64)],
    place_matters: bool,
) -> RangeCosts {
    let layers = costs.layers();
    let peak = &|range: Range<usize>, least: u64, after: usize| {
        let number = range.start * layers + range.end - 1;
        let number = number + if place_matters { after * 7 } else { 0 };
        let (beside, each) = draws[number % draws.len()];
        let each = if place_matters { 0 } else { each };
        least
            .saturating_add(beside)
            .saturating_add(each * after as u64)
    };
    let row = |from: usize| {
        let ranges = (from + 1..).zip(costs.least_from(from));
        let peaks = move |(end, least)| (0..stages).map(move |after| peak(from..end, least, after));
        ranges.flat_map(move |own| [own.1].into_iter().chain(peaks(own)))
    };
    let rows = (0..layers).map(|from| row(from).collect());
    RangeCosts::in_pipeline(rows.collect(), stages)
}

/// Generates random problems with costs as in a pipeline, where the bytes of a stage depend on the
/// number of stages after it. Some have constraints, and some a separate limit for each IPU.
pub fn pipelined_case(layers: usize) -> impl Strategy<Value = Case> {
    let draws = vec((0..8_u64, 0..6_u64), 1..60);
    let scale = prop_oneof![Just(1_u64), Just(40), Just(1 << 30)];
    let cases = prop_oneof![plain_case(layers).boxed(), case(layers).boxed()];
    let place_matters = any::<bool>();
    (cases, draws, scale, 1..=layers, place_matters).prop_map(
        |(case, draws, scale, stages, place_matters)| {
            let draws = draws.iter().map(|(a, b)| (a * scale, b * scale));
            let draws: Vec<(u64, u64)> = draws.collect();
            let costs = in_pipeline(case.costs(), stages, &draws, place_matters);
            case.with_costs(costs)
        },
    )
}

/// Generates problems with and without a pipeline, that is, with costs of a stage that may depend
/// on the number of stages after it.
pub fn any_case(layers: usize) -> impl Strategy<Value = Case> {
    prop_oneof![2 => case(layers), 1 => pipelined_case(layers)]
}

/// Generates problems with up to 4 constraints that options of the user cause, and up to 3 that
/// tied weights (shared by several layers) cause. They may contradict each other. Some problems
/// have a separate limit for each IPU.
pub fn case(layers: usize) -> impl Strategy<Value = Case> {
    let constraints = |case: Case| {
        let layers = case.costs().layers();
        let options = vec(option(layers, case.ipus), 0..5);
        let ties = prop_oneof![2 => Just(0..1_usize), 3 => Just(1..4)];
        let ties = ties.prop_flat_map(move |count| vec(tie(layers), count));
        (Just(case), options, ties, any::<bool>())
    };
    plain_case(layers)
        .prop_flat_map(constraints)
        .prop_map(|(case, options, ties, limit_by_ipu)| Case {
            constraints: [options, ties].concat(),
            limit_by_ipu,
            ..case
        })
}
