//! The pages of the file, and what goes on from one to the next.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How the file is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageLayout {
    /// Bytes of a page.
    size: usize,
    /// Bytes of it that hold content.
    pub(super) usable: usize,
    /// How many pages there are; they are counted from 1.
    pages: u32,
}

/// SQLite's number for texts in UTF-8.
const UTF_8: u32 = 1;
/// Bytes of the number of the next page.
const OVERFLOW_HEAD: usize = 4;
/// The least that SQLite allows, in bytes.
const SMALLEST_PAGE: usize = 512;
const SMALLEST_USABLE: usize = 480;

impl PageLayout {
    /// From the header of a file of `length` bytes; `None` when it is not as usual, or
    /// when texts are not in UTF-8.
    pub(super) fn of(header: &[u8], length: u64) -> Option<Self> {
        // 1 means 65,536, which does not fit.
        let size = match usize::from(u16::from_be_bytes(bytes(header, 16)?)) {
            1 => 1 << 16,
            size => size,
        };
        let usable = size.checked_sub(usize::from(*header.get(20)?))?;
        let is_valid = size.is_power_of_two() && size >= SMALLEST_PAGE && usable >= SMALLEST_USABLE;
        let in_header = u32::from_be_bytes(bytes(header, 28)?);
        // The size in the header is that of the last writer that knew of sizes.
        let is_known = bytes::<4>(header, 24)? == bytes(header, 92)? && in_header > 0;
        let whole = u32::try_from(length / size as u64).ok()?;
        let pages = if is_known { in_header } else { whole };
        let encoding = u32::from_be_bytes(bytes(header, 56)?);
        (is_valid && pages <= whole && encoding == UTF_8).then_some(Self {
            size,
            usable,
            pages,
        })
    }

    /// How many pages there are.
    pub(super) fn count(&self) -> u32 {
        self.pages
    }

    /// How many pages so many bytes go on to: each has the number of the next in front.
    pub(super) fn overflow_pages(&self, bytes: usize) -> u64 {
        bytes.div_ceil(self.usable - OVERFLOW_HEAD) as u64
    }
}

/// The bytes at `at`.
#[inline]
pub(super) fn bytes<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// How many bytes are read at once, where pages follow each other.
const WINDOW: usize = 1 << 18;

/// A row on its page.
pub(super) struct TableCell<'p> {
    pub(super) rowid: i64,
    /// Bytes of the whole payload.
    pub(super) length: usize,
    /// Its part on this page.
    pub(super) local: &'p [u8],
    /// The page where it goes on.
    pub(super) overflow: Option<u32>,
}

/// A reader of pages, with those that follow the last one in memory.
pub(super) struct Pages {
    file: File,
    pub(super) layout: PageLayout,
    window: Vec<u8>,
    /// The first page of the window, and how many there are.
    first: u32,
    count: u32,
}

impl Pages {
    pub(super) fn open(path: &Path, layout: PageLayout) -> Option<Self> {
        Some(Self {
            file: File::open(path).ok()?,
            layout,
            window: Vec::new(),
            first: 0,
            count: 0,
        })
    }

    /// The usable bytes of a page.
    #[inline]
    pub(super) fn page(&mut self, number: u32) -> Option<&[u8]> {
        let is_there = number.wrapping_sub(self.first) < self.count;
        if !is_there {
            self.fill(number)?;
        }
        let start = (number - self.first) as usize * self.layout.size;
        self.window.get(start..start + self.layout.usable)
    }

    /// Reads the page and, where it follows the last ones, twice as many as before.
    fn fill(&mut self, number: u32) -> Option<()> {
        if number == 0 || number > self.layout.pages {
            return None;
        }
        let end = u64::from(self.first) + u64::from(self.count);
        let follows = (end..end + u64::from(self.count)).contains(&number.into());
        let max_pages = (WINDOW / self.layout.size).max(1) as u32;
        let wanted = if follows { self.count * 2 } else { 1 };
        let count = wanted.min(max_pages).min(self.layout.pages - number + 1);
        self.count = 0;
        let start = u64::from(number - 1) * self.layout.size as u64;
        self.window.resize(count as usize * self.layout.size, 0);
        self.file.seek(SeekFrom::Start(start)).ok()?;
        self.file.read_exact(&mut self.window).ok()?;
        (self.first, self.count) = (number, count);
        Some(())
    }

    /// Puts the payload of a cell together: what is on its own page, and then a chain of
    /// pages, each with the number of the next in front.
    pub(super) fn payload(&mut self, cell: &TableCell<'_>, into: &mut Vec<u8>) -> Option<()> {
        into.clear();
        into.extend_from_slice(cell.local);
        let mut next = cell.overflow;
        // Each page adds to it, and the caller knows that there are as many.
        while let Some(number) = next {
            let left = cell
                .length
                .checked_sub(into.len())
                .filter(|&left| left > 0)?;
            let page = self.page(number)?;
            let content = page.get(OVERFLOW_HEAD..)?;
            into.extend_from_slice(&content[..content.len().min(left)]);
            let number = u32::from_be_bytes(bytes(page, 0)?);
            next = (number != 0).then_some(number);
        }
        (into.len() == cell.length).then_some(())
    }
}
