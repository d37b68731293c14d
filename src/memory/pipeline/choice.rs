//! The choice of a pipeline (docs/model.md, "Pipelines"), and alternatives that a user may try.

use super::{Accumulator, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::{Framework, Model};

/// Settings of a pipeline that the user requests; `None` leaves a setting to the framework of the
/// model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PipelineOptions {
    /// The order in which stages work on micro-batches.
    pub schedule: Option<Schedule>,
    /// The activations that are recomputed.
    pub recompute: Option<Recompute>,
    /// The element type of accumulators.
    pub accumulator: Accumulator,
    /// Where the state of the optimizer is kept between updates; on the chip by default.
    pub state: Option<StatePlace>,
    /// Should other places for the state be tried if it does not fit in the first?
    pub tries_states: bool,
    /// Number of replicas among which the state may be sharded.
    pub replicas: u64,
}

impl PipelineOptions {
    /// The pipeline for `model`. By default, inference has none, nor do models of plain Poplar and
    /// PopXL, whose pipelines are written by hand; training has the pipeline of its framework. By
    /// default it recomputes what published configurations recompute: whole stages, or layers where
    /// the model marks checkpoints.
    pub fn choose(self, model: &Model) -> Pipeline {
        let is_training = model.backward_start.is_some();
        let schedule = self.schedule.unwrap_or(match model.recording.framework {
            _ if !is_training => Schedule::None,
            Framework::Popart | Framework::Poptorch => Schedule::Popart,
            Framework::Tensorflow => Schedule::TfGrouped,
            Framework::Popxl | Framework::Poplar => Schedule::None,
        });
        let recompute = self.recompute.unwrap_or(match schedule {
            _ if !is_training => Recompute::None,
            Schedule::None => Recompute::None,
            _ if model.recording.has_checkpoints => Recompute::Layer,
            _ => Recompute::Stage,
        });
        Pipeline {
            schedule,
            recompute,
            accumulator: self.accumulator,
            state: StatePlace::OnChip,
            replicas: 0,
        }
        .with_state(self.state.unwrap_or_default(), self.replicas)
    }

    /// Places for the state of the optimizer in the order in which they are tried; the first that
    /// fits is taken. Places on the chip, which cost less time, come first.
    pub fn states(self) -> Vec<StatePlace> {
        if !self.tries_states {
            return vec![self.state.unwrap_or_default()];
        }
        let all = [
            StatePlace::OnChip,
            StatePlace::Sharded,
            StatePlace::OffChip,
            StatePlace::ShardedOffChip,
        ];
        let is_possible = |place: &StatePlace| self.replicas > 1 || !place.is_sharded();
        all.into_iter().filter(is_possible).collect()
    }
}

impl StatePlace {
    /// Does each replica keep only a share of the state?
    pub fn is_sharded(self) -> bool {
        matches!(self, StatePlace::Sharded | StatePlace::ShardedOffChip)
    }

    /// Is the state outside the IPUs between updates?
    pub fn is_off_chip(self) -> bool {
        matches!(self, StatePlace::OffChip | StatePlace::ShardedOffChip)
    }
}

impl Pipeline {
    /// The pipeline with the state of the optimizer in another place, sharded among `replicas`
    /// replicas if that place is sharded.
    pub fn with_state(self, state: StatePlace, replicas: u64) -> Self {
        Self {
            state,
            replicas: match state {
                StatePlace::OnChip => 0,
                _ => replicas.max(1),
            },
            ..self
        }
    }

    /// Pipelines to try when this one does not fit, from the one that costs the least time: other
    /// recomputation, then other schedules of the same framework.
    pub fn alternatives(self) -> Vec<Self> {
        let recompute = [Recompute::Layer, Recompute::Stage, Recompute::None];
        let recompute = recompute
            .into_iter()
            .filter(|&other| other != self.recompute);
        if self.schedule == Schedule::None {
            return Vec::new();
        }
        let schedules = self.other_schedules().iter();
        let of_recompute = recompute.map(|recompute| Self { recompute, ..self });
        let of_schedule = schedules.map(|&schedule| Self { schedule, ..self });
        of_recompute.chain(of_schedule).collect()
    }

    /// The other schedules of the framework that this schedule belongs to.
    fn other_schedules(self) -> &'static [Schedule] {
        match self.schedule {
            Schedule::None | Schedule::Sequential => &[],
            Schedule::Popart => &[Schedule::Sequential],
            Schedule::TfGrouped => &[Schedule::TfInterleaved, Schedule::Sequential],
            Schedule::TfInterleaved => &[Schedule::Sequential, Schedule::TfGrouped],
        }
    }

    /// Pipelines to choose the best of, for a model whose usual pipeline is `self`. Stages that run
    /// one after the other make no pipeline, so `Sequential` is included only if the user asked for
    /// it.
    pub fn open(self, asked: PipelineOptions, is_training: bool) -> Vec<Self> {
        let all = self.possible(asked, is_training).into_iter();
        let is_open = |other: &Self| {
            other.schedule == self.schedule || other.schedule != Schedule::Sequential
        };
        all.filter(is_open).collect()
    }

    /// All pipelines of the framework of a model whose usual pipeline is `self`, with the settings
    /// in `asked`. `self` comes first.
    pub fn possible(self, asked: PipelineOptions, is_training: bool) -> Vec<Self> {
        if self.schedule == Schedule::None || !is_training {
            return vec![self];
        }
        let other_schedules = match asked.schedule {
            Some(_) => &[],
            None => self.other_schedules(),
        };
        let recomputations: &[Recompute] = match asked.recompute {
            Some(_) => &[self.recompute],
            None => &[Recompute::None, Recompute::Stage, Recompute::Layer],
        };
        let schedules = [&[self.schedule], other_schedules].concat();
        let mut all = vec![self];
        for (schedule, &recompute) in schedules
            .into_iter()
            .flat_map(|schedule| recomputations.iter().map(move |other| (schedule, other)))
        {
            let pipeline = Self {
                schedule,
                recompute,
                ..self
            };
            all.extend((pipeline != self).then_some(pipeline));
        }
        all
    }

    /// Command-line options that turn `other` into this pipeline.
    pub fn options_from(self, other: Self) -> String {
        let schedule = format!("--schedule {}", self.schedule);
        let recompute = format!("--recompute {}", self.recompute);
        let state = format!("--optimizer-state {}", self.state);
        let changed = [
            (self.schedule != other.schedule).then_some(schedule),
            (self.recompute != other.recompute).then_some(recompute),
            (self.state != other.state).then_some(state),
        ];
        let changed: Vec<String> = changed.into_iter().flatten().collect();
        changed.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Recording, testing};

    fn model(framework: Framework, has_checkpoints: bool, backward_start: Option<u32>) -> Model {
        Model {
            backward_start,
            recording: Recording {
                framework,
                has_checkpoints,
                ..Recording::default()
            },
            ..testing::model(1, 0)
        }
    }

    #[test]
    fn the_framework_says_what_is_usual() {
        let choose = |framework, has_checkpoints, backward_start| {
            let chosen = PipelineOptions::default().choose(&model(
                framework,
                has_checkpoints,
                backward_start,
            ));
            (chosen.schedule, chosen.recompute)
        };
        let training = Some(1);
        for (framework, schedule, recompute) in [
            (Framework::Popart, Schedule::Popart, Recompute::Stage),
            (Framework::Poptorch, Schedule::Popart, Recompute::Stage),
            (Framework::Tensorflow, Schedule::TfGrouped, Recompute::Stage),
            (Framework::Popxl, Schedule::None, Recompute::None),
            (Framework::Poplar, Schedule::None, Recompute::None),
        ] {
            assert_eq!(choose(framework, false, training), (schedule, recompute));
            let inference = (Schedule::None, Recompute::None);
            assert_eq!(choose(framework, true, None), inference);
        }
        let layer = (Schedule::Popart, Recompute::Layer);
        assert_eq!(choose(Framework::Popart, true, training), layer);
    }

    #[test]
    fn what_was_requested_is_kept() {
        let options = PipelineOptions {
            schedule: Some(Schedule::TfInterleaved),
            ..PipelineOptions::default()
        };
        let chosen = options.choose(&model(Framework::Poplar, false, Some(1)));
        let expected = (Schedule::TfInterleaved, Recompute::Stage);
        assert_eq!((chosen.schedule, chosen.recompute), expected);
        let typed: Vec<String> = (chosen.alternatives().into_iter())
            .map(|other| other.options_from(chosen))
            .collect();
        let expected = [
            "--recompute layer",
            "--recompute none",
            "--schedule sequential",
            "--schedule tf-grouped",
        ];
        assert_eq!(typed, expected);
    }
}
