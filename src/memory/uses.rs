//! The variables that stages have, and the liveness steps at which they are live. Variables of one
//! equivalence class (live at the same steps) and one use set (used by the same operation groups)
//! form a *use*, which has an index.
//!
//! Most programs treat thousands of tiles alike, so neighbouring tiles have nearly the same uses.
//! The live ranges of a use and the operations that use it are therefore looked up once for several
//! tiles. The bytes on these tiles are summed side by side in an array with one entry, a *lane*,
//! for each tile.

use super::{
    MemoryModel, Rules,
    lanes::{self, LANES},
};
use crate::model::{EVERYWHERE, Model, PlaceSet, TileUse, VariableGroups, VariableUse};
use std::ops::Range;

/// All variables that stages have. Variables with the same live steps (equivalence class) and the
/// same users (use set) form a *use*. Uses are numbered from 0: first those of variables with data,
/// in the order of the model, then those of variables with code.
#[derive(Debug, Clone, Copy)]
pub struct CountedUses<'a> {
    pub data: &'a VariableGroups,
    /// The groups of variables that hold code; `None` in the full memory model, where the recorded
    /// bytes of code replace these variables.
    code: Option<&'a VariableGroups>,
}

impl<'a> CountedUses<'a> {
    pub fn new(model: &'a Model, rules: Rules) -> Self {
        Self {
            data: &model.variables,
            code: (rules == Rules::Classic).then_some(&model.code_variables),
        }
    }

    /// Iterates over all uses (groups of variables with the same live steps and users) in the order
    /// of their indices. Each use has its bytes over all tiles.
    pub fn all(&self) -> impl Iterator<Item = &VariableUse> {
        self.data
            .uses()
            .iter()
            .chain(self.code.map_or(&[][..], VariableGroups::uses))
    }

    #[inline]
    pub fn of(&self, number: u32) -> &VariableUse {
        let (data, number) = (self.data.uses(), number as usize);
        match self.code {
            Some(code) if number >= data.len() => &code.uses()[number - data.len()],
            _ => &data[number],
        }
    }

    /// Iterates over the uses (groups of variables with the same live steps and users) on `tile`,
    /// each with its bytes on this tile. A use whose bytes exceed 32 bits comes several times, each
    /// time with a part of its bytes.
    pub fn on_tile(&self, tile: u32) -> impl Iterator<Item = VariableUse> + '_ {
        self.numbered_on_tile(tile)
            .map(|(number, bytes)| VariableUse {
                bytes,
                ..*self.of(number)
            })
    }

    /// Iterates over the uses (groups of variables with the same live steps and users) on `tile`,
    /// as pairs of the index of a use (see [`CountedUses`]) and its bytes on this tile. A use whose
    /// bytes exceed 32 bits comes several times, each time with a part of its bytes.
    pub fn numbered_on_tile(&self, tile: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.lists(tile).into_iter().flat_map(|(first, uses)| {
            uses.iter()
                .map(move |of_tile| (first + of_tile.number, of_tile.bytes.into()))
        })
    }

    /// Returns the uses (groups of variables with the same live steps and users) on `tile` as two
    /// ascending lists: uses with data, and uses with code. Each list comes with an offset: a
    /// number in the list plus the offset is the index of a use (see [`CountedUses`]).
    pub fn lists(&self, tile: u32) -> [(u32, &[TileUse]); 2] {
        let code = self.code.map_or(&[][..], |code| code.uses_on_tile(tile));
        [
            (0, self.data.uses_on_tile(tile)),
            (self.data.uses().len() as u32, code),
        ]
    }
}

impl<'a> MemoryModel<'a> {
    /// Calls `visit` with the half-open ranges of liveness steps at which variables are live
    /// (`None` for all steps), and with a condition that a stage must meet for these ranges to
    /// apply ([`MemoryModel::has_part`]). If the ranges differ between stages of a pipeline,
    /// `visit` is called once for each condition. It is not called for variables that take no
    /// memory in the forward and the backward pass, such as optimizer state that is off the chip.
    /// `number` is the index of the variables in [`CountedUses`].
    #[inline]
    pub(super) fn each_life<'b>(
        &'b self,
        number: u32,
        mut visit: impl FnMut((PlaceSet, Option<u32>), Option<&'b [(u32, u32)]>),
    ) {
        if self.is_away(number) {
            return;
        }
        let &VariableUse { class, set, .. } = self.uses.of(number);
        let counted = self.counted(set);
        let flows = self.flows.as_ref();
        let Some(parts) = flows.and_then(|flows| flows.lives(number)) else {
            return visit((counted, None), self.live_ranges(class));
        };
        for (condition, steps) in parts {
            let counted = condition.places.unwrap_or(counted);
            let with = condition.with.filter(|_| counted != EVERYWHERE);
            visit((counted, with), Some(steps));
        }
    }

    /// Returns whether the live ranges that [`MemoryModel::each_life`] gives with a condition apply
    /// to a stage. `stage` are its positions (end exclusive). At least one of them (In, a layer or
    /// Out) must be in the set `counted`. If `with` is a position, it must be one of them too.
    pub(super) fn has_part(
        &self,
        (counted, with): (PlaceSet, Option<u32>),
        stage: &Range<usize>,
    ) -> bool {
        self.counts_in(counted, stage)
            && with.is_none_or(|position| stage.contains(&(position as usize)))
    }

    /// Sums up, for each lane (tile), the bytes in `all` that a stage has. `stage` are its
    /// positions (end exclusive). Each item of `all` has bytes and a set of positions (In, layers,
    /// Out): the stage has these bytes if any of its positions is in the set.
    pub(super) fn sum_in<const N: usize>(
        &self,
        all: &[Placing<N>],
        stage: &Range<usize>,
    ) -> [u64; N] {
        all.iter()
            .filter(|(set, _)| self.counts_in(*set, stage))
            .fold([0; N], |sums, (_, bytes)| lanes::plus(&sums, bytes))
    }

    /// Returns the half-open step ranges at which variables with the equivalence class `class` are
    /// live in the profile; `None` if they are live at every step.
    #[inline]
    pub(super) fn live_ranges(&self, class: u32) -> Option<&'a [(u32, u32)]> {
        let classes = &self.model.classes;
        (!classes.is_always_live(class)).then(|| classes.ranges(class))
    }
}

/// Bytes of memory by lane (tile), such as those of accumulators, and the positions (In, layers,
/// Out) that need them. A stage with any of these positions takes the bytes.
pub type Placing<const N: usize> = (PlaceSet, [u64; N]);

/// Divides the tiles `0..tiles` into groups of 1 to [`LANES`] neighbouring tiles (the last group
/// may be smaller). A thread examines the tiles of a group side by side. Groups are small enough
/// that every thread gets several groups.
pub fn groups(tiles: u32) -> impl ExactSizeIterator<Item = Range<u32>> {
    let parts = if cfg!(test) {
        1
    } else {
        4 * rayon::current_num_threads() as u32
    };
    let at_once = (tiles / parts).clamp(1, LANES as u32);
    (0..tiles)
        .step_by(at_once as usize)
        .map(move |first| first..tiles.min(first + at_once))
}

/// The uses (groups of variables with the same live steps and users) on up to `N` neighbouring
/// tiles, each with its bytes on every tile.
#[derive(Default)]
pub struct NeighbourUses<const N: usize> {
    /// Pairs of the index of a use (group of variables with the same live steps and users) and its
    /// bytes by lane (tile), in ascending order of indices. A use whose bytes on a tile exceed 32
    /// bits has several pairs, each with a part of the bytes.
    pub rows: Vec<(u32, [u32; N])>,
}

impl<const N: usize> NeighbourUses<N> {
    /// Collects the uses (groups of variables with the same live steps and users) on `tiles`, which
    /// are at most `N` tiles. The first of these tiles is lane 0.
    pub fn gather(&mut self, memory: &MemoryModel<'_>, tiles: Range<u32>) {
        self.rows.clear();
        let mut data = [(0, &[][..]); N];
        let mut code = data;
        for (lane, tile) in tiles.enumerate() {
            [data[lane], code[lane]] = memory.uses.lists(tile);
        }
        self.append(data);
        self.append(code);
    }

    /// Merges lists of groups of variables (uses), one ascending list per tile (lane), and appends
    /// them to `rows`: each group with its bytes on every tile. A group that a tile lists several
    /// times is also appended several times. The first number of a list is an offset, equal for all
    /// tiles, which turns the number of a group into its index in [`CountedUses`]. The list of a
    /// lane without a tile is empty.
    fn append(&mut self, lists: [(u32, &[TileUse]); N]) {
        let first = lists[0].0;
        let mut left = lists.map(|(_, uses)| uses);
        let next = |uses: &[TileUse]| uses.first().map_or(u32::MAX, |next| next.number);
        let mut numbers = left.map(next);
        loop {
            let number = numbers.into_iter().fold(u32::MAX, u32::min);
            if number == u32::MAX {
                return;
            }
            let mut bytes = [0; N];
            for lane in 0..N {
                if numbers[lane] == number {
                    bytes[lane] = left[lane][0].bytes;
                    left[lane] = &left[lane][1..];
                    numbers[lane] = next(left[lane]);
                }
            }
            self.rows.push((first + number, bytes));
        }
    }

    #[inline]
    pub fn bytes(&self, row: u32) -> &[u32; N] {
        &self.rows[row as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates 1 to 4 random tiles, each as a list of uses (groups of variables) in ascending
    /// order. There are only 15 uses, so that tiles have uses in common. A list often has a use
    /// several times, as real lists do if the bytes of the use exceed 32 bits.
    fn tiles() -> impl Strategy<Value = Vec<Vec<TileUse>>> {
        let numbered = (0u32..15, 0u32..9);
        let tile = prop::collection::vec(numbered, 0..12).prop_map(|mut uses| {
            uses.sort_unstable();
            let of = |(number, bytes)| TileUse { number, bytes };
            uses.into_iter().map(of).collect()
        });
        prop::collection::vec(tile, 1..=4)
    }

    proptest! {
        #[test]
        fn each_lane_has_what_its_tile_has(tiles in tiles()) {
            let mut uses = NeighbourUses::<4>::default();
            uses.append(std::array::from_fn(|lane| (7, tiles.get(lane).map_or(&[][..], |uses| uses))));
            let numbers: Vec<_> = uses.rows.iter().map(|(number, _)| number).collect();
            prop_assert!(numbers.is_sorted());
            for (lane, of_tile) in tiles.iter().enumerate() {
                let found = uses.rows.iter().map(|&(number, bytes)| (number, bytes[lane]));
                let expected = of_tile.iter().map(|of_tile| (7 + of_tile.number, of_tile.bytes));
                let of = |all: Vec<(u32, u32)>| {
                    let mut all: Vec<_> = all.into_iter().filter(|of_tile| of_tile.1 > 0).collect();
                    all.sort_unstable();
                    all
                };
                prop_assert_eq!(of(found.collect()), of(expected.collect()));
            }
            // A use is a group of variables, and a tile may list it several times. The merged list
            // must have it as often as the tile that lists it most often; otherwise the test fails.
            for &number in &numbers {
                let rows = numbers.iter().filter(|of_tile| **of_tile == number).count();
                let times = tiles.iter().map(|of_tile| {
                    let of_tile = of_tile.iter().filter(|of_tile| 7 + of_tile.number == *number);
                    of_tile.count()
                });
                prop_assert_eq!(Some(rows), times.max());
            }
        }
    }
}
