//! PopLiner finds pipeline split points in the profiles that Poplar writes.
//!
//! Data flows in one direction, and each module uses only modules before it in this list:
//!
//! ```text
//! profile.pop ─ profile ────┐
//!                           ├─ witnesses ─ model ─ memory ─ solve ─ search ─ report ─ standard output
//! debug.cbor ── debug_info ─┘                │        time
//!                                          saved ─ a file that loads in a fraction of the time
//! ```
//!
//! * [`profile`] reads `profile.pop` (SQLite, read-only) into plain data: programs, compute sets,
//!   exchanges, liveness steps and classes, and every lowered variable.
//! * [`debug_info`] reads `debug.cbor` as a stream: contexts, their chains of parents, and their
//!   names.
//! * [`witnesses`] checks both files: it compares data that the files state twice, and computes how
//!   many bytes of memory depend on missing data.
//! * [`model`] joins both files: it walks the program tree, groups programs into operations, gives
//!   names to the operations, and finds the operations that use each variable. A
//!   [`Layering`](model::Layering) assigns operations to layers.
//! * [`saved`] writes and reads a model in one file.
//! * [`memory`] computes the bytes of any range of layers, tile by tile, including the bytes that a
//!   [`Pipeline`](memory::Pipeline) adds to a stage.
//! * [`time`] computes the cycles of a stage in each pass, and of one step of the whole pipeline.
//! * [`solve`] finds the best split into stages, by an integer program and by a dynamic program
//!   that must agree, for any [`Goal`](solve::Goal) and [`Constraint`](solve::Constraint)s. If no
//!   split fits, it returns a certificate, which proves that no split fits.
//! * [`search`] keeps the costs of all ranges of positions for one layering and each pipeline (a
//!   [`Space`](search::Space)), and lets the solver find [`Candidate`](search::Candidate)s: the
//!   best split in one pipeline on one number of IPUs. It computes the stages of the chosen split
//!   in full.
//! * [`report`] builds one [`Report`](report::Report) from all results, and writes it in the forms
//!   that people and programs read: JSON, tables, Markdown, a page for the browser, configuration,
//!   and a comparison with an earlier report. It also reports directly on a
//!   [`CompiledProfile`](profile::CompiledProfile) of any number of IPUs: whether the compilation
//!   [fits](report::Fit), how far its memory is from a prediction, and the reserve that would have
//!   been enough.
//! * [`analysis`] calls the modules above for a [`Request`](analysis::Request):
//!   [`Analysis`](analysis::Analysis) leads to a split, [`Compilation`](analysis::Compilation) to
//!   whether a compiled model fits. One function, `answer` in `analysis/answer.rs`, chooses the
//!   layers, the place of optimizer state, the pipeline and the split. Each statement of the report
//!   about other options, limits or numbers of IPUs is the answer of this function to a changed
//!   request (`analysis/claims.rs`).
//! * [`app`] is the command `popliner`: it turns options into a request, opens files, prints
//!   messages and sets the exit code.
//! * Shared modules: `escape` escapes names for each output language; [`limits`] limits what
//!   input files may demand; [`message`] has the common parts of errors and warnings;
//!   `progress` shows the progress of long work; `atomic` writes files completely or not at all,
//!   also on Ctrl-C.
//!
//! # Where to change what
//!
//! | what | where in `src` |
//! |---|---|
//! | which layers and places of optimizer state are tried, in which order | `analysis/answer.rs` |
//! | a change with which a model fits, a row of a plan, or another statement about a changed request | `analysis/claims.rs`; the words that such a change adds to the command line, `analysis/changed.rs` |
//! | how `--num-ipus` and all other options become a request to the solver | `analysis/request.rs`; before it, `app/options/mod.rs` puts the options into a [`Request`](analysis::Request) |
//! | an objective; `--objective` is a [`Goal`](solve::Goal), the order in which objectives are compared | `solve/objectives.rs` |
//! | several profiles of one model in one search | `analysis/further.rs`; the costs of a stage in each profile, `search/space.rs` |
//! | a column of a table | `report/tables.rs` |
//! | a form of `--emit` | `report/emit/mod.rs` |
//! | a check of the profile | `witnesses/mod.rs` lists the file of each check |
//! | a setting of pipelines, such as `--recompute` | `memory/pipeline/settings.rs`; which pipelines are tried, `Level::pipelines` in `analysis/request.rs`; where each one reaches memory and times, `index_of` in `search/profile_tables.rs` |
//! | what a stage stashes, in how many copies, and what it transfers | `memory/pipeline/flows/stash_and_transfers.rs` |
//! | which modules are layers | `model/modules/which_are_layers.rs` |
//! | whether Out runs on the first IPU, beside In | `OutOn` in `model/placement/mod.rs`; the bytes that this adds to the first stage, `memory/pipeline/additions.rs` |
//!
//! CONTRIBUTING.md has more such tasks, with all places in the code that each task changes.
//!
//! # The main job in a few lines
//!
//! ```
//! use popliner::analysis::{Analysis, Request};
//! use popliner::search::IpuCount;
//! use popliner::solve::Goal;
//! use std::path::Path;
//!
//! let folder = Path::new("fixtures/popart-bert-inference");
//! let analysis = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"))?;
//! let request = Request {
//!     ipus: Some(IpuCount::Exactly(4)),
//!     goal: Some(Goal::Peak),
//!     ..Request::default()
//! };
//! let report = analysis.split(&request)?;
//! let names: Vec<_> = report.layers.iter().flat_map(|layer| &layer.name).collect();
//! assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7", "Out"]);
//!
//! let split = report.split.expect("a split was asked for");
//! assert!(split.fits);
//! // Position 0 is In (what runs before the layers), position 9 is Out (what runs after them).
//! let stages: Vec<_> = split.stages.iter().map(|stage| stage.positions.clone()).collect();
//! assert_eq!(stages, [0..3, 3..6, 6..8, 8..10]);
//! let peaks: Vec<u64> = split.stages.iter().map(|stage| stage.fullest_tile.bytes).collect();
//! assert_eq!(peaks, [584_743, 544_566, 443_289, 349_376]);
//! # Ok::<(), anyhow::Error>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
pub mod app;
mod atomic;
pub mod debug_info;
mod escape;
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
