//! The overhead: bytes that every stage needs, whatever its layers. Also fragmentation.

use super::Rules;
use super::code::{by_tile, collect};
use super::lanes::ByLane;
use crate::model::{Model, PlaceSets};
use std::ops::Range;

/// The recorded memory that no operation explains. Each IPU of a pipeline has its own stack,
/// run-time and host exchange, so the full memory model counts it in every stage.
///
/// These bytes are measured: on each tile and for each kind of code, the recorded bytes beyond the
/// code of all operations; the variables that no operation uses, at the steps where they are live;
/// and variables that only operations made by the compiler use. That each stage of a pipeline needs
/// all of them is assumed.
///
/// Fragmentation comes on top: the recorded bytes of a tile beyond always-live variables and the
/// peak of the others (36 bytes on one tile of a real profile, up to 18 % of a tile in others). A
/// stage has it in proportion to the bytes that it takes of the tile (docs/model.md, "Overhead and
/// fragmentation").
#[derive(Debug)]
pub struct Overhead(Vec<TileOverhead>);

/// The overhead and the fragmentation of one tile.
#[derive(Debug, Clone, Default)]
struct TileOverhead {
    /// The recorded bytes, by [`CodeKind`](crate::profile::CodeKind) as an index. A stage never
    /// counts more bytes of its operations.
    recorded: [u64; 4],
    /// The recorded bytes minus the code of all operations, by
    /// [`CodeKind`](crate::profile::CodeKind) as an index; at least 0.
    code: [u64; 4],
    fragmentation: Fragmentation,
}

/// The fragmentation of one tile. A stage has a share of it, in proportion to `rest`.
#[derive(Debug, Clone, Copy, Default)]
struct Fragmentation {
    /// The recorded bytes of the whole model on the tile that belong to no variable.
    bytes: u64,
    /// All recorded bytes of the tile except the fragmentation, `bytes`.
    rest: u64,
}

impl Fragmentation {
    /// Returns the fragmentation, in bytes and rounded up, of a stage that takes `bytes` bytes of
    /// the tile without it. The share never falls as `bytes` grows. A stage that takes at least the
    /// bytes of the whole model has the whole fragmentation.
    fn share(self, bytes: u64) -> u64 {
        if self.bytes == 0 || bytes >= self.rest {
            return self.bytes;
        }
        (u128::from(self.bytes) * u128::from(bytes)).div_ceil(u128::from(self.rest)) as u64
    }

    /// The inverse of [`Fragmentation::share`]: returns the maximum bytes of a stage without
    /// fragmentation that are at most `total` with their fragmentation.
    fn without(self, total: u64) -> u64 {
        if total >= self.rest.saturating_add(self.bytes) {
            return total - self.bytes;
        }
        let all = u128::from(self.rest) + u128::from(self.bytes);
        (u128::from(total) * u128::from(self.rest) / all.max(1)) as u64
    }
}

impl Overhead {
    /// Makes the overhead of the classic memory model: no bytes, no fragmentation, and no upper
    /// limit on the code of a stage.
    pub(super) fn none(model: &Model) -> Self {
        let of_tile = TileOverhead {
            recorded: [u64::MAX; 4],
            ..TileOverhead::default()
        };
        Self(vec![of_tile; model.target.num_tiles as usize])
    }

    /// Computes the overhead of the full memory model from the recorded bytes in `model`.
    pub(super) fn new(model: &Model) -> Self {
        let kinds = model.recorded_code.each_ref();
        let of_tile = |(tile, explained): (u32, [u64; 4])| {
            let recorded = kinds.map(|bytes| u64::from(bytes.get(tile)));
            let of_variables = model.recorded.tiles.get(tile as usize);
            TileOverhead {
                recorded,
                code: std::array::from_fn(|kind| recorded[kind].saturating_sub(explained[kind])),
                fragmentation: of_variables.map_or_else(Fragmentation::default, |tile| {
                    let bytes = tile.beyond_variables();
                    let rest = tile.total.saturating_sub(bytes);
                    Fragmentation { bytes, rest }
                }),
            }
        };
        let explained = explained((model, Rules::Full), 0..model.target.num_tiles, |_| true);
        Self((0u32..).zip(explained).map(of_tile).collect())
    }

    /// Returns the bytes of code on `tile`, of all kinds together, that no operation explains.
    pub(super) fn fixed(&self, tile: usize) -> u64 {
        self.code(tile).iter().sum()
    }

    /// Returns the bytes of code on `tile` that no operation explains, by
    /// [`CodeKind`](crate::profile::CodeKind) as an index.
    pub(super) fn code(&self, tile: usize) -> [u64; 4] {
        self.0[tile].code
    }

    /// Returns the fragmentation of the whole model on `tile` in bytes.
    pub(super) fn all_fragmentation(&self, tile: usize) -> u64 {
        self.0[tile].fragmentation.bytes
    }

    /// Returns the fragmentation on `tile` of a stage that takes `bytes` bytes without
    /// fragmentation.
    pub(super) fn fragmentation(&self, tile: usize, bytes: u64) -> u64 {
        self.0[tile].fragmentation.share(bytes)
    }

    /// Returns for each of `tiles`, by lane, the bytes of code that a stage needs, of all kinds
    /// together. `code` has the code of the stage's operations, by
    /// [`CodeKind`](crate::profile::CodeKind) as an index and then by lane; each kind counts up to
    /// its recorded bytes. The code that no operation explains is added.
    pub(super) fn code_on<const N: usize>(
        &self,
        tiles: Range<u32>,
        code: &[ByLane<u64, N>; 4],
    ) -> [u64; N] {
        let mut needed = [0; N];
        for (lane, tile) in tiles.enumerate() {
            let tile = tile as usize;
            let capped = self.capped(tile, std::array::from_fn(|kind| code[kind][lane]));
            needed[lane] = self.fixed(tile) + capped.iter().sum::<u64>();
        }
        needed
    }

    /// Returns for each of `tiles`, by lane, the maximum bytes without fragmentation of a stage
    /// that takes at most `totals` (by lane) with fragmentation.
    pub(super) fn without_fragmentation_on<const N: usize>(
        &self,
        tiles: Range<u32>,
        totals: &[u64; N],
    ) -> [u64; N] {
        let mut without = *totals;
        for (without, tile) in without.iter_mut().zip(tiles) {
            *without = self.0[tile as usize].fragmentation.without(*without);
        }
        without
    }

    /// Returns the bytes of fragmentation on `tile` that come on top of `shares` bytes, a replica's
    /// shares of sharded optimizer state; 0 for 0 bytes.
    pub(crate) fn fragmentation_of_shares(&self, tile: usize, shares: u64) -> u64 {
        match shares {
            0 => 0,
            _ => self.fragmentation(tile, shares),
        }
    }

    /// Adds fragmentation to each total, by lane: that of a stage that takes this total without
    /// fragmentation on the tile of the lane.
    pub(super) fn add_fragmentation_on<const N: usize>(
        &self,
        tiles: Range<u32>,
        totals: &mut [u64; N],
    ) {
        for (total, tile) in totals.iter_mut().zip(tiles) {
            *total += self.fragmentation(tile as usize, *total);
        }
    }

    /// Returns `code`, the bytes of a stage's operations on `tile` by
    /// [`CodeKind`](crate::profile::CodeKind), each limited to the recorded bytes of its kind:
    /// operations may share code, so their sum may be too high.
    pub(super) fn capped(&self, tile: usize, code: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|kind| code[kind].min(self.0[tile].recorded[kind]))
    }
}

/// Returns the bytes of code of the operation groups for whose numbers `is_wanted` is true, as if
/// all were in one stage: for each tile of `tiles`, by [`CodeKind`](crate::profile::CodeKind) as an
/// index.
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
    use super::Fragmentation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_of_fragmentation_grow_and_can_be_taken_away(bytes in 0u64..90, rest in 0u64..300) {
            let fragmentation = Fragmentation { bytes, rest };
            prop_assert_eq!(fragmentation.share(rest), bytes);
            let with = |bytes: u64| bytes + fragmentation.share(bytes);
            for bytes in 0..400 {
                prop_assert!(fragmentation.share(bytes) <= fragmentation.share(bytes + 1));
                let most = fragmentation.without(with(bytes));
                prop_assert!(with(most) <= with(bytes) && with(most + 1) > with(bytes));
                prop_assert!(bytes <= most);
            }
        }
    }
}
