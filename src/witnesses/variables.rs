//! Checks that lowered variables have the recorded bytes by category, tile and step, and that they
//! have users, contexts and regions.

use super::contradiction::{Contradiction, TileComparison, Witness, worst};
use crate::profile::{
    CATEGORIES, Deltas, LIVE_BY_STEP, NEVER_LIVE, Profile, Recorded, Variables, summed_by_step,
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
        by_category(variables, recorded),
        by_step(profile),
        lacking("compute_sets", "variables that no program uses", &unused),
        lacking(
            "exchange_regions",
            "variables that do not hold the regions in them",
            &profile.outside,
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

/// Returns a contradiction about the category and tile whose variables differ most from the record;
/// `None` if all agree, as they do in a real profile, or if there is no record.
fn by_category(variables: &Variables, recorded: &Recorded) -> Option<Contradiction> {
    let fullest = recorded.fullest()?;
    if recorded.categories.is_empty() {
        return None;
    }
    let names = &variables.category_names;
    let without_variables = vec![0; recorded.tiles.len()];
    let mut sums = vec![without_variables.clone(); names.len()];
    let of_variables = variables.categories.iter().zip(&variables.tiles);
    for ((&category, &tile), &bytes) in of_variables.zip(&variables.bytes) {
        sums[usize::from(category)][usize::from(tile)] += u64::from(bytes);
    }
    let categories = || recorded.categories.iter();
    let others = categories().map(|category| &category.name);
    let others = others.filter(|name| !names.contains(name));
    names
        .iter()
        .zip(&sums)
        .chain(others.map(|name| (name, &without_variables)))
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

/// Returns a contradiction about the step at which the live bytes of not-always-live variables, on
/// all tiles together, differ most from the record; `None` if they agree at all steps, as in a real
/// profile, or if there is no record.
fn by_step(profile: &Profile) -> Option<Contradiction> {
    let (recorded, variables, classes) =
        (&profile.live_by_step, &profile.variables, &profile.classes);
    if recorded.is_empty() {
        return None;
    }
    let mut of_classes = vec![0u64; classes.len()];
    for (&class, &bytes) in variables.classes.iter().zip(&variables.bytes) {
        if let Some(sum) = of_classes.get_mut(class as usize) {
            *sum += u64::from(bytes);
        }
    }
    let mut deltas = Deltas::new();
    for (class, bytes) in (0u32..).zip(of_classes) {
        if classes.is_always_live(class) {
            continue;
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        for &(from, to) in classes.ranges(class) {
            let changes = [(from, bytes), (to, -bytes)].into_iter();
            deltas.extend(changes.filter(|&(step, _)| step < classes.steps()));
        }
    }
    let (step, [recorded, computed], highest) = furthest(recorded, &summed_by_step(deltas))?;
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
