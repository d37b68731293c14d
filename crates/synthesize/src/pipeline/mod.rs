//! The true memory of a pipelined compilation of a planted model.
//!
//! Micro-batches walk through the stages as the schedule has them, each IPU
//! running the steps of the one-IPU compilation. The copies of each tensor that
//! one micro-batch of the steady state has on each IPU are followed, folded into a period, since
//! every micro-batch has them a period after the one before it, and summed tile by tile:
//! * a tensor lives in the stage that makes it until its last use there, or until it is copied
//!   to another IPU that needs it, between two times of the schedule; there it lives from that
//!   copy on. Each IPU on the way holds it;
//! * a tensor that a later run of the same IPU needs is kept. Where more than one
//!   micro-batch is on its way, a ring keeps it, allocated for good, of as many
//!   copies as the walk counts; a run that takes it out works on a copy of its own;
//! * operations that run again make their tensors again;
//! * variables of single operations, and gradients of weights until the update,
//!   are live at the same steps as in the one-IPU compilation;
//! * steps before the first and after the last micro-batch run once, without
//!   tensors under way;
//! * state of the optimizer that is elsewhere is not there in the passes. After them it
//!   comes for one update after the other, and goes again.
//!
//! No formula says how many copies there are.

mod axis;
mod compilation;
mod copies;
mod graph;
mod ipu;
mod mixed;
mod model;
mod options;
mod profile;
mod programs;
mod route;
mod step;
mod updates;
mod variables;

pub use mixed::simulate_mixed;
pub use model::{PipelineModel, StageTruth};
pub use options::{Elsewhere, PipelineOptions, ProfileForm, Recompute, Schedule};
pub use step::StepForm;
