//! Reads the lowered variables of compute sets and region sets.

use super::cells::Cells;
use super::database::Database;
use super::encoding::{BlobError, Run, Runs};
use super::variable_lists::{ListsBuilder, VariableLists};
use super::variables::TABLE as VARIABLES;
use super::{ProfileError, Variables};
use crate::limits;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of one range of `exchange_regions`.
#[derive(Default)]
struct RegionRows {
    lists: ListsBuilder,
    /// Variables with a region that ends after the variable does.
    outside: Vec<u32>,
}

/// Variables of each region set (`exchange_regions`), and the variables with a region that ends
/// after the variable does; a real profile has none of the latter.
pub(super) fn read_regions(
    database: &Database,
    variables: &Variables,
) -> Result<(VariableLists, Vec<u32>), ProfileError> {
    const TABLE: &str = "exchange_regions";
    const COLUMNS: &[&str] = &["id", "var_id", "regions"];
    let has_regions = database.require(TABLE, COLUMNS).is_ok();
    let columns = if has_regions { COLUMNS } else { &COLUMNS[..2] };
    let visit = |row: Cells<'_>, rows: &mut RegionRows| {
        let member = position(variables, row.unsigned(1)?).map_err(|p| row.problem(1, p))?;
        rows.lists.push(row.unsigned(0)?, member);
        let regions = if has_regions { row.raw_text(2)? } else { None };
        let end = regions.and_then(end_of_regions).unwrap_or(0);
        if end > variables.bytes[member as usize].into() {
            rows.outside.push(member);
        }
        Ok(())
    };
    let parts = database.scan_ranges(TABLE, columns, visit)?;
    let (lists, outside): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .map(|part| (part.lists, part.outside))
        .unzip();
    let mut outside = outside.concat();
    outside.sort_unstable();
    outside.dedup();
    Ok((ListsBuilder::join(lists).finish(), outside))
}

/// End of the last region in a list such as `[0,4),[8,12)`, here 12; `None` for a text of another
/// form. It is parsed by hand, since there are millions of lists.
#[inline]
fn end_of_regions(text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b")")?.iter().rev();
    let (mut end, mut place) = (0, 1);
    for &byte in digits {
        match byte {
            b'0'..=b'9' if place < 1 << 40 => end += u64::from(byte - b'0') * place,
            b',' if place > 1 => return Some(end),
            _ => return None,
        }
        place *= 10;
    }
    None
}

/// Variables of each compute set (`compute_sets.var_ids_diff_rle`).
pub(super) fn read_compute_sets(
    database: &Database,
    variables: &Variables,
) -> Result<VariableLists, ProfileError> {
    let columns = &["compute_set", "var_ids_diff_rle"];
    let scan = ComputeSets::new(variables);
    let visit = |row: Cells<'_>, lists: &mut ListsBuilder| scan.add(&row, lists);
    let parts = database.scan_ranges("compute_sets", columns, visit)?;
    Ok(ListsBuilder::join(parts).finish())
}

/// State of one scan of all compute sets, shared by all threads.
struct ComputeSets<'a> {
    variables: &'a Variables,
    /// Members read so far, and the maximum.
    members: AtomicUsize,
    max_members: usize,
}

impl<'a> ComputeSets<'a> {
    fn new(variables: &'a Variables) -> Self {
        Self {
            variables,
            members: AtomicUsize::new(0),
            max_members: limits::MEMBERS.of(variables.len()),
        }
    }

    /// Appends the members of a row to `lists`.
    fn add(&self, row: &Cells<'_>, lists: &mut ListsBuilder) -> Result<(), ProfileError> {
        let id = row.unsigned(0)?;
        let before = lists.len();
        let mut var_id = 0u64;
        let limit = self.variables.len();
        let mut left = limit as u64;
        for run in Runs::new(row.blob(1)?) {
            let Run { count, value } = run.map_err(row.bad_blob(1))?;
            left = left
                .checked_sub(count)
                .ok_or_else(|| row.bad_blob(1)(BlobError::TooLong { limit }))?;
            // A repeated id counts once.
            let count = if value == 0 { count.min(1) } else { count };
            for _ in 0..count {
                var_id = var_id
                    .checked_add(value)
                    .ok_or_else(|| row.bad_blob(1)(BlobError::Overflow))?;
                lists.push(
                    id,
                    position(self.variables, var_id).map_err(|p| row.problem(1, p))?,
                );
            }
            let so_far = self.members.load(Ordering::Relaxed);
            self.check(row, so_far, lists.len() - before)?;
        }
        // Other threads may have added members in the meantime.
        let added = lists.len() - before;
        self.check(row, self.members.fetch_add(added, Ordering::Relaxed), added)
    }

    /// Limits the members of all rows together: a few bytes can name all variables in every row.
    fn check(&self, row: &Cells<'_>, so_far: usize, added: usize) -> Result<(), ProfileError> {
        let limit = self.max_members;
        if so_far.saturating_add(added) <= limit {
            return Ok(());
        }
        let problem = format!(
            "with this row, compute sets have more than {limit} variables together, more than any \
             real model has"
        );
        Err(row.problem(1, problem))
    }
}

fn position(variables: &Variables, var_id: u64) -> Result<u32, String> {
    let unknown = || format!("no row of `{VARIABLES}` has the variable id {var_id}");
    variables.position(var_id).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::end_of_regions;

    #[test]
    fn regions_end_where_their_last_does() {
        for (text, end) in [
            ("[0,4)", Some(4)),
            ("[0,4),[8,12)", Some(12)),
            ("", None),
            ("[0,)", None),
            ("[0,4]", None),
            ("[0,-4)", None),
            ("[0,99999999999999999999)", None),
        ] {
            assert_eq!(end_of_regions(text.as_bytes()), end, "{text}");
        }
    }
}
