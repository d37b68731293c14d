//! Reads the items of a CBOR file one after the other, with ciborium's decoder. Tags are ignored.

use crate::limits;
use ciborium_io::Read as _;
use ciborium_ll::{Decoder, Header};
use std::{
    io::{self, Read},
    str::from_utf8,
};

/// Maximum number of bytes that are read from the CBOR file at a time, when reading a text or byte
/// string.
const CHUNK: usize = 1 << 12;

/// Maximum depth of nested arrays, maps and tags in a CBOR item that is skipped. The maximum for
/// the whole file is three levels higher: the item may be in a context, which is in the array of
/// contexts, which is in the top-level map.
const DEPTH: usize = limits::NESTED_ITEMS - 3;

/// The error that the rest of a CBOR file cannot be read: the file ends too early, a read failed,
/// or the file is malformed.
#[derive(Debug)]
pub struct Unreadable;

impl From<io::Error> for Unreadable {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<ciborium_ll::Error<io::Error>> for Unreadable {
    fn from(_: ciborium_ll::Error<io::Error>) -> Self {
        Self
    }
}

/// Number of items of an array, or entries of a map, that are still to be read; `None` if the
/// number is unknown, since an end marker follows the last item.
pub type Left = Option<usize>;

/// Reads the items of a CBOR file. The header of an item is read first, and gives the type and
/// length of the item. If the item is a text, array or map, its content must be read or skipped
/// before the next header.
pub struct Items<R: Read> {
    decoder: Decoder<R>,
    chunk: Box<[u8; CHUNK]>,
    /// Buffer for a CBOR text or byte string that is longer than [`CHUNK`], or that the file has in
    /// several parts.
    long: Vec<u8>,
}

impl<R: Read> Items<R> {
    pub fn new(reader: R) -> Self {
        Self {
            decoder: reader.into(),
            chunk: Box::new([0; CHUNK]),
            long: Vec::new(),
        }
    }

    /// Returns the header of the next CBOR item, or an end marker. The decoder is called for a
    /// header only here: the compiler inlines a function that is called at a single place.
    fn header(&mut self) -> Result<Header, Unreadable> {
        for _ in 0..=DEPTH {
            match self.decoder.pull()? {
                Header::Tag(_) => {}
                // CBOR defines only the simple values 20 to 23 (false, true, null and undefined),
                // so the file is malformed if it has any other.
                Header::Simple(..20 | 24..) => break,
                header => return Ok(header),
            }
        }
        Err(Unreadable)
    }

    /// Returns the header of the next CBOR item. An end marker in its place is an error.
    #[inline]
    pub fn item(&mut self) -> Result<Header, Unreadable> {
        match self.header()? {
            Header::Break => Err(Unreadable),
            header => Ok(header),
        }
    }

    /// Returns the header of the next item of a CBOR array, or of the next key of a CBOR map.
    /// Returns `None` at the end of the array or map.
    #[inline]
    pub fn next(&mut self, left: &mut Left) -> Result<Option<Header>, Unreadable> {
        let Some(left) = left else {
            let header = self.header()?;
            return Ok((header != Header::Break).then_some(header));
        };
        let Some(after) = left.checked_sub(1) else {
            return Ok(None);
        };
        *left = after;
        self.item().map(Some)
    }

    /// Reads the next key of a CBOR map, and returns what the function `meaning` makes of the key;
    /// `None` at the end of the map. `meaning` gets `None` for a key that is not a text. In a map
    /// without an end marker, a key must be a text or a byte string in one part, as in all known
    /// files.
    #[inline]
    pub fn next_key<K>(
        &mut self,
        left: &mut Left,
        meaning: impl FnOnce(Option<&str>) -> K,
    ) -> Result<Option<K>, Unreadable> {
        let has_end = left.is_none();
        let Some(header) = self.next(left)? else {
            return Ok(None);
        };
        let key = match header {
            Header::Text(length) if has_end || length.is_some() => Some(self.text(length)?),
            header if has_end || matches!(header, Header::Bytes(Some(_))) => {
                self.skip(header)?;
                None
            }
            _ => return Err(Unreadable),
        };
        Ok(Some(meaning(key)))
    }

    /// Reads the text whose header was just read. `length` is the length in the header: the number
    /// of bytes, or `None` for a text in several parts.
    #[inline]
    pub fn text(&mut self, length: Option<usize>) -> Result<&str, Unreadable> {
        let bytes = if let Some(short @ ..=CHUNK) = length {
            let bytes = &mut self.chunk[..short];
            self.decoder.read_exact(bytes)?;
            bytes
        } else {
            self.read_long(length, true)?;
            &self.long[..]
        };
        from_utf8(bytes).map_err(|_| Unreadable)
    }

    /// Reads the content of a text (`is_text`) or a byte string into the buffer `long`. `length` is
    /// its number of bytes; `None` if it comes in parts, each with its own header.
    fn read_long(&mut self, length: Option<usize>, is_text: bool) -> Result<(), Unreadable> {
        self.long.clear();
        if let Some(length) = length {
            return self.read_part(length, is_text);
        }
        loop {
            match self.header()? {
                Header::Break => return Ok(()),
                Header::Text(Some(length)) if is_text => self.read_part(length, is_text)?,
                Header::Bytes(Some(length)) if !is_text => self.read_part(length, is_text)?,
                _ => return Err(Unreadable),
            }
        }
    }

    /// Appends the next `length` bytes of the file to the buffer `long`. Returns an error if they
    /// should be text (`is_text`) but are not valid UTF-8.
    fn read_part(&mut self, length: usize, is_text: bool) -> Result<(), Unreadable> {
        let start = self.long.len();
        let mut left = length;
        while left > 0 {
            let bytes = &mut self.chunk[..left.min(CHUNK)];
            self.decoder.read_exact(bytes)?;
            self.long.extend_from_slice(bytes);
            left -= bytes.len();
        }
        if is_text && from_utf8(&self.long[start..]).is_err() {
            return Err(Unreadable);
        }
        Ok(())
    }

    /// Skips the rest of the CBOR item that begins with `header`.
    ///
    /// # Errors
    /// If the file cannot be read, or items are nested too deep.
    pub fn skip(&mut self, header: Header) -> Result<(), Unreadable> {
        self.skip_in(header, DEPTH)
    }

    fn skip_in(&mut self, header: Header, depth: usize) -> Result<(), Unreadable> {
        match header {
            Header::Text(length) => self.text(length).map(drop),
            Header::Bytes(length) => self.read_long(length, false),
            Header::Array(mut left) => {
                let depth = depth.checked_sub(1).ok_or(Unreadable)?;
                while let Some(header) = self.next(&mut left)? {
                    self.skip_in(header, depth)?;
                }
                Ok(())
            }
            Header::Map(mut left) => {
                let depth = depth.checked_sub(1).ok_or(Unreadable)?;
                while self.next_key(&mut left, |_| ())?.is_some() {
                    let header = self.item()?;
                    self.skip_in(header, depth)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
