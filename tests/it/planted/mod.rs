//! The full memory model against what the compiler recorded and the generator
//! planted: on every fixture, on generated models of every framework, and on the
//! real sample where it is there.

mod attributed;
mod compiled;
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
