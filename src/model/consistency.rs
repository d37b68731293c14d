//! Does what the compiler recorded by tile agree with the variables?

use super::memory_peak::peak;
use super::variables::LoweredVariables;
use crate::message::{PROFILE_AGAIN, Warning};
use crate::profile::{LiveClasses, Profile};
use rayon::prelude::*;
use std::cmp::Reverse;

/// Warnings about tiles on which `memory_by_tile` and the lowered variables
/// disagree: on a real profile they agree on all 1472 (`profile-pop.md`), so
/// one of them is damaged or lacks rows.
///
/// Always-live bytes are compared on all tiles, which takes some 20 ms for 10^7
/// variables. The maximum that other variables take at one step is compared
/// only on the tile with the highest recorded total, the first of several: for
/// all tiles it would take longer than anything else but reading.
pub(super) fn warnings(profile: &Profile, variables: &LoweredVariables) -> Vec<Warning> {
    let recorded = &profile.recorded.tiles;
    let classes = &profile.classes;
    let totals = (0u32..).zip(recorded);
    let fullest = totals.max_by_key(|(tile, recorded)| (recorded.total, Reverse(*tile)));
    let Some((fullest, of_fullest)) = fullest else {
        return Vec::new();
    };
    let differing: Vec<(u32, u64)> = (0..recorded.len() as u32)
        .into_par_iter()
        .map(|tile| (tile, always_live(variables, classes, tile)))
        .filter(|&(tile, found)| found != recorded[tile as usize].always_live)
        .collect();
    let mut warnings = Vec::new();
    if let Some(&(tile, found)) = differing.first() {
        let bytes = [recorded[tile as usize].always_live, found];
        let more = differing.len() - 1;
        warnings.push(disagreement(tile, bytes, "always live", more));
    }
    let others = variables
        .on_tile(fullest)
        .filter(|item| !classes.is_always_live(item.class));
    let (found, _) = peak(others, classes, &mut Vec::new());
    if found != of_fullest.not_always_live {
        let what = "live at one step beside those that always are";
        let bytes = [of_fullest.not_always_live, found];
        warnings.push(disagreement(fullest, bytes, what, 0));
    }
    warnings
}

/// `bytes` are recorded and found; `more` tiles differ.
fn disagreement(tile: u32, bytes: [u64; 2], what: &str, more: usize) -> Warning {
    let [recorded, found] = bytes;
    let others = match more {
        0 => String::new(),
        more => format!(", and {more} more tiles differ"),
    };
    Warning::new(format!(
        "`memory_by_tile` and the variables disagree, so rows are missing or damaged: tile {tile} \
         has {recorded} bytes that are {what}, and its variables come to {found}{others}; \
         {PROFILE_AGAIN}"
    ))
}

fn always_live(variables: &LoweredVariables, classes: &LiveClasses, tile: u32) -> u64 {
    let items = variables
        .on_tile(tile)
        .filter(|item| classes.is_always_live(item.class));
    items.map(|item| u64::from(item.bytes)).sum()
}
