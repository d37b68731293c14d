//! Curves against the memory of stages, and against sums step by step.

use super::reference_model::STEPS;
use super::*;
use crate::memory::LiveCurve;
use std::collections::BTreeSet;

/// Bytes at a step, as [`LiveCurve`] defines them.
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
                let places = ranges.iter().cloned().zip(&stages);
                let places: Vec<_> = places.map(|(range, stage)| (range, stage, tile)).collect();
                for ((range, stage), curves) in
                    ranges.iter().zip(&stages).zip(memory.curves(&places))
                {
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
        let places: Vec<_> = (0..TILES).map(|tile| (range.clone(), stage, tile)).collect();
        let of_stage: Vec<LiveCurves> = memory.curves(&places).into_iter().flatten().collect();
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
