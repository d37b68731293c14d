//! Pulling CBOR items from a stream, and stepping over those not wanted.
//!
//! The bytes come from a window that slides over the file, so that texts are looked at
//! where they lie and what is not needed is skipped without being copied.

use crate::limits;
use std::io::{self, Read};

use super::head::{BadHead, ItemHead};
use super::window::Window;

/// Why no further item can be had.
#[derive(Debug)]
pub(super) enum Fault {
    /// Reading failed.
    Io(io::Error),
    /// The stream ended inside an item or a container.
    Cut,
    /// The bytes from this offset on are no CBOR.
    Syntax(u64),
}

/// The items of an array or a map that are still to come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// This number of items, or of pairs of a map.
    Left(u64),
    /// All up to the break.
    UntilBreak,
}

impl Count {
    /// The items to come of a container, from its head.
    pub fn of(head: ItemHead) -> Self {
        match head {
            ItemHead::Array(len) | ItemHead::Map(len) => Count::Left(len),
            _ => Count::UntilBreak,
        }
    }
}

/// A container that is being stepped over.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// This number of items is left; a pair of a map counts as two.
    Left(u64),
    /// An array up to the break.
    Array,
    /// A map up to the break, where that or a key is next.
    MapKey,
    /// A map up to the break, where a value is next.
    MapValue,
}

/// The items of a stream.
pub(super) struct Items<R> {
    window: Window<R>,
    /// The containers around the one that is being stepped over.
    outer: Vec<Open>,
}

impl<R: Read> Items<R> {
    /// The items that `reader` gives.
    pub fn new(reader: R) -> Self {
        Self {
            window: Window::new(reader),
            outer: Vec::new(),
        }
    }

    /// Offset of the next item, in bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// How many bytes have arrived: after [`Fault::Cut`] the stream's length.
    pub fn received(&self) -> u64 {
        self.window.received()
    }

    /// The bytes that come next: at least as many as requested (at most a
    /// window), unless the stream ends before. They are not consumed.
    #[inline]
    pub fn ahead(&mut self, wanted: usize) -> Result<&[u8], Fault> {
        self.window.ahead(wanted).map_err(Fault::Io)
    }

    /// The next item, whatever it is.
    #[inline]
    pub fn item(&mut self) -> Result<ItemHead, Fault> {
        match ItemHead::decode(self.ahead(ItemHead::LONGEST)?) {
            Ok((item, used)) => {
                self.window.advance(used);
                Ok(item)
            }
            Err(BadHead::Cut) => Err(Fault::Cut),
            Err(BadHead::Syntax) => Err(Fault::Syntax(self.offset())),
        }
    }

    /// The value that must come next, without its tags.
    #[inline]
    pub fn value(&mut self) -> Result<ItemHead, Fault> {
        loop {
            let offset = self.offset();
            match self.item()? {
                ItemHead::Tag(_) => {}
                ItemHead::Break => return Err(Fault::Syntax(offset)),
                item => return Ok(item),
            }
        }
    }

    /// The value that comes next, without its tags; `None` at the break.
    #[inline]
    fn value_or_break(&mut self) -> Result<Option<ItemHead>, Fault> {
        match self.item()? {
            ItemHead::Break => Ok(None),
            ItemHead::Tag(_) => self.value().map(Some),
            item => Ok(Some(item)),
        }
    }

    /// The next item of an array, or key of a map, without its tags; `None` at
    /// the end.
    #[inline]
    pub fn next(&mut self, count: &mut Count) -> Result<Option<ItemHead>, Fault> {
        match count {
            Count::Left(0) => Ok(None),
            Count::Left(left) => {
                *left -= 1;
                self.value().map(Some)
            }
            Count::UntilBreak => self.value_or_break(),
        }
    }

    /// Appends the bytes of the text whose head was just read to `into`, which
    /// grows with what arrives and not with what the head claims.
    pub fn text(&mut self, head: ItemHead, into: &mut Vec<u8>) -> Result<(), Fault> {
        match head {
            ItemHead::Text(len) => self.take(len, |segment| into.extend_from_slice(segment)),
            _ => self.segments(head, |segment| into.extend_from_slice(segment)),
        }
    }

    #[inline]
    fn take(&mut self, len: u64, each: impl FnMut(&[u8])) -> Result<(), Fault> {
        match self.window.take(len, each) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fault::Cut),
            Err(error) => Err(Fault::Io(error)),
        }
    }

    /// The segments of a string in segments, up to the break.
    fn segments(&mut self, head: ItemHead, mut each: impl FnMut(&[u8])) -> Result<(), Fault> {
        loop {
            let offset = self.offset();
            match (head, self.item()?) {
                (_, ItemHead::Break) => return Ok(()),
                (ItemHead::TextSegments, ItemHead::Text(len)) => self.take(len, &mut each)?,
                (ItemHead::ByteSegments, ItemHead::Bytes(len)) => self.take(len, &mut each)?,
                _ => return Err(Fault::Syntax(offset)),
            }
        }
    }

    /// Steps over the value that must come next.
    #[inline]
    pub fn skip_value(&mut self) -> Result<(), Fault> {
        let value = self.value()?;
        self.skip(value)
    }

    /// Steps over the value whose head was just read, however deep it is.
    #[inline]
    pub fn skip(&mut self, head: ItemHead) -> Result<(), Fault> {
        match self.enter(head)? {
            Some(open) => self.skip_container(open),
            None => Ok(()),
        }
    }

    fn skip_container(&mut self, mut open: Open) -> Result<(), Fault> {
        self.outer.clear();
        loop {
            if let Some(item) = self.next_inside(&mut open)? {
                let Some(inner) = self.enter(item)? else {
                    continue;
                };
                if self.outer.len() == limits::NESTED_ITEMS {
                    return Err(Fault::Syntax(self.offset()));
                }
                self.outer.push(std::mem::replace(&mut open, inner));
            } else {
                match self.outer.pop() {
                    Some(outer) => open = outer,
                    None => return Ok(()),
                }
            }
        }
    }

    /// Steps over a scalar or string, or gives the container that was opened.
    #[inline]
    fn enter(&mut self, head: ItemHead) -> Result<Option<Open>, Fault> {
        match head {
            ItemHead::Text(len) | ItemHead::Bytes(len) => self.take(len, |_| {})?,
            ItemHead::TextSegments | ItemHead::ByteSegments => self.segments(head, |_| {})?,
            ItemHead::Array(len) => return Ok(Some(Open::Left(len))),
            // More pairs than can be counted cannot arrive either.
            ItemHead::Map(len) => return Ok(Some(Open::Left(len.saturating_mul(2)))),
            ItemHead::OpenArray => return Ok(Some(Open::Array)),
            ItemHead::OpenMap => return Ok(Some(Open::MapKey)),
            ItemHead::Uint(_) | ItemHead::Other | ItemHead::Tag(_) | ItemHead::Break => {}
        }
        Ok(None)
    }

    /// The next item of an open container, `None` at its end.
    #[inline]
    fn next_inside(&mut self, open: &mut Open) -> Result<Option<ItemHead>, Fault> {
        match open {
            Open::Left(0) => Ok(None),
            Open::Left(left) => {
                *left -= 1;
                self.value().map(Some)
            }
            Open::Array => self.value_or_break(),
            Open::MapKey => {
                *open = Open::MapValue;
                self.value_or_break()
            }
            Open::MapValue => {
                *open = Open::MapKey;
                self.value().map(Some)
            }
        }
    }
}
