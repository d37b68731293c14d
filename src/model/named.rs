//! Operations with their names and passes, before variables are examined.

use super::contexts::OperationContexts;
use super::operations::{self, UnnamedOperations};
use super::walk::Path;
use super::windows::StepIndex;
use super::{Label, ModelError, Operation, Recording, names, passes, recording};
use crate::debug_info::DebugInfo;
use crate::message::Warning;
use crate::profile::Profile;
use rustc_hash::FxHashSet;

/// The operations with their names. Later stages need nothing else of the contexts.
pub(super) struct Named {
    pub(super) found: UnnamedOperations,
    pub(super) steps: StepIndex,
    /// In the order of `found`.
    pub(super) operations: Vec<Operation>,
    /// The call paths whose contexts say which operations the outlined ones replace.
    pub(super) with_pairs: FxHashSet<Path>,
    /// The index of the first step of the backward pass; `None` for inference.
    pub(super) backward_start: Option<u32>,
    /// By label of the profile.
    pub(super) labels: Vec<Label>,
    pub(super) recording: Recording,
    /// Warning if the two witnesses of the backward pass disagree.
    pub(super) disagreement: Option<Warning>,
}

impl Named {
    pub(super) fn new(profile: &Profile, debug_info: &DebugInfo) -> Result<Self, ModelError> {
        let programs = &profile.programs;
        let found = operations::find(programs, OperationContexts::new(debug_info))?;
        let (mut operations, with_pairs) = names::name_all(&found, programs, debug_info)?;
        let steps = StepIndex::new(programs, &profile.steps);
        for (operation, window) in operations.iter_mut().zip(steps.windows(&found)) {
            operation.window = window;
        }
        let backward_start = passes::find(&mut operations);
        let labels = profile.variables.labels.iter();
        let labels: Vec<Label> = labels.map(|label| Label::new(label, debug_info)).collect();
        Ok(Self {
            recording: Recording::new(debug_info, &found, &operations, &labels),
            disagreement: recording::disagreement(debug_info, &found, &operations),
            found,
            steps,
            operations,
            with_pairs,
            backward_start,
            labels,
        })
    }
}
