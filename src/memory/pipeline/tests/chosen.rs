//! Layers of which some are kept and others recomputed: between all and none of them.

use super::*;

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

/// The memory of each stage with each number of stages after it.
fn all_stages(memory: &MemoryModel<'_>) -> Vec<u64> {
    let layers = memory.layers();
    let stages = ranges(layers).into_iter().flat_map(|positions| {
        let after = after(&positions, layers);
        after.map(move |after| PlacedStage {
            positions: positions.clone(),
            after: Some(after),
        })
    });
    let stages: Vec<PlacedStage> = stages.collect();
    let computed = memory.placed_stages(&stages);
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
        let state = |&number: &u8| match number {
            0 => LayerChoice::Kept,
            1 => LayerChoice::Recomputed,
            _ => LayerChoice::Open,
        };
        for placement in placements(&model, &layering) {
            let pipeline = Pipeline {
                schedule: Schedule::Popart,
                recompute: Recompute::Chosen,
                ..Pipeline::default()
            };
            let chosen = memory(&model, &placement).in_pipeline(pipeline).unwrap();
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
}
