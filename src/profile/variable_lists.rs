//! Reads the lowered variables of each compute set, and of each region set (the regions of
//! variables that a program moves).

use super::{
    Cells, Database, Variables,
    encoding::{BlobError, ValueRun, value_runs},
    variables::TABLE as VARIABLES,
};
use crate::{limits, message::Result};
use rayon::prelude::*;
use std::{
    collections::BTreeSet,
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The lowered variables that each compute set uses, as indices into [`Variables`]. Another value
/// of this type has the variables of each region set (the byte ranges that a program moves).
#[derive(Debug, Default)]
pub struct VariableLists {
    /// The variables of all lists, as indices into [`Variables`]. The table was read in ranges of
    /// rows, and each range has its own vector, since joining so much memory would take long. The
    /// last vector has the lists whose variables came from several places of the table.
    parts: Vec<Vec<u32>>,
    /// One entry per compute set (or per region set, the byte ranges that a program moves): where
    /// `parts` has the variables of the set. Strictly ascending by the id of the set.
    lists: Vec<List>,
}

/// Says where the variables of one compute set, or of one region set, are stored: at the indices
/// `members` (end exclusive) of the vector `parts[part]` of [`VariableLists`]. `id` is the id of
/// the set in the profile.
#[derive(Debug, Clone)]
struct List {
    id: u64,
    part: usize,
    members: Range<usize>,
}

impl VariableLists {
    /// Returns the number of lists of variables. Each compute set or region set with at least one
    /// variable has one list.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether there are no lists, that is, no compute set or region set has a variable.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the variables of all compute sets or region sets, as indices into [`Variables`]. A
    /// variable in several sets occurs several times.
    pub fn all_members(&self) -> impl Iterator<Item = u32> {
        let lists = 0..self.lists.len() as u32;
        lists.flat_map(|list| self.members(list)).copied()
    }

    /// Returns the position of the list of variables that belongs to the compute set or region set
    /// with the id `id`. (A region set has the byte ranges of variables that a program moves.)
    /// Positions count from 0. Returns `None` if this set has no variables, and so no list.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.lists
            .binary_search_by_key(&id, |list| list.id)
            .ok()
            .map(|position| position as u32)
    }

    /// Returns the variables of each compute set or region set (regions that a program moves) whose
    /// id is in `ids`, as indices into [`Variables`]. There is one list per distinct id, in
    /// ascending order of ids. Sets without variables are left out.
    pub(super) fn lists(&self, ids: impl Iterator<Item = u64>) -> impl Iterator<Item = &[u32]> {
        let positions: BTreeSet<u32> = ids.filter_map(|id| self.position(id)).collect();
        positions.into_iter().map(|list| self.members(list))
    }

    /// Returns the variables of the compute set or region set whose list is at `position` (see
    /// [`VariableLists::position`]), as indices into [`Variables`] in the order of the file. A
    /// variable may occur more than once.
    pub fn members(&self, position: u32) -> &[u32] {
        let List { part, members, .. } = &self.lists[position as usize];
        &self.parts[*part][members.clone()]
    }

    /// Joins the lists of variables that were read from several ranges of rows of a table (one of
    /// `parts` per range). Each list belongs to a compute set or region set, and the lists are
    /// sorted by the id of this set. Lists of one set become one list, since the rows of the set
    /// may be in different parts, or not consecutive.
    fn join(parts: Vec<Part>) -> Self {
        let (mut all, mut runs) = (Vec::new(), Vec::new());
        for (part, Part { members, lists }) in parts.into_iter().enumerate() {
            all.push(members);
            runs.extend(
                lists
                    .into_iter()
                    .map(|(id, members)| List { id, part, members }),
            );
        }
        runs.sort_by_key(|run| run.id);
        let mut joined = Vec::new();
        let list = |runs: &[List]| {
            if let [list] = runs {
                return list.clone();
            }
            let start = joined.len();
            for run in runs {
                joined.extend_from_slice(&all[run.part][run.members.clone()]);
            }
            List {
                id: runs[0].id,
                part: all.len(),
                members: start..joined.len(),
            }
        };
        let lists = runs
            .chunk_by(|one, next| one.id == next.id)
            .map(list)
            .collect();
        all.push(joined);
        Self { parts: all, lists }
    }
}

/// The lists of variables that were read from one range of rows of a table.
#[derive(Default)]
struct Part {
    members: Vec<u32>,
    /// One entry per run of rows with the same id: the id of the compute set or region set, and the
    /// range of its variables in `members`.
    lists: Vec<(u64, Range<usize>)>,
}

impl Part {
    /// Adds the variable `member`, an index into [`Variables`], to the variables of the compute set
    /// or region set (regions that a program moves) with the id `id`.
    #[inline]
    fn push(&mut self, id: u64, member: u32) {
        match self.lists.last_mut() {
            Some((last, members)) if *last == id => members.end += 1,
            _ => {
                let start = self.members.len();
                self.lists.push((id, start..start + 1));
            }
        }
        self.members.push(member);
    }

    /// Returns whether the variable that was added last is `member`, and was added to the compute
    /// set or region set with the id `id`.
    fn ends_with(&self, id: u64, member: u32) -> bool {
        self.lists.last().is_some_and(|&(last, _)| last == id)
            && self.members.last() == Some(&member)
    }
}

/// Reads the variables of each region set (regions of variables that a program moves) from
/// `exchange_regions`. Also returns the variables with a wrong row in this table, as ascending
/// indices into [`Variables`]. A row is wrong if its last region ends beyond the variable. A row is
/// also wrong if it has the same region set and variable as the row before; no two rows of a real
/// profile have both in common.
pub fn read_regions(
    database: &Database,
    variables: &Variables,
) -> Result<(VariableLists, Vec<u32>)> {
    const TABLE: &str = "exchange_regions";
    const COLUMNS: &[&str] = &["id", "var_id", "regions"];
    let columns = database.columns(TABLE, COLUMNS, 2)?;
    let init = <(Part, Vec<u32>)>::default;
    let parts = database.scan_ranges(TABLE, columns, init, |row, id, (lists, ends)| {
        let member = position(variables, &row, row.unsigned(1)?)?;
        let is_repeated = lists.ends_with(id, member);
        lists.push(id, member);
        let mut regions = None;
        if columns.len() > 2 {
            regions = row.raw_text(2)?;
        }
        let end = regions.and_then(end_of_regions).unwrap_or(0);
        ends.push(if is_repeated { u32::MAX } else { end });
        Ok(())
    })?;
    // The sizes of variables are looked up here and not while rows are read, which is faster. The
    // variables are in no order, so each look-up waits for memory, but in a loop that does nothing
    // else the processor overlaps many look-ups.
    let outside = |(lists, ends): &(Part, Vec<u32>)| -> Vec<u32> {
        let members = lists.members.iter().zip(ends);
        members
            .filter(|&(&member, &end)| end > variables.bytes[member as usize])
            .map(|(&member, _)| member)
            .collect()
    };
    let mut outside: Vec<u32> = parts.par_iter().flat_map_iter(outside).collect();
    outside.sort_unstable();
    outside.dedup();
    let lists = parts.into_iter().map(|(lists, _)| lists).collect();
    Ok((VariableLists::join(lists), outside))
}

/// Returns the end of the last region in `text`, such as 12 for `[0,4),[8,12)`; at most `u32::MAX`.
/// Returns `None` for a text of another form. The parser is written by hand for speed, since a
/// profile has millions of such texts.
#[inline]
fn end_of_regions(text: &[u8]) -> Option<u32> {
    let (mut end, mut place) = (0, 1);
    for &byte in text.strip_suffix(b")")?.iter().rev() {
        match byte {
            b'0'..=b'9' if place < 1 << 40 => end += u64::from(byte - b'0') * place,
            b',' if place > 1 => return Some(u32::try_from(end).unwrap_or(u32::MAX)),
            _ => return None,
        }
        place *= 10;
    }
    None
}

/// Reads the variables of each compute set (`compute_sets.var_ids_diff_rle`).
pub fn read_compute_sets(database: &Database, variables: &Variables) -> Result<VariableLists> {
    let columns = &["compute_set", "var_ids_diff_rle"];
    let (members, max) = (AtomicUsize::new(0), limits::MEMBERS.of(variables.len()));
    let parts = database.scan_ranges("compute_sets", columns, Part::default, |row, id, part| {
        let start = part.members.len();
        let (mut var_id, mut left) = (0u64, variables.len() as u64);
        for run in value_runs(row.blob(1)?) {
            let ValueRun { count, value } = run.map_err(row.bad_blob(1))?;
            left = left
                .checked_sub(count)
                .ok_or_else(|| row.problem(1, BlobError::TooLong(variables.len())))?;
            // Each value in the blob is the difference between a variable id and the id before it.
            // A run of zeros would list one id several times, so it is added only once.
            let count = if value == 0 { count.min(1) } else { count };
            for _ in 0..count {
                var_id = var_id
                    .checked_add(value)
                    .ok_or_else(|| row.problem(1, BlobError::Overflow))?;
                part.members.push(position(variables, &row, var_id)?);
            }
        }
        let end = part.members.len();
        if start < end {
            part.lists.push((id, start..end));
        }
        let added = end - start;
        // All compute sets together may list at most `max` variables: a row of a few bytes can
        // list every variable of the profile, so a small file could otherwise fill the memory.
        if members.fetch_add(added, Ordering::Relaxed) + added <= max {
            return Ok(());
        }
        let problem = format!(
            "with this row, compute sets have more than {max} variables together, more than any \
             real model has"
        );
        Err(row.problem(1, problem))
    })?;
    Ok(VariableLists::join(parts))
}

#[inline]
fn position(variables: &Variables, row: &Cells<'_>, var_id: u64) -> Result<u32> {
    variables.position(var_id).ok_or_else(|| {
        row.problem(
            1,
            format!("no row of `{VARIABLES}` has the variable id {var_id}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{end_of_regions, *};

    #[test]
    fn groups_in_one_run_and_in_several() {
        let mut builder = Part::default();
        for (id, member) in [(5, 1), (5, 2), (3, 9), (5, 4), (3, 8)] {
            builder.push(id, member);
        }
        let lists = VariableLists::join(vec![builder]);
        let of = |id| lists.members(lists.position(id).unwrap());
        assert_eq!((of(5), of(3)), (&[1, 2, 4][..], &[9, 8][..]));
        assert_eq!(lists.position(4), None);
    }

    #[test]
    fn what_two_builders_took_is_one() {
        let (mut first, mut second) = (Part::default(), Part::default());
        first.push(1, 10);
        second.push(1, 11);
        second.push(2, 12);
        let lists = VariableLists::join(vec![first, second]);
        let all = |id| lists.members(lists.position(id).unwrap());
        assert_eq!((all(1), all(2)), (&[10, 11][..], &[12][..]));
    }

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
