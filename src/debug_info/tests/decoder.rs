//! The heads of items, against ciborium's decoder.

use ciborium_ll::{Decoder, Error, Header};
use proptest::prelude::*;

use crate::debug_info::item::{BadHead, ItemHead};

/// What ciborium reads there, in our terms.
fn reference(bytes: &[u8]) -> Result<(ItemHead, usize), BadHead> {
    let mut decoder = Decoder::from(bytes);
    let item = match decoder.pull() {
        Err(Error::Io(_)) => return Err(BadHead::Cut),
        Err(Error::Syntax(_)) => return Err(BadHead::Syntax),
        Ok(Header::Positive(value)) => ItemHead::Uint(value),
        Ok(Header::Bytes(Some(len))) => ItemHead::Bytes(len as u64),
        Ok(Header::Bytes(None)) => ItemHead::ByteSegments,
        Ok(Header::Text(Some(len))) => ItemHead::Text(len as u64),
        Ok(Header::Text(None)) => ItemHead::TextSegments,
        Ok(Header::Array(Some(len))) => ItemHead::Array(len as u64),
        Ok(Header::Array(None)) => ItemHead::OpenArray,
        Ok(Header::Map(Some(len))) => ItemHead::Map(len as u64),
        Ok(Header::Map(None)) => ItemHead::OpenMap,
        Ok(Header::Tag(tag)) => ItemHead::Tag(tag),
        Ok(Header::Break) => ItemHead::Break,
        Ok(Header::Negative(_) | Header::Float(_) | Header::Simple(_)) => ItemHead::Other,
    };
    Ok((item, decoder.offset()))
}

#[test]
fn every_first_byte_with_every_length() {
    for first in 0..=u8::MAX {
        let bytes = [first, 0x80, 2, 3, 4, 5, 6, 7, 8, 9];
        for len in 0..=bytes.len() {
            assert_eq!(
                ItemHead::decode(&bytes[..len]),
                reference(&bytes[..len]),
                "{first:#x} {len}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        prop_assert_eq!(ItemHead::decode(&bytes), reference(&bytes));
    }
}
