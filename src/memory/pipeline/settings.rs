//! The settings of a pipeline, such as its schedule: how they are chosen for a model
//! (docs/model.md, "Pipelines"), and which other settings a search may try.

use crate::{
    model::{Framework, Model},
    wording::option_name,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The order in which the stages of a pipeline work on micro-batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// No pipeline: a stage takes the memory that its layers take in the one-IPU compilation.
    #[default]
    None,
    /// The pipeline of PopART and PopTorch.
    Popart,
    /// TensorFlow's default, the grouped schedule: in each slot of a step, a stage runs the forward
    /// pass of one micro-batch and the backward pass of another.
    TfGrouped,
    /// TensorFlow's interleaved schedule: in each slot of a step, a stage runs either a forward or
    /// a backward pass, alternately.
    TfInterleaved,
    /// One micro-batch at a time goes through the stages, one after the other.
    Sequential,
}

impl Schedule {
    /// Returns how many micro-batches a training step must have at least, with this schedule and
    /// `stages` forward pipeline stages (docs/model.md, "Pipelines").
    pub fn least_accumulation(self, stages: usize) -> usize {
        match self {
            Schedule::None => 1,
            Schedule::Popart => (2 * stages).saturating_sub(1).max(1),
            Schedule::TfGrouped => 2 * stages,
            Schedule::TfInterleaved | Schedule::Sequential => stages,
        }
    }

    /// Returns the number of micro-batches in a step: the larger of `least`, the smallest number
    /// that the schedule allows ([`Schedule::least_accumulation`]), and `wanted`, the number that
    /// the user wants. For TensorFlow's grouped and interleaved schedules the result is rounded up
    /// to a multiple of `least`.
    pub fn accumulation(self, least: u64, wanted: u64) -> u64 {
        let least = least.max(1);
        if self.is_of_tensorflow() {
            wanted.div_ceil(least).saturating_mul(least)
        } else {
            wanted.max(least)
        }
    }

    /// Returns whether this is one of the TensorFlow schedules that work on several micro-batches
    /// at once (grouped or interleaved).
    pub(crate) fn is_of_tensorflow(self) -> bool {
        matches!(self, Schedule::TfGrouped | Schedule::TfInterleaved)
    }
}

/// The activations that a training pipeline recomputes in the backward pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Recompute {
    /// Nothing is recomputed: every tensor that the backward pass needs is kept.
    #[default]
    None,
    /// Each stage is recomputed as a whole from its inputs, which are stashed.
    Stage,
    /// Each layer is recomputed from its inputs, which are stashed.
    Layer,
}

/// The type of the elements of gradient accumulators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Accumulator {
    /// The type of the weight's elements.
    #[default]
    AsWeight,
    /// 16 bits for each element.
    Float16,
    /// 32 bits for each element.
    Float32,
}

/// The place of optimizer state (such as momentum) between two updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StatePlace {
    /// On the chip, beside the weights.
    #[default]
    OnChip,
    /// In memory outside the IPUs.
    OffChip,
    /// Sharded: each replica keeps a share on the chip.
    Sharded,
    /// Sharded off the chip: each replica keeps a share outside the IPUs.
    ShardedOffChip,
}

macro_rules! shown_as_option {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            /// Writes the value as users write it on the command line, such as `off-chip`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&option_name(self))
            }
        }
    )*};
}
shown_as_option!(Schedule, Recompute, Accumulator, StatePlace);

/// The settings of the pipeline that stages are part of. By default there is no pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pipeline {
    /// The order in which stages work on micro-batches; without a pipeline `None`.
    pub schedule: Schedule,
    /// The activations that are recomputed in the backward pass.
    pub recompute: Recompute,
    /// The type of the elements of accumulators.
    pub accumulator: Accumulator,
    /// The place of optimizer state between two updates.
    pub state: StatePlace,
    /// The number of replicas of the model. If optimizer state is sharded, each replica keeps an
    /// equal share of it. If `state` is on the chip without sharding, the number has no effect and
    /// is 0; otherwise it is at least 1.
    pub replicas: u64,
}

impl Pipeline {
    /// Returns whether the stages form a pipeline. Without one, the memory of a stage is that of
    /// its layers in the compilation of the whole model for one IPU.
    pub fn is_on(self) -> bool {
        self.schedule != Schedule::None
    }

    /// Returns whether the stages run one after the other on one micro-batch at a time, and keep
    /// the same tensors as the one-IPU compilation. `is_training` says whether there is a backward
    /// pass.
    pub fn takes_turns(self, is_training: bool) -> bool {
        match self.schedule {
            Schedule::None => is_training,
            Schedule::Sequential => self.recompute == Recompute::None,
            _ => false,
        }
    }

    /// Returns these settings, but with the default values of all settings that have no effect on
    /// the memory. Without a pipeline, only the place of optimizer state and the number of replicas
    /// have an effect.
    pub(crate) fn in_effect(self) -> Self {
        if self.is_on() {
            return self;
        }
        Self {
            state: self.state,
            replicas: self.replicas,
            ..Self::default()
        }
    }

    /// Returns these settings with optimizer state in the place `state` and with `replicas`
    /// replicas, but at least 1. If all of the state is on the chip, the number of replicas has no
    /// effect and is set to 0.
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

    /// Returns the other schedules that the framework of `self.schedule` has, in the order of
    /// preference. Returns none if `self.schedule` is sequential, or if there is no pipeline.
    pub fn other_schedules(self) -> &'static [Schedule] {
        match self.schedule {
            Schedule::None | Schedule::Sequential => &[],
            Schedule::Popart => &[Schedule::Sequential],
            Schedule::TfGrouped => &[Schedule::TfInterleaved, Schedule::Sequential],
            Schedule::TfInterleaved => &[Schedule::Sequential, Schedule::TfGrouped],
        }
    }

    /// Returns the pipelines among which a search may choose, `self` first: all
    /// [possible](Pipeline::possible) pipelines. Sequential pipelines, which work on one
    /// micro-batch at a time, are left out unless `self` is sequential. Settings that the user
    /// requests in `requested` are fixed.
    pub fn open(self, requested: PipelineOptions, is_training: bool) -> Vec<Self> {
        let mut open = self.possible(requested, is_training);
        open.retain(|other| {
            other.schedule == self.schedule || other.schedule != Schedule::Sequential
        });
        open
    }

    /// Returns these settings with the sequential schedule and without recomputation, so that
    /// stages [take turns](Self::takes_turns). Returns `None` if the user requests another schedule
    /// or another recomputation in `requested`.
    pub fn taking_turns(self, requested: PipelineOptions) -> Option<Self> {
        let is_open = requested
            .schedule
            .is_none_or(|own| own == Schedule::Sequential)
            && requested.recompute.is_none_or(|own| own == Recompute::None);
        is_open.then_some(Self {
            schedule: Schedule::Sequential,
            recompute: Recompute::None,
            accumulator: requested.accumulator,
            ..self
        })
    }

    /// Returns all pipelines that the framework of a model offers: each schedule with each
    /// recomputation. `self`, the usual pipeline of the model, comes first. Settings that the user
    /// requests in `requested` are fixed. Returns only `self` if it is no pipeline, or if
    /// `is_training` is false.
    pub fn possible(self, requested: PipelineOptions, is_training: bool) -> Vec<Self> {
        if !self.is_on() || !is_training {
            return vec![self];
        }
        let others = match requested.schedule {
            Some(_) => &[],
            None => self.other_schedules(),
        };
        let recomputations: &[Recompute] = match requested.recompute {
            Some(_) => &[self.recompute],
            None => &[Recompute::None, Recompute::Stage, Recompute::Layer],
        };
        let mut all: Vec<_> = [self.schedule]
            .iter()
            .chain(others)
            .flat_map(|&schedule| {
                recomputations.iter().map(move |&recompute| Self {
                    schedule,
                    recompute,
                    ..self
                })
            })
            .collect();
        all.sort_by_key(|&other| other != self);
        all
    }
}

/// The settings of a pipeline that the user requests. For a setting that is `None`, the model
/// decides ([`PipelineOptions::choose`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PipelineOptions {
    /// The order in which stages work on micro-batches; `None` for the default of the framework.
    pub schedule: Option<Schedule>,
    /// The activations that are recomputed in the backward pass; `None` for the default that
    /// [`PipelineOptions::choose`] describes.
    pub recompute: Option<Recompute>,
    /// The type of the elements of gradient accumulators that the pipeline adds.
    pub accumulator: Accumulator,
    /// The place of optimizer state between two updates. With `None`, places are tried in the order
    /// of [`PipelineOptions::states`] until the model fits.
    pub state: Option<StatePlace>,
    /// The number of replicas of the model that run side by side, each on IPUs of its own. Sharded
    /// optimizer state is divided among them.
    pub replicas: u64,
}

impl PipelineOptions {
    /// Returns the pipeline for `model`. It has the requested settings, and defaults for settings
    /// that are `None`. The default schedule of training models is the schedule of their framework.
    /// By default, there is no pipeline for inference, nor for models of plain Poplar and PopXL,
    /// whose pipelines are written by hand. The default recomputation is the one in published
    /// configurations: whole stages, or layers if the model marks checkpoints.
    pub fn choose(self, model: &Model) -> Pipeline {
        let is_training = model.backward_start.is_some();
        let schedule = self.schedule.unwrap_or(match model.recording.framework {
            _ if !is_training => Schedule::None,
            Framework::Popart | Framework::Poptorch => Schedule::Popart,
            Framework::Tensorflow => Schedule::TfGrouped,
            Framework::Popxl | Framework::Poplar => Schedule::None,
        });
        let recompute = self.recompute.unwrap_or(match schedule {
            _ if !is_training || schedule == Schedule::None => Recompute::None,
            _ if model.recording.has_checkpoints => Recompute::Layer,
            _ => Recompute::Stage,
        });
        Pipeline {
            schedule,
            recompute,
            accumulator: self.accumulator,
            ..Pipeline::default()
        }
        .with_state(self.state.unwrap_or_default(), self.replicas)
        .in_effect()
    }

    /// Returns the places of optimizer state to try, in groups. The groups are tried one after the
    /// other until the model fits: on the chip, off the chip, sharded, sharded off the chip. If
    /// `streaming_is_timed` (the bandwidth to memory off the chip is known), on the chip and off
    /// the chip are one group, whose places are compared by time. If the user requests a place, the
    /// result has only this place.
    pub fn states(self, streaming_is_timed: bool) -> Vec<Vec<StatePlace>> {
        use StatePlace::{OffChip, OnChip, Sharded, ShardedOffChip};
        match self.state {
            Some(state) => vec![vec![state]],
            None if streaming_is_timed => {
                vec![vec![OnChip, OffChip], vec![Sharded], vec![ShardedOffChip]]
            }
            None => [OnChip, OffChip, Sharded, ShardedOffChip]
                .map(|state| vec![state])
                .into(),
        }
    }
}

impl StatePlace {
    /// Returns whether each replica keeps only a share of the optimizer state.
    pub fn is_sharded(self) -> bool {
        matches!(self, StatePlace::Sharded | StatePlace::ShardedOffChip)
    }

    /// Returns whether the optimizer state is outside the IPUs between two updates.
    pub fn is_off_chip(self) -> bool {
        matches!(self, StatePlace::OffChip | StatePlace::ShardedOffChip)
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
            let model = model(framework, has_checkpoints, backward_start);
            let chosen = PipelineOptions::default().choose(&model);
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
        assert_eq!(
            chosen.other_schedules(),
            [Schedule::Sequential, Schedule::TfGrouped]
        );
        let possible = chosen.possible(options, true);
        let recompute: Vec<Recompute> = possible.iter().map(|other| other.recompute).collect();
        let expected = [Recompute::Stage, Recompute::None, Recompute::Layer];
        assert_eq!(recompute, expected);
        let is_kept = |other: &Pipeline| other.schedule == Schedule::TfInterleaved;
        assert!(possible.iter().all(is_kept));
    }

    #[test]
    fn places_of_state_are_tried_one_after_the_other_unless_all_times_are_known() {
        use StatePlace::{OffChip, OnChip, Sharded, ShardedOffChip};
        let open = PipelineOptions::default();
        let apart = [[OnChip], [OffChip], [Sharded], [ShardedOffChip]];
        assert_eq!(open.states(false), apart);
        let by_time = open.states(true);
        assert_eq!(by_time[0], [OnChip, OffChip]);
        assert_eq!(by_time.concat(), apart.concat());
        let fixed = PipelineOptions {
            state: Some(Sharded),
            ..open
        };
        assert_eq!(fixed.states(true), [[Sharded]]);
    }
}
