//! The heads of items (RFC 8949, section 3): what comes, and how much of it.

use ciborium_ll::{Decoder, Error, Header};

/// The head of an item. Heads whose value is not needed are distinguished only
/// as far as skipping them requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemHead {
    /// An integer from 0.
    Uint(u64),
    /// A byte string of this number of bytes.
    Bytes(u64),
    /// A byte string in segments, up to the break.
    ByteSegments,
    /// A text of this number of bytes.
    Text(u64),
    /// A text in segments, up to the break.
    TextSegments,
    /// An array of this number of items.
    Array(u64),
    /// An array up to the break.
    OpenArray,
    /// A map of this number of pairs.
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
        Self::plain(bytes).map_or_else(|| Self::decode_any(bytes), Ok)
    }

    /// A head that holds its number, length or count: nearly all of them do, and
    /// without this short cut a whole run takes a tenth more.
    #[inline(always)]
    fn plain(bytes: &[u8]) -> Option<(ItemHead, usize)> {
        let (&first, rest) = bytes.split_first()?;
        let major = first >> 5;
        let (argument, len) = match first & 0x1f {
            argument @ 0..24 => (argument.into(), 1),
            24 => (u8::from_be_bytes(*rest.first_chunk()?).into(), 2),
            25 => (u16::from_be_bytes(*rest.first_chunk()?).into(), 3),
            26 => (u32::from_be_bytes(*rest.first_chunk()?).into(), 5),
            // As a length or count it may be more than the machine can address.
            27 if !matches!(major, 2..=5) => (u64::from_be_bytes(*rest.first_chunk()?), 9),
            _ => return None,
        };
        let head = match major {
            0 => ItemHead::Uint(argument),
            2 => ItemHead::Bytes(argument),
            3 => ItemHead::Text(argument),
            4 => ItemHead::Array(argument),
            5 => ItemHead::Map(argument),
            6 => ItemHead::Tag(argument),
            _ => ItemHead::Other,
        };
        Some((head, len))
    }

    /// Decodes any head.
    fn decode_any(bytes: &[u8]) -> Result<(ItemHead, usize), BadHead> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads with each first byte and with arguments of all lengths.
    fn heads() -> impl Iterator<Item = Vec<u8>> {
        let rests: [&[u8]; 4] = [&[0; 8], &[0xff; 8], &[1, 2, 3, 4, 5, 6, 7, 8], &[0x7f; 8]];
        (0..=0xff).flat_map(move |first| rests.map(|rest| [&[first], rest].concat()))
    }

    #[test]
    fn heads_are_what_the_decoder_says() {
        let mut plain = 0;
        for bytes in heads() {
            for len in 0..=bytes.len() {
                let cut = &bytes[..len];
                assert_eq!(ItemHead::decode(cut), ItemHead::decode_any(cut), "{cut:x?}");
                plain += usize::from(ItemHead::plain(cut).is_some());
            }
        }
        // All but 28 to 31, and lengths and counts of eight bytes.
        let each = 24 * 9 + 8 + 7 + 5 + 1;
        assert_eq!(plain, 4 * (8 * each - 4));
    }
}
