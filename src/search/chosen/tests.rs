use super::*;
use crate::analysis::Analysis;
use crate::memory::testing::{placed, random_training, seeds};
use crate::memory::{Pipeline, RangeCosts, Recompute, Schedule};
use crate::model::{
    CycleSource, CyclesByLayer, LayerOptions, Layering, Model, OutOn, PassCycles, Placement,
    PlacementOptions, Rules,
};
use crate::solve::Goal;
use crate::time::StepOptions;
use proptest::collection::vec;
use proptest::prelude::*;
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
        prop_assert_eq!(found.kept.map(weight), highest);
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
/// them apart. How many were checked, and in how many some is kept and some is not.
fn check(memory: &MemoryModel<'_>, stages: &[PlacedStage]) -> (usize, usize) {
    let chooser = Chooser::new(memory, None);
    let (mut checked, mut between) = (0, 0);
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
    (checked, between)
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
        (checked, between) = (checked + found.0, between + found.1);
    }
    assert!(checked > 300 && between > 30, "{checked} {between}");
}

#[test]
fn stages_of_random_models_have_the_best_of_all_choices() {
    let (mut checked, mut between) = (0, 0);
    for seed in seeds(10) {
        let (model, layering) = random_training(seed);
        let placement = placement(&model, &layering, seed);
        let memory =
            MemoryModel::new(&model, &placement).and_then(|memory| memory.in_pipeline(chosen()));
        let memory = memory.unwrap();
        let found = check(&memory, &placed(memory.layers()));
        (checked, between) = (checked + found.0, between + found.1);
    }
    assert!(checked > 100 && between > 10, "{checked} {between}");
}

/// Places of a random model, with Out apart or on the first IPU.
fn placement(model: &Model, layering: &Layering, seed: u64) -> Placement {
    let out_on = match seed % 2 {
        0 => OutOn::Last,
        _ => OutOn::First,
    };
    let options = PlacementOptions {
        out_on,
        ..PlacementOptions::default()
    };
    Placement::full(model, layering, &options).expect("few places")
}

/// Times of stages of a model whose layers take cycles that look random.
fn times(memory: &MemoryModel<'_>, placement: &Placement, seed: u64) -> StageTimes {
    let cycles = |number: u64| (seed + 1).wrapping_mul(6_364_136_223_846_793_005 + number) >> 58;
    let passes = (0..memory.layers() as u64).map(|position| PassCycles {
        forward: cycles(3 * position),
        backward: cycles(3 * position + 1),
        recomputed: 0,
        update: cycles(3 * position + 2),
    });
    let passes: Vec<PassCycles> = passes.collect();
    let cycles = CyclesByLayer {
        source: CycleSource::Estimated,
        by_layer: passes.iter().map(|passes| passes.total()).collect(),
        exchange_by_layer: vec![0; passes.len()],
        passes_by_layer: passes,
        out_in_first: PassCycles::default(),
        unplaced: 0,
        unplaced_exchange: 0,
        other: 0,
        clock_hertz: Some(1_000),
    };
    let pipeline = (memory.pipeline(), true);
    let options = StepOptions::default();
    StageTimes::new(
        &cycles,
        &placement.positions,
        pipeline,
        memory.cut_bytes_by_pass(),
        options,
    )
    .for_stages(memory.layers())
}

/// The least recomputation of a stage, by trying all choices; `None` where none fits.
fn least(chooser: &Chooser<'_, '_>, stage: &PlacedStage, limit: u64) -> Option<u128> {
    let units = units(chooser.times, chooser.out, &stage.positions);
    let recomputed = |states: Vec<LayerChoice>| {
        let choices = with(&chooser.others, &units, &states);
        let memory = chooser.memory.choosing(&choices).expect("few sets");
        let fits = memory.peaks(from_ref(stage))[0] <= limit;
        let again = states.iter().zip(&units);
        let again = again.filter(|(state, _)| **state == LayerChoice::Recomputed);
        fits.then(|| again.map(|(_, unit)| unit.weight).sum())
    };
    all(units.len()).filter_map(recomputed).min()
}

/// All splits into so many stages.
fn splits(positions: usize, stages: usize) -> Vec<Vec<Range<usize>>> {
    let of_cuts = |cuts: u32| {
        let cuts = (1..positions).filter(|cut| cuts >> (cut - 1) & 1 == 1);
        let bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([positions]).collect();
        bounds.windows(2).map(|ends| ends[0]..ends[1]).collect()
    };
    let all = (0..1u32 << (positions - 1)).map(of_cuts);
    all.filter(|split: &Vec<_>| split.len() == stages).collect()
}

#[test]
fn splits_of_random_models_are_the_best_of_all_with_all_choices() {
    let (mut checked, mut fitting, mut between) = (0, 0, 0);
    for seed in seeds(15) {
        let (model, layering) = random_training(seed);
        let placement = placement(&model, &layering, seed);
        let memory =
            MemoryModel::new(&model, &placement).and_then(|memory| memory.in_pipeline(chosen()));
        let memory = memory.unwrap();
        let (times, positions) = (times(&memory, &placement, seed), memory.layers());
        let [none, open] = none_and_open(&memory).unwrap();
        let highest = |memory: &MemoryModel<'_>| {
            let costs = memory.range_costs(u64::MAX).unwrap();
            costs.highest().map_or(0, |(_, peak)| peak)
        };
        let (low, high) = (highest(&memory), highest(&none));
        for limit in [low / 2, low, low.midpoint(high)] {
            let chooser = Chooser::new(&memory, Some(&times));
            let known = placed(positions).into_iter().map(|stage| {
                let key = (stage.positions.clone(), stage.after.unwrap());
                (key, least(&chooser, &stage, limit))
            });
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
            let mut together = Together::new(&memory, &times, costs, (limit, 10_000)).unwrap();
            for ((range, after), least) in &known {
                let Some(least) = *least else { continue };
                let lower = &together.lower;
                let passes = lower.times.stage(range, *after).unwrap();
                let peak = lower.costs.peak(range.clone(), *after);
                let is_bound = peak.is_some_and(|peak| peak <= limit) && passes.recomputed <= least;
                assert!(
                    is_bound,
                    "SEEDS={seed}..{} {limit} {range:?} {after}: {passes:?} {peak:?} {least}",
                    seed + 1
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
                let possible = (1..=ipus).flat_map(|stages| splits(positions, stages));
                let steps = possible
                    .filter(fits)
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
                    "SEEDS={seed}..{} {limit} {ipus}: {step:?} {best:?}",
                    seed + 1
                );
                checked += 1;
                fitting += usize::from(found.is_some());
                let kept = found.map_or(Vec::new(), |found| {
                    assert!(found.chosen.is_optimal && found.split.score.peak <= limit);
                    found.chosen.kept
                });
                between += usize::from(kept.contains(&true) && kept.contains(&false));
            }
        }
    }
    assert!(
        checked > 100 && fitting > 30 && between > 10,
        "{checked} {fitting} {between}"
    );
}
