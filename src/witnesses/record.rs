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
    let pairs = (0u32..)
        .zip(recorded)
        .zip(computed)
        .map(|((tile, recorded), &taken)| TileComparison::certain(tile, recorded.total, taken));
    worst(Witness::OneStage, TILES, fullest, pairs)
}

/// Returns the contradictions within the record of tiles and categories: missing tables, and totals
/// of tiles that contradict other columns. `regions` has the bytes of each tile in its memory
/// regions, if the profile has them.
pub(super) fn check_record(
    tiles: &[RecordedTile],
    categories: &[RecordedCategory],
    regions: Option<&[Regions]>,
    target: &Target,
) -> Vec<Contradiction> {
    let rows = |table, is_empty: bool| {
        is_empty.then(|| Contradiction::without_rows(table, target.num_tiles.into()))
    };
    [
        rows(TILES, tiles.is_empty()),
        rows(CATEGORIES, categories.is_empty()),
        total(tiles, regions),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a contradiction about the tile whose recorded total is furthest from the range that
/// [`Witness::Total`] allows; `None` if all totals are within their ranges. `regions` has the bytes
/// of each tile in its memory regions, if the profile has them.
fn total(tiles: &[RecordedTile], regions: Option<&[Regions]>) -> Option<Contradiction> {
    let fullest = tiles.iter().map(|tile| tile.total).max()?;
    let pairs = (0u32..).zip(tiles).map(|(tile, row)| {
        let live = row.always_live.saturating_add(row.not_always_live);
        let most = row.with_gaps.unwrap_or(u64::MAX);
        let of_live = row.total.max(live).min(most);
        let region = regions.and_then(|regions| regions.get(tile as usize));
        // No real profile shows where bytes beyond the memory of a tile are counted.
        let of_regions = region.filter(|region| region.overflowed == 0);
        let computed = match of_regions {
            Some(region) if of_live == row.total => region.all,
            _ => of_live,
        };
        TileComparison::certain(tile, row.total, computed)
    });
    worst(Witness::Total, TILES, fullest, pairs)
}
