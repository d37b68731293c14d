//! All integration tests in one program, so that only one is linked: `cargo test --test it` runs
//! them all, `cargo test --test it hostile::` runs the tests of one subject.
//!
//! - `cli`: the command as users meet it, and every option byte for byte
//! - `documents`: README and docs, the example for CI, and the tables of the performance floor
//! - `numbers`: printed numbers, against a second analyser (`oracle`)
//! - `planted`: the full memory model, against planted and recorded bytes
//! - `search`: splits, against all splits tried one by one and another solver
//! - `report`, `page`, `saved`: the forms of a report, and saved files
//! - `hostile`: files that are unusual, damaged or made to do harm
//! - `generator`: the synthetic profiles themselves

/// Returns the value, or ends the test if there is none, since the test is skipped.
macro_rules! or_skip {
    ($found:expr) => {
        match $found {
            Some(found) => found,
            None => return,
        }
    };
}

mod cli;
mod documents;
mod generator;
mod hostile;
mod numbers;
mod oracle;
mod page;
mod planted;
mod report;
mod saved;
mod search;
mod support;
