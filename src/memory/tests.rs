//! Checks the fast computation of memory on random models: of the bytes of stages and ranges of
//! layers, of the bytes between layers, and of the live bytes at each step. The expected numbers
//! come from the rules of docs/model.md, applied directly.

use super::*;
use crate::{memory::LiveCurve, profile::LiveClasses};
use proptest::prelude::*;
use reference_model::{
    GROUPS, Plain, PlainVariable, STEPS, TILES, by_tile, classic, costs, full, memory, plain,
    ranges,
};
use std::collections::BTreeSet;

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
    fn ranges_equal_single_stages(plain in plain(), limit in 0u64..300) {
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
        // The overhead of a stage includes the code that the compiler recorded beyond the code of
        // all operation groups. Some groups of a random model have no operation, but their code
        // counts too. In this copy of the model, each group has an operation in position 0, so
        // that the code of this position is the code of all groups.
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
        let between = memory(&model, &placement);
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

/// Returns the bytes of a curve at a liveness step: the sum of its fixed bytes, its always-live
/// bytes, and the live bytes of its last point at or before the step.
fn at(curve: &LiveCurve, step: u32) -> u64 {
    let behind = curve.points.partition_point(|&(from, _)| from <= step);
    curve.fixed + curve.always_live + curve.points[behind - 1].1
}

proptest! {
    #![proptest_config(crate::memory::testing::cases(300))]

    #[test]
    fn on_every_tile_a_curve_peaks_at_the_memory_of_the_stage(plain in plain()) {
        let (model, layering) = plain.model();
        let placement = full(&model, &layering);
        let ranges = ranges(plain.layers);
        for placement in [classic(&model, &layering), placement] {
            let memory = memory(&model, &placement);
            let stages = memory.stages(&ranges);
            for tile in 0..TILES {
                for (range, stage) in ranges.iter().zip(&stages) {
                    let curves = memory.curves(range, stage, tile);
                    prop_assert_eq!(curves.is_some(), memory.window(range.clone()).is_some());
                    let Some(LiveCurves { on_tile, .. }) = curves else { continue };
                    let tile = tile as usize;
                    let (bytes, step) = on_tile.peak();
                    prop_assert_eq!(bytes, stage.tiles[tile].total(), "{:?}", range);
                    prop_assert_eq!(Some(step), stage.peak_steps[tile], "{:?}", range);
                    prop_assert_eq!(at(&on_tile, step), bytes);
                    prop_assert_eq!(Some(on_tile.window), memory.window(range.clone()));
                    prop_assert!(on_tile.points.is_sorted_by(|a, b| a.0 < b.0));
                }
            }
        }
    }

    #[test]
    fn the_curve_of_all_tiles_is_the_sum_at_each_step(plain in plain()) {
        let (model, layering) = plain.model();
        let placement = full(&model, &layering);
        let memory = memory(&model, &placement);
        let range = 0..plain.layers;
        let stage = &memory.stages(std::slice::from_ref(&range))[0];
        let of_stage: Vec<LiveCurves> =
            (0..TILES).filter_map(|tile| memory.curves(&range, stage, tile)).collect();
        let whole: Vec<LiveCurves> =
            (0..TILES).filter_map(|tile| memory.whole_curves(tile)).collect();
        for curves in [of_stage, whole] {
            prop_assert_eq!(curves.len(), TILES as usize);
            for step in 0..STEPS {
                let sum: u64 = curves.iter().map(|one| at(&one.on_tile, step)).sum();
                prop_assert_eq!(at(&curves[0].all_tiles, step), sum, "step {}", step);
            }
        }
    }

    #[test]
    fn the_whole_curve_counts_every_variable(plain in plain()) {
        let (model, layering) = plain.model();
        let placement = classic(&model, &layering);
        let memory = memory(&model, &placement);
        for tile in 0..TILES {
            let curve = memory.whole_curves(tile).unwrap().on_tile;
            for step in 0..STEPS {
                let is_live = |v: &&PlainVariable| {
                    let ranges = plain.classes[v.class as usize].as_ref();
                    let in_one = |ranges: &Vec<(u32, u32)>| {
                        ranges.iter().any(|&(from, to)| (from..to).contains(&step))
                    };
                    v.tile == tile && ranges.is_none_or(in_one)
                };
                let live = plain.variables.iter().filter(is_live);
                let bytes: u64 = live.map(|v| u64::from(v.bytes)).sum();
                prop_assert_eq!(at(&curve, step), bytes, "step {}", step);
            }
        }
    }

    #[test]
    fn a_step_belongs_to_the_shortest_operation_that_runs_it(plain in plain()) {
        let (model, layering) = plain.model();
        let placement = classic(&model, &layering);
        let memory = memory(&model, &placement);
        let spans = memory.layer_spans();
        prop_assert!(spans.is_sorted_by(|a, b| a.to < b.from));
        let layers_of = |group: usize| -> BTreeSet<u32> {
            let operations = plain.operations.iter().filter(|&&(at, _)| at as usize == group);
            operations.map(|&(_, layer)| layer).collect()
        };
        for step in 0..STEPS {
            let groups = plain.groups.iter().enumerate();
            let running = groups.filter_map(|(group, timed)| {
                let (from, to) = timed.window.filter(|&(from, to)| (from..=to).contains(&step))?;
                let layers = layers_of(group);
                Some((to - from, layers.first().copied().filter(|_| layers.len() == 1)?))
            });
            let shortest = running.min_by_key(|&(length, _)| length).map(|(_, layer)| layer);
            let span = spans.iter().find(|span| (span.from..=span.to).contains(&step));
            if let Some(layer) = shortest {
                prop_assert_eq!(span.map(|span| span.layer), Some(layer), "step {}", step);
            }
        }
    }
}
