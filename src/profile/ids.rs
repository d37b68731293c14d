//! Maps the ids of a table's rows to the positions of the rows, since rows of other tables refer to
//! rows by id.

use super::cells::{DUPLICATE, cell};
use crate::message::Result;
use std::ops::Range;

/// An index of a table, which maps the id of each row to the row's position, counted from 0 in the
/// order of the rows.
///
/// In the large tables, Poplar counts ids without gaps, from 0 or 1, so no list is stored. Other
/// ids are looked up in a sorted list, so that no file can make the lookup slow.
#[derive(Debug)]
pub enum Ids {
    /// The ids of the rows, which count up by 1 from row to row.
    Consecutive(Range<u64>),
    /// Pairs of an id and the position of its row, ascending by id.
    Sorted(Vec<(u64, u32)>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Consecutive(0..0)
    }
}

impl Ids {
    /// Creates the index that maps row ids to row positions. `ids` holds the ids of all rows, in
    /// the order of the rows.
    ///
    /// # Errors
    /// If two rows have the same id. The error is this id.
    pub fn new(ids: impl Iterator<Item = u64> + Clone) -> Result<Self, u64> {
        let first = ids.clone().next().unwrap_or(0);
        let end = first + ids.clone().count() as u64;
        if ids.clone().eq(first..end) {
            return Ok(Self::Consecutive(first..end));
        }
        let mut sorted: Vec<(u64, u32)> = ids.zip(0..).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(twice) => Err(twice[0].0),
            None => Ok(Self::Sorted(sorted)),
        }
    }

    /// Creates the index that maps ids of rows of `table` to their positions. `ids` holds the ids
    /// of all rows, in order. If two rows have the same id, the error names `table` and `column`.
    pub fn of(table: &str, column: &str, ids: impl Iterator<Item = u64> + Clone) -> Result<Self> {
        Self::new(ids).map_err(|id| cell(table, column, id, DUPLICATE))
    }

    /// Returns the position of the row with the id `id`; `None` if no row has this id.
    #[inline]
    pub fn position(&self, id: u64) -> Option<u32> {
        match self {
            Self::Consecutive(ids) => ids.contains(&id).then(|| (id - ids.start) as u32),
            Self::Sorted(sorted) => {
                let place = sorted.binary_search_by_key(&id, |entry| entry.0).ok()?;
                Some(sorted[place].1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_lookup_finds_what_is_there_and_nothing_else() {
        for ids in [vec![], vec![0, 1, 2], vec![7, 3, 5], vec![1 << 40, 0, 9]] {
            let index = Ids::new(ids.iter().copied()).unwrap();
            for (position, &id) in ids.iter().enumerate() {
                assert_eq!(index.position(id), Some(position as u32));
            }
            for id in [4, 10, 1 << 41, u64::MAX] {
                assert_eq!(index.position(id), None, "{id} in {ids:?}");
            }
        }
    }

    #[test]
    fn an_id_that_stands_twice_is_named() {
        assert_eq!(Ids::new([1, 2, 1].into_iter()).unwrap_err(), 1);
        assert_eq!(
            Ids::new([1 << 50, 1 << 50].into_iter()).unwrap_err(),
            1 << 50
        );
    }
}
