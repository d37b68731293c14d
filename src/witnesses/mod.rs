//! Checks the input files: finds data that are missing or contradict each other, and computes the
//! bytes of a tile that depend on these data.
//!
//! Each check compares two statements of the files about the same data, after both files were read:
//!
//! | file | what it compares |
//! |---|---|
//! | this one | recorded bytes of a tile with each other, and with its variables and code |
//! | `variables` | lowered variables with recorded bytes of categories and steps, and with users |
//! | `programs` | programs with steps, roots, debug contexts, vertices and the recorded code |
//! | `contexts` | `debug.cbor` with the programs; also judges signs of damage in `debug.cbor` |
//!
//! A [`Contradiction`] has an upper bound on the bytes of a tile that it may misplace: bytes that
//! may be attributed to the wrong layer, or be too many or too few. The verdict is whether the
//! model fits. If these bytes could change it, or if there is no bound, the report has no verdict;
//! otherwise the contradiction becomes a warning. To add a check, add a value of [`Witness`], and a
//! line in one of the functions below.
//!
//! The checks were only tried on one real profile. Other versions of the SDK may round differently,
//! so a contradiction that cannot change the verdict is no error.

mod contexts;
mod contradiction;
mod programs;
#[cfg(test)]
mod tests;
mod variables;

pub use contexts::DebugMatch;
pub(crate) use contexts::check_debug;
pub use contradiction::{Contradiction, Witness, are_refused};
pub(crate) use contradiction::{check, doubts, refuse_close, worst};

use crate::profile::{CATEGORIES, CompiledProfile, Profile, Recorded, TILES, Target};

/// Returns the contradictions within a profile: data that disagree or are missing. `has_users`
/// returns whether any operation uses a lowered variable, given the index of the variable in
/// [`Variables`](crate::profile::Variables).
pub fn check_profile(
    profile: &Profile,
    has_users: impl Fn(usize) -> bool + Sync,
) -> Vec<Contradiction> {
    [
        check_record(&profile.recorded, &profile.target),
        programs::check_programs(profile),
        variables::check_variables(profile, has_users),
    ]
    .concat()
}

/// Returns the contradictions (data that disagree or are missing) within `profile`, which may be of
/// a compilation for several IPUs.
pub fn check_compilation(profile: &CompiledProfile) -> Vec<Contradiction> {
    let mut found = check_record(&profile.recorded, &profile.target);
    if let Some(sums) = &profile.variables {
        found.extend(recorded_totals(&profile.recorded, &sums.totals));
    }
    found
}

/// Compares the recorded total of each tile with `computed`: the bytes that its variables and code
/// take together, one entry per tile. Returns a contradiction about the tile with the largest
/// difference; `None` if all totals agree.
pub fn recorded_totals(recorded: &Recorded, computed: &[u64]) -> Option<Contradiction> {
    let tiles = recorded.tiles.iter().zip(computed);
    let numbers = tiles.map(|(tile, &taken)| [tile.total, taken]);
    worst(
        Witness::OneStage,
        TILES,
        recorded.fullest()?,
        numbers,
        u64::abs_diff,
    )
}

/// Returns the contradictions within the recorded bytes of tiles and categories: missing tables,
/// and totals of tiles that disagree with other columns.
fn check_record(recorded: &Recorded, target: &Target) -> Vec<Contradiction> {
    let rows = |table, is_empty: bool| {
        is_empty.then(|| Contradiction::without_rows(table, target.num_tiles.into()))
    };
    [
        rows(TILES, recorded.tiles.is_empty()),
        rows(CATEGORIES, recorded.categories.is_empty()),
        total(recorded),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a contradiction about the tile whose recorded total is furthest from what other records
/// of the tile allow; `None` if they allow the totals of all tiles. The total must be:
/// - at least the bytes that are live at the same time;
/// - at most the bytes that include the unused gaps between variables;
/// - equal to the sum of the memory regions, unless the content exceeds the memory of the tile.
fn total(recorded: &Recorded) -> Option<Contradiction> {
    let numbers = recorded.tiles.iter().map(|row| {
        let live = row.always_live.saturating_add(row.not_always_live);
        let most = row.with_gaps.unwrap_or(u64::MAX);
        let of_live = row.total.max(live).min(most);
        let computed = match row.regions {
            // If a tile overflowed, its memory regions are not compared with its total: no real
            // profile shows which region includes the bytes beyond the memory of the tile.
            Some(regions) if of_live == row.total && regions.overflowed == 0 => regions.all,
            _ => of_live,
        };
        [row.total, computed]
    });
    worst(
        Witness::Total,
        TILES,
        recorded.fullest()?,
        numbers,
        u64::abs_diff,
    )
}
