//! The heads of CBOR items (RFC 8949, section 3).

use ciborium_ll::{Decoder, Error, Header};

/// The head of an item. Those whose value nothing asks for are told apart only
/// as far as stepping over them needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
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
pub(super) enum BadItem {
    /// They end within it.
    Cut,
    /// The first byte has no meaning.
    Syntax,
}

impl Item {
    /// The longest head, in bytes.
    pub const LONGEST: usize = 9;

    /// Decodes the head at the start of `bytes`; gives its length in bytes too.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<(Item, usize), BadItem> {
        let mut decoder = Decoder::from(bytes);
        let item = match decoder.pull() {
            Ok(Header::Positive(value)) => Item::Uint(value),
            Ok(Header::Bytes(len)) => len.map_or(Item::ByteSegments, |len| Item::Bytes(len as u64)),
            Ok(Header::Text(len)) => len.map_or(Item::TextSegments, |len| Item::Text(len as u64)),
            Ok(Header::Array(len)) => len.map_or(Item::OpenArray, |len| Item::Array(len as u64)),
            Ok(Header::Map(len)) => len.map_or(Item::OpenMap, |len| Item::Map(len as u64)),
            Ok(Header::Tag(tag)) => Item::Tag(tag),
            Ok(Header::Break) => Item::Break,
            Ok(Header::Negative(_) | Header::Float(_) | Header::Simple(_)) => Item::Other,
            Err(Error::Io(_)) => return Err(BadItem::Cut),
            Err(Error::Syntax(_)) => return Err(BadItem::Syntax),
        };
        Ok((item, decoder.offset()))
    }
}
