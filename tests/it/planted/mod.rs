//! The full memory model against recorded and planted bytes: on every fixture, on generated models
//! of every framework, and on the real sample if it is available.

mod attributed;
mod compiled;
mod fewest_ipus;
mod growth;
mod layer_cycles;
mod modules;
mod once;
mod passes;
mod pipelines;
mod places;
mod subject;
mod updates;
mod whole;
