//! The overhead: bytes that every stage needs, whatever its layers.

use super::Rules;
use super::code::{by_tile, collect};
use super::lanes::ByLane;
use crate::model::{Model, PlaceSets};
use std::ops::Range;

/// Memory that no operation explains. Each IPU of a pipeline has its stack, its run-time and its
/// host exchange, so the full rules count it in every stage.
///
/// Measured: on each tile and for each kind of code, the recorded bytes beyond what all operations
/// together explain; the variables that no operation uses, at the steps where they are live; and
/// variables that only operations made by the compiler use. Assumed: that each stage of a pipeline
/// needs all of it.
///
/// Fragmentation comes on top: recorded bytes of a tile beyond always-live variables and the peak
/// of the others (36 bytes on one tile of a real profile, up to 18 % of a tile in others). A stage
/// has it in proportion to what it takes of the tile (docs/model.md, "Overhead and fragmentation").
#[derive(Debug, Clone)]
pub struct Overhead {
    /// By tile and [`CodeKind`](crate::profile::CodeKind): recorded bytes, the maximum that a stage can need.
    recorded: Vec<[u64; 4]>,
    /// By tile and [`CodeKind`](crate::profile::CodeKind): recorded bytes that no operation explains.
    code: Vec<[u64; 4]>,
    /// By tile.
    fragmentation: Vec<Fragmentation>,
}

/// The fragmentation of one tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Fragmentation {
    /// Recorded bytes of the whole model that no lowered variable explains.
    bytes: u64,
    /// All other recorded bytes of the tile.
    rest: u64,
}

impl Fragmentation {
    /// Fragmentation of a stage that takes `bytes` bytes, rounded up: all of it where the stage
    /// takes as much as the whole model. Never falls as `bytes` grows.
    fn share(self, bytes: u64) -> u64 {
        if self.bytes == 0 || bytes >= self.rest {
            return self.bytes;
        }
        let part = u128::from(self.bytes) * u128::from(bytes);
        part.div_ceil(u128::from(self.rest)) as u64
    }

    /// The maximum number of bytes that take no more than `total` together with their
    /// fragmentation.
    fn without(self, total: u64) -> u64 {
        if total >= self.rest.saturating_add(self.bytes) {
            return total - self.bytes;
        }
        let all = u128::from(self.rest) + u128::from(self.bytes);
        (u128::from(total) * u128::from(self.rest) / all.max(1)) as u64
    }
}

impl Overhead {
    /// No overhead and no bound, as the classic rules have it.
    pub(super) fn none(model: &Model) -> Self {
        let tiles = model.target.num_tiles as usize;
        Self {
            recorded: vec![[u64::MAX; 4]; tiles],
            code: vec![[0; 4]; tiles],
            fragmentation: vec![Fragmentation::default(); tiles],
        }
    }

    /// The overhead in the profile of `model`.
    pub(super) fn new(model: &Model) -> Self {
        let tiles = model.target.num_tiles as usize;
        let explained = explained((model, Rules::Full), 0..model.target.num_tiles, |_| true);
        let kinds = model.recorded_code.each_ref();
        let recorded = |tile: u32| kinds.map(|bytes| u64::from(bytes.get(tile)));
        let recorded: Vec<_> = (0..model.target.num_tiles).map(recorded).collect();
        let beyond = |(recorded, explained): (&[u64; 4], &[u64; 4])| {
            std::array::from_fn(|kind| recorded[kind].saturating_sub(explained[kind]))
        };
        let code = recorded.iter().zip(&explained).map(beyond).collect();
        let mut fragmentation = vec![Fragmentation::default(); tiles];
        for (fragmentation, tile) in fragmentation.iter_mut().zip(&model.recorded.tiles) {
            fragmentation.bytes = tile.beyond_variables();
            fragmentation.rest = tile.total.saturating_sub(fragmentation.bytes);
        }
        Self {
            recorded,
            code,
            fragmentation,
        }
    }

    /// Bytes of code on `tile` that no operation explains.
    pub(super) fn fixed(&self, tile: usize) -> u64 {
        self.code[tile].iter().sum()
    }

    /// By [`CodeKind`](crate::profile::CodeKind): code on `tile` that no operation explains.
    pub(super) fn code(&self, tile: usize) -> [u64; 4] {
        self.code[tile]
    }

    /// All fragmentation on `tile`.
    pub(super) fn all_fragmentation(&self, tile: usize) -> u64 {
        self.fragmentation[tile].bytes
    }

    /// The fragmentation on `tile` of a stage that takes `bytes` bytes without it.
    pub(super) fn fragmentation(&self, tile: usize, bytes: u64) -> u64 {
        self.fragmentation[tile].share(bytes)
    }

    /// By lane, the bytes of code that a stage needs on each of `tiles` when its operations explain
    /// `code` by kind: that, and code that no operation explains.
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

    /// By lane, maximum bytes, without fragmentation, of a stage that takes a total on each of `tiles`
    /// with it.
    pub(super) fn without_fragmentation_on<const N: usize>(
        &self,
        tiles: Range<u32>,
        totals: &[u64; N],
    ) -> [u64; N] {
        let mut without = *totals;
        for (without, tile) in without.iter_mut().zip(tiles) {
            *without = self.fragmentation[tile as usize].without(*without);
        }
        without
    }

    /// Fragmentation on `tile` that comes with `shares` bytes of sharded optimizer state.
    pub(in crate::memory) fn fragmentation_of_shares(&self, tile: usize, shares: u64) -> u64 {
        match shares {
            0 => 0,
            _ => self.fragmentation(tile, shares),
        }
    }

    /// By lane, adds to each total the fragmentation on its tile of a stage that takes this total.
    pub(super) fn add_fragmentation_on<const N: usize>(
        &self,
        tiles: Range<u32>,
        totals: &mut [u64; N],
    ) {
        for (total, tile) in totals.iter_mut().zip(tiles) {
            *total += self.fragmentation(tile as usize, *total);
        }
    }

    /// Bytes by kind of code that a stage needs on `tile` when its operations explain `code`: no
    /// more than the profile records, where operations share code.
    pub(super) fn capped(&self, tile: usize, code: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|kind| code[kind].min(self.recorded[tile][kind]))
    }
}

/// By tile of `tiles` and [`CodeKind`](crate::profile::CodeKind): code of the operation groups for which `is_wanted`, in one
/// stage.
pub(super) fn explained(
    (model, rules): (&Model, Rules),
    tiles: Range<u32>,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<[u64; 4]> {
    let mut sets = PlaceSets::default();
    let stage = sets.one(0);
    let groups = model.operation_groups.iter().enumerate();
    let wanted = groups.filter(|&(number, _)| is_wanted(number));
    let wanted: Vec<_> = wanted.map(|(_, group)| (&group.code, stage)).collect();
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
