//! Defines a changed request: a copy of the user's request with some options changed, and the list
//! of the changes as the user would write them on the command line.

use super::{Request, judged::JudgedSplit};
use crate::{
    memory::{Pipeline, Recompute, Schedule, StatePlace},
    search::{IpuCount, Word},
    wording::join,
};

#[derive(Debug, Clone)]
pub struct Changed {
    pub request: Request,
    pub change: Vec<Word>,
}

impl Request {
    pub(super) fn changed(&self) -> Changed {
        Changed {
            request: self.clone(),
            change: Vec::new(),
        }
    }
}

impl Changed {
    fn set(mut self, option: &'static str, value: impl ToString) -> Self {
        self.change.push(Word::Set(option, value.to_string()));
        self
    }

    /// Sets the number of IPUs over all replicas. If `--mem-per-tile` has one amount for each IPU
    /// of a replica, removes the amounts of IPUs that a replica no longer has.
    pub fn with_ipus(mut self, ipus: usize) -> Self {
        self.request.ipus = Some(IpuCount::Exactly(ipus));
        let of_replica = ipus / self.request.options.replicas() as usize;
        let memories = &mut self.request.memory_per_tile;
        if memories.len() > of_replica {
            memories.truncate(of_replica.max(1));
            let list = join(&*memories, ",");
            self = self.set("--mem-per-tile", list);
        }
        self.set("--num-ipus", ipus)
    }

    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.request.memory_per_tile = vec![bytes];
        self.set("--mem-per-tile", bytes)
    }

    pub fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.request.options.pipeline.schedule = Some(schedule);
        self.set("--schedule", schedule)
    }

    pub fn with_recompute(mut self, recompute: Recompute) -> Self {
        self.request.options.pipeline.recompute = Some(recompute);
        self.set("--recompute", recompute)
    }

    pub fn with_state(mut self, state: StatePlace) -> Self {
        self.request.options.pipeline.state = Some(state);
        self.set("--optimizer-state", state)
    }

    pub fn with_replicas(mut self, replicas: usize) -> Self {
        self.request.options.pipeline.replicas = replicas as u64;
        self.set("--replicas", replicas)
    }

    pub fn without_given(mut self) -> Self {
        self.request.judged = None;
        self.change.push(Word::Without("--splits"));
        self.change.push(Word::Without("--layers-per-ipu"));
        self
    }

    /// Returns a request to evaluate a given split in `pipeline`. `counts` has the number of blocks
    /// (numbered layers, such as encoder layers) that the split has on each IPU.
    pub fn with_counts(self, counts: Vec<usize>, pipeline: Pipeline) -> Self {
        let mut changed = self
            .without_given()
            .set("--layers-per-ipu", join(&counts, ","));
        changed.request.judged = Some(JudgedSplit::LayersPerIpu(
            counts.into_iter().map(Some).collect(),
        ));
        changed.with_pipeline(pipeline)
    }

    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Self {
        if pipeline.is_on() {
            self = self.with_schedule(pipeline.schedule);
            self = self.with_recompute(pipeline.recompute);
        }
        if pipeline.state != StatePlace::OnChip || self.request.options.pipeline.state.is_some() {
            self = self.with_state(pipeline.state);
        }
        if pipeline.state.is_sharded() {
            self = self.with_replicas(pipeline.replicas as usize);
        }
        self
    }

    /// Removes the user's constraints, such as `--pin`, for whose index `is_dropped` returns
    /// `true`.
    pub fn without_constraints(mut self, is_dropped: impl Fn(usize) -> bool) -> Self {
        let all = std::mem::take(&mut self.request.constraints);
        for (index, constraint) in all.into_iter().enumerate() {
            if is_dropped(index) {
                self.change.push(Word::Drop(constraint.to_string()));
            } else {
                self.request.constraints.push(constraint);
            }
        }
        self
    }

    /// Allows different stages to run the layers that share one of `weights`, as `--untie` does.
    pub fn with_untied(mut self, weights: impl Iterator<Item = String>) -> Self {
        for weight in weights {
            self.change.push(Word::Add("--untie", weight.clone()));
            self.request.placement.untie.push(weight);
        }
        self
    }
}
