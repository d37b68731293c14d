//! Checks that the record of each tile agrees with itself, and with the total of its variables and
//! code.

use super::contradiction::{Contradiction, TileComparison, Witness, worst};
use crate::profile::{CATEGORIES, RecordedCategory, RecordedTile, Regions, TILES, Target};

/// Compares the recorded total of each tile with `computed`, the bytes that its variables and code
/// take together. Returns a contradiction about the tile with the largest difference; `None` if all
/// agree.
pub(crate) fn recorded_totals(
    recorded: &[RecordedTile],
    computed: &[u64],
) -> Option<Contradiction> {
    let fullest = recorded.iter().map(|tile| tile.total).max()?;
    let pairs = (0u32..).zip(recorded).zip(computed);
    let pairs = pairs
        .map(|((tile, recorded), &taken)| TileComparison::certain(tile, recorded.total, taken));
    worst(Witness::OneStage, TILES, fullest, pairs)
}

/// Returns the contradictions within the record of tiles and categories: missing tables, and totals
/// of tiles that contradict other columns. `regions` has the bytes of each tile in its memory
/// regions, if the profile has them.
pub(super) fn check_record(
    (tiles, categories): (&[RecordedTile], &[RecordedCategory]),
    regions: Option<&[Regions]>,
    target: &Target,
) -> Vec<Contradiction> {
    let rows = |table, is_empty: bool| {
        is_empty.then(|| Contradiction::without_rows(table, target.num_tiles.into()))
    };
    let found = [
        rows(TILES, tiles.is_empty()),
        rows(CATEGORIES, categories.is_empty()),
        total(tiles, categories, regions),
    ];
    found.into_iter().flatten().collect()
}

/// Returns a contradiction about the tile whose recorded total is furthest from the range that
/// [`Witness::Total`] allows; `None` if all totals are within their ranges. `regions` has the bytes
/// of each tile in its memory regions, if the profile has them.
fn total(
    tiles: &[RecordedTile],
    categories: &[RecordedCategory],
    regions: Option<&[Regions]>,
) -> Option<Contradiction> {
    let fullest = tiles.iter().map(|tile| tile.total).max()?;
    let mut disjoint = vec![0u64; tiles.len()];
    for category in categories {
        category.bytes.change(&mut disjoint, u64::saturating_add);
        category
            .overlapped
            .change(&mut disjoint, u64::saturating_sub);
    }
    let pairs = (0u32..).zip(tiles).zip(disjoint);
    let pairs = pairs.map(|((tile, row), disjoint)| {
        let clamped = |least: u64, most: u64| match row.total > most {
            true => most,
            false => row.total.max(least),
        };
        let live = row.always_live.saturating_add(row.not_always_live);
        let of_live = clamped(live, row.with_gaps.unwrap_or(u64::MAX));
        if of_live != row.total {
            return TileComparison::certain(tile, row.total, of_live);
        }
        let region = regions.and_then(|regions| regions.get(tile as usize));
        let all = region.map(|region| region.all);
        TileComparison {
            // No real profile shows where bytes beyond the memory of a tile are counted.
            is_certain: region.is_none_or(|region| region.overflowed == 0),
            ..TileComparison::certain(
                tile,
                row.total,
                clamped(disjoint.max(all.unwrap_or(0)), all.unwrap_or(u64::MAX)),
            )
        }
    });
    worst(Witness::Total, TILES, fullest, pairs)
}
