//! Parts of an operation's programs that use different variables.

use super::ModelError;
use super::code::{BodyCode, Budget};
use super::operations::FoundBody;
use super::variables::members;
use crate::profile::Profile;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Programs of one operation that use variables of the same sets of bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The sets of bodies that its variables have, ascending.
    pub sets: Box<[u32]>,
    /// Its code and vertex state by tile.
    pub code: BodyCode,
}

/// How many sets the pieces of all bodies may have together: at least so many,
/// and so many for each program. Few bytes of a file can ask for any number.
const MIN_SETS: usize = 1 << 22;
const SETS_OF_PROGRAM: usize = 64;

/// By body: its pieces; none where all of its programs use the same sets.
pub(super) fn find(
    profile: &Profile,
    bodies: &[FoundBody],
    set_of: &[u32],
    budget: &mut Budget,
) -> Result<Vec<Vec<Piece>>, ModelError> {
    let programs = &profile.programs;
    let split: Vec<Split> = bodies
        .par_iter()
        .map(|body| split(profile, body, set_of))
        .collect();
    let max = MIN_SETS.max(programs.all.len().saturating_mul(SETS_OF_PROGRAM));
    let mut left = max;
    let mut found = Vec::with_capacity(bodies.len());
    for (body, split) in bodies.iter().zip(split) {
        let mut pieces = Vec::with_capacity(split.len());
        for (sets, own) in split {
            left = left
                .checked_sub(sets.len())
                .ok_or(ModelError::TooManyPieces { max })?;
            let code = BodyCode::new(programs, &own, body.uid, &profile.target)?;
            budget.take(&code)?;
            pieces.push(Piece { sets, code });
        }
        found.push(pieces);
    }
    Ok(found)
}

/// Programs by the sets that they use.
type Split = BTreeMap<Box<[u32]>, Vec<u32>>;

fn split(profile: &Profile, body: &FoundBody, set_of: &[u32]) -> Split {
    let mut split = Split::new();
    if body.programs.len() < 2 {
        return split;
    }
    for &program in &body.programs {
        let used = members(profile, &[program]);
        let mut sets: Vec<u32> = Vec::new();
        for &variable in used.into_iter().flatten() {
            let set = set_of[variable as usize];
            if sets.last() != Some(&set) {
                sets.push(set);
            }
        }
        sets.sort_unstable();
        sets.dedup();
        split.entry(sets.into()).or_default().push(program);
    }
    if split.len() < 2 {
        split.clear();
    }
    split
}
