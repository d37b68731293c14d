//! Sums over all lowered variables, compared with the compiler's record: by category
//! and tile, and by step.

use super::compiled::{Deltas, LIVE_BY_STEP, joined, scan_deltas};
use super::database::Database;
use super::recorded::{CATEGORIES, Recorded};
use super::{LiveClasses, ProfileError, Step, Variables};
use crate::parallel::by_parts;
use crate::witnesses::{Contradiction, Pair, Witness, worst};
use std::ops::Range;

/// Bytes of all lowered variables.
pub(super) struct VariableTotals {
    /// By category (as in [`Variables::category_names`]) and tile.
    categories: Vec<Vec<u64>>,
    /// By class: the bytes on all tiles.
    classes: Vec<u64>,
}

impl VariableTotals {
    /// Adds up the variables on `tiles` tiles.
    pub(super) fn new(variables: &Variables, classes: &LiveClasses, tiles: u32) -> Self {
        let none = || Self {
            categories: vec![vec![0; tiles as usize]; variables.category_names.len()],
            classes: vec![0; classes.len()],
        };
        let of_part = |part: Range<usize>| {
            let mut sums = none();
            for position in part {
                let bytes = u64::from(variables.bytes[position]);
                let category = usize::from(variables.categories[position]);
                sums.categories[category][usize::from(variables.tiles[position])] += bytes;
                let class = variables.classes[position] as usize;
                if let Some(sum) = sums.classes.get_mut(class) {
                    *sum += bytes;
                }
            }
            sums
        };
        let threads = rayon::current_num_threads();
        by_parts(variables.len(), threads, of_part, Self::plus).unwrap_or_else(none)
    }

    fn plus(mut self, other: Self) -> Self {
        let tiles = self.categories.iter_mut().flatten();
        for (sum, more) in tiles.zip(other.categories.iter().flatten()) {
            *sum += more;
        }
        for (sum, more) in self.classes.iter_mut().zip(other.classes) {
            *sum += more;
        }
        self
    }

    /// The category and tile whose variables are furthest from what was recorded of them
    /// (equal on all tiles of a real profile).
    pub(super) fn by_category(
        &self,
        names: &[String],
        recorded: &Recorded,
    ) -> Option<Contradiction> {
        let fullest = recorded.fullest()?;
        if recorded.categories.is_empty() {
            return None;
        }
        let of = |name: &str| {
            recorded
                .categories
                .iter()
                .find(|category| category.name == name)
        };
        let without_variables = vec![0; recorded.tiles.len()];
        let others = recorded.categories.iter().map(|category| &category.name);
        let others = others.filter(|name| !names.contains(name));
        let sums = names.iter().zip(&self.categories);
        let all = sums.chain(others.map(|name| (name, &without_variables)));
        let found = all.filter_map(|(name, sums)| {
            let bytes = of(name).map(|category| &category.bytes);
            let pairs = (0u32..).zip(sums).map(|(tile, &computed)| Pair {
                tile,
                recorded: bytes.map_or(0, |of_category| of_category.get(tile).into()),
                computed,
                whole: fullest,
                is_certain: true,
            });
            let row = format!("category `{name}`");
            worst(Witness::Categories, CATEGORIES, pairs)
                .map(|contradiction| contradiction.in_row(row))
        });
        found.max_by_key(Contradiction::difference)
    }

    /// The step at which what is live beside always-live variables is furthest from what
    /// was recorded (equal at all steps of a real profile). `None` also where nothing was.
    ///
    /// # Errors
    /// When the table cannot be read, or names a step that is not there.
    pub(super) fn by_step(
        &self,
        database: &Database,
        classes: &LiveClasses,
        steps: &[Step],
    ) -> Result<Option<Contradiction>, ProfileError> {
        let recorded = recorded_deltas(database, steps)?;
        if recorded.is_empty() {
            return Ok(None);
        }
        let Some((step, numbers, highest)) = furthest(&recorded, &self.deltas(classes)) else {
            return Ok(None);
        };
        let found = Contradiction::of_part(Witness::LiveBySteps, LIVE_BY_STEP, numbers, highest);
        let row = format!("step {}", steps[step as usize].id);
        Ok(found.map(|contradiction| contradiction.in_row(row)))
    }

    /// By step, ascending: the bytes that begin to be live there, less those that end.
    fn deltas(&self, classes: &LiveClasses) -> Deltas {
        let mut deltas = Deltas::new();
        for (class, &bytes) in (0u32..).zip(&self.classes) {
            if classes.is_always_live(class) {
                continue;
            }
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            for &(from, to) in classes.ranges(class) {
                let ends = [(from, bytes), (to, -bytes)];
                deltas.extend(ends.iter().filter(|(step, _)| *step < classes.steps()));
            }
        }
        joined(deltas)
    }
}

/// By step, ascending: the bytes more than at the step before, on the only IPU. A profile
/// of one lists sums over all IPUs beside them (both are in a real profile).
fn recorded_deltas(database: &Database, steps: &[Step]) -> Result<Deltas, ProfileError> {
    let (mut of_all, mut of_first) = (Deltas::new(), Deltas::new());
    if !database.has_table(LIVE_BY_STEP) {
        return Ok(of_all);
    }
    let ids: Vec<u64> = steps.iter().map(|step| step.id).collect();
    scan_deltas(database, &ids, |_, ipu, delta| {
        match ipu {
            Some(0) => of_first.push(delta),
            None => of_all.push(delta),
            // Another replica, which runs the same.
            Some(_) => {}
        }
        Ok(())
    })?;
    Ok(joined(if of_first.is_empty() {
        of_all
    } else {
        of_first
    }))
}

/// The step where the sums over the steps up to it differ most, the first of several; what
/// both are there; and the maximum that either reaches.
fn furthest(recorded: &[(u32, i64)], computed: &[(u32, i64)]) -> Option<(u32, [u64; 2], u64)> {
    let mut steps: Vec<u32> = [recorded, computed]
        .concat()
        .iter()
        .map(|change| change.0)
        .collect();
    steps.sort_unstable();
    steps.dedup();
    let mut rest = [recorded, computed];
    let mut live = [0i64; 2];
    let (mut found, mut highest): (Option<(u32, [u64; 2])>, u64) = (None, 0);
    for step in steps {
        for (live, rest) in live.iter_mut().zip(&mut rest) {
            if let [(first, delta), after @ ..] = *rest
                && *first == step
            {
                *live = live.saturating_add(*delta);
                *rest = after;
            }
        }
        let numbers = live.map(|bytes| bytes.max(0).unsigned_abs());
        highest = highest.max(numbers[0]).max(numbers[1]);
        let is_further = found
            .is_none_or(|(_, found)| found[0].abs_diff(found[1]) < numbers[0].abs_diff(numbers[1]));
        if is_further {
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
        // Alike at the end, and in between one begins a step late.
        assert_eq!(
            furthest(&changes, &[(0, 10), (3, 5), (7, -15)]),
            Some((2, [15, 10], 15))
        );
        // Below nothing is nothing.
        assert_eq!(furthest(&[(1, -3)], &[(4, 2)]), Some((4, [0, 2], 2)));
        assert_eq!(furthest(&[], &[]), None);
    }
}
