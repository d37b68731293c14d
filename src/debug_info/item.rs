//! The heads of CBOR items (RFC 8949, section 3).

use ciborium_ll::{Decoder, Error, Header};

/// The head of an item. Those whose value nothing asks for are told apart only
/// as far as stepping over them needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemHead {
    /// An integer from 0.
    Uint(u64),
    /// A byte string of so many bytes.
    Bytes(u64),
    /// A byte string in segments, up to the break.
    ByteSegments,
    /// A text of so many bytes.
    Text(u64),
    /// A text in segments, up to the break.
    TextSegments,
    /// An array of so many items.
    Array(u64),
    /// An array up to the break.
    OpenArray,
    /// A map of so many pairs.
    Map(u64),
    /// A map up to the break.
    OpenMap,
    /// A tag; the item that it is about follows.
    Tag(u64),
    /// The end of what is open.
    Break,
    /// A negative integer, a float or a simple value.
    Other,
}

/// Why the bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHead {
    /// They end within it.
    Cut,
    /// The first byte has no meaning.
    Syntax,
}

impl ItemHead {
    /// The longest head, in bytes.
    pub const LONGEST: usize = 9;

    /// Decodes the head at the start of `bytes`; gives its length in bytes too.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<(ItemHead, usize), BadHead> {
        let mut decoder = Decoder::from(bytes);
        let item = match decoder.pull() {
            Ok(Header::Positive(value)) => ItemHead::Uint(value),
            Ok(Header::Bytes(len)) => {
                len.map_or(ItemHead::ByteSegments, |len| ItemHead::Bytes(len as u64))
            }
            Ok(Header::Text(len)) => {
                len.map_or(ItemHead::TextSegments, |len| ItemHead::Text(len as u64))
            }
            Ok(Header::Array(len)) => {
                len.map_or(ItemHead::OpenArray, |len| ItemHead::Array(len as u64))
            }
            Ok(Header::Map(len)) => len.map_or(ItemHead::OpenMap, |len| ItemHead::Map(len as u64)),
            Ok(Header::Tag(tag)) => ItemHead::Tag(tag),
            Ok(Header::Break) => ItemHead::Break,
            Ok(Header::Negative(_) | Header::Float(_) | Header::Simple(_)) => ItemHead::Other,
            Err(Error::Io(_)) => return Err(BadHead::Cut),
            Err(Error::Syntax(_)) => return Err(BadHead::Syntax),
        };
        Ok((item, decoder.offset()))
    }
}
