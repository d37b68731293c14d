//! Maps the ids of a table's rows to the positions of the rows, since rows of other tables refer to
//! rows by id.

use super::cells::{DUPLICATE, cell};
use crate::message::Result;

/// An index of a table, which maps the id of each row to the row's position, counted from 0 in the
/// order of the rows.
///
/// Poplar counts ids from 0 without gaps. Then each id equals the position of its row, and no list
/// is stored. In other files, dense ids are looked up in an array and sparse ids in a sorted list,
/// so that no file can make the lookup slow.
#[derive(Debug)]
pub enum Ids {
    /// The ids of the rows are 0, 1, 2 and so on, and each id equals the position of its row, as in
    /// Poplar's files. The field is the number of rows.
    Same(u32),
    /// An array that is indexed by id. Each entry is the position of the row with this id, or
    /// `u32::MAX` if no row has this id.
    Array(Vec<u32>),
    /// Pairs of an id and the position of its row, ascending by id.
    Sorted(Vec<(u64, u32)>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Same(0)
    }
}

/// The entry for an id that no row has, in an array of row positions that is indexed by id.
const ABSENT: u32 = u32::MAX;

/// Row positions are stored in an array that is indexed by id if the array has at most this many
/// entries per row. If the ids are sparser, a sorted list of ids takes less memory.
const SPARSE: u64 = 4;

impl Ids {
    /// Creates the index that maps row ids to row positions. `ids` holds the ids of all rows, in
    /// the order of the rows.
    ///
    /// # Errors
    /// If two rows have the same id. The error is this id.
    pub fn new(ids: impl Iterator<Item = u64> + Clone) -> Result<Self, u64> {
        let count = ids.clone().count();
        if ids.clone().zip(0..).all(|(id, position)| id == position) {
            return Ok(Self::Same(count as u32));
        }
        let highest = ids.clone().max().unwrap_or(0);
        if highest / SPARSE < count as u64 {
            let mut array = vec![ABSENT; highest as usize + 1];
            for (id, position) in ids.zip(0..) {
                if std::mem::replace(&mut array[id as usize], position) != ABSENT {
                    return Err(id);
                }
            }
            return Ok(Self::Array(array));
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
            Self::Same(len) => (id < u64::from(*len)).then_some(id as u32),
            Self::Array(array) => array
                .get(usize::try_from(id).ok()?)
                .copied()
                .filter(|&position| position != ABSENT),
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
