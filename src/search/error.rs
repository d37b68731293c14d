//! Why a search has no result.

use crate::model::TooManyPlaces;
use crate::solve::SolveError;
use thiserror::Error;

/// The error of a search that can give no answer.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The layers share variables in more distinct combinations than in any real model.
    #[error(transparent)]
    TooManyPlaces(#[from] TooManyPlaces),
    /// The request contradicts itself, or two ways of computing a number disagree.
    #[error(transparent)]
    Solve(#[from] SolveError),
}
