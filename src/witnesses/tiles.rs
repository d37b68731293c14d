//! Checks that the record of each tile agrees with itself, and with the variables on the tile.

use super::{Contradiction, Pair, Witness, worst};
use crate::memory::of_one_stage;
use crate::model::Model;
use crate::profile::{CATEGORIES, Recorded, RecordedTile, Regions, TILES, Target};

/// Contradiction if all layers in one stage, without a pipeline, do not take the recorded bytes of
/// a tile.
pub fn one_stage(model: &Model) -> Option<Contradiction> {
    let recorded = &model.recorded.tiles;
    let taken = recorded.iter().zip(of_one_stage(model));
    let taken = taken.map(|(tile, taken)| taken.saturating_add(tile.beyond_variables()));
    recorded_variables(recorded, taken)
}

/// Compares the recorded total of each tile with the total computed from its variables.
pub(crate) fn recorded_variables(
    recorded: &[RecordedTile],
    computed: impl IntoIterator<Item = u64>,
) -> Option<Contradiction> {
    let fullest = recorded.iter().map(|tile| tile.total).max()?;
    let pairs = (0u32..).zip(recorded).zip(computed);
    let pairs = pairs.map(|((tile, recorded), taken)| Pair::certain(tile, recorded.total, taken));
    worst(Witness::OneStage, TILES, fullest, pairs)
}

/// Contradictions within the record of tiles and categories, including missing tables.
pub(crate) fn of_record(
    recorded: &Recorded,
    regions: Option<&[Regions]>,
    target: &Target,
) -> Vec<Contradiction> {
    let rows = |table, is_empty: bool| {
        is_empty.then(|| Contradiction::without_rows(table, target.num_tiles.into()))
    };
    let found = [
        rows(TILES, recorded.tiles.is_empty()),
        rows(CATEGORIES, recorded.categories.is_empty()),
        total(recorded, regions),
    ];
    found.into_iter().flatten().collect()
}

/// Contradiction about the tile whose total differs most from the range that its parts allow.
fn total(recorded: &Recorded, regions: Option<&[Regions]>) -> Option<Contradiction> {
    let mut disjoint = vec![0u64; recorded.tiles.len()];
    for category in &recorded.categories {
        category.bytes.change(&mut disjoint, u64::saturating_add);
        category
            .overlapped
            .change(&mut disjoint, u64::saturating_sub);
    }
    let pairs = (0u32..).zip(&recorded.tiles).zip(disjoint);
    let pairs = pairs.map(|((tile, row), disjoint)| {
        let clamped = |least: u64, most: u64| match row.total > most {
            true => most,
            false => row.total.max(least),
        };
        let live = row.always_live.saturating_add(row.not_always_live);
        let of_live = clamped(live, row.with_gaps.unwrap_or(u64::MAX));
        if of_live != row.total {
            return Pair::certain(tile, row.total, of_live);
        }
        let region = regions.and_then(|regions| regions.get(tile as usize));
        let all = region.map(|region| region.all);
        Pair {
            // No real profile shows where bytes beyond the memory of a tile are counted.
            is_certain: region.is_none_or(|region| region.overflowed == 0),
            ..Pair::certain(
                tile,
                row.total,
                clamped(disjoint.max(all.unwrap_or(0)), all.unwrap_or(u64::MAX)),
            )
        }
    });
    worst(Witness::Total, TILES, recorded.fullest()?, pairs)
}
