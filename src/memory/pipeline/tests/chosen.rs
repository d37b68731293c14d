//! Layers of which some are kept and others recomputed: between all and none of them.

use super::*;
use crate::memory::tests::reference_model::TILES;
use crate::memory::{FreedOnTile, GatheredTiles, StageOnTiles};
use std::slice::from_ref;

/// Models, places and what may be chosen for each position; 2 leaves it open.
type Case = (
    (Plain, Vec<Pass>, Vec<bool>, Option<u32>),
    Vec<u8>,
    Vec<bool>,
);

fn any_case() -> impl Strategy<Value = Case> {
    let states = proptest::collection::vec(0u8..3, 9);
    let closed = proptest::collection::vec(proptest::bool::ANY, 9);
    (in_passes(), states, closed).prop_map(|(mut case, states, closed)| {
        case.3 = case.3.or(Some(STEPS / 2));
        (case, states, closed)
    })
}

const CHOSEN: Pipeline = Pipeline {
    schedule: Schedule::Popart,
    recompute: Recompute::Chosen,
    accumulator: Accumulator::AsWeight,
    state: StatePlace::OnChip,
    accumulators: Storage::OnChip,
    stash: Storage::OnChip,
    replicas: 0,
};

fn state(number: &u8) -> LayerChoice {
    match number {
        0 => LayerChoice::Kept,
        1 => LayerChoice::Recomputed,
        _ => LayerChoice::Open,
    }
}

/// All stages with each number of stages after them.
pub(in crate::memory) fn placed(layers: usize) -> Vec<PlacedStage> {
    let stages = ranges(layers).into_iter().flat_map(|positions| {
        let after = after(&positions, layers);
        after.map(move |after| PlacedStage {
            positions: positions.clone(),
            after: Some(after),
        })
    });
    stages.collect()
}

/// The memory of each stage with each number of stages after it.
fn all_stages(memory: &MemoryModel<'_>) -> Vec<u64> {
    let computed = memory.placed_stages(&placed(memory.layers()));
    computed.iter().map(|peak| peak.max_tile_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_kept_is_none_and_all_recomputed_is_layer((case, ..) in any_case()) {
        let (model, layering) = model(&case);
        for (placement, schedule) in placements(&model, &layering).iter().zip([
            Schedule::Popart,
            Schedule::Sequential,
            Schedule::Popart,
        ]) {
            let plain = memory(&model, placement);
            let with = |recompute| {
                let pipeline = Pipeline { schedule, recompute, ..Pipeline::default() };
                plain.in_pipeline(pipeline).unwrap()
            };
            let chosen = with(Recompute::Chosen);
            let layer = all_stages(&with(Recompute::Layer));
            prop_assert_eq!(&all_stages(&chosen), &layer);
            let mut all = vec![LayerChoice::Recomputed; chosen.layers()];
            if let Some(out) = placement.positions.out() {
                all[out] = LayerChoice::Kept;
            }
            prop_assert_eq!(all_stages(&chosen.choosing(&all).unwrap()), layer);
            all.fill(LayerChoice::Kept);
            let kept = all_stages(&chosen.choosing(&all).unwrap());
            prop_assert_eq!(kept, all_stages(&with(Recompute::None)));
        }
    }

    #[test]
    fn what_is_open_needs_no_more_than_each_way_to_close_it((case, states, closed) in any_case()) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let chosen = memory(&model, &placement).in_pipeline(CHOSEN).unwrap();
            let mut open: Vec<LayerChoice> = states.iter().map(state).collect();
            open.truncate(chosen.layers());
            let mut all = open.clone();
            for (choice, &is_kept) in all.iter_mut().zip(&closed) {
                if *choice == LayerChoice::Open {
                    *choice = if is_kept { LayerChoice::Kept } else { LayerChoice::Recomputed };
                }
            }
            let [open, all] = [open, all].map(|each| all_stages(&chosen.choosing(&each).unwrap()));
            let no_more = open.iter().zip(&all).all(|(open, closed)| open <= closed);
            prop_assert!(no_more, "{:?} {:?}", open, all);
        }
    }

    #[test]
    fn few_tiles_have_what_the_whole_stage_has((case, states, ..) in any_case()) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let chosen = memory(&model, &placement).in_pipeline(CHOSEN).unwrap();
            let layers = chosen.layers();
            let choices: Vec<LayerChoice> = states.iter().map(state).take(layers).collect();
            let is_kept = |position: &usize| choices[*position] == LayerChoice::Kept;
            for stage in placed(layers) {
                let tiles: Vec<u32> = (0..TILES).rev().collect();
                let mut on_tiles = StageOnTiles::new(&chosen, stage.clone(), &GatheredTiles::new(&chosen, &tiles));
                let found = on_tiles.peaks(&choices).unwrap();
                let whole = &chosen.choosing(&choices).unwrap().placed_stages(from_ref(&stage))[0];
                let whole = tiles.iter().map(|&tile| whole.tile_bytes(tile as usize));
                prop_assert_eq!(&found, &whole.collect::<Vec<_>>());
                let closed = choices.iter().map(|choice| match choice {
                    LayerChoice::Kept => LayerChoice::Kept,
                    LayerChoice::Recomputed | LayerChoice::Open => LayerChoice::Recomputed,
                });
                let found = on_tiles.peaks(&closed.collect::<Vec<_>>()).unwrap();
                let mut kept = choices.clone();
                kept[stage.positions.clone()].fill(LayerChoice::Kept);
                let kept = on_tiles.peaks(&kept).unwrap();
                let copies = chosen.copies(&stage).map_or(0, |(copies, _)| copies);
                for ((&tile, kept), found) in tiles.iter().zip(kept).zip(found) {
                    let on_tile = FreedOnTile::new(&chosen, tile);
                    let again = stage.positions.clone().filter(|position| !is_kept(position));
                    let freed = again.map(|position| on_tile.bytes(&chosen, position, copies));
                    let freed: u64 = freed.sum();
                    prop_assert!(found + freed >= kept, "{:?} {} {} {}", stage, found, freed, kept);
                }
            }
        }
    }
}
