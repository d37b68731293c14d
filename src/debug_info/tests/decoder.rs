//! The heads of items, against ciborium's decoder.

use ciborium_ll::{Decoder, Error, Header};
use proptest::prelude::*;

use crate::debug_info::item::{BadItem, Item};

/// What ciborium reads there, in our terms.
fn reference(bytes: &[u8]) -> Result<(Item, usize), BadItem> {
    let mut decoder = Decoder::from(bytes);
    let item = match decoder.pull() {
        Err(Error::Io(_)) => return Err(BadItem::Cut),
        Err(Error::Syntax(_)) => return Err(BadItem::Syntax),
        Ok(Header::Positive(value)) => Item::Uint(value),
        Ok(Header::Bytes(Some(len))) => Item::Bytes(len as u64),
        Ok(Header::Bytes(None)) => Item::ByteSegments,
        Ok(Header::Text(Some(len))) => Item::Text(len as u64),
        Ok(Header::Text(None)) => Item::TextSegments,
        Ok(Header::Array(Some(len))) => Item::Array(len as u64),
        Ok(Header::Array(None)) => Item::OpenArray,
        Ok(Header::Map(Some(len))) => Item::Map(len as u64),
        Ok(Header::Map(None)) => Item::OpenMap,
        Ok(Header::Tag(tag)) => Item::Tag(tag),
        Ok(Header::Break) => Item::Break,
        Ok(Header::Negative(_) | Header::Float(_) | Header::Simple(_)) => Item::Other,
    };
    Ok((item, decoder.offset()))
}

#[test]
fn every_first_byte_with_every_length() {
    for first in 0..=u8::MAX {
        let bytes = [first, 0x80, 2, 3, 4, 5, 6, 7, 8, 9];
        for len in 0..=bytes.len() {
            assert_eq!(
                Item::decode(&bytes[..len]),
                reference(&bytes[..len]),
                "{first:#x} {len}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        prop_assert_eq!(Item::decode(&bytes), reference(&bytes));
    }
}
