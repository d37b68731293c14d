//! The full memory model against what the compiler recorded and the generator
//! planted: on every fixture, on generated models of every framework, and on the
//! real sample where it is there.

#[path = "../models/mod.rs"]
mod models;
#[path = "../support/mod.rs"]
mod support;

mod attributed;
mod cycles;
mod growth;
mod once;
mod ranges;
mod subject;
mod whole;
