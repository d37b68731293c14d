//! The best split for each number of IPUs, and whole configurations: the number of IPUs, the
//! pipeline, and the split.

use super::best_split::BestSplit;
use super::build::Inputs;
use crate::memory::Pipeline;
use crate::search::{Candidate, IpuCount, SearchResult};
use serde::{Deserialize, Serialize};

/// The configurations that fit (`--plan`): the number of IPUs, the pipeline and the split of each.
/// No other configuration is better than one of them in IPUs, time and memory at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanFacts {
    /// Number of available IPUs, over all replicas.
    pub max_ipus: u32,
    /// The numbers of IPUs of a replica that the search tried, ascending.
    pub ipus_tried: Vec<u32>,
    /// The pipelines that the search tried.
    pub pipelines_tried: Vec<Pipeline>,
    /// The configurations that fit; empty if nothing fits. The recommended one comes first, and is
    /// the best split of `--solve` with the same options. Next come the others with the requested
    /// place of optimizer state, the fastest first, and then those with another place.
    pub rows: Vec<BestSplit>,
    /// Whether the first of `rows` is recommended. If nothing fits with the requested place of
    /// optimizer state, configurations with another place are not recommended.
    pub has_recommendation: bool,
}

impl PlanFacts {
    /// Returns the recommended configuration; `None` if there is none.
    pub fn recommended(&self) -> Option<&BestSplit> {
        self.rows.first().filter(|_| self.has_recommendation)
    }
}

/// The best split for each number of IPUs (`--sweep`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// Whether each row of the sweep is the best split of several pipelines. Otherwise, all rows
    /// are splits of one pipeline.
    pub compares_pipelines: bool,
    /// The best split for each number of IPUs, in ascending order of this number.
    pub rows: Vec<BestSplit>,
}

impl Inputs<'_> {
    /// Returns the best split for each number of IPUs; `None` unless `--sweep` was given.
    pub(super) fn sweep(&self, search: &SearchResult<'_>) -> Option<Sweep> {
        let request = search.costs.request();
        let rows = search.best_by_ipus().into_iter();
        let rows = rows.filter(|row| match request.ipus {
            IpuCount::Exactly(ipus) => row.ipus <= ipus,
            IpuCount::UpTo(_) => true,
        });
        request.options.sweep.then(|| Sweep {
            limit: request.highest_limit(),
            compares_pipelines: search.open_pipelines > 1,
            rows: rows
                .map(|row| self.best_split(search, row, request.options.step.replicas))
                .collect(),
        })
    }

    /// Returns the configurations that fit; `None` unless `--plan` was given.
    pub(super) fn plan(&self, search: &SearchResult<'_>) -> Option<PlanFacts> {
        let front = search.plan.as_ref()?;
        let row = |row: &Candidate| {
            let replicas = (front.ipus / row.ipus).max(1);
            self.best_split(search, row, replicas as u64)
        };
        Some(PlanFacts {
            max_ipus: front.ipus as u32,
            ipus_tried: front.numbers.iter().map(|&ipus| ipus as u32).collect(),
            pipelines_tried: front.pipelines.clone(),
            rows: front.configurations.iter().map(row).collect(),
            has_recommendation: front.has_answer,
        })
    }
}
