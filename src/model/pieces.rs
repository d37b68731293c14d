//! Parts of an operation's programs that use different variables.

use super::ModelError;
use super::code::{self, Budget, GroupCode};
use super::operations::FoundGroup;
use super::user_set_index::UserSetIndex;
use crate::limits;
use crate::profile::Profile;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Programs of one operation that use variables of the same user sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The user sets that its variables have, ascending.
    pub sets: Box<[u32]>,
    /// Its code and vertex state by tile.
    pub code: GroupCode,
}

/// By operation group: its pieces; none where all of its programs use the same
/// sets.
pub(super) fn find(
    profile: &Profile,
    groups: &[FoundGroup],
    user_set_index: &UserSetIndex,
    budget: &mut Budget,
) -> Result<Vec<Vec<Piece>>, ModelError> {
    let programs = &profile.programs;
    let split: Vec<Split> = groups
        .par_iter()
        .map(|group| split(profile, group, user_set_index))
        .collect();
    let max = limits::SETS_OF_PIECES.of(programs.all.len());
    let sets = split.iter().flat_map(Split::keys);
    if sets.fold(0usize, |all, sets| all.saturating_add(sets.len())) > max {
        return Err(ModelError::TooManyPieces { max });
    }
    let uids = groups.iter().map(|group| group.uid);
    let own = |(uid, split)| Split::values(split).map(move |own: &Vec<u32>| (uid, &own[..]));
    let own: Vec<(u64, &[u32])> = uids.zip(&split).flat_map(own).collect();
    let mut codes = code::of_all(programs, &own, &profile.target, budget)?.into_iter();
    let found = split.into_iter().map(|split| {
        let pieces = split.into_keys().zip(&mut codes);
        pieces.map(|(sets, code)| Piece { sets, code }).collect()
    });
    Ok(found.collect())
}

/// Programs by the sets that they use.
type Split = BTreeMap<Box<[u32]>, Vec<u32>>;

fn split(profile: &Profile, group: &FoundGroup, user_set_index: &UserSetIndex) -> Split {
    let mut split = Split::new();
    if group.programs.len() < 2 {
        return split;
    }
    for &program in &group.programs {
        let sets = user_set_index.of_program(profile, program);
        split.entry(sets.into()).or_default().push(program);
    }
    if split.len() < 2 {
        split.clear();
    }
    split
}
