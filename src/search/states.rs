//! Chooses the place of the optimizer state: the first one in which the model fits. Also estimates
//! other micro-batches.

use super::open_pipelines::search_open;
use super::{Estimate, SearchError, SearchRequest, SearchResult};
use crate::memory::MemoryModel;
use crate::model::Placement;
use crate::progress::Progress;

/// Answers `request` for the micro-batch that it asks for. The optimizer state is in the first of
/// the places that the request leaves open in which the split fits, or else in the first place.
/// Returns the model in that state too.
///
/// # Errors
/// As [`search_with`](super::search_with).
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
    let state = estimated.pipeline();
    let recorded_usual = memory.pipeline().with_state(state.state, state.replicas);
    let asked = found.costed.request.pipeline;
    let open = recorded_usual.open(asked, memory.is_training()).into_iter();
    let open = open.map(|pipeline| memory.in_pipeline(pipeline));
    let open = open.collect::<Result<Vec<_>, _>>()?;
    found.estimate = Some(Estimate::new(scale, &open, placement, &found)?);
    Ok((estimated, found))
}

/// Answers `request` for the micro-batch of `memory`.
fn in_states<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
    let states = request.pipeline.states();
    let replicas = request.pipeline.replicas;
    let first = search_open(memory, placement, request.clone(), progress)?;
    if states.len() < 2 || first.1.fits() || !request.split {
        return Ok(first);
    }
    for &state in &states[1..] {
        let other = memory.in_pipeline(memory.pipeline().with_state(state, replicas))?;
        let found = search_open(&other, placement, request.clone(), progress)?;
        if found.1.fits() {
            return Ok(found);
        }
    }
    Ok(first)
}
