//! The tree of a table: which pages hold its rows, and where on them.

use super::pages::{PageLayout, Pages, TableCell, bytes};
use super::record::varint;

/// The first byte of a page of a table that points to others, and of one with rows.
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
/// Bytes in front of the pointers to the cells of an interior page, and of a leaf.
const INTERIOR_HEAD: usize = 12;
const LEAF_HEAD: usize = 8;
/// Bytes of the number of a child.
const POINTER: usize = 4;
/// The fewest bytes of a cell on a leaf, and of the place of one in front of all.
const SMALLEST_CELL: usize = 4;
const CELL_PLACE: usize = 2;
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
    let cells = cells(page).filter(|&count| count > 0)?;
    for index in 0..cells {
        let cell = cell(page, INTERIOR_HEAD, cells, index)?;
        into.push(u32::from_be_bytes(bytes(cell, 0)?));
        // The rowid that parts the children is not used, but has to be there.
        varint(&cell[POINTER..])?;
    }
    into.push(u32::from_be_bytes(bytes(page, 8)?));
    Some(())
}

/// How many cells a page has, as far as SQLite takes the page.
fn cells(page: &[u8]) -> Option<usize> {
    let count = usize::from(u16::from_be_bytes(bytes(page, 3)?));
    (count <= (page.len() - LEAF_HEAD) / (SMALLEST_CELL + CELL_PLACE)).then_some(count)
}

/// The bytes from the cell of that number on. Cells that begin among the pointers or
/// too near to the end of the page are damaged, and SQLite takes none of the page.
#[inline]
fn cell(page: &[u8], head: usize, cells: usize, index: usize) -> Option<&[u8]> {
    let at = u16::from_be_bytes(bytes(page, head + CELL_PLACE * index)?).into();
    let min_size = if head == LEAF_HEAD {
        SMALLEST_CELL
    } else {
        POINTER + 1
    };
    let is_sound = at >= head + CELL_PLACE * cells && at + min_size <= page.len();
    is_sound.then(|| &page[at..])
}

/// A page with rows.
pub(super) struct Leaf<'p> {
    page: &'p [u8],
    cells: usize,
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
        let cell = cell(self.page, LEAF_HEAD, self.cells, index)?;
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
        let max_local = usable - 35;
        if length <= max_local {
            return length;
        }
        let min_local = (usable - 12) * 32 / 255 - 23;
        let rest = min_local + (length - min_local) % (usable - 4);
        if rest <= max_local { rest } else { min_local }
    }
}
