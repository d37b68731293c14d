//! Pulling CBOR items from a stream, and stepping over those not wanted.
//!
//! The decoder is ciborium's own. Its `push` is never used: it assumes
//! shortest-form headers, so offsets would drift on others.

use std::io::{self, BufReader, Read};

use ciborium_ll::{Decoder, Error, Header};

/// Bytes read from the file at a time.
const BUFFER: usize = 1 << 20;
/// Bytes of one text taken at a time, whatever length it claims.
const CHUNK: usize = 1 << 14;
/// Nesting beyond this is called malformed; it bounds the room for `open`.
const MAX_DEPTH: usize = 1 << 20;

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

/// What is still to come of an array or a map.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// So many items, or so many pairs of a map.
    Left(u64),
    /// All up to the break.
    UntilBreak,
}

impl Count {
    /// From the length in the header of an array or map.
    pub fn new(len: Option<usize>) -> Self {
        len.map_or(Count::UntilBreak, |len| Count::Left(len as u64))
    }
}

/// A container that is being stepped over.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// So many items are left; a pair of a map is two.
    Left(u64),
    /// An indefinite array.
    Array,
    /// An indefinite map where a key or the break is next.
    MapKey,
    /// An indefinite map where a value is next.
    MapValue,
}

/// The items of a stream.
pub(super) struct Items<R: Read> {
    decoder: Decoder<BufReader<R>>,
    open: Vec<Open>,
    chunk: Box<[u8]>,
}

impl<R: Read> Items<R> {
    pub fn new(reader: R) -> Self {
        Self {
            decoder: Decoder::from(BufReader::with_capacity(BUFFER, reader)),
            open: Vec::new(),
            chunk: vec![0; CHUNK].into_boxed_slice(),
        }
    }

    /// Offset of the next item, in bytes.
    pub fn offset(&mut self) -> u64 {
        self.decoder.offset() as u64
    }

    /// The next header, whatever it is.
    #[inline]
    pub fn header(&mut self) -> Result<Header, Fault> {
        self.decoder.pull().map_err(|error| match error {
            Error::Io(error) => Fault::from(error),
            Error::Syntax(offset) => Fault::Syntax(offset as u64),
        })
    }

    /// The header of the value that must come next, without its tags.
    #[inline]
    pub fn value(&mut self) -> Result<Header, Fault> {
        loop {
            let offset = self.offset();
            match self.header()? {
                Header::Tag(_) => {}
                Header::Break => return Err(Fault::Syntax(offset)),
                header => return Ok(header),
            }
        }
    }

    /// The header of the next item of an array, or key of a map, without its
    /// tags; `None` at the end.
    #[inline]
    pub fn next(&mut self, count: &mut Count) -> Result<Option<Header>, Fault> {
        match count {
            Count::Left(0) => Ok(None),
            Count::Left(left) => {
                *left -= 1;
                self.value().map(Some)
            }
            Count::UntilBreak => match self.header()? {
                Header::Break => Ok(None),
                Header::Tag(_) => self.value().map(Some),
                header => Ok(Some(header)),
            },
        }
    }

    /// Appends the text, or byte string, whose header was just read.
    pub fn text(&mut self, len: Option<usize>, into: &mut Vec<u8>) -> Result<(), Fault> {
        match len {
            Some(len) => self.take(len, into),
            None => self.segments(Header::Text(None), |items, len| items.take(len, into)),
        }
    }

    fn take(&mut self, mut len: usize, into: &mut Vec<u8>) -> Result<(), Fault> {
        while len > 0 {
            let step = len.min(CHUNK);
            let start = into.len();
            into.resize(start + step, 0);
            self.exact(start, into)?;
            len -= step;
        }
        Ok(())
    }

    fn exact(&mut self, start: usize, into: &mut [u8]) -> Result<(), Fault> {
        use ciborium_io::Read;
        Ok(self.decoder.read_exact(&mut into[start..])?)
    }

    /// The segments of a text or byte string of indefinite length.
    fn segments(
        &mut self,
        of: Header,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        loop {
            let offset = self.offset();
            match (self.header()?, of) {
                (Header::Break, _) => return Ok(()),
                (Header::Text(Some(len)), Header::Text(_)) => each(self, len)?,
                (Header::Bytes(Some(len)), Header::Bytes(_)) => each(self, len)?,
                _ => return Err(Fault::Syntax(offset)),
            }
        }
    }

    /// Steps over the value whose header was just read, however deep.
    pub fn skip(&mut self, header: Header) -> Result<(), Fault> {
        let mut next = header;
        self.open.clear();
        loop {
            self.enter(next)?;
            match self.resume()? {
                Some(header) => next = header,
                None => return Ok(()),
            }
        }
    }

    /// Steps over a scalar or string, or opens a container.
    fn enter(&mut self, header: Header) -> Result<(), Fault> {
        let open = match header {
            Header::Text(Some(len)) | Header::Bytes(Some(len)) => return self.pass(len),
            Header::Text(None) | Header::Bytes(None) => return self.segments(header, Self::pass),
            Header::Array(Some(len)) => Open::Left(len as u64),
            Header::Map(Some(len)) => Open::Left((len as u64).saturating_mul(2)),
            Header::Array(None) => Open::Array,
            Header::Map(None) => Open::MapKey,
            _ => return Ok(()),
        };
        if self.open.len() == MAX_DEPTH {
            return Err(Fault::Syntax(self.offset()));
        }
        self.open.push(open);
        Ok(())
    }

    /// The next header inside the open containers, closing those that end.
    fn resume(&mut self) -> Result<Option<Header>, Fault> {
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(None);
            };
            let may_break = match open {
                Open::Left(0) => {
                    self.open.pop();
                    continue;
                }
                Open::Left(left) => {
                    *left -= 1;
                    false
                }
                Open::Array => true,
                Open::MapKey => {
                    *open = Open::MapValue;
                    true
                }
                Open::MapValue => {
                    *open = Open::MapKey;
                    false
                }
            };
            if !may_break {
                return self.value().map(Some);
            }
            match self.next(&mut Count::UntilBreak)? {
                Some(header) => return Ok(Some(header)),
                None => self.open.pop(),
            };
        }
    }

    fn pass(&mut self, mut len: usize) -> Result<(), Fault> {
        use ciborium_io::Read;
        while len > 0 {
            let step = len.min(CHUNK);
            self.decoder.read_exact(&mut self.chunk[..step])?;
            len -= step;
        }
        Ok(())
    }

    /// Whether any byte follows.
    pub fn has_more(&mut self) -> Result<bool, Fault> {
        match self.header() {
            Err(Fault::Cut) => Ok(false),
            Err(Fault::Io(error)) => Err(Fault::Io(error)),
            _ => Ok(true),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Fault::Cut
        } else {
            Fault::Io(error)
        }
    }
}
