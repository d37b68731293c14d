//! The bytes of a pipeline stage, broken down by contents such as variables, code and stash.

use serde::{Deserialize, Serialize};

/// Bytes of a stage on one tile or summed over tiles, broken down by what they hold, such as
/// variables and code. Fields that only a pipeline adds are left out of JSON if they are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parts {
    /// Bytes of live variables, at the step at which the stage takes the most bytes on the tile.
    pub variables: u64,
    /// Bytes of the code of vertex types.
    pub vertex_code: u64,
    /// Bytes of the state of vertex instances.
    pub vertex_state: u64,
    /// Bytes of the code of internal exchanges.
    pub exchange_code: u64,
    /// Bytes of control code.
    pub control_code: u64,
    /// Bytes that every stage needs, whatever its layers: code and variables that belong to no
    /// layer. Variables count if they are live at the step at which the stage takes the most bytes
    /// on the tile. 0 with `--memory-model classic`, which leaves these bytes out, as the original
    /// tool does.
    pub overhead: u64,
    /// Fragmentation in bytes: the stage's share of the recorded bytes that no variable explains,
    /// such as gaps between variables. 0 with `--memory-model classic`.
    pub gaps: u64,
    /// Bytes of the stash: additional copies of tensors for the micro-batches that are in the
    /// pipeline.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stash: u64,
    /// Bytes of accumulators, in which a pipeline sums gradients over the micro-batches of a step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accumulators: u64,
    /// Bytes for optimizer state, if it is off the chip or sharded among replicas between updates:
    /// the share that a replica keeps on the chip at all times, if any. During the weight update,
    /// the loaded state, the gathered weights and the tensors that the update makes are added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state: u64,
    /// Bytes of transfer buffers, which hold tensors from or for another stage.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// Bytes of forwarded tensors, which go through the stage to another stage without being used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passing: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl Parts {
    /// Returns the bytes of each part of a stage's memory, such as the stash, with the name of the
    /// part in printed tables. The parts are in the order of these tables.
    fn fields(&mut self) -> [(&'static str, &mut u64); 12] {
        [
            ("variables", &mut self.variables),
            ("vertex code", &mut self.vertex_code),
            ("vertex state", &mut self.vertex_state),
            ("exchange code", &mut self.exchange_code),
            ("control code", &mut self.control_code),
            ("overhead", &mut self.overhead),
            ("fragmentation", &mut self.gaps),
            ("stash", &mut self.stash),
            ("accumulators", &mut self.accumulators),
            ("transfer buffers", &mut self.waiting),
            ("forwarded tensors", &mut self.passing),
            ("optimizer state", &mut self.state),
        ]
    }

    /// Returns each part of the memory of a stage, such as variables or the stash: the name of the
    /// part in printed tables, and its bytes.
    pub fn named(mut self) -> [(&'static str, u64); 12] {
        self.fields().map(|(name, bytes)| (name, *bytes))
    }

    /// Returns the sum in bytes of all parts of the memory of a stage, such as variables, code and
    /// stash.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the [`Parts`] of a stage that has only code. The argument has the bytes of each kind
    /// of code, in the order of [`CodeKind`](crate::profile::CodeKind).
    pub(in crate::memory) fn of_code(
        [vertex_code, vertex_state, exchange_code, control_code]: [u64; 4],
    ) -> Self {
        Self {
            vertex_code,
            vertex_state,
            exchange_code,
            control_code,
            ..Self::default()
        }
    }

    /// Adds the bytes of each part of `other`, such as variables or code, to the same part of
    /// `self`.
    pub fn add(&mut self, other: &Parts) {
        for ((_, bytes), (_, more)) in self.fields().into_iter().zip(other.named()) {
            *bytes += more;
        }
    }
}
