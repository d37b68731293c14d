//! The heads of CBOR items (RFC 8949, section 3).

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
        let &first = bytes.first().ok_or(BadItem::Cut)?;
        let (argument, used) = match first & 0x1f {
            short @ 0..24 => (u64::from(short), 1),
            24 => (u64::from(argument::<1>(bytes)?[0]), 2),
            25 => (u64::from(u16::from_be_bytes(argument(bytes)?)), 3),
            26 => (u64::from(u32::from_be_bytes(argument(bytes)?)), 5),
            27 => (u64::from_be_bytes(argument(bytes)?), 9),
            31 => return Ok((Self::open(first)?, 1)),
            _ => return Err(BadItem::Syntax),
        };
        let item = match first >> 5 {
            0 => Item::Uint(argument),
            2 => Item::Bytes(argument),
            3 => Item::Text(argument),
            4 => Item::Array(argument),
            5 => Item::Map(argument),
            6 => Item::Tag(argument),
            _ => Item::Other,
        };
        Ok((item, used))
    }

    fn open(first: u8) -> Result<Item, BadItem> {
        match first >> 5 {
            2 => Ok(Item::ByteSegments),
            3 => Ok(Item::TextSegments),
            4 => Ok(Item::OpenArray),
            5 => Ok(Item::OpenMap),
            7 => Ok(Item::Break),
            _ => Err(BadItem::Syntax),
        }
    }
}

/// The `N` bytes after the first.
#[inline]
fn argument<const N: usize>(bytes: &[u8]) -> Result<[u8; N], BadItem> {
    bytes[1..].first_chunk().copied().ok_or(BadItem::Cut)
}
