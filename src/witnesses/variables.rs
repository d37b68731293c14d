//! Checks that lowered variables have the recorded bytes by category, tile and step, and that they
//! have users, contexts and regions.

use super::contradiction::{Contradiction, TileComparison, Witness, worst};
use crate::profile::{
    CATEGORIES, Deltas, LIVE_BY_STEP, LiveClasses, NEVER_LIVE, Profile, Recorded, Variables,
    summed_by_step,
};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Returns the contradictions about lowered variables: bytes that differ from the record, and
/// variables that lack users or contexts, or do not contain their regions. `has_users` says whether
/// any operation uses the variable at a position in [`Variables`].
pub(super) fn check_variables(
    profile: &Profile,
    has_users: impl Fn(usize) -> bool + Sync,
) -> Vec<Contradiction> {
    let (recorded, variables) = (&profile.recorded, &profile.variables);
    let totals = VariableTotals::new(variables, &profile.classes, profile.target.num_tiles);
    let unused = unused(profile, has_users);
    let label = |position: &u32| &variables.labels[variables.label(*position) as usize];
    let unlabelled: Vec<u32> = (0..variables.len() as u32)
        .filter(|own| label(own).lacks_contexts)
        .collect();
    let lacking = |table, what, positions: &[u32]| {
        let mut bytes = vec![0; profile.target.num_tiles as usize];
        variables.add_to(positions, &mut bytes);
        let row = format!("{what}: {}", positions.len());
        (!positions.is_empty())
            .then(|| Contradiction::lacking(Witness::Variables, table, row, bytes, recorded))
    };
    [
        totals.by_category(&variables.category_names, recorded),
        totals.by_step(profile),
        lacking("compute_sets", "variables that no program uses", &unused),
        lacking(
            "exchange_regions",
            "variables that do not hold the regions in them",
            &profile.statements.outside,
        ),
        lacking(
            "debug_ids",
            "variables without contexts that live from the first to the last step",
            &unlabelled,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The category of variables that hold tensors, each of which some program must use.
const USER_DATA: &str = "variable";

/// Returns the positions of the variables of category [`USER_DATA`] that no compute set or exchange
/// uses; there are none in a real profile. `has_users` says whether any operation uses the variable
/// at a position: nearly all variables have users and are not checked further.
fn unused(profile: &Profile, has_users: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let variables = &profile.variables;
    let category = variables
        .category_names
        .iter()
        .position(|name| name == USER_DATA);
    let may_be_unused = |&position: &u32| {
        let position = position as usize;
        !has_users(position)
            && Some(usize::from(variables.categories[position])) == category
            && variables.classes[position] != NEVER_LIVE
    };
    let mut unused: Vec<u32> = (0..variables.len() as u32)
        .into_par_iter()
        .filter(may_be_unused)
        .collect();
    if unused.is_empty() {
        return unused;
    }
    let mut is_used = vec![false; variables.len()];
    for lists in [&profile.compute_set_variables, &profile.region_variables] {
        for &member in lists.all_members() {
            is_used[member as usize] = true;
        }
    }
    unused.retain(|&position| !is_used[position as usize]);
    unused
}

/// Sums of the bytes of all lowered variables.
struct VariableTotals {
    /// By category (as in [`Variables::category_names`]), then by tile: bytes of its variables.
    categories: Vec<Vec<u64>>,
    /// By equivalence class: bytes of its variables, summed over all tiles.
    classes: Vec<u64>,
}

impl VariableTotals {
    /// Sums up the variables; `tiles` is the number of tiles.
    fn new(variables: &Variables, classes: &LiveClasses, tiles: u32) -> Self {
        let mut sums = Self {
            categories: vec![vec![0; tiles as usize]; variables.category_names.len()],
            classes: vec![0; classes.len()],
        };
        for position in 0..variables.len() {
            let bytes = u64::from(variables.bytes[position]);
            let category = usize::from(variables.categories[position]);
            sums.categories[category][usize::from(variables.tiles[position])] += bytes;
            if let Some(sum) = sums.classes.get_mut(variables.classes[position] as usize) {
                *sum += bytes;
            }
        }
        sums
    }

    /// Returns a contradiction about the category and tile whose variables differ most from the
    /// record; `None` if all agree, as they do in a real profile, or if there is no record. `names`
    /// has the names of the categories.
    fn by_category(&self, names: &[String], recorded: &Recorded) -> Option<Contradiction> {
        let fullest = recorded.fullest()?;
        if recorded.categories.is_empty() {
            return None;
        }
        let without_variables = vec![0; recorded.tiles.len()];
        let categories = || recorded.categories.iter();
        let others = categories().map(|category| &category.name);
        let sums = names.iter().zip(&self.categories);
        sums.chain(
            others
                .filter(|name| !names.contains(name))
                .map(|name| (name, &without_variables)),
        )
        .filter_map(|(name, sums)| {
            let found = categories().find(|category| category.name == *name);
            let recorded = |tile| found.map_or(0, |own| own.bytes.get(tile).into());
            let pairs = (0u32..)
                .zip(sums)
                .map(|(tile, &sum)| TileComparison::certain(tile, recorded(tile), sum));
            Some(
                worst(Witness::Categories, CATEGORIES, fullest, pairs)?
                    .in_row(format!("category `{name}`")),
            )
        })
        .max_by_key(|contradiction| contradiction.bytes)
    }

    /// Returns a contradiction about the step at which the live bytes of not-always-live variables
    /// differ most from the record; `None` if they agree at all steps, as in a real profile, or if
    /// there is no record.
    fn by_step(&self, profile: &Profile) -> Option<Contradiction> {
        let recorded = &profile.statements.live_by_step;
        if recorded.is_empty() {
            return None;
        }
        let (step, [recorded, computed], highest) =
            furthest(recorded, &self.deltas(&profile.classes))?;
        let found = worst(
            Witness::LiveBySteps,
            LIVE_BY_STEP,
            highest,
            [TileComparison::certain(0, recorded, computed)],
        )?;
        // The difference is distributed over the tiles in proportion to their live bytes.
        let fullest = u128::from(profile.recorded.fullest().unwrap_or(0));
        let bytes = u128::from(found.bytes?) * fullest / u128::from(highest.max(1));
        Some(
            Contradiction {
                tile: None,
                tiles: 0,
                bytes: Some(u64::try_from(bytes).unwrap_or(u64::MAX).max(1)),
                ..found
            }
            .in_row(format!("step {}", profile.steps[step as usize].id)),
        )
    }

    /// Returns the changes of live bytes that follow from the not-always-live variables, on all
    /// tiles together: by step, ascending, the bytes that begin to be live there, less the bytes
    /// that end.
    fn deltas(&self, classes: &LiveClasses) -> Deltas {
        let mut deltas = Deltas::new();
        for (class, &bytes) in (0u32..).zip(&self.classes) {
            if classes.is_always_live(class) {
                continue;
            }
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            for &(from, to) in classes.ranges(class) {
                deltas.extend(
                    [(from, bytes), (to, -bytes)]
                        .iter()
                        .filter(|(step, _)| *step < classes.steps()),
                );
            }
        }
        summed_by_step(deltas)
    }
}

/// Compares two lists of changes of live bytes by step, ascending. Returns the step index at which
/// the live bytes (the sums of the changes so far) differ most, the first one of a tie; the
/// recorded and the computed live bytes there; and the most bytes that are live at any step in
/// either list. `None` if both lists are empty.
fn furthest(recorded: &[(u32, i64)], computed: &[(u32, i64)]) -> Option<(u32, [u64; 2], u64)> {
    let mut changes: BTreeMap<u32, [i64; 2]> = BTreeMap::new();
    for (number, deltas) in [recorded, computed].into_iter().enumerate() {
        for &(step, delta) in deltas {
            changes.entry(step).or_default()[number] = delta;
        }
    }
    let mut live = [0i64; 2];
    let (mut found, mut highest): (Option<(u32, [u64; 2])>, u64) = (None, 0);
    for (step, change) in changes {
        for (live, change) in live.iter_mut().zip(change) {
            *live = live.saturating_add(change);
        }
        let numbers = live.map(|bytes| bytes.max(0).unsigned_abs());
        highest = highest.max(numbers[0]).max(numbers[1]);
        let difference = |[recorded, computed]: [u64; 2]| recorded.abs_diff(computed);
        if found.is_none_or(|(_, found)| difference(found) < difference(numbers)) {
            found = Some((step, numbers));
        }
    }
    found.map(|(step, numbers)| (step, numbers, highest))
}

#[cfg(test)]
mod tests {
    use super::furthest;

    #[test]
    fn sums_over_steps_are_compared_at_every_step() {
        let changes = [(0, 10), (2, 5), (7, -15)];
        assert_eq!(furthest(&changes, &changes), Some((0, [10, 10], 15)));
        // Equal at the end, but one begins a step late in between.
        assert_eq!(
            furthest(&changes, &[(0, 10), (3, 5), (7, -15)]),
            Some((2, [15, 10], 15))
        );
        // Negative sums count as 0.
        assert_eq!(furthest(&[(1, -3)], &[(4, 2)]), Some((4, [0, 2], 2)));
        assert_eq!(furthest(&[], &[]), None);
    }
}
