//! PopLiner.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod debug_info;
pub mod memory;
pub mod model;
pub mod profile;
pub mod solve;
