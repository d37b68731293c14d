//! The order of passes in a pipeline.

use super::StageTimes;
use crate::memory::Schedule;

/// The order of passes in a pipeline, and the interval at which micro-batches enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last stage runs forward and backward in one slot; inference only runs forward.
    Together {
        /// Number of slots between two micro-batches that enter.
        every: u64,
    },
    /// The last stage runs forward and backward in two slots.
    Apart {
        /// Number of slots between two micro-batches that enter.
        every: u64,
    },
    /// Only one stage works at a time.
    OneAfterTheOther,
    /// All stages work at the same time, only forward.
    Forward,
    /// Only one stage works at a time, only forward.
    ForwardOneAfterTheOther,
}

impl Order {
    pub(super) fn is_one_after_the_other(self) -> bool {
        matches!(
            self,
            Order::OneAfterTheOther | Order::ForwardOneAfterTheOther
        )
    }

    fn of(self, is_training: bool) -> Self {
        match self {
            _ if is_training => self,
            Order::OneAfterTheOther => Order::ForwardOneAfterTheOther,
            _ => Order::Forward,
        }
    }
}

impl StageTimes {
    /// Order of passes, by the schedule of the pipeline.
    pub(crate) fn order(&self) -> Order {
        match self.pipeline.schedule {
            Schedule::Popart => Order::Together { every: 1 },
            Schedule::TfGrouped => Order::Apart { every: 1 },
            Schedule::TfInterleaved => Order::Apart { every: 2 },
            Schedule::None if !self.is_training => Order::Together { every: 1 },
            Schedule::None | Schedule::Sequential => Order::OneAfterTheOther,
        }
        .of(self.is_training)
    }
}
