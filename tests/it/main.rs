//! All integration tests in one program, so that there is one to link:
//! `cargo test --test it` runs them, `cargo test --test it hostile::` those of
//! one subject.
//!
//! - `cli`: the command as users meet it, and every option byte for byte
//! - `documents`: README and docs, the example for CI, the list that the floor reads
//! - `numbers`: what is printed, against a second analyser (`oracle`)
//! - `planted`: the full memory model, against what was planted and recorded
//! - `search`: splits, against all of them tried one by one and another solver
//! - `report`, `page`, `saved`: the forms of a report, and saved files
//! - `hostile`: files that are unusual, damaged or made to do harm
//! - `generator`: the synthetic profiles themselves, against plain SQL

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
