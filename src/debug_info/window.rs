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
    /// A window over what `reader` gives, which begins at this offset.
    pub fn new(reader: R, offset: u64) -> Self {
        Self {
            reader,
            bytes: vec![0; SIZE].into_boxed_slice(),
            start: 0,
            end: 0,
            base: offset,
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

    /// What comes next: at least `wanted` bytes, unless the stream ends before,
    /// and without using them up. At most the window's size may be wanted.
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

    /// Uses up a text of less than 24 bytes, if that is what comes next and it has
    /// arrived: the first three bits of its head are 3, the others its length.
    #[inline(always)]
    pub fn short_text(&mut self) -> Option<&[u8]> {
        let rest = &self.bytes[self.start..self.end];
        let (&head @ 0x60..0x78, rest) = rest.split_first()? else {
            return None;
        };
        let text = rest.get(..usize::from(head - 0x60))?;
        self.start += 1 + text.len();
        Some(text)
    }

    /// Goes back to an offset; `false` if its bytes are no longer there.
    pub fn back(&mut self, offset: u64) -> bool {
        let Some(start) = offset.checked_sub(self.base) else {
            return false;
        };
        self.start = self.start.min(start as usize);
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_ends_with_what_is_in_memory() {
        let bytes: Vec<u8> = (0..=255).cycle().take(2 * SIZE).collect();
        let mut window = Window::new(&bytes[..], 1000);
        assert_eq!(window.ahead(9).unwrap()[0], 0);
        window.advance(SIZE - 4);
        assert!(window.back(1003));
        assert_eq!((window.offset(), window.ahead(1).unwrap()[0]), (1003, 3));
        // Never forward.
        assert!(window.back(2000));
        assert_eq!(window.offset(), 1003);
        window.advance(SIZE - 7);
        assert_eq!(window.ahead(9).unwrap()[..5], [252, 253, 254, 255, 0]);
        assert!(!window.back(1003));
        assert!(window.back(1000 + SIZE as u64 - 4));
        assert_eq!(window.received(), 1000 + 2 * SIZE as u64 - 4);
    }

    #[test]
    fn short_texts_are_whole_and_nothing_else_is() {
        let one = |bytes: &[u8]| {
            let mut window = Window::new(bytes, 0);
            assert_eq!(window.short_text(), None, "nothing has arrived yet");
            window.ahead(1).unwrap();
            let text = window.short_text().map(<[u8]>::to_vec);
            (text, window.offset())
        };
        assert_eq!(one(b"\x62id\x01"), (Some(b"id".to_vec()), 3));
        assert_eq!(one(b"\x60"), (Some(Vec::new()), 1));
        let longest = [b"\x77", &[b'x'; 23][..]].concat();
        assert_eq!(one(&longest), (Some(vec![b'x'; 23]), 24));
        for other in [
            &b"\x62i"[..],
            b"\x42id",
            b"\x78\x02id",
            b"\x7f",
            b"\x82",
            b"",
        ] {
            assert_eq!(one(other), (None, 0), "{other:x?}");
        }
    }
}
