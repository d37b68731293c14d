//! The rows of a table, taken straight from the pages of the file.
//!
//! For each row SQLite runs some ten operations of its virtual machine and copies each
//! value that is asked for; most of a profile is three tables with 10^7 short rows. What
//! SQLite writes is documented and does not change (<https://sqlite.org/fileformat2.html>):
//! a table is a tree of pages, whose leaves hold the rows in the order of their rowids.
//!
//! Only plain tables of sound files are read here. Whatever is unusual, be it allowed or
//! damaged, gives `None`: then SQLite is asked, and what it says counts.

mod pages;
mod record;
#[cfg(test)]
mod tests;
mod tree;

use super::open::Source;
use pages::{PageLayout, Pages, TableCell};
use rayon::prelude::*;
pub(super) use record::Record;
use record::WantedColumns;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tree::Leaf;

/// A column as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredColumn {
    /// Its place in the records of the table.
    pub(super) place: usize,
    /// Is it another name of the rowid? Then the records have NULL for it.
    pub(super) is_rowid: bool,
}

/// Into how many chunks a table is cut, for each thread, and the least number of leaves
/// that are worth one: threads that are done early take over from others.
const CHUNKS_OF_THREAD: usize = 4;
const SMALLEST_CHUNK: usize = 64;

/// Some columns of a table of a file.
pub(super) struct StoredRows<'a> {
    source: &'a Source,
    layout: PageLayout,
    root: u32,
    wanted: WantedColumns,
    /// How many more pages payloads may go on to: in a sound file each is part of one.
    overflow_left: AtomicU64,
}

impl<'a> StoredRows<'a> {
    /// The table whose tree begins at page `root`, for `columns` of it.
    pub(super) fn of(source: &'a Source, root: u32, columns: &[StoredColumn]) -> Option<Self> {
        let layout = PageLayout::of(source.header(), source.length())?;
        Some(Self {
            source,
            layout,
            root,
            wanted: WantedColumns::of(columns),
            overflow_left: AtomicU64::new(layout.count().into()),
        })
    }

    /// Calls `chunk` for each chunk of the table, several at a time; what it gives comes
    /// back in the order of the rows. It reads the rows of its chunk by
    /// [`Chunk::visit`].
    pub(super) fn chunks<T: Send>(
        &self,
        chunk: impl Fn(&mut Chunk<'_>) -> Option<T> + Sync,
    ) -> Option<Vec<T>> {
        let leaves = tree::leaves(&mut self.pages()?, self.root)?;
        let count = CHUNKS_OF_THREAD * rayon::current_num_threads();
        let size = leaves.len().div_ceil(count).max(SMALLEST_CHUNK);
        let read = |leaves: &[u32]| {
            let mut chunk_rows = Chunk {
                rows: self,
                leaves,
                rowids: None,
            };
            let filled = chunk(&mut chunk_rows)?;
            Some((filled, chunk_rows.rowids))
        };
        // Each for itself: a thread would take many in turn, and others wait for the last.
        let chunks = leaves.par_chunks(size).with_max_len(1);
        let parts: Vec<_> = chunks.map(read).collect::<Option<_>>()?;
        let (filled, rowids): (Vec<T>, Vec<_>) = parts.into_iter().unzip();
        let rowids: Vec<(i64, i64)> = rowids.into_iter().flatten().collect();
        let ascend = rowids.windows(2).all(|pair| pair[0].1 < pair[1].0);
        ascend.then_some(filled)
    }

    /// Takes the pages that a payload goes on to from those that there are.
    fn take_overflow(&self, cell: &TableCell<'_>) -> Option<()> {
        let pages = self.layout.overflow_pages(cell.length - cell.local.len());
        let take = |left: u64| left.checked_sub(pages);
        let left = &self.overflow_left;
        left.fetch_update(Relaxed, Relaxed, take).ok().map(drop)
    }

    fn pages(&self) -> Option<Pages> {
        Pages::open(self.source.path(), self.layout)
    }
}

/// Leaves of a table that follow each other.
pub(super) struct Chunk<'a> {
    rows: &'a StoredRows<'a>,
    leaves: &'a [u32],
    /// The first and last rowid that were read.
    rowids: Option<(i64, i64)>,
}

impl Chunk<'_> {
    /// Calls `visit` with each row, in the order of their rowids.
    pub(super) fn visit(&mut self, mut visit: impl FnMut(&Record<'_>) -> Option<()>) -> Option<()> {
        let rows = self.rows;
        // Payloads that go on on other pages are put together with a reader of its own.
        let (mut pages, mut overflow) = (rows.pages()?, rows.pages()?);
        let (mut whole, mut fields) = (Vec::new(), rows.wanted.fields());
        for &number in self.leaves {
            let leaf = Leaf::of(pages.page(number)?)?;
            if leaf.len() == 0 && number != rows.root {
                // SQLite takes only the root for a page without rows.
                return None;
            }
            for index in 0..leaf.len() {
                let cell = leaf.cell(index)?;
                self.check_rowid(cell.rowid)?;
                let payload = match cell.overflow {
                    None => cell.local,
                    Some(_) => {
                        rows.take_overflow(&cell)?;
                        overflow.payload(&cell, &mut whole)?;
                        &whole[..]
                    }
                };
                rows.wanted.find(payload, &mut fields)?;
                visit(&Record::new(cell.rowid, payload, &fields))?;
            }
        }
        Some(())
    }

    /// Rows are in ascending order: no page is read twice.
    fn check_rowid(&mut self, rowid: i64) -> Option<()> {
        let first = match self.rowids {
            Some((_, last)) if last >= rowid => return None,
            Some((first, _)) => first,
            None => rowid,
        };
        self.rowids = Some((first, rowid));
        Some(())
    }
}
