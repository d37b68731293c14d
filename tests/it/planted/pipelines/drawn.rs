//! Splits and pipelines, drawn for a model.

use popliner::memory::{self, MemoryModel};
use std::ops::Range;
use synthesize::pipeline::{PipelineModel, PipelineOptions, Recompute, Schedule};
use synthesize::places::Places;
use tempfile::TempDir;

use super::super::places::drawn::Drawn;
use super::super::places::planted::Read;
use crate::support::models::Random;

/// A planted model with a backward pass, and the library's model of the profile for one IPU.
pub struct Trained {
    pub drawn: Drawn,
    pub truth: PipelineModel,
    pub read: Read,
    seed: u64,
}

impl Trained {
    /// Writes and reads a model; `None` if contexts do not identify its backward pass.
    pub fn new(seed: u64, drawn: Drawn) -> Option<Self> {
        if !drawn.has_backward_pass() {
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let model = synthesize::write(folder.path(), &drawn.options).expect("both files");
        let truth = model.pipeline();
        let read = Read::new(folder.path(), &truth.places);
        Some(Self {
            drawn,
            truth,
            read,
            seed,
        })
    }

    pub fn memory(&self) -> MemoryModel<'_> {
        MemoryModel::new(&self.read.model, &self.read.placement).expect("memory")
    }

    /// Returns some cases.
    pub fn cases(&self) -> Vec<Case> {
        let positions = &self.read.placement.positions;
        let is_tensorflow = self.drawn.has("tensorflow");
        cases(
            self.seed,
            positions.len(),
            positions.out_is_first(),
            is_tensorflow,
        )
    }

    /// Returns the name of a case in failures.
    pub fn name(&self, case: &Case) -> String {
        let (seed, cuts, options) = (self.seed, &case.cuts, &case.options);
        format!(
            "SEEDS={seed}..{}: {cuts:?} {options:?} {}",
            seed + 1,
            self.drawn.name()
        )
    }

    /// Returns the planted places of a stage.
    pub fn places_of(&self, range: &Range<usize>) -> Places {
        let positions = range.start as u32..=range.end as u32 - 1;
        let set = Places::positions(self.truth.places.layers, positions);
        match range.start == 0 && self.read.placement.positions.out_is_first() {
            true => set | Places::OUT,
            false => set,
        }
    }

    /// Is each weight on only one IPU? No framework puts a weight on two.
    pub fn holds_weights(&self, case: &Case) -> bool {
        let mut stages = case.stages(self.read.placement.positions.len()).into_iter();
        stages.all(|range| {
            let set = self.places_of(&range);
            let mut ties = self.truth.places.ties.iter();
            ties.all(|(_, tied)| !set.meets(*tied) || set.holds(*tied))
        })
    }
}

/// A pipelined compilation.
pub struct Case {
    /// The positions before which there is a cut.
    pub cuts: Vec<u32>,
    pub options: PipelineOptions,
}

/// Returns some cases for a model with this number of positions, with schedules of its framework.
pub fn cases(seed: u64, positions: usize, out_on_first: bool, is_tensorflow: bool) -> Vec<Case> {
    let mut random = Random(seed ^ 0x9_1e1e);
    let schedules: &[Schedule] = match is_tensorflow {
        true => &[
            Schedule::TfGrouped,
            Schedule::TfInterleaved,
            Schedule::Sequential,
        ],
        false => &[Schedule::Popart, Schedule::Popart, Schedule::Sequential],
    };
    let recomputes = [Recompute::None, Recompute::Stage, Recompute::Layer];
    let case = |_| {
        let is_cut = |_: &u32, random: &mut Random| !random.once_in(3);
        let mut cuts: Vec<u32> = (1..positions as u32).collect();
        cuts.retain(|cut| is_cut(cut, &mut random));
        Case {
            cuts,
            options: PipelineOptions {
                out_on_first,
                early_restore: random.once_in(2),
                early_fifo: random.once_in(2),
                all_steps: true,
                ..PipelineOptions::new(random.one_of(schedules), random.one_of(&recomputes))
            },
        }
    };
    (0..CASES).map(case).collect()
}

/// Number of cases for each model.
pub const CASES: usize = 2;

/// Returns the stages between cuts, as ranges of positions.
pub fn stages(cuts: &[u32], positions: usize) -> Vec<Range<usize>> {
    let cuts = cuts.iter().map(|&cut| cut as usize);
    let mut start = 0;
    let stage = |end| std::mem::replace(&mut start, end)..end;
    cuts.chain([positions]).map(stage).collect()
}

impl Case {
    /// Returns the stages, as ranges of positions.
    pub fn stages(&self, positions: usize) -> Vec<Range<usize>> {
        stages(&self.cuts, positions)
    }

    /// Returns the pipeline that the library computes for.
    pub fn pipeline(&self) -> memory::Pipeline {
        memory::Pipeline {
            schedule: match self.options.schedule {
                Schedule::Popart => memory::Schedule::Popart,
                Schedule::TfGrouped => memory::Schedule::TfGrouped,
                Schedule::TfInterleaved => memory::Schedule::TfInterleaved,
                Schedule::Sequential => memory::Schedule::Sequential,
            },
            recompute: match self.options.recompute {
                Recompute::None => memory::Recompute::None,
                Recompute::Stage => memory::Recompute::Stage,
                Recompute::Layer => memory::Recompute::Layer,
            },
            accumulator: memory::Accumulator::AsWeight,
            ..memory::Pipeline::default()
        }
    }

    /// Returns the labels of the case in a distribution.
    pub fn labels(&self) -> Vec<String> {
        let options = &self.options;
        let what = format!("{:?}, {:?}", options.schedule, options.recompute);
        let when = match options.schedule {
            Schedule::Popart if options.early_restore => "early restores",
            Schedule::Popart => "late restores",
            Schedule::Sequential => "",
            _ if options.early_fifo => "early FIFO",
            _ => "late FIFO",
        };
        vec![what.clone(), format!("{what}, {when}")]
    }
}
