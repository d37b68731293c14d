//! The request of a run, from its options.

use super::Options;
use crate::analysis::Request;
use crate::report::Detail;

impl Options {
    /// Returns the request of these options, which does not depend on the model. What it means for
    /// the model, `analysis/request.rs` resolves.
    pub(super) fn request(&self) -> Request {
        let rules = self.limits.memory_model;
        Request {
            rules,
            layers: self.layers.options(rules),
            // A template for module names is written for the layers of the regex.
            keeps_layers: self.modules.module.is_some(),
            placement: self.layers.placement(),
            memory_per_tile: self.limits.mem_per_tile.clone().unwrap_or_default(),
            reserve: self.limits.reserve,
            ipus: self.limits.num_ipus,
            solver: self.search.solver,
            pipeline: self.pipeline.options(self.time.replicas),
            step: self.time.options(),
            at_micro_batch: self.time.at_micro_batch,
            goal: self.search.objective,
            constraints: self.search.constraints(),
            judged: self.results.judged().cloned(),
            split: self.wants_split(),
            sweep: self.results.sweep,
            plan: self.results.plan,
            moves: self.results.explain,
            what_if: self.tries_splits(),
            detail: self.detail(),
            arguments: self.arguments.clone(),
        }
    }

    /// Returns the detail that the requested results need.
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
