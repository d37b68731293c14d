//! Where the state of the optimizer is: the first place where the model fits; and for which
//! micro-batch.

use super::chosen::{choose, is_chosen};
use super::{Estimate, Outcome, SearchError, SearchRequest, SearchResult, search_with};
use crate::memory::MemoryModel;
use crate::model::Placement;
use crate::progress::{Progress, Unit};

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
    let (memory, mut found) = first_fit(memory, placement, request, progress)?;
    if !found.costed.request.split || !may_be_chosen(&memory, &found) {
        return Ok((memory, found));
    }
    let _task = progress.begin("choosing what to recompute", Unit::Rows, 0);
    let chosen = choose(&memory, &mut found)?;
    Ok((chosen.unwrap_or(memory), found))
}

/// Is there a split that may fit where layers are chosen?
fn may_be_chosen(memory: &MemoryModel<'_>, found: &SearchResult) -> bool {
    let is_best = matches!(found.outcome, Outcome::Best(_));
    is_chosen(memory) && is_best && !found.stages.is_empty()
}

fn first_fit<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
    let states = request.pipeline.states();
    let replicas = request.pipeline.replicas;
    let first = search_with(memory, placement, request.clone(), progress)?;
    // A plan has all places beside each other.
    let fits = first.fits() || may_be_chosen(memory, &first);
    if states.len() < 2 || fits || !request.split || request.plan {
        return Ok((memory.clone(), first));
    }
    for &state in &states[1..] {
        let other = memory.in_pipeline(memory.pipeline().with_state(state, replicas))?;
        let found = search_with(&other, placement, request.clone(), progress)?;
        if found.fits() || may_be_chosen(&other, &found) {
            return Ok((other, found));
        }
    }
    Ok((memory.clone(), first))
}
