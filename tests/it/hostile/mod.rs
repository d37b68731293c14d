//! Files of processes that died, of machines that vanished, and of strangers. Whatever they
//! contain, the tool gives the right answer, or an error that names the place. It never panics,
//! hangs, takes unbounded memory, gives a wrong number, or changes an input. Every run has 512 MB
//! of address space.
//!
//! - unusual: `unusual`, `ranges`, `cli::input_files`, `numbers::generated`
//! - damaged: `damaged`, `rows`, `compiled`, `cycle_tables`, `debug_files`, `earlier_reports`,
//!   `numbers::mutated`; `src/debug_info/tests` and `src/saved/tests` have every place of their files
//! - contradictory: `doubts`, `verdicts`, `witnesses`
//! - hostile: `harmful`, `names`, `saved_files`, `schemas`; `src/escape.rs`
//! - faults of the machine, and signals: `faults`
//!
//! The fuzzers of `fuzz/` found nothing yet that is not among these; what they
//! find becomes a case here.
#![cfg(target_os = "linux")]

mod cases;
mod compiled;
mod cycle_tables;
mod damaged;
mod debug_files;
mod doubts;
mod earlier_reports;
mod faults;
mod harmful;
mod names;
mod ranges;
mod rows;
mod saved_files;
mod schemas;
mod unusual;
mod verdicts;
mod witnesses;
