//! The overhead: bytes that every stage needs, whatever its layers. Also fragmentation.

use super::Rules;
use super::code::{by_tile, collect};
use crate::model::{Model, PlaceSets};
use std::ops::Range;

/// The recorded memory of one tile that no operation explains. Each IPU of a pipeline has its own
/// stack, run-time and host exchange, so the full memory model adds this memory to every stage.
///
/// These bytes are measured: on each tile and for each kind of code, the recorded bytes beyond the
/// code of all operations; the variables that no operation uses, at the steps where they are live;
/// and variables that only operations made by the compiler use. That each stage of a pipeline needs
/// all of them is assumed.
///
/// Fragmentation comes on top: the recorded bytes of a tile beyond always-live variables and the
/// peak of all other variables (36 bytes on one tile of a real profile, up to 18 % of a tile in
/// others). A stage has it in proportion to the bytes that it takes of the tile (docs/model.md,
/// "Overhead and fragmentation").
#[derive(Debug, Clone, Default)]
pub(crate) struct TileOverhead {
    /// The recorded bytes of code, one entry per [`CodeKind`](crate::profile::CodeKind). The code
    /// of the operations of a stage is limited to these bytes.
    recorded: [u64; 4],
    /// The recorded bytes of code minus the code of all operations, or 0 if that is negative: one
    /// entry per [`CodeKind`](crate::profile::CodeKind).
    pub code: [u64; 4],
    /// The fragmentation of the tile in the one-IPU compilation: the recorded bytes that belong to
    /// no variable, in bytes.
    pub fragmentation: u64,
    /// All recorded bytes of the tile except the fragmentation.
    rest: u64,
}

impl TileOverhead {
    /// Returns the overhead of each tile in the classic memory model: no bytes, no fragmentation,
    /// and no upper limit on the code of a stage.
    pub fn none(model: &Model) -> Vec<Self> {
        let of_tile = Self {
            recorded: [u64::MAX; 4],
            ..Self::default()
        };
        vec![of_tile; model.target.num_tiles as usize]
    }

    /// Computes the overhead of each tile in the full memory model from the recorded bytes in
    /// `model`.
    pub fn of_tiles(model: &Model) -> Vec<Self> {
        let explained = explained((model, Rules::Full), 0..model.target.num_tiles, |_| true);
        (0u32..)
            .zip(explained)
            .map(|(tile, explained)| {
                let kinds = model.recorded_code.each_ref();
                let recorded = kinds.map(|bytes| u64::from(bytes.get(tile)));
                let of_tile = model.recorded.tiles.get(tile as usize);
                let fragmentation = of_tile.map_or(0, |tile| tile.beyond_variables());
                Self {
                    recorded,
                    code: std::array::from_fn(|kind| {
                        recorded[kind].saturating_sub(explained[kind])
                    }),
                    fragmentation,
                    rest: of_tile.map_or(0, |tile| tile.total.saturating_sub(fragmentation)),
                }
            })
            .collect()
    }

    /// Returns the fragmentation, in bytes and rounded up, of a stage that takes `bytes` bytes of
    /// the tile besides fragmentation. The result never falls as `bytes` grows; if `bytes` is at
    /// least what the whole model takes, the result is the whole fragmentation of the tile.
    pub fn fragmentation_of(&self, bytes: u64) -> u64 {
        if self.fragmentation == 0 || bytes >= self.rest {
            return self.fragmentation;
        }
        (u128::from(self.fragmentation) * u128::from(bytes)).div_ceil(u128::from(self.rest)) as u64
    }

    /// Returns the bytes of fragmentation of `shares` bytes, which are the shares of sharded
    /// optimizer state that one replica keeps on the tile. Returns 0 if `shares` is 0.
    pub fn fragmentation_of_shares(&self, shares: u64) -> u64 {
        match shares {
            0 => 0,
            _ => self.fragmentation_of(shares),
        }
    }

    /// Returns the highest number of bytes that, together with their fragmentation, are at most
    /// `total` bytes: the inverse of [`TileOverhead::fragmentation_of`].
    pub fn without_fragmentation(&self, total: u64) -> u64 {
        if total >= self.rest.saturating_add(self.fragmentation) {
            return total - self.fragmentation;
        }
        let all = u128::from(self.rest) + u128::from(self.fragmentation);
        (u128::from(total) * u128::from(self.rest) / all.max(1)) as u64
    }

    /// Limits the bytes of code of a stage's operations to the recorded bytes of the same kind,
    /// since operations may share code that `code` counts several times. `code` and the result have
    /// one entry per [`CodeKind`](crate::profile::CodeKind).
    pub fn capped(&self, code: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|kind| code[kind].min(self.recorded[kind]))
    }
}

/// Adds to each entry of `totals` the fragmentation of a stage that takes this number of bytes on
/// the tile besides fragmentation. `totals` has one entry per tile of `tiles`.
pub(super) fn add_fragmentation(tiles: &[TileOverhead], totals: &mut [u64]) {
    for (total, tile) in totals.iter_mut().zip(tiles) {
        *total += tile.fragmentation_of(*total);
    }
}

/// Returns the bytes of code that one stage would have if it had exactly the operation groups for
/// whose indices `is_wanted` is true. The result has one entry per tile of `tiles`, with one number
/// per [`CodeKind`](crate::profile::CodeKind), which is the index of the number.
pub(super) fn explained(
    (model, rules): (&Model, Rules),
    tiles: Range<u32>,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<[u64; 4]> {
    let mut sets = PlaceSets::default();
    let stage = sets.one(0);
    let wanted: Vec<_> = model
        .operation_groups
        .iter()
        .enumerate()
        .filter(|&(number, _)| is_wanted(number))
        .map(|(_, group)| (&group.code, stage))
        .collect();
    by_tile(&collect((model, rules), &wanted, &tiles, &mut sets), &tiles)
}

#[cfg(test)]
mod tests {
    use super::TileOverhead;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_of_fragmentation_grow_and_can_be_taken_away(bytes in 0u64..90, rest in 0u64..300) {
            let tile = TileOverhead { fragmentation: bytes, rest, ..TileOverhead::default() };
            prop_assert_eq!(tile.fragmentation_of(rest), bytes);
            let with = |bytes: u64| bytes + tile.fragmentation_of(bytes);
            for bytes in 0..400 {
                prop_assert!(tile.fragmentation_of(bytes) <= tile.fragmentation_of(bytes + 1));
                let most = tile.without_fragmentation(with(bytes));
                prop_assert!(with(most) <= with(bytes) && with(most + 1) > with(bytes));
                prop_assert!(bytes <= most);
            }
        }
    }
}
