//! The code of neighbouring tiles, prepared for ranges that grow layer by layer.

use crate::memory::MemoryModel;
use crate::memory::code::TileSum;
use crate::memory::entering::GrowingSums;
use crate::model::TooManyPlaces;
use std::ops::Range;

/// The code of some tiles by [`CodeKind`](crate::profile::CodeKind) and lane (tile), for ranges of
/// positions that grow one by one.
pub(super) type EnteringCode<const N: usize> = GrowingSums<N, 4>;

/// Replaces the contents of `code` by the code of `model` on `tiles`, at most `N` tiles.
///
/// # Errors
/// If the tiles have more code than any real tile.
pub(super) fn load<const N: usize>(
    model: &MemoryModel<'_>,
    tiles: &Range<u32>,
    code: &mut EnteringCode<N>,
) -> Result<(), TooManyPlaces> {
    code.restart(model.layers());
    for item in &*model.code {
        if let Some(bytes) = on_tiles(&item.bytes, tiles) {
            code.enter(model, item.set, item.kind as usize, bytes);
        }
    }
    code.entries.check()
}

/// Returns the bytes on each of `tiles`, by lane. `sums` are disjoint runs of tiles in ascending
/// order. `None` if no tile has bytes.
fn on_tiles<const N: usize>(sums: &[TileSum], tiles: &Range<u32>) -> Option<[u64; N]> {
    let here = sums[sums.partition_point(|sum| sum.to <= tiles.start)..]
        .iter()
        .take_while(|sum| sum.from < tiles.end);
    let mut found = None;
    for sum in here {
        let (from, to) = (sum.from.max(tiles.start), sum.to.min(tiles.end));
        let lanes = (from - tiles.start) as usize..(to - tiles.start) as usize;
        found.get_or_insert([0; N])[lanes].fill(sum.bytes);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_lane_has_what_its_tile_has(
            runs in prop::collection::vec((0u32..4, 1u32..5, 1u64..9), 0..6),
            first in 0u32..20,
            count in 1u32..=4,
        ) {
            let mut from = 0;
            let sums: Vec<TileSum> = runs.into_iter().map(|(gap, length, bytes)| {
                let to = from + gap + length;
                TileSum { from: std::mem::replace(&mut from, to) + gap, to, bytes }
            }).collect();
            let found = on_tiles::<4>(&sums, &(first..first + count));
            let on = |tile| sums.iter().find(|sum| (sum.from..sum.to).contains(&tile));
            let mut expected = [0; 4];
            for (lane, tile) in (first..first + count).enumerate() {
                expected[lane] = on(tile).map_or(0, |sum| sum.bytes);
            }
            prop_assert_eq!(found.unwrap_or_default(), expected);
            prop_assert_eq!(found.is_some(), expected != [0; 4]);
        }
    }
}
