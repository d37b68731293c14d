//! PopLiner.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod cli;
pub mod debug_info;
pub mod memory;
pub mod messages;
pub mod model;
pub mod profile;
pub mod report;
pub mod run;
pub mod saved;
pub mod solve;
