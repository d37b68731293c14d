use super::*;
use crate::memory::testing::seeds;
use crate::memory::{PlacedStage, Schedule, StageMemory};
use crate::search::testing::{Case, Choice, choices, keeping, splits};
use crate::search::{IpuCount, SearchRequest, search, search_states};
use std::collections::BTreeSet;
use std::ops::Range;

#[test]
fn poptorch_takes_powers_of_two() {
    assert_eq!(numbers(Framework::Poptorch, 10), [1, 2, 4, 8]);
    assert_eq!(numbers(Framework::Popart, 4), [1, 2, 3, 4]);
}

const IPUS: usize = 4;

/// Is time missing, IPUs, cycles and micro-batches of a step, bytes on the fullest tile.
type Row = (bool, usize, u128, u64, u64);

/// All that PopART and PopTorch can do; layers are chosen where all IPUs have one limit.
fn all_pipelines(case: &Case, is_chosen: bool) -> Vec<Pipeline> {
    let streamed = case.memory(Pipeline::default()).streamed();
    let state = streamed.expect("few sets").state;
    let has_state = state.iter().any(|&bytes| bytes > 0);
    let chosen = is_chosen.then_some(Recompute::Chosen);
    let recompute = [Recompute::None, Recompute::Stage, Recompute::Layer];
    let mut all = Vec::new();
    for schedule in [Schedule::Popart, Schedule::Sequential] {
        for recompute in recompute.into_iter().chain(chosen) {
            let pipeline = Pipeline {
                schedule,
                recompute,
                ..Pipeline::default()
            };
            all.push(pipeline.with_state(StatePlace::OnChip, 0));
            if has_state {
                all.push(pipeline.with_state(StatePlace::OffChip, 0));
                for replicas in [2, 4] {
                    let shared = [StatePlace::Sharded, StatePlace::ShardedOffChip];
                    all.extend(shared.map(|at| pipeline.with_state(at, replicas)));
                }
            }
        }
    }
    all
}

/// Cycles, micro-batches and bytes of a split with each choice for its stages.
fn with_choices(
    (times, stages): (&StageTimes, &[Vec<&Choice>]),
    (split, positions): (&[Range<usize>], usize),
) -> Vec<(u128, u64, u64)> {
    let mut all: Vec<(u64, Vec<bool>)> = vec![(0, vec![false; positions])];
    for options in stages {
        let with = |(peak, kept): &(u64, Vec<bool>), choice: &Choice| {
            let mut kept = kept.clone();
            choice.kept.iter().for_each(|&at| kept[at] = true);
            ((*peak).max(choice.peak), kept)
        };
        let longer = all
            .iter()
            .flat_map(|one| options.iter().map(move |choice| with(one, choice)));
        all = longer.collect();
    }
    let row = |(peak, kept): (u64, Vec<bool>)| {
        let step = times.keeping(&kept).step(split).expect("a step");
        (step.cycles, step.micro_batches, peak)
    };
    all.into_iter().map(row).collect()
}

/// Every configuration that fits these limits by IPU, and whether its layers are chosen.
fn all_that_fit(case: &Case, costed: &CostedRequest, limits: &[u64]) -> Vec<(bool, Row)> {
    let framework = case.model.recording.framework;
    let numbers = numbers(framework, IPUS);
    let pipelines = all_pipelines(case, costed.request.limits.len() == 1);
    let memories: Vec<_> = pipelines.iter().map(|&other| case.memory(other)).collect();
    let times = memories.iter().map(|memory| case.times(memory, IPUS));
    let most = times.clone().map(|times| times.micro_batches(IPUS)).max();
    let mut found = Vec::new();
    for (memory, times) in memories.iter().zip(times) {
        let (pipeline, times) = (memory.pipeline(), times.with(most));
        let choices = choices(memory, &times);
        let is_chosen = pipeline.recompute == Recompute::Chosen;
        let lacks_time = pipeline.state != StatePlace::OnChip;
        for split in splits(memory.layers()) {
            let ipus = taken(split.len(), framework);
            let replicas = (IPUS / ipus.min(IPUS)) as u64;
            let is_shared = !pipeline.state.is_sharded() || pipeline.replicas == replicas;
            let plan = solve::Plan::new(split.clone(), memory.layers()).expect("a split");
            let judged = solve::evaluate(&costed.problem(), &plan).expect("a problem");
            if !numbers.contains(&ipus) || !is_shared || !judged.broken.is_empty() {
                continue;
            }
            let fitting = |(stage, range): (usize, &Range<usize>)| {
                let all = choices[&(range.clone(), split.len() - 1 - stage)].iter();
                all.filter(|choice| choice.peak <= limits[stage]).collect()
            };
            let stages: Vec<Vec<&Choice>> = split.iter().enumerate().map(fitting).collect();
            let rows = with_choices((&times, &stages), (&split, memory.layers()));
            let row = |(cycles, batches, peak)| (lacks_time, ipus, cycles, batches, peak);
            found.extend(rows.into_iter().map(|one| (is_chosen, row(one))));
        }
    }
    found
}

/// Is the step of one as short, with as many IPUs at most?
fn is_as_fast(one: &Row, other: &Row) -> bool {
    let (fast, slow) = (one.2 * u128::from(other.3), other.2 * u128::from(one.3));
    one.0 == other.0 && one.1 <= other.1 && fast <= slow
}

/// Those that no other is better than.
fn undominated(all: &[Row]) -> BTreeSet<Row> {
    let is_no_worse = |one: &Row, other: &Row| is_as_fast(one, other) && one.4 <= other.4;
    let is_best = |row: &&Row| {
        let mut better = all.iter().filter(|other| is_no_worse(other, row));
        better.all(|other| is_no_worse(row, other))
    };
    all.iter().filter(is_best).copied().collect()
}

/// The row of a configuration, by what its split and its choice take.
fn row(case: &Case, most: Option<u64>, found: &Configuration) -> Row {
    let memory = case.memory(found.pipeline);
    let times = case.times(&memory, IPUS).with(most);
    let stages = found.split.plan.stages();
    let (memory, times) = match &found.chosen {
        None => (memory, times),
        Some(chosen) => {
            let kept = (0..chosen.kept.len()).filter(|&at| chosen.kept[at]);
            let kept: Vec<usize> = kept.collect();
            (keeping(&memory, &kept), times.keeping(&chosen.kept))
        }
    };
    let peaks = memory.placed_stages(&PlacedStage::of_split(stages));
    let peak = peaks.iter().map(StageMemory::max_tile_bytes).max();
    let step = times.step(stages).expect("a step");
    let lacks_time = found.lacks_time(None);
    (
        lacks_time,
        found.ipus,
        step.cycles,
        step.micro_batches,
        peak.expect("a stage"),
    )
}

/// A model without choices fits in some stages below the first of these limits, and in all
/// below the last.
fn limits(case: &Case) -> [Vec<u64>; 3] {
    let peak = |recompute| {
        let memory = case.memory(Pipeline {
            schedule: Schedule::Popart,
            recompute,
            ..Pipeline::default()
        });
        let costs = memory.range_costs(u64::MAX).expect("few places");
        costs.highest().map_or(0, |(_, peak)| peak)
    };
    let (low, high) = (peak(Recompute::Layer), peak(Recompute::None));
    let between = low.midpoint(high);
    [
        vec![between],
        vec![low / 2],
        vec![low, high, low / 2, between],
    ]
}

/// Checks a plan against all configurations. How many these are, how many rows it has, how many of
/// these are chosen, and how many only fit so.
fn check(case: &Case, limits: Vec<u64>) -> [usize; 4] {
    let at = format!("{} {limits:?}", case.again());
    let by_ipu: Vec<u64> = limits.iter().cycle().take(IPUS).copied().collect();
    let memory = case.memory(Pipeline {
        schedule: Schedule::Popart,
        recompute: Recompute::Layer,
        ..Pipeline::default()
    });
    let request = SearchRequest {
        ipus: IpuCount::Exactly(IPUS),
        limits,
        cycles: Some(case.cycles.clone()),
        plan: true,
        split: false,
        ..SearchRequest::default()
    };
    let found = search(&memory, &case.placement, request.clone()).expect("an answer");
    let all = all_that_fit(case, &found.costed, &by_ipu);
    let plan = found.plan.expect("a plan").configurations;
    let mut rows = BTreeSet::new();
    let (mut chosen, mut of_kept) = (Vec::new(), 0);
    for found in &plan {
        let step = found.split.score.step.expect("cycles");
        let own = row(case, Some(step.micro_batches), found);
        assert_eq!(
            (step.cycles, found.split.score.peak),
            (own.2, own.4),
            "{at}: {found:?}"
        );
        rows.insert(own);
        if found.chosen.is_some() {
            chosen.push(own);
            of_kept += usize::from(check_alone(case, found, &request));
        }
    }
    // With choices, those with the shortest step of their number of IPUs are looked for.
    for (_, one) in &all {
        let is_known = rows.iter().any(|row| is_as_fast(row, one));
        assert!(is_known, "{at}: {one:?} is faster than {rows:#?}");
    }
    let plain = all.iter().filter(|(is_chosen, _)| !is_chosen);
    let others: Vec<Row> = plain.map(|(_, row)| *row).chain(chosen.clone()).collect();
    let expected = undominated(&others);
    let wrong: Vec<&Row> = rows.difference(&expected).collect();
    assert!(wrong.is_empty(), "{at}: {wrong:?} {rows:#?} {expected:#?}");
    for missing in expected.difference(&rows) {
        let group = |row: &&Row| (row.0, row.1) == (missing.0, missing.1);
        let count = expected.iter().filter(group).count();
        assert!(
            count > MAX_OF_NUMBER,
            "{at}: {missing:?} {rows:#?} {expected:#?}"
        );
    }
    [all.len(), plan.len(), chosen.len(), of_kept]
}

/// The split of a configuration that chooses, by itself as its command has it, fits with the same
/// layers kept. Does it not with each recomputed?
fn check_alone(case: &Case, found: &Configuration, request: &SearchRequest) -> bool {
    let memory = case.memory(found.pipeline);
    let step = found.split.score.step.expect("cycles");
    let mut options = request.step;
    options.micro_batches = Some(step.micro_batches);
    let request = SearchRequest {
        ipus: IpuCount::Exactly(found.ipus),
        given: Some(found.split.plan.clone()),
        step: options,
        plan: false,
        split: true,
        ..request.clone()
    };
    let progress = Progress::new();
    let alone = search_states(&memory, &case.placement, request, &progress);
    let alone = alone.expect("an answer").1;
    let own = alone.costed.times.as_ref();
    let own = own.and_then(|times| times.step(&alone.stages));
    assert!(alone.fits(), "{}: {found:?}", case.again());
    assert_eq!((own, &alone.chosen), (Some(step), &found.chosen));
    let stages = PlacedStage::of_split(found.split.plan.stages());
    let needed = memory.peaks(&stages).into_iter().max();
    needed > alone.costed.request.limits.first().copied()
}

#[test]
fn plans_of_random_models_have_the_best_of_all_configurations() {
    let (mut plans, mut sums) = (0, [0; 4]);
    for seed in seeds(33) {
        let case = Case::new(seed);
        for limits in limits(&case) {
            let found = check(&case, limits);
            plans += 1;
            sums.iter_mut()
                .zip(found)
                .for_each(|(sum, found)| *sum += found);
        }
    }
    let [all, rows, chosen, of_kept] = sums;
    println!(
        "{plans} plans of {all} configurations with {rows} rows, of which {chosen} are chosen and {of_kept} only fit so"
    );
    assert!(rows > plans && chosen > 0, "{sums:?}");
}

#[test]
fn splits_that_only_fit_with_some_layers_kept_are_found_by_themselves() {
    let case = Case::new(11);
    let of_kept = limits(&case).map(|limits| check(&case, limits)[3]);
    assert!(of_kept.iter().sum::<usize>() > 0);
}
