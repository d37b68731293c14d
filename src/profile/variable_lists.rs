//! Reads the lowered variables of each compute set, and of each region set (the regions of
//! variables that a program moves).

use super::{
    Cells, Database, Variables,
    encoding::{BlobError, ValueRun, value_runs},
    variables::TABLE as VARIABLES,
};
use crate::{limits, message::Result, parallel::concatenated};
use rayon::prelude::*;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Lists of lowered variables, one for each compute set or each region set. The members of a list
/// are indices into [`Variables`].
#[derive(Debug, Default)]
pub struct VariableLists {
    /// The variables of all compute sets or region sets, as indices into [`Variables`], one list
    /// after the other.
    members: Vec<u32>,
    /// One entry per list of variables, in the order of the lists in `members`: the id of the
    /// compute set or region set, and the index in `members` after the last variable of the list.
    /// Ids ascend strictly, except while rows are read: then there is one entry per run of rows
    /// with the same id.
    lists: Vec<(u64, u32)>,
}

impl VariableLists {
    /// Returns the number of lists. Each compute set or region set with at least one variable has
    /// one list.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether there are no lists, that is, no compute set or region set has a variable.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the variables of all compute sets or region sets, as indices into [`Variables`]. A
    /// variable that several sets have occurs several times.
    pub fn all_members(&self) -> &[u32] {
        &self.members
    }

    /// Returns the position, among all lists of variables, of the list for the compute set or
    /// region set with the id `id`. Returns `None` if this set has no variables, and so no list.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.lists
            .binary_search_by_key(&id, |&(list, _)| list)
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
        let position = position as usize;
        let before = position.checked_sub(1);
        let start = before.map_or(0, |before| self.lists[before].1);
        &self.members[start as usize..self.lists[position].1 as usize]
    }

    /// Adds the variable `member`, an index into [`Variables`], to the variables of the compute set
    /// or region set (regions that a program moves) with the id `id`.
    #[inline]
    fn push(&mut self, id: u64, member: u32) {
        match self.lists.last_mut() {
            Some((last, end)) if *last == id => *end += 1,
            _ => self.lists.push((id, self.members.len() as u32 + 1)),
        }
        self.members.push(member);
    }

    /// Returns whether the last call of [`push`](Self::push) had the same arguments.
    fn ends_with(&self, id: u64, member: u32) -> bool {
        self.lists.last().is_some_and(|&(last, _)| last == id)
            && self.members.last() == Some(&member)
    }

    /// Joins `parts`, each with the lists of variables from one range of rows of a table, and sorts
    /// the lists by the ids of the compute sets or region sets that they belong to.
    fn join(parts: Vec<Self>) -> Self {
        let (mut members, mut lists) = (Vec::new(), Vec::new());
        let mut start = 0;
        for part in parts {
            lists.extend(part.lists.into_iter().map(|(id, end)| (id, start + end)));
            start += part.members.len() as u32;
            members.push(part.members);
        }
        let mut joined = Self {
            members: concatenated(members),
            lists,
        };
        // The rows of a profile are usually in the order of their compute sets or region sets. Then
        // the lists of variables are in the order of ids already.
        if !joined.lists.is_sorted_by_key(|&(id, _)| id) {
            let ids = joined.lists.iter().map(|&(id, _)| id);
            let mut runs: Vec<(u64, u32)> = ids.zip(0..).collect();
            runs.sort_unstable();
            let mut sorted = Self::default();
            for (id, run) in runs {
                sorted.members.extend(joined.members(run));
                sorted.lists.push((id, sorted.members.len() as u32));
            }
            joined = sorted;
        }
        let lists = joined.lists.chunk_by(|one, next| one.0 == next.0);
        // A compute set or region set has several entries if its rows in the file were not
        // consecutive, or were read in different parts. The entries of a set are adjacent after
        // sorting. Only the last of them is kept, since it has the index after the last variable of
        // the set.
        joined.lists = lists.filter_map(|runs| runs.last().copied()).collect();
        joined
    }
}

/// Reads the variables of each region set (`exchange_regions`). Also returns the variables that
/// contradict their regions, as ascending indices into [`Variables`]: a region ends beyond the
/// variable, or a region set lists the variable twice in a row. In a real profile, the ids of
/// region set and variable together are the key of the table, so nothing is listed twice.
pub fn read_regions(
    database: &Database,
    variables: &Variables,
) -> Result<(VariableLists, Vec<u32>)> {
    const TABLE: &str = "exchange_regions";
    const COLUMNS: &[&str] = &["id", "var_id", "regions"];
    let columns = database.columns(TABLE, COLUMNS, 2)?;
    let init = <(VariableLists, Vec<u32>)>::default;
    let parts = database.scan_ranges(TABLE, columns, init, |row, (lists, ends)| {
        let member = position(variables, &row, row.unsigned(1)?)?;
        let id = row.unsigned(0)?;
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
    // Each access to `variables.bytes` waits for memory, since the variables in the lists are in no
    // order. In this loop, which does nothing else, the processor overlaps many such accesses. It
    // could not do so while rows are read.
    let outside = |(lists, ends): &(VariableLists, Vec<u32>)| -> Vec<u32> {
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
    let parts = database.scan_ranges("compute_sets", columns, VariableLists::default, |row, lists| {
        let id = row.unsigned(0)?;
        let before = lists.members.len();
        let (mut var_id, mut left) = (0u64, variables.len() as u64);
        for run in value_runs(row.blob(1)?) {
            let ValueRun { count, value } = run.map_err(row.bad_blob(1))?;
            left = left
                .checked_sub(count)
                .ok_or_else(|| row.problem(1, BlobError::TooLong(variables.len())))?;
            // The blob has the differences between consecutive ids of variables. A run of
            // differences of 0 repeats the id of one variable, which is added only once.
            let count = if value == 0 { count.min(1) } else { count };
            for _ in 0..count {
                var_id = var_id
                    .checked_add(value)
                    .ok_or_else(|| row.problem(1, BlobError::Overflow))?;
                lists.push(id, position(variables, &row, var_id)?);
            }
        }
        let added = lists.members.len() - before;
        // The number of members of all lists together is bounded: a row of a few bytes can list
        // every variable, so a small file could otherwise fill the memory.
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
        let mut builder = VariableLists::default();
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
        let (mut first, mut second) = (VariableLists::default(), VariableLists::default());
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
