//! How the passes of a pipeline follow each other.

use super::StageTimes;
use crate::memory::Schedule;

/// How the passes of a pipeline follow each other, and how often a micro-batch enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last stage runs forward and backward at once; inference runs forward alone.
    Together {
        /// Every how many slots a micro-batch enters.
        every: u64,
    },
    /// The last stage runs forward and backward in two slots.
    Apart {
        /// Every how many slots a micro-batch enters.
        every: u64,
    },
    /// No two stages work at the same time.
    OneAfterTheOther,
    /// Only forward, at the same time.
    Forward,
    /// Only forward, no two stages at the same time.
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
    /// How the passes of a pipeline of this number of stages follow each other.
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
