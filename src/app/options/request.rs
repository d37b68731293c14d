//! Puts options into a [`Request`]: each option that changes a split or a report is read here once.
//!
//! The next step is `src/analysis/request.rs`: when the model is read, `Request::search` there
//! makes the request of the solver, `SearchRequest`.

use super::Options;
use crate::analysis::Request;
use crate::report::Detail;
use crate::search::{SearchOptions, Solver};

impl Options {
    /// Returns whether a report is written in which readers can try other splits. The greedy search
    /// evaluates only its own split, so with it the answer is `false`.
    pub fn tries_splits(&self) -> bool {
        (self.exports.export_html.is_some() || self.exports.export_json.is_some())
            && self.wants_split()
            && self.search.solver == Solver::Ilp
    }

    /// Returns the request that these options make. It needs no model: what depends on the model,
    /// such as the number of IPUs without `--num-ipus`, is chosen later.
    pub(crate) fn request(&self) -> Request {
        let rules = self.limits.memory_model;
        Request {
            options: SearchOptions {
                reserve: self.limits.reserve,
                solver: self.search.solver,
                pipeline: self.pipeline.options(self.time.replicas),
                step: self.time.options(),
                split: self.wants_split(),
                sweep: self.results.sweep,
                plan: self.results.plan,
                moves: self.results.explain,
                what_if: self.tries_splits(),
            },
            rules,
            layers: self.layers.options(rules),
            placement: self.layers.placement(),
            memory_per_tile: self.limits.mem_per_tile.clone().unwrap_or_default(),
            ipus: self.limits.num_ipus,
            goal: self.search.objective,
            constraints: self.search.constraints(),
            judged: self.results.judged().cloned(),
            detail: self.detail(),
            arguments: self.arguments.clone(),
        }
    }

    /// Returns how detailed the report must be for the requested results.
    fn detail(&self) -> Detail {
        if self.exports.export_html.is_some() || self.exports.export_json.is_some() {
            Detail::Page
        } else if self.wants_report() {
            Detail::Full
        } else {
            Detail::Split
        }
    }
}
