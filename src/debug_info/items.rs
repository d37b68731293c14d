//! Reads the items of a CBOR document one after the other.

use crate::limits;
use crate::message::FileError;
use ciborium_io::Read;
use ciborium_ll::{Decoder, Error, Header, simple};
use std::io;

/// Reason why a document is not read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file ends within an item.
    CutOff,
    /// An item is malformed, or items are nested too deep.
    Malformed,
    /// The file cannot be read, or Poplar does not write such a document.
    Refused(FileError),
}

impl From<Error<io::Error>> for Stop {
    fn from(error: Error<io::Error>) -> Self {
        match error {
            Error::Syntax(_) => Self::Malformed,
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Self::CutOff,
            Error::Io(error) => Self::Refused(error.into()),
        }
    }
}

impl From<FileError> for Stop {
    fn from(error: FileError) -> Self {
        Self::Refused(error)
    }
}

/// An item. A tag before it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// An integer of at least 0.
    Number(u64),
    /// A text, which [`Items::text`] returns until the next item is read.
    Text,
    /// The beginning of an array.
    List(Left),
    /// The beginning of a map.
    Map(Left),
    /// Bytes.
    Bytes,
    /// A negative integer, a float, a boolean or null.
    None,
}

/// Number of items of an array, or of entries of a map, that are not read yet; `None` if an end
/// marker follows them.
pub(super) type Left = Option<usize>;

/// Size of the buffer for texts, in bytes; a longer text is read in several parts.
const BUFFER: usize = 1 << 12;

/// The items of a document.
pub(super) struct Items<R: io::Read> {
    decoder: Decoder<R>,
    buffer: Vec<u8>,
    text: String,
    /// Number of arrays and maps around the next item.
    depth: usize,
}

impl<R: io::Read> Items<R> {
    pub fn new(reader: R) -> Self {
        Self {
            decoder: Decoder::from(reader),
            buffer: vec![0; BUFFER],
            text: String::new(),
            depth: 0,
        }
    }

    /// Reads the next item; of an array or a map, only its beginning.
    #[inline]
    pub fn next(&mut self) -> Result<Item, Stop> {
        let mut tags = 0;
        loop {
            let item = match self.decoder.pull()? {
                Header::Positive(number) => Item::Number(number),
                Header::Text(length) => {
                    self.read_text(length)?;
                    Item::Text
                }
                Header::Array(left) => Item::List(left),
                Header::Map(left) => Item::Map(left),
                Header::Tag(_) if self.depth + tags < limits::NESTED_ITEMS => {
                    tags += 1;
                    continue;
                }
                Header::Bytes(length) => {
                    let mut parts = self.decoder.bytes(length);
                    while let Some(mut part) = parts.pull()? {
                        while part.pull(&mut self.buffer)?.is_some() {}
                    }
                    Item::Bytes
                }
                Header::Negative(_)
                | Header::Float(_)
                | Header::Simple(simple::FALSE | simple::TRUE | simple::NULL | simple::UNDEFINED) => {
                    Item::None
                }
                _ => return Err(Stop::Malformed),
            };
            if matches!(item, Item::List(_) | Item::Map(_)) {
                if self.depth + tags >= limits::NESTED_ITEMS {
                    return Err(Stop::Malformed);
                }
                self.depth += 1;
            }
            return Ok(item);
        }
    }

    #[inline]
    fn read_text(&mut self, length: Option<usize>) -> Result<(), Stop> {
        self.text.clear();
        if let Some(length) = length
            && length <= BUFFER
        {
            let bytes = &mut self.buffer[..length];
            self.decoder.read_exact(bytes).map_err(Error::from)?;
            let text = std::str::from_utf8(bytes).map_err(|_| Stop::Malformed)?;
            self.text.push_str(text);
            return Ok(());
        }
        let mut parts = self.decoder.text(length);
        while let Some(mut part) = parts.pull()? {
            while let Some(text) = part.pull(&mut self.buffer)? {
                self.text.push_str(text);
            }
        }
        Ok(())
    }

    /// The text that was read last.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Is there another item, or entry of a map? Counts it as read.
    #[inline]
    pub fn has_next(&mut self, left: &mut Left) -> Result<bool, Stop> {
        let is_over = match left {
            Some(0) => true,
            Some(count) => {
                *count -= 1;
                false
            }
            None => match self.decoder.pull()? {
                Header::Break => true,
                header => {
                    self.decoder.push(header);
                    false
                }
            },
        };
        self.depth -= usize::from(is_over);
        Ok(!is_over)
    }

    /// Reads the next key of a map and returns its `meaning`: `Some(None)` if the key has none or
    /// is no text, `None` at the end of the map. Adds 1 to `no_texts` for a key that is no text.
    #[inline]
    pub fn next_key<K>(
        &mut self,
        left: &mut Left,
        meaning: fn(&str) -> Option<K>,
        no_texts: &mut usize,
    ) -> Result<Option<Option<K>>, Stop> {
        if !self.has_next(left)? {
            return Ok(None);
        }
        match self.next()? {
            Item::Text => Ok(Some(meaning(&self.text))),
            key => {
                *no_texts += 1;
                self.skip(key)?;
                Ok(Some(None))
            }
        }
    }

    /// Skips the rest of an item whose beginning was read.
    pub fn skip(&mut self, item: Item) -> Result<(), Stop> {
        let (mut left, items) = match item {
            Item::List(left) => (left, 1),
            Item::Map(left) => (left, 2),
            _ => return Ok(()),
        };
        while self.has_next(&mut left)? {
            for _ in 0..items {
                self.skip_next()?;
            }
        }
        Ok(())
    }

    /// Skips the next item.
    pub fn skip_next(&mut self) -> Result<(), Stop> {
        let item = self.next()?;
        self.skip(item)
    }
}
