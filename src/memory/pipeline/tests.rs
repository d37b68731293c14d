//! Compares the bytes of ranges of layers in a pipeline, which are computed for all ranges at once,
//! with the bytes of stages that are computed one by one. Also checks the rules of pipelines
//! (docs/model.md, "Pipelines") on models that are small enough to count by hand.

mod reruns;

use super::{flows::Flow, ranges::FlowStretch, *};
use crate::{
    memory::tests::reference_model::{GROUPS, Plain, STEPS, full, memory, plain, ranges},
    memory::{MemoryModel, Parts, StageMemory},
    model::{Layering, Model, OutOn, Pass, Placement, PlacementOptions, testing},
};
use proptest::prelude::*;

const SCHEDULES: [Schedule; 4] = [
    Schedule::Popart,
    Schedule::TfGrouped,
    Schedule::TfInterleaved,
    Schedule::Sequential,
];
const STATES: [StatePlace; 4] = [
    StatePlace::OnChip,
    StatePlace::OffChip,
    StatePlace::Sharded,
    StatePlace::ShardedOffChip,
];
const RECOMPUTES: [Recompute; 3] = [Recompute::None, Recompute::Stage, Recompute::Layer];

const LIVES: [flows::Life; 3] = [
    flows::Life::Forward,
    flows::Life::AcrossPasses,
    flows::Life::Backward,
];

const PASSES: [Pass; 4] = [Pass::Forward, Pass::Backward, Pass::Update, Pass::Both];

fn any_pipeline() -> impl Strategy<Value = Pipeline> {
    let schedule = proptest::sample::select(&SCHEDULES);
    let recompute = proptest::sample::select(&RECOMPUTES);
    let state = proptest::sample::select(&STATES);
    let elsewhere = (state, 1u64..4);
    (schedule, recompute, elsewhere).prop_map(|(schedule, recompute, (state, replicas))| Pipeline {
        schedule,
        recompute,
        state,
        replicas,
        ..Pipeline::default()
    })
}

/// Generates random models of training or inference, as the four parts from which [`model`] builds
/// them: a model whose operations have no passes yet, the pass of each operation, whether each
/// operation group copies from the host, and the step at which the backward pass starts (`None` for
/// inference).
pub(crate) fn in_passes() -> impl Strategy<Value = (Plain, Vec<Pass>, Vec<bool>, Option<u32>)> {
    let passes = proptest::collection::vec(proptest::sample::select(&PASSES), 16);
    let streams = proptest::collection::vec(proptest::bool::weighted(0.2), GROUPS as usize);
    let backward_start = proptest::option::weighted(0.8, 1..STEPS);
    (plain(), passes, streams, backward_start)
}

pub(crate) fn model(
    (plain, passes, streams, backward_start): &(Plain, Vec<Pass>, Vec<bool>, Option<u32>),
) -> (Model, Layering) {
    let (mut model, layering) = plain.model();
    model.backward_start = *backward_start;
    for (operation, &pass) in model.operations.iter_mut().zip(passes.iter().cycle()) {
        operation.pass = if backward_start.is_some() {
            pass
        } else {
            Pass::Forward
        };
        operation.is_backward = operation.pass == Pass::Backward;
        operation.is_update = operation.pass == Pass::Update;
    }
    for (group, &streams) in model.operation_groups.iter_mut().zip(streams) {
        if streams {
            group.host_copies = (0..STEPS / 2).collect();
        }
    }
    (model, layering)
}

/// Returns three assignments of the layers to positions: with one position for everything without a
/// layer, with Out on the last IPU, and with Out on the first IPU.
fn placements(model: &Model, layering: &Layering) -> [Placement; 3] {
    let out_on = |out_on| {
        let options = PlacementOptions {
            out_on,
            ..PlacementOptions::default()
        };
        Placement::full(model, layering, &options).expect("few places")
    };
    [
        full(model, layering),
        out_on(OutOn::Last),
        out_on(OutOn::First),
    ]
}

/// Returns the possible numbers of stages after a range of layers in a split: only 0 if the range
/// ends with the last layer, otherwise 1 to the number of layers after the range.
pub(crate) fn after(range: &Range<usize>, layers: usize) -> Range<usize> {
    match layers - range.end {
        0 => 0..1,
        rest => 1..rest + 1,
    }
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(500))]

    #[test]
    fn ranges_need_what_every_stage_needs(case in in_passes(), pipeline in any_pipeline()) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let memory = memory(&model, &placement).in_pipeline(pipeline).unwrap();
            let layers = memory.layers();
            let costs = memory.range_costs(u64::MAX).unwrap();
            for range in ranges(layers) {
                let alone = memory.stages(std::slice::from_ref(&range));
                prop_assert_eq!(costs.least(range.clone()), Some(alone[0].max_tile_bytes()));
                let mut before = 0;
                for after in after(&range, layers) {
                    let stage = PlacedStage { positions: range.clone(), after: Some(after) };
                    let found = memory.placed_stages(std::slice::from_ref(&stage));
                    let peak = costs.peak(range.clone(), after);
                    prop_assert_eq!(peak, Some(found[0].max_tile_bytes()), "{:?}", stage);
                    prop_assert!(peak >= Some(before) && peak >= costs.least(range.clone()));
                    prop_assert!(found[0].late_restores.is_none_or(|late| Some(late) <= peak));
                    before = peak.unwrap_or(0);
                }
            }
        }
    }

    #[test]
    fn without_a_pipeline_stages_are_parts_of_the_one_ipu(case in in_passes()) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let memory = memory(&model, &placement);
            let ranges = ranges(memory.layers());
            let stages = memory.stages(&ranges);
            for Parts { stash, accumulators, state, waiting, passing, .. } in stages.iter().map(StageMemory::sums) {
                prop_assert_eq!([stash, accumulators, state, waiting, passing], [0; 5]);
            }
            let placed = ranges.iter().map(|range| PlacedStage {
                positions: range.clone(),
                after: Some(3),
            });
            prop_assert_eq!(memory.placed_stages(&placed.collect::<Vec<_>>()), stages);
        }
    }

    #[test]
    fn a_stage_needs_no_less_at_least_when_it_grows(
        case in in_passes(),
        pipeline in any_pipeline(),
    ) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let memory = memory(&model, &placement).in_pipeline(pipeline).unwrap();
            let total = |range: Range<usize>| -> Vec<u64> {
                memory.stages(&[range])[0].tiles.iter().map(Parts::total).collect()
            };
            for range in ranges(memory.layers()).into_iter().filter(|range| range.len() > 1) {
                let all = total(range.clone());
                for smaller in [range.start..range.end - 1, range.start + 1..range.end] {
                    prop_assert!(all.iter().zip(total(smaller)).all(|(&all, part)| all >= part));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_flow_counts_in_the_ranges_that_have_a_part_in_it(
        users in proptest::array::uniform2(proptest::collection::btree_set(0u32..9, 0..9)),
        life in proptest::sample::select(&LIVES),
        is_streamed: bool,
        go_back in proptest::collection::vec(proptest::bool::weighted(0.7), 9),
        pipeline in any_pipeline(),
        out_is_first: bool,
    ) {
        let [forward, backward] = users.map(|users| users.into_iter().collect());
        let flow = Flow { forward, backward, life, is_streamed };
        let mut flows = Flows::made(vec![flow.clone()], pipeline, 9, out_is_first);
        flows.windows = flows::PassWindows::made(go_back).into();
        let positions = 9 - u32::from(out_is_first);
        let stretches = flows.stretches(positions);
        for range in ranges(positions as usize) {
            let (start, end) = (range.start as u32, range.end as u32);
            let role = flow.role_of(&flows.places_of(&range), &flows);
            for (quantity, counts) in role.counts.into_iter().enumerate() {
                let is_met = |stretch: &&FlowStretch| {
                    stretch.quantity == quantity
                        && stretch.starts.contains(&start)
                        && stretch.lasts.contains(&(end - 1))
                };
                let found = stretches[0].iter().filter(is_met).count();
                prop_assert_eq!(found, usize::from(counts), "{:?} {:?}", range, quantity);
            }
        }
    }
}

/// Makes activations of `bytes` bytes between neighbouring places (In, layers, Out): one place
/// makes the activation, and the next uses it. Both use it in the forward and in the backward pass.
fn chain(layers: u32, bytes: u64, pipeline: Pipeline, out_is_first: bool) -> (Flows, TileFlows<1>) {
    let flow = |place| Flow {
        forward: [place, place + 1].into(),
        backward: [place, place + 1].into(),
        life: flows::Life::AcrossPasses,
        is_streamed: false,
    };
    let list: Vec<Flow> = (0..=layers).map(flow).collect();
    let tile = TileFlows::made(list.iter().map(|_| bytes));
    let flows = Flows::made(list, pipeline, layers + 2, out_is_first);
    (flows, tile)
}

/// Returns the bytes that each stage of a split stashes if Out (the operations after the last
/// layer) is on the first IPU. Activations between neighbouring layers have `bytes` bytes. `counts`
/// has the number of layers of each stage.
fn stash(counts: &[usize], bytes: u64, pipeline: Pipeline) -> Vec<u64> {
    let layers = counts.iter().sum::<usize>();
    let (flows, tile) = chain(layers as u32, bytes, pipeline, true);
    let model = testing::model(1, 0);
    let layering = Layering::of((0..=layers).map(|n| n.to_string()).collect(), Vec::new());
    let placement = full(&model, &layering);
    let memory = MemoryModel::new(&model, &placement).expect("nothing");
    let mut start = 0;
    let mut end = 1;
    let stages: Vec<Range<usize>> = counts
        .iter()
        .map(|count| {
            end += count;
            std::mem::replace(&mut start, end)..end
        })
        .collect();
    let stages = PlacedStage::of_split(&stages);
    let stash = |stage: PlacedStage| {
        let roles = flows.stage_roles(flows.places_of(&stage.positions));
        let [[first, ..]] = flows.additions(&memory, (&stage, Some(&roles)), &tile);
        first.stash
    };
    stages.into_iter().map(stash).collect()
}

#[test]
fn published_configurations_stash_what_the_rules_say() {
    let pipeline = Pipeline {
        schedule: Schedule::Popart,
        recompute: Recompute::Layer,
        ..Pipeline::default()
    };
    // Published splits of BERT-Large and BERT-base with the embedding and the head on the first
    // IPU. Arguments are the layers of each stage and the MiB of one activation; the expected
    // results are the MiB that each stage stashes by the rules of docs/model.md.
    assert_eq!(stash(&[3, 7, 7, 7], 2, pipeline), [36, 98, 70, 42]);
    assert_eq!(stash(&[0, 4, 4, 4], 6, pipeline), [0, 168, 120, 72]);
}

#[test]
fn copies_are_those_that_public_tests_assert() {
    let copies = |schedule: Schedule, stages: usize| -> Vec<u64> {
        (0..stages)
            .rev()
            .map(|depth| schedule.copies(depth))
            .collect()
    };
    assert_eq!(copies(Schedule::Popart, 3), [5, 3, 0]);
    assert_eq!(copies(Schedule::TfInterleaved, 3), [2, 1, 0]);
    assert_eq!(copies(Schedule::TfGrouped, 3), [4, 2, 0]);
    assert_eq!(copies(Schedule::Sequential, 3), [0, 0, 0]);
    // TensorFlow's tests expect that a small net needs least memory with the sequential schedule,
    // more with the interleaved and most with the grouped schedule. The numbers of stashed copies
    // must have the same order.
    let all = |schedule| copies(schedule, 3).iter().sum::<u64>();
    let order = [
        Schedule::Sequential,
        Schedule::TfInterleaved,
        Schedule::TfGrouped,
    ]
    .map(all);
    assert!(order.is_sorted_by(|a, b| a < b));
}

#[test]
fn an_input_stays_until_its_stage_has_run_again() {
    let input = Flow {
        forward: [0].into(),
        backward: [].into(),
        life: flows::Life::Forward,
        is_streamed: true,
    };
    let tile = TileFlows::made([5].into_iter());
    let buffers = |schedule, recompute, places| {
        let pipeline = Pipeline {
            schedule,
            recompute,
            ..Pipeline::default()
        };
        let flows = Flows::made(vec![input.clone()], pipeline, 3, false);
        let sums = flows.transfers(&flows.stage_roles(places), &tile);
        let [buffers, _] = flows.in_phases(&sums, None, 0);
        buffers
    };
    for schedule in [Schedule::Sequential, Schedule::TfInterleaved] {
        assert_eq!(buffers(schedule, Recompute::Stage, 0..2), [5, 5, 0, 0]);
        // The stage with the places `0..3` is the last of the pipeline, which is not recomputed. So
        // no buffer keeps its input for a second run.
        assert_eq!(buffers(schedule, Recompute::Stage, 0..3), [0; PHASES]);
        assert_eq!(buffers(schedule, Recompute::None, 0..2), [0; PHASES]);
    }
}

#[test]
fn gradients_have_arrived_when_a_stage_runs_again() {
    let gradient = Flow {
        forward: [].into(),
        backward: [0, 1].into(),
        life: flows::Life::Backward,
        is_streamed: false,
    };
    let tile = TileFlows::made([7].into_iter());
    for schedule in [Schedule::TfGrouped, Schedule::TfInterleaved] {
        let pipeline = Pipeline {
            schedule,
            recompute: Recompute::Stage,
            ..Pipeline::default()
        };
        let flows = Flows::made(vec![gradient.clone()], pipeline, 3, false);
        let sums = flows.transfers(&flows.stage_roles(0..1), &tile);
        let [buffers, _] = flows.in_phases(&sums, None, 0);
        assert_eq!(buffers, [7, 7, 0, 0], "{schedule:?}");
    }
}

#[test]
fn accumulators_have_the_elements_that_were_chosen() {
    assert_eq!(Accumulator::AsWeight.bytes(6, Some(2)), 6);
    assert_eq!(Accumulator::Float32.bytes(6, Some(2)), 12);
    assert_eq!(Accumulator::Float32.bytes(6, Some(4)), 6);
    assert_eq!(Accumulator::Float16.bytes(6, Some(4)), 3);
    assert_eq!(Accumulator::Float32.bytes(6, None), 6);
}
