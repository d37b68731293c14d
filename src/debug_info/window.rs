//! A sliding window over a stream, so that items are parsed in place.

use std::io::{self, ErrorKind, Read};

/// Bytes read at a time, and the longest slice that [`Window::ahead`] can give.
pub(super) const SIZE: usize = 1 << 16;

/// The part of a stream that is in memory.
///
/// A `BufReader` would copy every text, wanted or not; most of a debug file is
/// stepped over, and here that costs an addition.
pub(super) struct Window<R> {
    reader: R,
    bytes: Box<[u8]>,
    /// The next byte to be used.
    start: usize,
    /// The end of what has been read.
    end: usize,
    /// Offset in the stream of `bytes[0]`.
    base: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    /// A window over what `reader` gives.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            bytes: vec![0; SIZE].into_boxed_slice(),
            start: 0,
            end: 0,
            base: 0,
            ended: false,
        }
    }

    /// Offset in the stream of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// How many bytes of the stream have arrived: once it has ended, its length.
    pub fn received(&self) -> u64 {
        self.base + self.end as u64
    }

    /// The next bytes, at least `wanted` unless the stream ends before, without
    /// using them up. At most the window's size may be wanted.
    #[inline]
    pub fn ahead(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.end - self.start < wanted {
            self.fill(wanted)?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    #[cold]
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted.min(SIZE) && !self.ended {
            match self.reader.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Uses up bytes that [`Window::ahead`] gave.
    #[inline]
    pub fn advance(&mut self, used: usize) {
        self.start = (self.start + used).min(self.end);
    }

    /// Uses up `len` bytes and hands them over in pieces; `false` if the stream
    /// ends before.
    #[inline]
    pub fn take(&mut self, mut len: u64, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            let here = &self.bytes[self.start..self.end];
            if len <= here.len() as u64 {
                each(&here[..len as usize]);
                self.start += len as usize;
                return Ok(true);
            }
            each(here);
            len -= here.len() as u64;
            self.start = self.end;
            if self.ahead(1)?.is_empty() {
                return Ok(false);
            }
        }
    }
}
