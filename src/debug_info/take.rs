//! Defines receivers of CBOR values. A receiver has one method for each type of value, and ignores
//! values of types that it does not expect.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

/// Receives one CBOR value, with a method for each type of value. By default, a method calls
/// [`other`](Self::other), which ignores the value. A tag before the value is ignored.
pub trait Take: Sized {
    /// Receives a CBOR integer that is at least 0.
    fn number(self, _: u64) {
        self.other();
    }

    /// Receives a CBOR text string.
    fn text(self, _: &str) {
        self.other();
    }

    /// Receives a CBOR array. An implementation must read the array to its end, since the decoder
    /// does not skip the rest.
    fn list<'de, A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        self.other();
        Skipped.list(items)
    }

    /// Receives a CBOR map. An implementation must read the map to its end, since the decoder does
    /// not skip the rest.
    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.other();
        Skipped.map(entries)
    }

    /// Receives a negative integer, a float, a boolean or null. The value itself is not passed on,
    /// since no implementation of this trait needs it.
    fn none(self) {
        self.other();
    }

    /// Receives a byte string, an integer of more than 64 bits, or a value of any type for which an
    /// implementation of this trait defines no method. The value itself is not passed on.
    fn other(self) {}
}

/// Defines methods of a serde visitor, one for each type of value that is listed. Each method
/// ignores the value and calls the method `$take` of the receiver.
macro_rules! receives {
    ($take:ident: $($visit:ident($value:ty)),*) => {
        $(fn $visit<E>(self, _: $value) -> Result<(), E> {
            self.0.$take();
            Ok(())
        })*
    };
}

/// A serde seed that decodes the next CBOR value, whatever its type, and passes it to the receiver
/// `.0`.
pub struct To<T>(pub T);

impl<'de, T: Take> DeserializeSeed<'de> for To<T> {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Take> Visitor<'de> for To<T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("any value")
    }

    #[inline]
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.number(value);
        Ok(())
    }

    #[inline]
    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.text(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        self.0.list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        self.0.map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (IgnoredAny, value) = tagged.variant()?;
        value.newtype_variant_seed(self)
    }

    receives! { other: visit_bytes(&[u8]), visit_u128(u128) }
    receives! { none: visit_i64(i64), visit_i128(i128), visit_f64(f64), visit_bool(bool) }

    fn visit_none<E>(self) -> Result<(), E> {
        self.0.none();
        Ok(())
    }
}

/// Reads the next key of a CBOR map. Returns `None` at the end of the map, and otherwise what
/// `meaning` returns for the key if it is a text, or for `None` if it is not.
#[inline]
pub fn next_key<'de, A: MapAccess<'de>, K>(
    entries: &mut A,
    meaning: impl FnMut(Option<&str>) -> Option<K>,
) -> Result<Option<Option<K>>, A::Error> {
    let mut key = None;
    let is_open = entries.size_hint().is_none();
    let seed = MapKey {
        key: &mut key,
        meaning,
        is_open,
    };
    Ok(entries.next_key_seed(seed)?.map(|()| key))
}

/// A serde seed that reads one key of a CBOR map, and stores in `key` what `meaning` returns for it.
struct MapKey<'a, K, F> {
    key: &'a mut Option<K>,
    meaning: F,
    /// Whether the CBOR map has an end marker instead of a length.
    is_open: bool,
}

impl<'de, K, F: FnMut(Option<&str>) -> Option<K>> DeserializeSeed<'de> for MapKey<'_, K, F> {
    type Value = ();

    /// Reads the key of a map entry. In a map with a length, a key must be a text (or bytes) of at
    /// most 4,096 bytes, as in all known files. Accepting keys of any kind would take a quarter
    /// longer.
    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.is_open {
            deserializer.deserialize_any(To(self))
        } else {
            deserializer.deserialize_identifier(To(self))
        }
    }
}

impl<K, F: FnMut(Option<&str>) -> Option<K>> Take for MapKey<'_, K, F> {
    #[inline]
    fn text(mut self, text: &str) {
        *self.key = (self.meaning)(Some(text));
    }

    fn other(mut self) {
        *self.key = (self.meaning)(None);
    }
}

/// Receives a CBOR value that is not needed, and ignores everything that it contains.
pub struct Skipped;

impl Take for Skipped {
    fn list<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(To(Skipped))?.is_some() {}
        Ok(())
    }

    fn map<'de, A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while next_key(&mut entries, |_| None::<()>)?.is_some() {
            entries.next_value_seed(To(Skipped))?;
        }
        Ok(())
    }
}
