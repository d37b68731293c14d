//! Which lowered variables a compute set or a region set has.

use super::cells::Cells;
use super::database::Database;
use super::encoding::{BlobError, Run, Runs};
use super::variable_lists::{ListsBuilder, VariableLists};
use super::variables::TABLE as VARIABLES;
use super::{ProfileError, Variables};
use crate::limits;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The variables of each region set (`exchange_regions`).
pub(super) fn read_regions(
    database: &Database,
    variables: &Variables,
) -> Result<VariableLists, ProfileError> {
    let visit = |row: Cells<'_>, lists: &mut ListsBuilder| {
        let member = known(variables, row.unsigned(1)?).map_err(|p| row.problem(1, p))?;
        lists.push(row.unsigned(0)?, member);
        Ok(())
    };
    let parts = database.scan_chunks("exchange_regions", &["id", "var_id"], || &visit)?;
    Ok(ListsBuilder::join(parts).finish())
}

/// The variables of each compute set (`compute_sets.var_ids_diff_rle`).
pub(super) fn read_compute_sets(
    database: &Database,
    variables: &Variables,
) -> Result<VariableLists, ProfileError> {
    let columns = &["compute_set", "var_ids_diff_rle"];
    let visitor = || {
        let scan = ComputeSets::new(variables);
        move |row: Cells<'_>, lists: &mut ListsBuilder| scan.add(&row, lists)
    };
    let parts = database.scan_chunks("compute_sets", columns, visitor)?;
    Ok(ListsBuilder::join(parts).finish())
}

/// One scan of all compute sets, by all threads.
struct ComputeSets<'a> {
    variables: &'a Variables,
    /// How many members there are so far, and how many there may be.
    members: AtomicUsize,
    most: usize,
}

impl<'a> ComputeSets<'a> {
    fn new(variables: &'a Variables) -> Self {
        Self {
            variables,
            members: AtomicUsize::new(0),
            most: limits::MEMBERS.of(variables.len()),
        }
    }

    /// Adds the members of a row.
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
            // Equal ids in a row are one variable.
            let count = if value == 0 { count.min(1) } else { count };
            for _ in 0..count {
                var_id = var_id
                    .checked_add(value)
                    .ok_or_else(|| row.bad_blob(1)(BlobError::Overflow))?;
                lists.push(
                    id,
                    known(self.variables, var_id).map_err(|p| row.problem(1, p))?,
                );
            }
            let so_far = self.members.load(Ordering::Relaxed);
            self.check(row, so_far, lists.len() - before)?;
        }
        // Other threads may have added theirs in the meantime.
        let own = lists.len() - before;
        self.check(row, self.members.fetch_add(own, Ordering::Relaxed), own)
    }

    /// A few bytes can name all variables, in each row again.
    fn check(&self, row: &Cells<'_>, so_far: usize, own: usize) -> Result<(), ProfileError> {
        let most = self.most;
        if so_far.saturating_add(own) <= most {
            return Ok(());
        }
        let problem = format!(
            "with this row, compute sets have more than {most} variables together, more than any \
             real model has"
        );
        Err(row.problem(1, problem))
    }
}

fn known(variables: &Variables, var_id: u64) -> Result<u32, String> {
    let unknown = || format!("no row of `{VARIABLES}` has the variable id {var_id}");
    variables.position(var_id).ok_or_else(unknown)
}
