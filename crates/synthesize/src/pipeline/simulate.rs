//! The memory of each IPU in one period of the pipeline.

use std::collections::HashMap;
use std::ops::Range;

use super::axis::{Axis, Layout};
use super::copies::{Copies, Copy};
use super::graph::{Graph, Pass};
use super::keep::{Kept, Reruns, kept};
use super::options::{PipelineOptions, Schedule};
use super::route::Route;
use super::stages::Stages;
use super::sum::{Changes, Sum};
use super::walk::{Pipeline, Run};

/// What an IPU needs beside what is live at all times in the one-IPU
/// compilation too.
#[derive(Debug, Clone, Default)]
pub(super) struct IpuMemory {
    /// By tile: the most that is live at any moment of what comes and goes.
    pub passing: Vec<u64>,
    /// By tile: rings of stashed tensors.
    pub stash: Vec<u64>,
    /// By tile: accumulators of weights.
    pub accumulators: Vec<u64>,
    /// The most copies of a tensor in a ring.
    pub slots: u32,
}

/// The memory of each IPU.
pub(super) fn simulate(graph: &Graph, cuts: &[u32], options: &PipelineOptions) -> Vec<IpuMemory> {
    let stages = Stages::new(graph.positions(), cuts, options.out_on_first);
    let reruns = Reruns::new(graph, &stages, options);
    let tensors = graph.tensors.iter();
    let routes: Vec<Route> = tensors
        .map(|tensor| Route::new(graph, &stages, tensor))
        .collect();
    let pipeline = Pipeline {
        schedule: options.schedule,
        stages: stages.count(),
        is_training: graph.turn.is_some(),
    };
    let ipus = 0..stages.ipus();
    let ipus = ipus.map(|ipu| {
        Ipu {
            graph,
            stages: &stages,
            reruns: &reruns,
            options,
            pipeline,
            number: ipu,
        }
        .memory(&routes)
    });
    ipus.collect()
}

struct Ipu<'a> {
    graph: &'a Graph,
    stages: &'a Stages,
    reruns: &'a Reruns,
    options: &'a PipelineOptions,
    pipeline: Pipeline,
    number: u32,
}

/// A tensor that an IPU has at some time.
struct Present<'a> {
    route: &'a Route<'a>,
    kept: Kept,
    fifo: u32,
}

impl Ipu<'_> {
    fn memory(&self, routes: &[Route]) -> IpuMemory {
        let own = self.stages.on_ipu(self.number);
        // So many that runs of all kinds follow those of the window.
        let parts = self.pipeline.parts(&own, 2 * self.steady());
        let mut present: Vec<Present> = routes
            .iter()
            .filter_map(|route| {
                let kept = kept(route, (&own, &parts), self.reruns, &self.pipeline)?;
                let fifo = 0;
                Some(Present { route, kept, fifo })
            })
            .collect();
        let fifos = self.fifos(&mut present);
        let layout = Layout {
            graph: self.graph,
            stages: self.stages,
            reruns: self.reruns,
            fifos: &fifos,
            early_fifo: self.options.early_fifo,
            early_reruns: self.options.early_reruns(),
            all_steps: self.options.all_steps,
        };
        let axis = Axis::new(&layout, parts);
        self.add(
            &present,
            &Sum::new(self.graph, &axis, self.window(&axis, &own)),
            &axis,
        )
    }

    /// Numbers the FIFOs that run together; gives how many these are, by run.
    fn fifos(&self, present: &mut [Present]) -> HashMap<Run, u32> {
        let mut fifos = HashMap::new();
        if !self.pipeline.schedule.has_fifo() {
            return fifos;
        }
        for own in present.iter_mut().filter(|own| own.kept.slots > 0) {
            let run = match self.options.early_fifo {
                true => Some(own.kept.home),
                false => own.kept.last(),
            };
            let count = fifos.entry(run.unwrap_or(own.kept.home)).or_insert(0);
            own.fifo = *count;
            *count += 1;
        }
        fifos
    }

    /// A micro-batch that starts when all stages run.
    fn steady(&self) -> u32 {
        2 * self.stages.count() + 2
    }

    /// A period in which all stages run.
    fn window(&self, axis: &Axis, own: &[u32]) -> Range<u32> {
        let run = (own[0], Pass::Forward);
        let start = |micro_batch| {
            let time = self.pipeline.time(run, micro_batch);
            time.checked_sub(1)
                .map_or(0, |before| axis.after_time(before))
        };
        start(self.steady())..start(self.steady() + 1)
    }

    fn add(&self, present: &[Present], sum: &Sum, axis: &Axis) -> IpuMemory {
        let tiles = self.graph.tiles as usize;
        let mut memory = IpuMemory {
            stash: vec![0; tiles],
            accumulators: self.accumulators(),
            ..IpuMemory::default()
        };
        let mut changes = self.locals(sum);
        for own in present {
            let copies = self.copies(own, axis);
            let tensor = own.route.tensor;
            memory.slots = memory.slots.max(own.kept.slots);
            for part in &tensor.on_tiles {
                let tile = part.tile as usize;
                memory.stash[tile] += u64::from(own.kept.slots) * part.bytes;
                let lives = sum.lives(tensor, part.class, &copies, self.is_last(own));
                changes[tile].add(&lives, part.bytes);
            }
        }
        memory.passing = changes.iter().map(Changes::most).collect();
        memory
    }

    /// Whether the last use of a tensor is here.
    fn is_last(&self, own: &Present) -> bool {
        let end = own.route.tensor.end();
        let mut last = own.route.uses.iter().filter(|(_, own)| own.steps.1 == end);
        last.any(|((stage, _), _)| self.stages.ipu(*stage) == self.number)
    }

    fn copies(&self, own: &Present, axis: &Axis) -> Vec<Copy> {
        let copies = Copies {
            axis,
            pipeline: self.pipeline,
            options: self.options,
            route: own.route,
            kept: &own.kept,
            fifo: own.fifo,
        };
        let micro_batches = 0..self.steady() + 2;
        let all: Vec<Vec<Copy>> = micro_batches.map(|own| copies.of(own)).collect();
        let mut pairs = all.windows(2);
        let one_is_enough = pairs.all(|pair| follow(&pair[0], &pair[1]));
        debug_assert!(one_is_enough || self.needs_two(own));
        all.concat()
    }

    /// Whether a tensor that TensorFlow receives is still needed when the next one
    /// arrives, so that it needs a copy beside the buffer.
    fn needs_two(&self, own: &Present) -> bool {
        let is_received = own.route.sender(own.kept.home).is_some();
        self.options.schedule == Schedule::TfGrouped && is_received && own.kept.last().is_some()
    }

    /// By tile: what lives at the same steps as in the one-IPU compilation.
    fn locals(&self, sum: &Sum) -> Vec<Changes> {
        let own = self.stages.places(self.graph, self.number);
        let mut lives = HashMap::new();
        let tiles = self.graph.locals.iter();
        let changes = tiles.map(|locals| {
            let mut changes = Changes::default();
            for (&(_, class), &bytes) in locals.iter().filter(|((places, _), _)| places.meets(own))
            {
                let lives = lives.entry(class).or_insert_with(|| sum.steps(class));
                changes.add(lives, bytes);
            }
            changes
        });
        changes.collect()
    }

    /// By tile: the accumulators of the weights of these places.
    fn accumulators(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.graph.tiles as usize];
        let own = self.stages.places(self.graph, self.number);
        let weights = self.graph.weights.iter();
        for weight in weights.filter(|weight| weight.places.meets(own)) {
            let times = if self.options.float_accumulators && !weight.is_float {
                2
            } else {
                1
            };
            if self.graph.turn.is_some() {
                for &(tile, own) in &weight.on_tiles {
                    bytes[tile as usize] += times * own;
                }
            }
        }
        bytes
    }
}

/// Whether each copy for a micro-batch is free before that for the next one: one
/// buffer is enough for all of them.
fn follow(own: &[Copy], next: &[Copy]) -> bool {
    own.len() != next.len() || own.iter().zip(next).all(|(own, next)| own.to <= next.from)
}
