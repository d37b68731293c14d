//! A short cut for the most common heads of items, and for values that have no
//! others.

use super::window;
use crate::limits;

// A value that lies in the window is nested less than is allowed.
const _: () = assert!(window::SIZE <= limits::NESTED_ITEMS);

/// A head that holds its number, length or count: nearly all of them do. What is
/// cut off, open-ended or has no meaning is left to ciborium's decoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainHead {
    /// What it is: the first three bits (RFC 8949, section 3.1).
    pub major: u8,
    pub argument: u64,
    /// The length of the head, in bytes.
    pub len: usize,
}

impl PlainHead {
    /// Decodes the head at the start of `bytes`.
    #[inline(always)]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
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
        Some(Self {
            major,
            argument,
            len,
        })
    }
}

/// The length in bytes of the value at the start of `bytes`, which are at most a
/// window, if it ends within them and all heads in it are plain.
///
/// The items of a container are just more that are to come: no container of
/// known size ends in any other way, so nobody needs to know where it does.
#[inline]
pub(super) fn plain_value(bytes: &[u8]) -> Option<usize> {
    let mut to_come = 1u64;
    let mut at = 0usize;
    while to_come > 0 {
        let head = PlainHead::decode(bytes.get(at..)?)?;
        at += head.len;
        // No overflow: fewer heads than 2^18 add 2^33 at most.
        to_come -= 1;
        match head.major {
            2 | 3 => at = at.saturating_add(head.argument as usize),
            4 => to_come += head.argument,
            5 => to_come += 2 * head.argument,
            // What the tag is about.
            6 => to_come += 1,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::cbor::ItemHead;

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
                plain += usize::from(PlainHead::decode(cut).is_some());
            }
        }
        // All but 28 to 31, and lengths and counts of eight bytes.
        let each = 24 * 9 + 8 + 7 + 5 + 1;
        assert_eq!(plain, 4 * (8 * each - 4));
    }

    #[test]
    fn values_end_where_the_last_of_their_items_does() {
        let values: [(&[u8], Option<usize>); 12] = [
            (b"", None),
            (b"\x17\x01", Some(1)),
            (b"\x63abcd", Some(4)),
            (b"\x63ab", None),
            (b"\x82\x01\xa1\x61a\x80\x05", Some(6)),
            (b"\xa2\x01\x02\x03", None),
            (b"\xc1\xc1\x81\xc1\x00\xff", Some(5)),
            (b"\xfb\0\0\0\0\0\0\0\0\0", Some(9)),
            // Open-ended, or a break: not plain.
            (b"\x81\x9f\xff", None),
            (b"\x81\x7f\xff", None),
            (b"\x81\xff", None),
            (b"\x7b\0\0\0\0\0\0\0\0", None),
        ];
        for (bytes, len) in values {
            assert_eq!(plain_value(bytes), len, "{bytes:x?}");
        }
    }

    #[test]
    fn counts_beyond_all_bytes_do_no_harm() {
        let head = b"\xba\xff\xff\xff\xff";
        assert_eq!(plain_value(&head.repeat(window::SIZE / head.len())), None);
        assert_eq!(plain_value(b"\x7a\xff\xff\xff\xff\x00"), None);
    }
}
