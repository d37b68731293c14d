//! Bytes of a tile by kind of contents, recorded or predicted.

use crate::model::CodeKind;
use crate::profile::PipelineName;
use crate::report::FullestTile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a tile by kind of contents, as far as both a prediction and a profile show them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TileParts {
    /// Data variables that are live at the peak, with variables of the run-time and of host
    /// exchange.
    pub variables: u64,
    /// Copies for the micro-batches that are in the pipeline.
    pub stash: u64,
    /// Accumulators, which sum gradients.
    pub accumulators: u64,
    /// Code of vertex types.
    pub vertex_code: u64,
    /// State of vertex instances.
    pub vertex_state: u64,
    /// Code of internal exchanges.
    pub exchange_code: u64,
    /// Control code.
    pub control_code: u64,
    /// Code of exchanges with the host.
    pub host_exchange_code: u64,
    /// Code of exchanges between IPUs.
    pub global_exchange_code: u64,
    /// Gaps between variables.
    pub gaps: u64,
}

/// Categories of code that belong to no operation, and that grow in a compilation for several IPUs.
pub(in crate::report) const HOST_EXCHANGE: &str = "hostExchangeCode";
pub(in crate::report) const GLOBAL_EXCHANGE: &str = "globalExchangeCode";

impl TileParts {
    /// Names of the parts, in the order of [`TileParts::bytes`].
    pub const NAMES: [&'static str; 10] = [
        "variables",
        "stash",
        "accumulators",
        "vertex code",
        "vertex state",
        "exchange code",
        "control code",
        "host exchange code",
        "global exchange code",
        "gaps",
    ];

    /// Returns the bytes of each part, in the order of [`TileParts::NAMES`].
    pub fn bytes(&self) -> [u64; 10] {
        [
            self.variables,
            self.stash,
            self.accumulators,
            self.vertex_code,
            self.vertex_state,
            self.exchange_code,
            self.control_code,
            self.host_exchange_code,
            self.global_exchange_code,
            self.gaps,
        ]
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        sum(&self.bytes())
    }

    /// Adds the bytes of a lowered variable with this category. Only `name` distinguishes stash and
    /// accumulators from other variables.
    pub(super) fn add(&mut self, category: &str, name: Option<PipelineName>, bytes: u64) {
        let part = match (CodeKind::of_category(category), category, name) {
            (Some(CodeKind::VertexCode), ..) => &mut self.vertex_code,
            (Some(CodeKind::VertexState), ..) => &mut self.vertex_state,
            (Some(CodeKind::ExchangeCode), ..) => &mut self.exchange_code,
            (Some(CodeKind::ControlCode), ..) => &mut self.control_code,
            (None, HOST_EXCHANGE, _) => &mut self.host_exchange_code,
            (None, GLOBAL_EXCHANGE, _) => &mut self.global_exchange_code,
            (None, _, Some(PipelineName::Stashed)) => &mut self.stash,
            (None, _, Some(PipelineName::Accumulator)) => &mut self.accumulators,
            (None, ..) => &mut self.variables,
        };
        *part = part.saturating_add(bytes);
    }

    /// Returns the predicted parts of the fullest tile of a stage.
    pub(super) fn predicted(tile: &FullestTile) -> Self {
        let parts = &tile.parts;
        let of_overhead = tile.overhead_code.unwrap_or_default();
        let overhead = parts.overhead.saturating_sub(of_overhead.total());
        let of_pipeline = sum(&[parts.waiting, parts.passing, parts.state]);
        Self {
            variables: sum(&[parts.variables, of_pipeline, overhead]),
            stash: parts.stash,
            accumulators: parts.accumulators,
            vertex_code: sum(&[parts.vertex_code, of_overhead.vertex_code]),
            vertex_state: sum(&[parts.vertex_state, of_overhead.vertex_state]),
            exchange_code: sum(&[parts.exchange_code, of_overhead.exchange_code]),
            control_code: sum(&[parts.control_code, of_overhead.control_code]),
            host_exchange_code: of_overhead.host_exchange_code,
            global_exchange_code: of_overhead.global_exchange_code,
            gaps: parts.gaps,
        }
    }

    /// Returns the parts with the stash, the accumulators, or both among the variables, unless they
    /// are distinguished from them.
    pub(super) fn with_named(mut self, has_stash: bool, has_accumulators: bool) -> Self {
        if !has_stash {
            self.variables = sum(&[self.variables, std::mem::take(&mut self.stash)]);
        }
        if !has_accumulators {
            self.variables = sum(&[self.variables, std::mem::take(&mut self.accumulators)]);
        }
        self
    }
}

/// Adds bytes; the sum of a damaged report that overflows is `u64::MAX`.
fn sum(bytes: &[u64]) -> u64 {
    bytes.iter().copied().fold(0, u64::saturating_add)
}
