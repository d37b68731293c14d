//! Numbers of up to 128 bits as decimal text, which every reader of JSON keeps exactly.

use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(de::Error::custom)
}
