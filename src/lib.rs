//! PopLiner: from the files that Poplar writes to pipeline split points.
//!
//! Data flows one way, and each room knows only those before it:
//!
//! ```text
//! profile.pop ─ profile ────┐
//!                           ├─ model ─ memory ─ solve ─ search ─ report ─ standard output
//! debug.cbor ── debug_info ─┘    │         time
//!                              saved ─ a file that loads in a fraction of the time
//! ```
//!
//! * [`profile`] reads `profile.pop` (SQLite, strictly read-only) into plain
//!   data: programs, compute sets, exchanges, liveness steps and classes, and
//!   every lowered variable.
//! * [`debug_info`] reads `debug.cbor` as a stream: contexts, their chains and
//!   names.
//! * [`model`] joins both: it walks the program, sorts programs into
//!   operations, names them, and finds which of them use each variable. A
//!   [`Layering`](model::Layering) says which layer each operation is in.
//! * [`memory`] computes the bytes of any range of layers, tile by tile, with
//!   what the [`Pipeline`](memory::Pipeline) adds that they are stages of.
//! * [`solve`] finds the best split into stages, by an integer program and by
//!   a dynamic program that must agree, for any [`Goal`](solve::Goal) and
//!   [`Constraint`](solve::Constraint)s; it says why nothing fits, with a certificate,
//!   and writes its integer program out for other solvers.
//! * [`time`] says what a stage takes in each pass, and what a step of the pipeline takes.
//! * [`search`] computes the costs of ranges, asks the solver, and checks what it found: of one
//!   pipeline, of others that may fit where it does not, and of all configurations (`--plan`).
//! * [`report`] turns what was found into one [`Report`](report::Report), and
//!   that into the forms people and programs read: JSON, tables, Markdown, a
//!   page for the browser, configuration, and what changed since an earlier
//!   one. A [`CompiledProfile`](profile::CompiledProfile) of any number of IPUs
//!   goes there directly: whether it [fits](report::Fit), how far it is from
//!   the prediction, and the reserve that the next prediction needs.
//! * [`analysis`] goes this way in a few calls: [`Analysis`](analysis::Analysis) to a
//!   split, [`Compilation`](analysis::Compilation) to whether what was compiled fits.
//! * [`saved`] keeps a model in a file of its own.
//! * [`app`] is the command around all that: options, files, exit codes.
//! * Beside these: [`witnesses`] compares what the files say twice, and says how many bytes
//!   depend on what they lack,
//!   `escape` writes names from files so that they stay names,
//!   [`limits`] has every bound on what a file may ask for,
//!   [`message`] what all errors and warnings have in common, `progress` counts how
//!   far long work is, `atomic` writes files whole, and `interrupt` removes on Ctrl-C
//!   what is half written.
//!
//! # The main job in a few lines
//!
//! ```
//! use popliner::analysis::Analysis;
//! use popliner::model::{LayerOptions, PlacementOptions, Rules};
//! use popliner::search::{IpuCount, SearchRequest};
//! use std::path::Path;
//!
//! let folder = Path::new("fixtures/popart-bert-inference");
//! let analysis = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"))?;
//! let (regexes, places) = (LayerOptions::default(), PlacementOptions::default());
//! let layers = analysis.layers(Rules::Full, &regexes, &places)?;
//! assert_eq!(layers.layering.names[1..], ["0", "1", "2", "3", "4", "5", "6", "7"]);
//!
//! let report = layers.split(SearchRequest {
//!     ipus: IpuCount::Exactly(4),
//!     limits: vec![analysis.model.target.bytes_per_tile],
//!     ..SearchRequest::default()
//! })?;
//! let split = report.split.expect("a split was asked for");
//! assert!(split.fits);
//! // Position 0 is In, what runs before the layers, and position 9 Out.
//! let stages: Vec<_> = split.stages.iter().map(|stage| stage.positions.clone()).collect();
//! assert_eq!(stages, [0..3, 3..6, 6..8, 8..10]);
//! let peaks: Vec<u64> = split.stages.iter().map(|stage| stage.fullest_tile.bytes).collect();
//! assert_eq!(peaks, [584_911, 544_662, 443_433, 349_544]);
//! # Ok::<(), anyhow::Error>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
pub mod app;
mod atomic;
pub mod debug_info;
mod escape;
mod interrupt;
pub mod limits;
pub mod memory;
pub mod message;
pub mod model;
mod parallel;
pub mod profile;
mod progress;
pub mod report;
pub mod saved;
pub mod search;
pub mod solve;
pub mod time;
pub mod witnesses;
mod wording;
