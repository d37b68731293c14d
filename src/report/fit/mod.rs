//! Whether a compilation fits, IPU by IPU, and how far it is from the prediction (docs/model.md, "A
//! compiled pipeline").
//!
//! `build` makes the facts from a recorded profile, and `against` compares them with the report of
//! an earlier run that predicted the stages. Every output form shows what `tables` and `sentences`
//! make of them.

mod against;
mod build;
mod facts;
pub(super) mod sentences;
pub(super) mod tables;
#[cfg(test)]
mod tests;

pub use against::AgainstError;
pub use build::FitInputs;
pub use facts::{
    Against, CutElsewhere, Fit, IpuFit, MatchedBy, NamedBytes, RecordedTileFacts, StageAgainst,
    TileParts,
};
pub(super) use facts::{GLOBAL_EXCHANGE, HOST_EXCHANGE};
