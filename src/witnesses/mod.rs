//! Checks the files: finds statements that are missing or contradict each other, and computes the
//! bytes of a tile that depend on them.
//!
//! Each check compares two statements after both are read:
//!
//! | file | statements |
//! |---|---|
//! | `record` | record of each tile: with itself, and with the total of its variables and code |
//! | `variables` | lowered variables: with the record of categories and steps, and their users |
//! | `programs` | programs: with steps, roots, contexts, vertices and recorded code |
//! | `contexts` | `debug.cbor`: with the programs, and its own damage |
//!
//! A [`Contradiction`] has an upper bound on the bytes of a tile that it may misplace: count for
//! the wrong layer, or count too much or too little. If these bytes could turn the verdict, or if
//! there is no bound, there is no verdict; else it is a warning. A new check is a [`Witness`], and
//! a line in one of the functions below.
//!
//! Only one real profile was available, and other versions of the SDK may round differently.

mod contexts;
mod contradiction;
mod programs;
mod record;
#[cfg(test)]
mod tests;
mod variables;

pub use contexts::DebugMatch;
pub(crate) use contexts::check_debug;
pub use contradiction::{Contradiction, Incomplete, Witness, are_refused};
#[cfg(test)]
pub(crate) use contradiction::{TileComparison, worst};
pub(crate) use contradiction::{check, refuse_close};
pub(crate) use record::recorded_totals;

use crate::profile::{CompiledProfile, Profile, Recorded};
use record::check_record;

/// Returns the contradictions within a profile. `has_users` says whether any operation uses the
/// lowered variable at a position in [`Variables`](crate::profile::Variables).
pub(crate) fn check_profile(
    profile: &Profile,
    has_users: impl Fn(usize) -> bool + Sync,
) -> Vec<Contradiction> {
    let Recorded { tiles, categories } = &profile.recorded;
    let regions = profile.statements.regions.as_deref();
    let mut found = check_record(tiles, categories, regions, &profile.target);
    found.extend(programs::check_programs(profile));
    found.extend(variables::check_variables(profile, has_users));
    found
}

/// Returns the contradictions within `profile`, which may be of a compilation for several IPUs.
pub(crate) fn check_compilation(profile: &CompiledProfile) -> Vec<Contradiction> {
    let (tiles, regions) = (&profile.tiles, profile.regions.as_deref());
    let mut found = check_record(tiles, &profile.categories, regions, &profile.target);
    let sums = profile.variables.iter();
    found.extend(sums.filter_map(|sums| recorded_totals(tiles, &sums.totals)));
    found
}
