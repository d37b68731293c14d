use super::branches::{Row, best};
use super::chooser::{MAX_TRIED, Tried, units, with};
use super::*;
use crate::analysis::Analysis;
use crate::memory::testing::{placed, seeds};
use crate::memory::{LayerChoice, Pipeline, RangeCosts, Schedule};
use crate::model::{LayerOptions, PlacementOptions, Rules};
use crate::search::testing::{Case, Choice, choices, keeping, splits};
use crate::solve::Goal;
use proptest::collection::vec;
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::slice::from_ref;

/// Bytes of units that need some where they are kept and others where they are
/// recomputed, and more for some neighbours; those that are open need the least.
fn bytes(units: &[(u64, u64, u64)], states: &[LayerChoice]) -> u64 {
    let cycles = |(&(kept, again, _), state): (&(u64, u64, u64), &LayerChoice)| match state {
        LayerChoice::Kept => kept,
        LayerChoice::Recomputed => again,
        LayerChoice::Open => kept.min(again),
    };
    let sum: u64 = units.iter().zip(states).map(cycles).sum();
    let pairs = units.iter().zip(states.windows(2));
    let both = pairs.filter(|(_, two)| *two == [LayerChoice::Recomputed, LayerChoice::Kept]);
    sum + both.map(|((_, _, both), _)| both).sum::<u64>()
}

/// The bytes that a tile must have freed, and those that units free there.
fn rows(units: &[(u64, u64, u64)], limit: u64) -> Vec<Row> {
    let all_kept = vec![LayerChoice::Kept; units.len()];
    vec![Row {
        freed: units.iter().map(|&(kept, ..)| kept).collect(),
        needed: bytes(units, &all_kept).saturating_sub(limit),
    }]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_other_choice_is_better(
        units in vec((0u64..30, 0u64..30, 0u64..9), 0..9),
        weights in vec(0u128..20, 9),
        limit in 0u64..200,
    ) {
        let weights = &weights[..units.len()];
        let rows = rows(&units, limit);
        let found = best(weights, (limit, &rows), MAX_TRIED, |states| Ok::<_, ()>(bytes(&units, states))).unwrap();
        let weight = |kept: Vec<bool>| -> u128 {
            let kept = kept.into_iter().zip(weights).filter(|(is_kept, _)| *is_kept);
            kept.map(|(_, weight)| weight).sum()
        };
        let fitting = all(units.len()).filter(|states| bytes(&units, states) <= limit);
        let kept = |states: Vec<LayerChoice>| {
            states.into_iter().map(|state| state == LayerChoice::Kept).collect()
        };
        let highest = fitting.map(|states| weight(kept(states))).max();
        prop_assert!(found.is_complete);
        prop_assert_eq!(found.kept.map(|(kept, _)| weight(kept)), highest);
    }
}

/// All ways to decide on so many units.
fn all(units: usize) -> impl Iterator<Item = Vec<LayerChoice>> {
    (0..1u32 << units).map(move |set| {
        let state = |unit: usize| match set >> unit & 1 {
            1 => LayerChoice::Kept,
            _ => LayerChoice::Recomputed,
        };
        (0..units).map(state).collect()
    })
}

/// Checks what is chosen for stages against all choices, with each limit that tells some of
/// them apart. How many were checked, in how many some is kept and some is not, and how many
/// choices there were.
fn check(memory: &MemoryModel<'_>, stages: &[PlacedStage]) -> [usize; 3] {
    let chooser = Chooser::new(memory, None);
    let [mut checked, mut between, mut compared] = [0; 3];
    for stage in stages {
        let units = units(None, chooser.out, &stage.positions);
        let weight = |states: &Vec<LayerChoice>| {
            let again = states.iter().zip(&units);
            let again = again.filter(|(state, _)| **state == LayerChoice::Recomputed);
            again.map(|(_, unit)| unit.weight).sum::<u128>()
        };
        let bytes = |states: Vec<LayerChoice>| {
            let choices = with(&chooser.others, &units, &states);
            let memory = memory.choosing(&choices).expect("few sets");
            (memory.peaks(from_ref(stage))[0], states)
        };
        let computed: Vec<_> = all(units.len()).map(bytes).collect();
        compared += computed.len();
        for limit in computed
            .iter()
            .flat_map(|one| [one.0, one.0.saturating_sub(1)])
        {
            let fitting = computed.iter().filter(|one| one.0 <= limit);
            let least = fitting.map(|(_, states)| weight(states)).min();
            let stage = (stage.clone(), limit);
            let found = chooser.choice(&stage).expect("few sets");
            assert!(!matches!(found, Tried::GivenUp), "{stage:?}");
            let again = found.best().map(|found| found.recomputed);
            assert_eq!(again, least, "{stage:?}");
            let kept = found
                .best()
                .map(|found| (found.peak <= limit, found.at_least));
            assert_eq!(kept, again.map(|again| (true, again)));
            checked += 1;
            between +=
                usize::from(again.is_some_and(|again| 0 < again && again < units.len() as u128));
        }
    }
    [checked, between, compared]
}

fn chosen() -> Pipeline {
    Pipeline {
        schedule: Schedule::Popart,
        recompute: Recompute::Chosen,
        ..Pipeline::default()
    }
}

#[test]
fn stages_of_fixtures_have_the_best_of_all_choices() {
    let (mut checked, mut between) = (0, 0);
    for name in [
        "training-pipeline",
        "tied-weights",
        "poptorch-bert-training",
    ] {
        let folder = std::path::Path::new("fixtures").join(name);
        let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
        let analysis = read.expect(name);
        let options = (LayerOptions::default(), PlacementOptions::default());
        let layers = analysis.layers(Rules::Full, &options.0, &options.1);
        let layers = layers.expect(name);
        let memory = layers
            .memory()
            .and_then(|model| Ok(model.in_pipeline(chosen())?));
        let memory = memory.expect(name);
        let all = memory.layers();
        let ranges =
            (0..all).flat_map(|start| (start + 1..=all.min(start + 4)).map(move |end| start..end));
        let stages: Vec<PlacedStage> = ranges
            .map(|positions| PlacedStage {
                after: Some(if positions.end == all { 0 } else { 2 }),
                positions,
            })
            .collect();
        let found = check(&memory, &stages);
        (checked, between) = (checked + found[0], between + found[1]);
    }
    assert!(checked > 300 && between > 30, "{checked} {between}");
}

/// Ranges that fit with nothing recomputed are not chosen for.
#[test]
fn stages_that_are_kept_need_as_much_as_where_nothing_is_recomputed() {
    for seed in seeds(110) {
        let case = Case::new(seed);
        for schedule in [Schedule::Popart, Schedule::Sequential] {
            let memory = |recompute| {
                case.memory(Pipeline {
                    schedule,
                    recompute,
                    ..Pipeline::default()
                })
            };
            let (memory, none) = (memory(Recompute::Chosen), memory(Recompute::None));
            let stages = placed(memory.layers());
            for (stage, needed) in stages.iter().zip(none.peaks(&stages)) {
                let kept: Vec<usize> = stage.positions.clone().collect();
                let found = keeping(&memory, &kept).peaks(from_ref(stage));
                assert_eq!(found, [needed], "{} {schedule:?} {stage:?}", case.again());
            }
        }
    }
}

#[test]
fn stages_of_random_models_have_the_best_of_all_choices() {
    let mut sums = [0; 3];
    for seed in seeds(10) {
        let case = Case::new(seed);
        let memory = case.memory(chosen());
        let found = check(&memory, &placed(memory.layers()));
        sums.iter_mut()
            .zip(found)
            .for_each(|(sum, found)| *sum += found);
    }
    let [checked, between, compared] = sums;
    println!(
        "{checked} stages with a limit, {between} of which keep some layers, of {compared} choices"
    );
    assert!(checked > 100 && between > 10, "{checked} {between}");
}

/// Chooses for stages with limits around what they need at least: for all at first on one tile, if
/// `is_known`, then for each on all tiles. How many are impossible, and how many have a choice.
fn check_tile_by_tile(is_known: bool, seed: u64) -> (usize, usize) {
    let case = Case::new(seed);
    let memory = case.memory(chosen());
    let times = case.times(&memory, memory.layers());
    let choices = choices(&memory, &times);
    let (mut impossible, mut possible) = (0, 0);
    let limits = choices.values().flatten().map(|choice| choice.peak);
    let limits: BTreeSet<u64> = limits.flat_map(|peak| [peak - 1, peak]).collect();
    for &limit in limits.iter().step_by(limits.len().div_ceil(12)) {
        let mut chooser = Chooser::new(&memory, Some(&times));
        chooser.tiles.truncate(1);
        let stages = placed(memory.layers()).into_iter();
        let stages: Vec<LimitedStage> = stages.map(|stage| (stage, limit)).collect();
        if is_known {
            chooser.find(&stages).expect("few sets");
        }
        for limited in &stages {
            let stage = &limited.0;
            let all = &choices[&(stage.positions.clone(), stage.after.unwrap())];
            let fitting = all.iter().filter(|choice| choice.peak <= limit);
            let least = fitting.map(|choice| choice.recomputed).min();
            let split = chooser.split(from_ref(limited)).expect("few sets");
            let fits = split.peaks().all(|peak| peak <= limit);
            let known = &chooser.known[limited];
            let at = format!("{} {limit} {stage:?} {known:?}", case.again());
            assert_eq!(fits, least.is_some(), "{at}");
            assert_eq!(matches!(known, Tried::Impossible), least.is_none(), "{at}");
            assert_eq!(known.best().map(|choice| choice.recomputed), least, "{at}");
            possible += usize::from(fits);
            impossible += usize::from(!fits);
        }
    }
    (impossible, possible)
}

/// The same for several models, one of which has many stages of both kinds.
fn check_models(is_known: bool) {
    let found: Vec<_> = seeds(10)
        .map(|seed| check_tile_by_tile(is_known, seed))
        .collect();
    assert!(
        found.iter().any(|found| found.0 > 10 && found.1 > 10),
        "{found:?}"
    );
}

#[test]
fn stages_that_no_choice_fits_are_impossible() {
    check_models(false);
}

/// What was the best on one tile stays so only where it fits on the others.
#[test]
fn choices_of_one_tile_are_the_best_of_all_tiles_once_these_count() {
    check_models(true);
}

#[test]
fn splits_of_random_models_are_the_best_of_all_with_all_choices() {
    let (mut checked, mut fitting, mut between) = (0, 0, 0);
    let [mut compared, mut tried, mut chosen_for, mut impossible] = [0; 4];
    for seed in seeds(15) {
        let case = Case::new(seed);
        let memory = case.memory(chosen());
        let positions = memory.layers();
        let times = case.times(&memory, positions);
        let choices = choices(&memory, &times);
        let [none, open] = none_and_open(&memory).unwrap();
        compared += choices.values().map(Vec::len).sum::<usize>();
        let highest = |memory: &MemoryModel<'_>| {
            let costs = memory.range_costs(u64::MAX).unwrap();
            costs.highest().map_or(0, |(_, peak)| peak)
        };
        let (low, high) = (highest(&memory), highest(&none));
        for limit in [low / 2, low, low.midpoint(high)] {
            let least = |all: &Vec<Choice>| {
                let fitting = all.iter().filter(|choice| choice.peak <= limit);
                fitting.map(|choice| choice.recomputed).min()
            };
            let known = choices
                .iter()
                .map(|(stage, all)| (stage.clone(), least(all)));
            let known: FxHashMap<_, _> = known.collect();
            let recomputed = |range, after| known.get(&(range, after)).copied().flatten();
            let lengths = (0..positions).map(|start| positions - start);
            let exact = times.recomputing(lengths, positions, |range, after| {
                recomputed(range, after).unwrap_or(0)
            });
            let costs = [&none, &memory, &open].map(|memory| memory.range_costs(limit).unwrap());
            let costs = CostsByChoice {
                none: &costs[0],
                layer: &costs[1],
                open: &costs[2],
            };
            let mut together =
                Together::new((&memory, &none), &times, costs, (limit, 10_000)).unwrap();
            // From the first tile, others are taken as they are violated.
            together
                .chooser
                .tiles
                .truncate(1 + 2 * (seed as usize / 2 % 2));
            for ((range, after), least) in &known {
                let Some(least) = *least else { continue };
                let lower = &together.lower;
                let passes = lower.times.stage(range, *after).unwrap();
                let peak = lower.costs.peak(range.clone(), *after);
                let is_bound = peak.is_some_and(|peak| peak <= limit) && passes.recomputed <= least;
                assert!(
                    is_bound,
                    "{} {limit} {range:?} {after}: {passes:?} {peak:?} {least}",
                    case.again()
                );
            }
            let (cut_bytes, any) = (memory.cut_bytes(), RangeCosts::default());
            for ipus in 1..=positions {
                let fits = |split: &Vec<Range<usize>>| {
                    let stages = split.iter().cloned().zip((0..split.len()).rev());
                    stages
                        .into_iter()
                        .all(|(range, after)| recomputed(range, after).is_some())
                };
                let possible = splits(positions).into_iter();
                tried += possible.len();
                let steps = possible
                    .filter(|split| split.len() <= ipus && fits(split))
                    .map(|split| exact.step(&split).unwrap());
                let best = steps.reduce(|a, b| if b.is_faster_than(&a) { b } else { a });
                let problem = Problem {
                    goal: Goal::Time,
                    ..Problem::new(&any, &cut_bytes, ipus, limit)
                };
                let found = together.best(&problem, 1_000_000, |_| true).unwrap();
                let step = found.as_ref().and_then(|found| found.split.score.step);
                let is_as_fast = match (step, best) {
                    (Some(step), Some(best)) => {
                        !best.is_faster_than(&step) && !step.is_faster_than(&best)
                    }
                    (step, best) => step.is_none() && best.is_none(),
                };
                assert!(
                    is_as_fast,
                    "{} {limit} {ipus}: {step:?} {best:?}",
                    case.again()
                );
                checked += 1;
                fitting += usize::from(found.is_some());
                let kept = found.map_or(Vec::new(), |found| {
                    assert!(fits(&found.split.plan.stages().to_vec()));
                    assert!(found.chosen.is_optimal && found.split.score.peak <= limit);
                    let own = times.keeping(&found.chosen.kept);
                    let own = own.step(found.split.plan.stages());
                    assert_eq!(own, step, "{} {limit} {ipus}", case.again());
                    found.chosen.kept
                });
                between += usize::from(kept.contains(&true) && kept.contains(&false));
            }
            let known = together.chooser.known.values();
            chosen_for += known.len();
            impossible += known
                .filter(|tried| matches!(tried, Tried::Impossible))
                .count();
        }
    }
    println!(
        "{checked} searches of {tried} splits, {fitting} with a split that fits and {between} with one of which \
         some layers are kept; chosen for {chosen_for} stages, {impossible} of which are impossible, of {compared} choices that others are no better than"
    );
    assert!(
        checked > 100 && fitting > 30 && between > 10,
        "{checked} {fitting} {between}"
    );
}
