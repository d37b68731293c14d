//! Splits and pipelines, drawn for a model.

use popliner::memory::{self, MemoryModel};
use popliner::model::{LayerOptions, Layering, Pass, Placement, PlacementOptions};
use std::collections::HashMap;
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
    /// By planted position, the library's position that begins there; with one more for the end.
    starts: Vec<usize>,
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
            starts: (0..=read.placement.positions.len()).collect(),
            read,
            seed,
        })
    }

    /// Finds layers and places anew, without the planted layers.
    pub fn with_layers(mut self, options: &LayerOptions) -> Self {
        let layering = Layering::new(&self.read.model, options);
        let placement = Placement::full(&self.read.model, &layering, &PlacementOptions::default());
        self.read.layering = layering;
        self.read.placement = placement.expect("places");
        self.starts = self.found_starts();
        self
    }

    /// Returns the operations of the forward pass with one place: their number in the graph, and
    /// their positions as planted and as found.
    pub fn forward(&self) -> Vec<(usize, u32, usize)> {
        let Read {
            model, placement, ..
        } = &self.read;
        let places = &self.truth.places;
        let of_graph = places.operations.iter();
        let planted: HashMap<u64, (usize, u32)> = of_graph
            .filter_map(|op| Some((op.context.into(), (op.forward?, places.position(op)))))
            .collect();
        let found = model.operations.iter().enumerate();
        let found = found.filter(|(_, operation)| operation.pass == Pass::Forward);
        let positions = found.filter_map(|(number, operation)| {
            let uid = model.operation_groups[operation.group as usize].uid;
            let &[found] = placement.places_of(number) else {
                return None;
            };
            let &(number, planted) = planted.get(&uid)?;
            Some((number, planted, found as usize))
        });
        positions.collect()
    }

    /// Returns, by planted position, the first of the library's positions that has most of its
    /// operations of the forward pass there or later.
    fn found_starts(&self) -> Vec<usize> {
        let positions = &self.read.placement.positions;
        let mut found = vec![Vec::new(); positions.len()];
        for (_, planted, position) in self.forward() {
            found[position].push(planted);
        }
        let median = |planted: &mut Vec<u32>| {
            planted.sort_unstable();
            planted.get(planted.len() / 2).copied().unwrap_or(0)
        };
        let mut medians: Vec<u32> = found.iter_mut().map(median).collect();
        // Position 0 begins the model, although Out may be there too.
        medians[0] = 0;
        let start = |position: u32| medians.iter().position(|&median| median >= position);
        let last = self.truth.places.layers + 1 - u32::from(positions.out_is_first());
        let starts = (0..=last).map(|position| start(position).unwrap_or(medians.len()));
        starts.chain([medians.len()]).collect()
    }

    pub fn memory(&self) -> MemoryModel<'_> {
        MemoryModel::new(&self.read.model, &self.read.placement).expect("memory")
    }

    pub fn cases(&self) -> Vec<Case> {
        let mut cases = cases(
            self.seed,
            self.positions(),
            self.read.placement.positions.out_is_first(),
            self.drawn.has("tensorflow"),
        );
        // Where the library has one position, there is no cut.
        let starts = |cut: u32| (self.starts[cut as usize - 1], self.starts[cut as usize]);
        let is_cut = |&cut: &u32| starts(cut).0 < starts(cut).1 && starts(cut).1 < self.ends();
        for case in &mut cases {
            case.cuts.retain(is_cut);
        }
        cases
    }

    /// Returns the number of planted positions.
    pub fn positions(&self) -> usize {
        self.starts.len() - 1
    }

    fn ends(&self) -> usize {
        self.starts[self.positions()]
    }

    /// Returns the stages of a case, as ranges of the library's positions.
    pub fn stages(&self, case: &Case) -> Vec<Range<usize>> {
        let stages = case.stages(self.positions()).into_iter();
        stages
            .map(|planted| self.starts[planted.start]..self.starts[planted.end])
            .collect()
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

    /// Returns the planted places of a stage, a range of planted positions.
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
        let mut stages = case.stages(self.positions()).into_iter();
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
