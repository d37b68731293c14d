//! The tree of a table: which pages hold its rows, and where on them.

use super::pages::{PageLayout, Pages, bytes};
use super::record::varint;

/// The first byte of a page of a table that points to others, and of one with rows.
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
/// Bytes in front of the pointers to the cells of an interior page, and of a leaf.
const INTERIOR_HEAD: usize = 12;
const LEAF_HEAD: usize = 8;
/// The deepest tree that SQLite reads.
const DEEPEST: usize = 20;

/// The leaves of the tree at `root`, in the order of the rowids. All leaves of a tree are
/// as deep as the first, so that only the pages above them are read.
pub(super) fn leaves(pages: &mut Pages, root: u32) -> Option<Vec<u32>> {
    let mut level = vec![root];
    for _ in 0..DEEPEST {
        match pages.page(level[0])?[0] {
            LEAF => return Some(level),
            INTERIOR => {}
            _ => return None,
        }
        let mut below = Vec::new();
        for &number in &level {
            children(pages.page(number)?, &mut below)?;
            if below.len() > pages.layout.count() as usize {
                return None;
            }
        }
        level = below;
    }
    None
}

/// Appends the pages that an interior page points to.
fn children(page: &[u8], into: &mut Vec<u32>) -> Option<()> {
    if page[0] != INTERIOR {
        return None;
    }
    for index in 0..cells(page)? {
        let at = pointer(page, INTERIOR_HEAD, index)?;
        into.push(u32::from_be_bytes(bytes(page, at)?));
    }
    into.push(u32::from_be_bytes(bytes(page, 8)?));
    Some(())
}

fn cells(page: &[u8]) -> Option<usize> {
    Some(u16::from_be_bytes(bytes(page, 3)?).into())
}

#[inline]
fn pointer(page: &[u8], head: usize, index: usize) -> Option<usize> {
    let at = u16::from_be_bytes(bytes(page, head + 2 * index)?);
    Some(at.into())
}

/// A page with rows.
pub(super) struct Leaf<'p> {
    page: &'p [u8],
    cells: usize,
}

/// A row on its page.
pub(super) struct TableCell<'p> {
    pub(super) rowid: i64,
    /// Bytes of the whole payload.
    pub(super) length: usize,
    /// What of it is on this page.
    pub(super) local: &'p [u8],
    /// The page where it goes on.
    pub(super) overflow: Option<u32>,
}

impl<'p> Leaf<'p> {
    /// The usable bytes of a page.
    pub(super) fn of(page: &'p [u8]) -> Option<Self> {
        let cells = cells(page)?;
        (page[0] == LEAF).then_some(Self { page, cells })
    }

    pub(super) fn len(&self) -> usize {
        self.cells
    }

    #[inline]
    pub(super) fn cell(&self, index: usize) -> Option<TableCell<'p>> {
        let at = pointer(self.page, LEAF_HEAD, index)?;
        // Not within the pointers.
        if at < LEAF_HEAD + 2 * self.cells {
            return None;
        }
        let cell = self.page.get(at..)?;
        let (length, used) = varint(cell)?;
        let (rowid, also) = varint(&cell[used..])?;
        let payload = &cell[used + also..];
        let length = usize::try_from(length).ok()?;
        let local = PageLayout::local(self.page.len(), length);
        let overflow = if local == length {
            None
        } else {
            Some(u32::from_be_bytes(bytes(payload, local)?))
        };
        Some(TableCell {
            rowid: rowid as i64,
            length,
            local: payload.get(..local)?,
            overflow,
        })
    }
}

impl PageLayout {
    /// How many bytes of a payload are on the page of its row
    /// (<https://sqlite.org/fileformat2.html#b_tree_pages>).
    #[inline]
    fn local(usable: usize, length: usize) -> usize {
        let most = usable - 35;
        if length <= most {
            return length;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let rest = least + (length - least) % (usable - 4);
        if rest <= most { rest } else { least }
    }
}
