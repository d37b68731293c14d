//! Corrections from compiled stages, against sums by hand.

use super::*;
use crate::memory::tests::reference_model::classic;
use crate::memory::{Correction, RangeCosts, StageMemory};
use proptest::collection::vec;

/// Numbers of compiled stages: of some ranges with some stages after them, and of
/// each place. All of them are above 0, or below, or of either sign.
fn any_correction() -> impl Strategy<Value = Correction> {
    let bytes = prop_oneof![Just(-120..0_i64), Just(0..120), Just(-120..120), Just(0..1)];
    let stage = |bytes: Range<i64>| (0..7_usize, 1..8_usize, 0..5_usize, bytes);
    let numbers = move |bytes: Range<i64>| (vec(stage(bytes.clone()), 0..6), vec(bytes, 4));
    bytes
        .prop_flat_map(numbers)
        .prop_map(|(stages, places)| Correction {
            stages: stages
                .into_iter()
                .map(|(start, length, after, bytes)| (placed(start..start + length, after), bytes))
                .collect(),
            first: places[0],
            middle: places[1],
            last: places[2],
            alone: places[3],
        })
}

fn placed(positions: Range<usize>, after: usize) -> PlacedStage {
    PlacedStage {
        positions,
        after: Some(after),
    }
}

/// The part of it that a stage has, word by word.
fn expected(correction: &Correction, stage: &PlacedStage, positions: usize) -> i64 {
    for (compiled, bytes) in &correction.stages {
        if compiled == stage {
            return *bytes;
        }
    }
    let (is_first, is_last) = (stage.positions.start == 0, stage.positions.end == positions);
    match (is_first, is_last) {
        (true, true) => correction.alone,
        (true, false) => correction.first,
        (false, true) => correction.last,
        (false, false) => correction.middle,
    }
}

fn sum(bytes: u64, correction: i64) -> u64 {
    u64::try_from(bytes as i64 + correction).unwrap_or(0)
}

fn computed(memory: &MemoryModel<'_>, stage: &PlacedStage) -> StageMemory {
    let stages = memory.placed_stages(std::slice::from_ref(stage));
    stages.into_iter().next().expect("one stage")
}

/// That a stage has `correction` bytes more on each tile, and nothing else.
fn has_more(now: &StageMemory, before: &StageMemory, correction: i64) -> Result<(), TestCaseError> {
    prop_assert_eq!(now.correction, correction);
    prop_assert_eq!(&now.tiles, &before.tiles);
    prop_assert_eq!(now.max_tile(), before.max_tile());
    prop_assert_eq!(now.peak_step(), before.peak_step());
    let bytes = |stage: &StageMemory| -> Vec<u64> {
        (0..stage.tiles.len())
            .map(|tile| stage.tile_bytes(tile))
            .collect()
    };
    let more = bytes(before)
        .into_iter()
        .map(|bytes| sum(bytes, correction));
    prop_assert_eq!(bytes(now), more.collect::<Vec<_>>());
    prop_assert_eq!(
        now.max_tile_bytes(),
        sum(before.max_tile_bytes(), correction)
    );
    let late = before.late_restores.map(|late| sum(late, correction));
    prop_assert_eq!(now.late_restores, late);
    Ok(())
}

/// That costs up to `limit` have a stage of `bytes` if that is within it, and that
/// number.
fn is_known(known: Option<u64>, bytes: u64, limit: u64) -> bool {
    known.map_or(bytes > limit, |known| known == bytes)
}

/// That the costs up to `limit` have all stages within it, each with its bytes.
fn costs_are_those_of_stages(
    memory: &MemoryModel<'_>,
    before: &MemoryModel<'_>,
    correction: &Correction,
    limit: u64,
) -> Result<(), TestCaseError> {
    let layers = memory.layers();
    let costs = memory.range_costs(limit).unwrap();
    prop_assert!(costs.is_by_depth());
    for range in ranges(layers) {
        let alone = PlacedStage::alone(range.clone());
        let least = computed(memory, &alone);
        has_more(&least, &computed(before, &alone), correction.least())?;
        let least = least.max_tile_bytes();
        prop_assert!(is_known(costs.least(range.clone()), least, limit));
        for after in after(&range, layers) {
            let stage = placed(range.clone(), after);
            let now = computed(memory, &stage);
            let more = expected(correction, &stage, layers);
            has_more(&now, &computed(before, &stage), more)?;
            let bytes = now.max_tile_bytes();
            prop_assert!(bytes >= least);
            let peak = costs.peak(range.clone(), after);
            prop_assert!(is_known(peak, bytes, limit), "{:?}: {:?}", stage, peak);
        }
    }
    never_falls(&costs)
}

/// That no range needs less at least when it grows.
fn never_falls(costs: &RangeCosts) -> Result<(), TestCaseError> {
    for (range, least) in costs.iter() {
        let longer = [
            range.start..range.end + 1,
            range.start.saturating_sub(1)..range.end,
        ];
        for longer in longer {
            prop_assert!(costs.least(longer).is_none_or(|more| more >= least));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn stages_need_what_was_learnt_beyond_the_prediction(
        case in in_passes(),
        pipeline in any_pipeline(),
        has_pipeline in any::<bool>(),
        correction in any_correction(),
        limit in 0u64..300,
    ) {
        let (model, layering) = model(&case);
        for placement in placements(&model, &layering) {
            let plain = memory(&model, &placement);
            let pipeline = if has_pipeline { pipeline } else { Pipeline::default() };
            let before = plain.in_pipeline(pipeline).unwrap();
            let memory = plain.corrected(Some(correction.clone())).in_pipeline(pipeline).unwrap();
            prop_assert_eq!(memory.correction(), Some(&correction));
            prop_assert_eq!(memory.single_layers(), before.single_layers());
            for limit in [limit, u64::MAX] {
                costs_are_those_of_stages(&memory, &before, &correction, limit)?;
            }
            let costs = before.range_costs(limit).unwrap();
            prop_assert_eq!(memory.corrected(None).range_costs(limit).unwrap(), costs);
        }
    }

    #[test]
    fn the_fullest_tile_peaks_at_the_bytes_there(case in in_passes(), bytes in -20..200_i64) {
        let (model, layering) = model(&case);
        let placement = full(&model, &layering);
        let whole = 0..layering.names.len();
        let computed = |bytes| {
            let memory = memory(&model, &placement).corrected(Some(Correction {
                alone: bytes,
                ..Correction::default()
            }));
            let stage = memory.split(std::slice::from_ref(&whole)).remove(0);
            let tile = stage.max_tile() as u32;
            let curves = memory.curves(&[(whole.clone(), &stage, tile)]).remove(0);
            (stage.max_tile_bytes(), curves.expect("steps"))
        };
        let (_, before) = computed(0);
        let (bytes_there, now) = computed(bytes);
        prop_assert_eq!(&now.all_tiles, &before.all_tiles);
        if before.on_tile.fixed as i64 + bytes >= 0 {
            prop_assert_eq!(now.on_tile.peak().0, bytes_there);
        }
    }

    #[test]
    fn the_classic_rules_learn_nothing(plain in plain(), correction in any_correction()) {
        let (model, layering) = plain.model();
        let placement = classic(&model, &layering);
        let before = memory(&model, &placement);
        let memory = before.corrected(Some(correction));
        prop_assert_eq!(memory.correction(), None);
        let all = 0..plain.layers;
        let all = std::slice::from_ref(&all);
        prop_assert_eq!(memory.split(all), before.split(all));
        let costs = before.range_costs(u64::MAX).unwrap();
        prop_assert_eq!(memory.range_costs(u64::MAX).unwrap(), costs);
    }
}
