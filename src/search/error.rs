//! Why a search has no result.

use crate::model::TooManyPlaces;
use crate::solve::SolveError;
use thiserror::Error;

/// Reason why a search has no result.
#[derive(Debug, Error)]
pub enum SearchError {
    /// More ranges of layers than any real model has.
    #[error(transparent)]
    TooManyPlaces(#[from] TooManyPlaces),
    /// The request contradicts itself, or two ways of computing a number disagree.
    #[error(transparent)]
    Solve(#[from] SolveError),
}
