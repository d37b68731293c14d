//! The encoding of variables in a saved model. Variables are by far the largest part of the file.
//!
//! A *group* stands for all variables on one tile that are live at the same steps (liveness class)
//! and that the same operations use (use set). The pair of liveness class and use set is called the
//! *use* of the group. The same uses recur on many tiles (a real profile has 48 uses for 6,000
//! groups), so each use is stored once in a sorted list, and a group is stored as the index of its
//! use in this list and its bytes.
//!
//! For each tile, the file has the number of groups and a blob of varints (`profile/encoding.rs`).
//! The blob has two numbers for each group, in ascending order of uses: the index of the group's
//! use minus the index of the previous group's use (0 for the first group), and the bytes of the
//! group.

use crate::{
    model::{TileUse, VariableGroups},
    parallel::{filled, split_by},
    profile::encoding::{push_varint, varints},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The variables of a saved model in encoded form, as groups of variables on one tile that are live
/// at the same steps and that the same operations use. `Blob` is the type of a list or slice of
/// bytes.
#[derive(Serialize, Deserialize)]
pub struct EncodedGroups<Blob> {
    /// Pairs of a liveness class and a use set (the operations that use a variable). The encoded
    /// groups of variables refer to these pairs by index.
    pub(super) uses: Vec<(u32, u32)>,
    /// One entry per tile: the number of groups of variables on it, and the bytes that encode them.
    pub(super) tiles: Vec<(u32, Blob)>,
}

impl EncodedGroups<Vec<u8>> {
    /// Encodes the groups of variables of all tiles.
    pub fn new(groups: &VariableGroups) -> Self {
        let uses = groups.uses().iter().map(|used| (used.class, used.set));
        let tiles = (0..groups.tiles()).into_par_iter().map(|tile| {
            let groups = groups.uses_on_tile(tile);
            let (mut blob, mut last) = (Vec::new(), 0);
            for group in groups {
                push_varint(&mut blob, (group.number - last).into());
                push_varint(&mut blob, group.bytes.into());
                last = group.number;
            }
            (groups.len() as u32, blob)
        });
        Self {
            uses: uses.collect(),
            tiles: tiles.collect(),
        }
    }
}

impl EncodedGroups<&[u8]> {
    /// Decodes the groups of variables of all tiles. Does not check that the liveness classes of
    /// variables and their use sets (the operations that use a variable) exist; `check.rs` checks
    /// this later. Returns `None` if the bytes of a tile are malformed, or encode more or fewer
    /// groups than the file states.
    pub fn decode(&self) -> Option<VariableGroups> {
        let Self { uses, tiles } = self;
        // Refuse a file that states more groups of variables on a tile than its blob can hold, at
        // two bytes or more for each group, before memory is reserved for them.
        if tiles
            .iter()
            .any(|(count, blob)| *count as usize > blob.len() / 2)
        {
            return None;
        }
        let counts: Vec<u32> = tiles.iter().map(|&(count, _)| count).collect();
        let lengths = || counts.iter().map(|&count| count as usize);
        let mut groups = filled(TileUse::default(), lengths().sum());
        split_by(&mut groups, lengths())
            .into_par_iter()
            .zip(tiles)
            .try_for_each(|(groups, (_, blob))| {
                let mut numbers = varints(blob);
                let mut next = || u32::try_from(numbers.next()?.ok()?).ok();
                let mut last = 0u32;
                for group in groups {
                    last = last.checked_add(next()?)?;
                    *group = TileUse {
                        number: last,
                        bytes: next()?,
                    };
                }
                numbers.next().is_none().then_some(())
            })?;
        VariableGroups::from_numbered(uses, &counts, groups)
    }
}
