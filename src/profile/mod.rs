//! `profile.pop` as plain data.

pub mod encoding;
