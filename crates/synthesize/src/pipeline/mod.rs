//! The true memory of a pipelined compilation of a planted model.
//!
//! Micro-batches walk through the stages as the schedule has them, each IPU
//! running the steps of the one-IPU compilation. The copies of each tensor that
//! are alive on each IPU at each of these steps are followed over a period of the
//! steady state, and summed tile by tile:
//! * what is made in a stage lives until its last use there, what another IPU
//!   needs until it is copied, between two times of the schedule; what comes from
//!   another IPU lives from that copy on. Each IPU on the way holds it;
//! * what a later run of the same IPU needs is kept. Where more than one
//!   micro-batch is on its way, a ring keeps it, allocated for good, of as many
//!   copies as the walk counts; what takes it out works on a copy of its own;
//! * what runs again makes its tensors again;
//! * variables of single operations, and gradients of weights until the update,
//!   are live at the same steps as in the one-IPU compilation;
//! * steps before the first and after the last micro-batch run once, without
//!   tensors under way.
//! * state of the optimizer that is elsewhere is not there in the passes. After them it
//!   comes for one update after the other, and goes again.
//!
//! No formula says how many copies there are.

mod axis;
mod compilation;
mod copies;
mod execution;
mod form;
mod from_plan;
mod graph;
mod ipu;
mod keep;
mod model;
mod options;
mod profile;
mod programs;
mod route;
mod step;
mod sum;
mod updates;
mod variables;
mod walk;

pub use form::{LoweredVariables, PlantedTruth, ProfileForm};
pub use model::{PipelineModel, PipelineTruth, StageTruth, TileContent};
pub use options::{Elsewhere, PipelineOptions, Recompute, Schedule};
pub use step::StepForm;
