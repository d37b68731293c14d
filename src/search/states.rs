//! Where the state of the optimizer is: the first place where the model fits; and for which
//! micro-batch.

use super::{Estimate, SearchError, SearchRequest, SearchResult, search_with};
use crate::memory::MemoryModel;
use crate::model::Placement;
use crate::progress::Progress;

/// Answers `request` for the micro-batch that it asks for, with the state of the optimizer in
/// the first of the places that it leaves open where the split fits, else in the first of
/// all. With the model that was found so.
///
/// # Errors
/// As [`search`](super::search()).
pub(crate) fn search_states<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
    let Some(scale) = request.scale() else {
        return in_states(memory, placement, request, progress);
    };
    let estimated = memory.at_micro_batch(scale);
    let (estimated, mut found) = in_states(&estimated, placement, request.at(scale), progress)?;
    let recorded = memory.in_pipeline(estimated.pipeline())?;
    found.estimate = Some(Estimate::new(scale, &recorded, placement, &found)?);
    Ok((estimated, found))
}

/// The same for the micro-batch of `memory`.
fn in_states<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
    let states = request.pipeline.states();
    let replicas = request.pipeline.replicas;
    let first = search_with(memory, placement, request.clone(), progress)?;
    // A plan has all places beside each other.
    if states.len() < 2 || first.fits() || !request.split || request.plan {
        return Ok((memory.clone(), first));
    }
    for &state in &states[1..] {
        let other = memory.in_pipeline(memory.pipeline().with_state(state, replicas))?;
        let found = search_with(&other, placement, request.clone(), progress)?;
        if found.fits() {
            return Ok((other, found));
        }
    }
    Ok((memory.clone(), first))
}
