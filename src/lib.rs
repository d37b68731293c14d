//! PopLiner: from the files that Poplar writes to pipeline split points.
//!
//! Data flows one way, and each room knows only those before it:
//!
//! ```text
//! profile.pop ─ profile ────┐
//!                           ├─ model ─ memory ─ solve ─ report ─ standard output
//! debug.cbor ── debug_info ─┘    │
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
//!   [`Layering`](model::Layering) says which layer each operation stands in.
//! * [`memory`] weighs layers: the bytes of any range of them, tile by tile.
//! * [`solve`] finds the best split into stages, by an integer program and by
//!   a dynamic program that must agree, for any [`Goal`](solve::Goal) and
//!   [`Constraint`](solve::Constraint)s; it says why nothing fits, with a certificate,
//!   and writes its integer program out for other solvers.
//! * [`report`] turns what was found into one [`Report`](report::Report), and
//!   that into the forms people and programs read: JSON, tables, Markdown, a
//!   page for the browser, configuration, and what changed since an earlier
//!   one.
//! * [`saved`] keeps a model in a file of its own.
//! * [`progress`] counts how far long work is; the rooms that read and weigh
//!   add to it and know nothing of who looks.
//! * [`atomic`] writes files whole, and [`interrupt`] removes on Ctrl-C what is half written.
//! * [`cli`], [`generate`], [`messages`] and [`run`] are the command around all
//!   that.
//!
//! # The main job in a few lines
//!
//! ```
//! use popliner::debug_info::DebugInfo;
//! use popliner::memory::MemoryModel;
//! use popliner::model::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX};
//! use popliner::model::{LayerOptions, LayerOrder, Layering, Model, Placement, PlacementOptions};
//! use popliner::profile::Profile;
//! use popliner::solve::{Problem, solve};
//! use regex::Regex;
//! use std::path::Path;
//!
//! let folder = Path::new("fixtures/popart-bert-inference");
//! let profile = Profile::read(&folder.join("profile.pop"))?;
//! let debug_info = DebugInfo::read(&folder.join("debug.cbor"))?;
//! let limit = profile.target.bytes_per_tile;
//! let model = Model::build(profile, &debug_info, false)?;
//!
//! let options = LayerOptions {
//!     layer_regex: Regex::new(DEFAULT_LAYER_REGEX)?,
//!     inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX)?,
//!     order: LayerOrder::Steps,
//! };
//! let layering = Layering::new(&model.operations, &options);
//! assert_eq!(layering.names[1..], ["0", "1", "2", "3", "4", "5", "6", "7"]);
//!
//! // Where everything counts; then ranges are weighed. Position 0 is In, what
//! // runs before the layers, and position 9 Out.
//! let placement = Placement::full(&model, &layering, &PlacementOptions::default())?;
//! let memory = MemoryModel::new(&model, &placement)?;
//! let costs = memory.range_costs(limit)?;
//! let cut_bytes = memory.between().cut_bytes();
//! let problem = Problem::new(&costs, &cut_bytes, 4, limit);
//! let solution = solve(&problem)?.expect("the fixture fits on four IPUs");
//! let stages = memory.stages(solution.plan.stages());
//! let peaks: Vec<u64> = stages.iter().map(|stage| stage.max_tile_bytes()).collect();
//! assert_eq!(peaks, [365_033, 565_195, 538_847, 584_516]);
//! assert_eq!(solution.plan.stages(), [0..2, 2..6, 6..8, 8..10]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod atomic;
pub mod cli;
pub mod debug_info;
pub mod generate;
pub mod interrupt;
pub mod limits;
pub mod memory;
pub mod messages;
pub mod model;
pub mod profile;
pub mod progress;
pub mod report;
pub mod run;
pub mod saved;
pub mod solve;
pub mod wording;
