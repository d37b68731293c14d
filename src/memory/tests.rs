//! The sweep, single stages and flows against the rules applied literally.

use super::*;
use crate::profile::LiveClasses;
use proptest::prelude::*;
use reference_model::{
    GROUPS, Plain, PlainVariable, STEPS, TILES, by_tile, classic, costs, full, memory, plain,
    ranges,
};

mod curves;
mod no_double_count;
pub(super) mod reference_model;

proptest! {
    #![proptest_config(crate::memory::testing::cases(500))]

    #[test]
    fn stages_follow_the_rules_on_every_tile(plain in plain()) {
        let (model, layering) = plain.model();
        let ranges = ranges(plain.layers);
        let placement = classic(&model, &layering);
        let stages = memory(&model, &placement).stages(&ranges);
        for (range, stage) in ranges.iter().zip(&stages) {
            for tile in 0..TILES {
                let (parts, step) = plain.stage(range.clone(), tile);
                prop_assert_eq!(stage.tiles[tile as usize], parts, "{:?}", range);
                prop_assert_eq!(stage.peak_steps[tile as usize], step, "{:?}", range);
            }
        }
    }

    #[test]
    fn a_program_without_steps_has_no_live_variables(mut plain in plain()) {
        plain.groups.iter_mut().for_each(|group| group.window = None);
        let (mut model, layering) = plain.model();
        let always = plain.classes.iter().map(Option::is_none).collect();
        model.classes = LiveClasses::new(always, Vec::new(), 0);
        let placement = full(&model, &layering);
        for placement in [classic(&model, &layering), placement] {
            let memory = memory(&model, &placement);
            let all = 0..plain.layers;
            let stages = memory.stages(std::slice::from_ref(&all));
            prop_assert_eq!(stages[0].sums().variables, 0);
            let peak = costs(&memory, u64::MAX).least(all);
            prop_assert_eq!(peak, Some(stages[0].max_tile_bytes()));
        }
    }

    #[test]
    fn the_sweep_equals_single_stages(plain in plain(), limit in 0u64..300) {
        let (model, layering) = plain.model();
        let placement = classic(&model, &layering);
        let memory = memory(&model, &placement);
        let ranges = ranges(plain.layers);
        let stages = memory.stages(&ranges);
        for limit in [limit, u64::MAX] {
            let costs = costs(&memory, limit);
            for (range, stage) in ranges.iter().zip(&stages) {
                let bytes = stage.max_tile_bytes();
                let expected = (bytes <= limit).then_some(bytes);
                prop_assert_eq!(costs.least(range.clone()), expected, "{:?}", range);
            }
        }
    }

    #[test]
    fn full_stages_follow_their_rules(
        plain in plain(),
        recorded in proptest::array::uniform4(by_tile(12)),
        limit in 0u64..300,
    ) {
        let (mut model, layering) = plain.model();
        model.recorded_code = recorded.clone().map(|bytes| bytes.into_iter().collect());
        let placement = full(&model, &layering);
        let memory = memory(&model, &placement);
        let ranges = ranges(plain.layers);
        let stages = memory.stages(&ranges);
        // Every group counts as explained, whether an operation has it or not.
        let every_group = Plain {
            operations: (0..GROUPS).map(|group| (group, 0)).collect(),
            ..plain.clone()
        };
        for (range, stage) in ranges.iter().zip(&stages) {
            for tile in 0..TILES {
                let recorded = [0, 1, 2, 3].map(|kind| u64::from(recorded[kind][tile as usize]));
                let (all, _) = every_group.stage(0..1, tile);
                let all = [all.vertex_code, all.vertex_state, all.exchange_code, all.control_code];
                let expected = plain.full_stage(range.clone(), tile, recorded, all);
                prop_assert_eq!(stage.tiles[tile as usize].total(), expected, "{:?}", range);
            }
        }
        for limit in [limit, u64::MAX] {
            let costs = costs(&memory, limit);
            for (range, stage) in ranges.iter().zip(&stages) {
                let bytes = stage.max_tile_bytes();
                let expected = (bytes <= limit).then_some(bytes);
                prop_assert_eq!(costs.least(range.clone()), expected, "{:?}", range);
            }
            for (range, peak) in costs.iter() {
                for larger in [range.start..range.end + 1, range.start.saturating_sub(1)..range.end] {
                    prop_assert!(costs.least(larger).is_none_or(|more| more >= peak));
                }
            }
        }
    }

    #[test]
    fn flows_between_layers_follow_the_rules(plain in plain()) {
        let (model, layering) = plain.model();
        let placement = classic(&model, &layering);
        let between = memory(&model, &placement).between();
        let (affinity, communication) = (between.affinity(), between.communication());
        let sum = |test: &dyn Fn(&PlainVariable) -> bool| -> u64 {
            let met = plain.variables.iter().filter(|v| test(v));
            met.map(|v| u64::from(v.bytes)).sum()
        };
        let uses = |v: &PlainVariable, layer: usize| {
            !v.users.is_disjoint(&plain.groups_of(layer..layer + 1))
        };
        for a in 0..plain.layers {
            for b in 0..plain.layers {
                prop_assert_eq!(affinity[a][b], sum(&|v| uses(v, a) && uses(v, b)));
                prop_assert_eq!(communication[a][b], sum(&|v| plain.flows(v, a, b)));
            }
        }
        for (boundary, bytes) in between.cut_bytes().into_iter().enumerate() {
            let crosses = |v: &PlainVariable| {
                let sides = (0..=boundary, boundary + 1..plain.layers);
                sides.0.clone().any(|a| {
                    sides.1.clone().any(|b| plain.flows(v, a, b) || plain.flows(v, b, a))
                })
            };
            prop_assert_eq!(bytes, sum(&crosses), "boundary {}", boundary);
        }
    }

    #[test]
    fn another_micro_batch_is_as_if_it_was_recorded(plain in plain(), times in 1u64..6) {
        let mut larger = plain.clone();
        for variable in &mut larger.variables {
            let all = [(0, STEPS)];
            let ranges = plain.classes[variable.class as usize].as_deref().unwrap_or(&all);
            let is_live = |step| ranges.iter().any(|&(from, to)| from <= step && step < to);
            let lasts = is_live(0) && is_live(STEPS - 1);
            if !lasts && !variable.users.is_empty() {
                variable.bytes = variable.bytes.saturating_mul(times as u32);
            }
        }
        let [(model, layering), (other, _)] = [plain.model(), larger.model()];
        let ranges = ranges(plain.layers);
        for place in [classic, full] {
            let (placement, of_other) = (place(&model, &layering), place(&other, &layering));
            let scale = MicroBatchScale { recorded: 1, wanted: times };
            let estimated = memory(&model, &placement).at_micro_batch(scale);
            let recorded = memory(&other, &of_other);
            for (peak, expected) in estimated.stages(&ranges).iter().zip(recorded.stages(&ranges)) {
                prop_assert_eq!(&peak.tiles, &expected.tiles);
            }
            prop_assert_eq!(estimated.cut_bytes(), recorded.cut_bytes());
            prop_assert_eq!(costs(&estimated, u64::MAX), costs(&recorded, u64::MAX));
        }
    }

    #[test]
    fn a_stage_never_shrinks_when_a_layer_is_added(
        plain in plain(),
        recorded in proptest::array::uniform4(by_tile(12)),
    ) {
        let (mut model, layering) = plain.model();
        model.recorded_code = recorded.map(|bytes| bytes.into_iter().collect());
        let placement = full(&model, &layering);
        for placement in [classic(&model, &layering), placement] {
            let memory = memory(&model, &placement);
            let total = |range: Range<usize>| -> Vec<u64> {
                let stages = memory.stages(&[range]);
                stages[0].tiles.iter().map(Parts::total).collect()
            };
            for range in ranges(plain.layers).into_iter().filter(|range| range.len() > 1) {
                let all = total(range.clone());
                for smaller in [range.start..range.end - 1, range.start + 1..range.end] {
                    let grows = all.iter().zip(total(smaller)).all(|(&all, part)| all >= part);
                    prop_assert!(grows, "{:?}", range);
                }
            }
        }
    }
}
