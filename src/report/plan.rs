//! The best split for each number of IPUs, and whole configurations: the number of IPUs, the
//! pipeline, and the split.

use super::{BestSplit, Inputs};
use crate::memory::Pipeline;
use crate::search::{Claim, SearchResult};
use serde::{Deserialize, Serialize};

/// The configurations that fit (`--plan`): the number of IPUs, the pipeline and the split of each.
/// No other configuration is better than one of them in IPUs, time and memory at once, but some
/// that differ little from one of them are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanFacts {
    /// Number of available IPUs, over all replicas.
    pub max_ipus: u32,
    /// The numbers of IPUs that the search tried, ascending.
    pub ipus_tried: Vec<u32>,
    /// The pipelines that the search tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// At most 8 configurations that fit; empty if nothing fits. The answer of the run comes first,
    /// then the others, the fastest first (without cycles, those on the fewest IPUs); those with an
    /// unknown part of their time come last.
    pub rows: Vec<BestSplit>,
}

impl PlanFacts {
    /// Returns the recommended configuration, the answer of the run; `None` if nothing fits.
    pub fn recommended(&self) -> Option<&BestSplit> {
        self.rows.first()
    }
}

/// The answer for each number of IPUs (`--sweep`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// Whether each row of the sweep is the best split of several pipelines. Otherwise, all rows
    /// are splits of one pipeline.
    pub compares_pipelines: bool,
    /// The answer for each number of IPUs, in ascending order of this number.
    pub rows: Vec<BestSplit>,
}

impl Inputs<'_> {
    /// Returns the answer for each number of IPUs; `None` unless `--sweep` was given.
    pub(super) fn sweep(&self, search: &SearchResult<'_>) -> Option<Sweep> {
        let request = search.costs.request();
        request.options.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            compares_pipelines: search.open_pipelines > 1,
            rows: self.best_splits(&search.claims.sweep),
        })
    }

    /// Returns the configurations that fit; `None` unless `--plan` was given.
    pub(super) fn plan(&self, search: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = search.claims.plan.as_ref()?;
        Some(PlanFacts {
            max_ipus: search.all_ipus() as u32,
            ipus_tried: front.ipus.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: self.best_splits(&front.rows),
        })
    }

    fn best_splits(&self, claims: &[Claim<'_>]) -> Vec<BestSplit> {
        claims.iter().map(|claim| self.best_split(claim)).collect()
    }
}
