//! Checks that the lowered variables have the recorded bytes by category, tile and step, that
//! programs use them, and that they have debug contexts and contain the regions that exchanges
//! move.

use super::contradiction::{Contradiction, Witness, worst};
use crate::profile::{CATEGORIES, LIVE_BY_STEP, NEVER_LIVE, Profile, Recorded, Variables};
use rayon::prelude::*;

/// Returns the contradictions about lowered variables: bytes that differ from the recorded bytes,
/// and variables that lack users or debug contexts, or that do not contain the regions that
/// exchanges move. `has_users` returns whether any operation uses a variable, given its index in
/// [`Variables`].
pub fn check_variables(
    profile: &Profile,
    has_users: impl Fn(usize) -> bool + Sync,
) -> Vec<Contradiction> {
    let (recorded, variables) = (&profile.recorded, &profile.variables);
    let unused = unused(profile, has_users);
    let unlabelled: Vec<u32> = (0..variables.len() as u32)
        .into_par_iter()
        .filter(|&own| variables.labels[variables.label(own) as usize].lacks_contexts)
        .collect();
    let lacking = |table, what, positions: &[u32]| {
        (!positions.is_empty()).then(|| {
            let mut bytes = vec![0; profile.target.num_tiles as usize];
            variables.add_to(positions, &mut bytes);
            let row = format!("{what}: {}", positions.len());
            Contradiction::lacking(Witness::Variables, table, row, bytes, recorded)
        })
    };
    let (by_category, by_step) =
        rayon::join(|| by_category(variables, recorded), || by_step(profile));
    [
        by_category,
        by_step,
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

/// Name of the category of lowered variables that hold data of tensors. Each such variable must be
/// used by at least one program.
const USER_DATA: &str = "variable";

/// Returns the indices of the variables with data of tensors (category [`USER_DATA`]) that no
/// program uses, although they are live at some time; a real profile has none. `has_users` returns
/// whether any operation uses the variable with a given index. Only the few variables without such
/// users are searched for in compute sets and exchanges.
fn unused(profile: &Profile, has_users: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let variables = &profile.variables;
    let category = variables
        .category_names
        .iter()
        .position(|name| name == USER_DATA);
    let mut unused: Vec<u32> = (0..variables.len() as u32)
        .into_par_iter()
        .filter(|&position| {
            let position = position as usize;
            !has_users(position)
                && Some(usize::from(variables.categories[position])) == category
                && variables.classes[position] != NEVER_LIVE
        })
        .collect();
    if unused.is_empty() {
        return unused;
    }
    let mut is_used = vec![false; variables.len()];
    for lists in [&profile.compute_set_variables, &profile.region_variables] {
        for member in lists.all_members() {
            is_used[member as usize] = true;
        }
    }
    unused.retain(|&position| !is_used[position as usize]);
    unused
}

/// Returns a contradiction about the category and tile whose variables differ most from the
/// recorded bytes; `None` if all bytes agree, as in a real profile, or if no bytes are recorded.
fn by_category(variables: &Variables, recorded: &Recorded) -> Option<Contradiction> {
    let fullest = recorded.fullest()?;
    if recorded.categories.is_empty() {
        return None;
    }
    let categories = recorded.categories.iter();
    let others = categories.clone().map(|category| &category.name);
    let mut names: Vec<&String> = variables.category_names.iter().collect();
    names.extend(others.filter(|name| !variables.category_names.contains(name)));
    let mut sums = vec![vec![0; recorded.tiles.len()]; names.len()];
    for ((&category, &tile), &bytes) in variables
        .categories
        .iter()
        .zip(&variables.tiles)
        .zip(&variables.bytes)
    {
        sums[usize::from(category)][usize::from(tile)] += u64::from(bytes);
    }
    names
        .into_iter()
        .zip(sums)
        .filter_map(|(name, sums)| {
            let found = categories.clone().find(|category| category.name == *name);
            let numbers = (0u32..)
                .zip(sums)
                .map(|(tile, sum)| [found.map_or(0, |own| own.bytes.get(tile).into()), sum]);
            let worst = worst(
                Witness::Categories,
                CATEGORIES,
                fullest,
                numbers,
                u64::abs_diff,
            )?;
            Some(worst.in_row(format!("category `{name}`")))
        })
        .max_by_key(|contradiction| contradiction.bytes)
}

/// Returns a contradiction about the step at which the live bytes of not-always-live variables, on
/// all tiles together, differ most from the recorded bytes; `None` if the bytes agree at all steps,
/// as in a real profile, or if no bytes are recorded.
fn by_step(profile: &Profile) -> Option<Contradiction> {
    let (variables, classes) = (&profile.variables, &profile.classes);
    if profile.live_by_step.is_empty() {
        return None;
    }
    let mut of_classes = vec![0i64; classes.len()];
    for (&class, &bytes) in variables.classes.iter().zip(&variables.bytes) {
        if let Some(sum) = of_classes.get_mut(class as usize) {
            *sum += i64::from(bytes);
        }
    }
    let mut recorded = vec![0; classes.steps() as usize];
    for &(step, change) in &profile.live_by_step {
        recorded[step as usize] = change;
    }
    let computed = (0u32..)
        .zip(of_classes)
        .filter(|&(class, _)| !classes.is_always_live(class));
    let changes: Vec<[i64; 2]> = recorded
        .into_iter()
        .zip(classes.changes(computed))
        .map(<[i64; 2]>::from)
        .collect();
    let (step, numbers, highest) = furthest(&changes)?;
    let found = worst(
        Witness::LiveBySteps,
        LIVE_BY_STEP,
        highest,
        [numbers],
        u64::abs_diff,
    )?;
    // The recorded live bytes are sums over all tiles, so the error on a single tile is unknown. It
    // is assumed that the fullest tile has the same share of wrong bytes as the sum: the difference
    // at this step, divided by the most bytes that are live at any step.
    let fullest = u128::from(profile.recorded.fullest().unwrap_or(0));
    let bytes = u128::from(found.bytes?) * fullest / u128::from(highest.max(1));
    Some(
        Contradiction {
            tile: None,
            tiles: 0,
            bytes: Some(u64::try_from(bytes).unwrap_or(u64::MAX).max(1)),
            ..found
        }
        .in_row(format!("step {}", profile.steps[step].id)),
    )
}

/// Returns the index of the first step at which the recorded and the computed live bytes differ
/// most, both numbers at this step, and the largest number of live bytes at any step. Returns
/// `None` if there are no steps. `changes` has for each step the recorded and the computed change
/// of the live bytes since the step before.
fn furthest(changes: &[[i64; 2]]) -> Option<(usize, [u64; 2], u64)> {
    let mut sums = [0i64; 2];
    let live: Vec<[u64; 2]> = changes
        .iter()
        .map(|change| {
            sums = [0, 1].map(|own| sums[own].saturating_add(change[own]));
            sums.map(|bytes| bytes.max(0) as u64)
        })
        .collect();
    let highest = *live.iter().flatten().max()?;
    let (step, numbers) = live
        .into_iter()
        .enumerate()
        .rev()
        .max_by_key(|(_, [one, other])| one.abs_diff(*other))?;
    Some((step, numbers, highest))
}

#[cfg(test)]
mod tests {
    use super::furthest;

    #[test]
    fn sums_over_steps_are_compared_at_every_step() {
        let same = [10, 0, 5, 0, -15].map(|change| [change; 2]);
        assert_eq!(furthest(&same), Some((0, [10, 10], 15)));
        // In the computed bytes, one variable of 5 bytes begins to live a step later than in the
        // recorded bytes. So the live bytes differ at this one step, and agree at the last step.
        let late = [[10, 10], [0, 0], [5, 0], [0, 5], [-15, -15]];
        assert_eq!(furthest(&late), Some((2, [15, 10], 15)));
        // If a faulty profile frees more bytes than are live, the negative sum counts as 0.
        assert_eq!(furthest(&[[0, 0], [-3, 0], [0, 2]]), Some((2, [0, 2], 2)));
        assert_eq!(furthest(&[]), None);
    }
}
