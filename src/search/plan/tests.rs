use super::*;
use crate::memory::testing::seeds;
use crate::memory::{PlacedStage, Recompute, Schedule, StageMemory};
use crate::search::testing::{Case, peaks, splits};
use crate::search::{IpuCount, SearchOptions, SearchRequest, search};
use std::collections::BTreeSet;

#[test]
fn poptorch_takes_powers_of_two() {
    assert_eq!(numbers(Framework::Poptorch, 10), [1, 2, 4, 8]);
    assert_eq!(numbers(Framework::Popart, 4), [1, 2, 3, 4]);
}

const IPUS: usize = 4;

/// Whether a part of the time is unknown; IPUs; cycles and micro-batches of a step; bytes on the
/// fullest tile.
type Row = (bool, usize, u128, u64, u64);

/// Returns all pipelines that PopART and PopTorch support.
fn all_pipelines(case: &Case) -> Vec<Pipeline> {
    let state = case.memory(Pipeline::default()).streamed_state();
    let state = state.expect("few sets");
    let has_state = state.iter().any(|&bytes| bytes > 0);
    let recomputes = [Recompute::None, Recompute::Stage, Recompute::Layer];
    let mut all = Vec::new();
    for schedule in [Schedule::Popart, Schedule::Sequential] {
        for recompute in recomputes {
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

/// Returns each configuration that fits these limits by IPU.
fn all_that_fit(case: &Case, costs: &PipelineCosts<'_>, limits: &[u64]) -> Vec<Row> {
    let framework = case.model.recording.framework;
    let numbers = numbers(framework, IPUS);
    let pipelines = all_pipelines(case);
    let memories: Vec<_> = pipelines.iter().map(|&other| case.memory(other)).collect();
    let times = memories.iter().map(|memory| case.times(memory));
    let mut found = Vec::new();
    for (memory, times) in memories.iter().zip(times) {
        let pipeline = memory.pipeline();
        let peaks = peaks(memory);
        let lacks_time = pipeline.state != StatePlace::OnChip;
        for split in splits(memory.layers()) {
            let ipus = costs.supported(split.len());
            let replicas = (IPUS / ipus.min(IPUS)) as u64;
            let is_shared = !pipeline.state.is_sharded() || pipeline.replicas == replicas;
            let plan = solve::Plan::new(split.clone(), memory.layers()).expect("a split");
            let broken = solve::broken(&costs.problem(), &plan).expect("a problem");
            if !numbers.contains(&ipus) || !is_shared || !broken.is_empty() {
                continue;
            }
            let after = (0..split.len()).rev();
            let stages = split.iter().zip(after).zip(limits);
            let peaks = stages.map(|((range, after), &limit)| {
                let peak = peaks[&(range.clone(), after)];
                (peak <= limit).then_some(peak)
            });
            let Some(peaks) = peaks.collect::<Option<Vec<u64>>>() else {
                continue;
            };
            let peak = peaks.into_iter().max().expect("a stage");
            let step = times.step(&split).expect("a step");
            found.push((lacks_time, ipus, step.cycles, step.micro_batches, peak));
        }
    }
    found
}

/// Returns whether `one` has at most as many IPUs and takes at most as many cycles per micro-batch.
fn is_as_fast(one: &Row, other: &Row) -> bool {
    let (fast, slow) = (one.2 * u128::from(other.3), other.2 * u128::from(one.3));
    one.0 == other.0 && one.1 <= other.1 && fast <= slow
}

/// Returns the rows that no other row beats.
fn undominated(all: &[Row]) -> BTreeSet<Row> {
    let is_no_worse = |one: &Row, other: &Row| is_as_fast(one, other) && one.4 <= other.4;
    let is_best = |row: &&Row| {
        let mut better = all.iter().filter(|other| is_no_worse(other, row));
        better.all(|other| is_no_worse(row, other))
    };
    all.iter().filter(is_best).copied().collect()
}

/// Computes the row of a configuration from its split.
fn row(case: &Case, found: &Candidate) -> Row {
    let memory = case.memory(found.pipeline);
    let times = case.times(&memory);
    let stages = found.solution.plan.stages();
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

/// Returns limits to test with: between the highest peaks with and without recomputation, half of
/// the former, and different limits by IPU.
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

/// Compares a plan with all configurations, and returns the number of configurations and of rows in
/// the plan.
fn check(case: &Case, limits: Vec<u64>) -> [usize; 2] {
    let at = format!("{} {limits:?}", case.again());
    let by_ipu: Vec<u64> = limits.iter().cycle().take(IPUS).copied().collect();
    let memory = case.memory(Pipeline {
        schedule: Schedule::Popart,
        recompute: Recompute::Layer,
        ..Pipeline::default()
    });
    let request = SearchRequest {
        options: SearchOptions {
            plan: true,
            ..SearchOptions::default()
        },
        ipus: IpuCount::Exactly(IPUS),
        limits,
        goal: Goal::Time,
        constraints: Vec::new(),
        cycles: Some(case.cycles.clone()),
        given: None,
    };
    let found = search(&memory, &case.placement, request, &Progress::new());
    let found = found.expect("an answer");
    let all = all_that_fit(case, &found.costs, &by_ipu);
    let plan = found.plan.expect("a plan").configurations;
    let mut rows = BTreeSet::new();
    for found in &plan {
        let step = found.solution.score.step.expect("cycles");
        let own = row(case, found);
        assert_eq!(
            (step.cycles, found.solution.score.peak),
            (own.2, own.4),
            "{at}: {found:?}"
        );
        rows.insert(own);
    }
    let expected = undominated(&all);
    // The answer comes first. Of equally fast splits it has the fewest stages, not the lowest peak.
    let answer = plan.first().map(|found| row(case, found));
    let is_slower = |one: &Row, other: &Row| is_as_fast(other, one) && !is_as_fast(one, other);
    let is_answer =
        |row: &Row| Some(*row) == answer && !all.iter().any(|other| is_slower(row, other));
    let wrong = rows.difference(&expected).filter(|row| !is_answer(row));
    let wrong: Vec<&Row> = wrong.collect();
    assert!(wrong.is_empty(), "{at}: {wrong:?} {rows:#?} {expected:#?}");
    for missing in expected.difference(&rows) {
        let group = |row: &&Row| (row.0, row.1) == (missing.0, missing.1);
        let count = expected.iter().filter(group).count();
        assert!(
            count > Effort::MAX_SPLITS,
            "{at}: {missing:?} {rows:#?} {expected:#?}"
        );
    }
    [all.len(), plan.len()]
}

#[test]
fn plans_of_random_models_have_the_best_of_all_configurations() {
    let (mut plans, mut sums) = (0, [0; 2]);
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
    let [all, rows] = sums;
    println!("{plans} plans of {all} configurations with {rows} rows");
    assert!(rows > plans, "{sums:?}");
}
