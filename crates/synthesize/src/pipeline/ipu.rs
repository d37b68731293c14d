//! The content of each tile of an IPU over time.

use std::collections::HashMap;
use std::ops::Range;
use std::slice::from_ref;

use super::axis::Axis;
use super::compilation::Compilation;
use super::copies::{Copies, Copy, What};
use super::graph::{Local, Pass};
use super::keep::{Kept, kept};
use super::route::Route;
use super::sum::{Moments, Sum};
use super::walk::Run;
use crate::liveness::{Steps, Variable as Lowered};
use crate::places::Places;

pub(super) struct Ipu<'a> {
    pub compiled: &'a Compilation<'a>,
    pub number: u32,
}

pub(super) struct Variable<'a> {
    pub tile: usize,
    pub of: Of<'a>,
    pub bytes: u64,
}

/// The kind of a variable, with its name or place, and when it lives if not
/// always. Moments are counted from the start of a period.
pub(super) enum Of<'a> {
    /// A variable that lives at the same steps as in the one-IPU compilation.
    Local(&'a Local, &'a [Range<u32>]),
    Copy(&'a str, What, &'a [Range<u32>]),
    Ring(&'a str),
    Accumulator(&'a str),
    /// State of the optimizer that is there for an update, or what this works on.
    State(&'a [Range<u32>]),
}

struct Present<'a> {
    route: &'a Route<'a>,
    kept: Kept,
    fifo: u32,
}

impl Ipu<'_> {
    pub fn places(&self) -> Places {
        let Compilation { graph, stages, .. } = self.compiled;
        stages.places(graph, self.number)
    }

    /// Goes through everything that the IPU has beside what is live at all times
    /// in the one-IPU compilation too. Gives the most copies of a tensor in a ring.
    pub fn visit(&self, mut each: impl FnMut(Variable)) -> u32 {
        let stages = self.compiled.stages.on_ipu(self.number);
        // So many that runs of all kinds follow those of the window.
        let parts = self.compiled.pipeline.parts(&stages, 2 * self.steady());
        let Compilation {
            reruns, pipeline, ..
        } = self.compiled;
        let routes = self.compiled.routes.iter();
        let mut present: Vec<Present> = routes
            .filter_map(|route| {
                let kept = kept(route, (&stages, &parts), reruns, pipeline)?;
                let fifo = 0;
                Some(Present { route, kept, fifo })
            })
            .collect();
        let axis = Axis::new(self.compiled, &self.fifos(&mut present), parts);
        let sum = Sum {
            graph: self.compiled.graph,
            axis: &axis,
            window: self.window(&axis, &stages),
            own: self.steps(&stages),
            has_loads: self.compiled.options.elsewhere.is_any(),
        };
        self.locals(&sum, &mut each);
        self.accumulators(&mut each);
        if self.compiled.options.elsewhere.is_any() {
            self.updates(&sum, &mut each);
        }
        for tensor in &present {
            self.tensor(tensor, &sum, &axis, &mut each);
        }
        let slots = present.iter().map(|tensor| tensor.kept.slots);
        slots.max().unwrap_or(0)
    }

    fn steps(&self, stages: &[u32]) -> Vec<Steps> {
        let graph = self.compiled.graph;
        let positions = self.compiled.stages.positions_of(stages);
        let steps = positions.flat_map(|position| {
            let position = position as usize;
            [graph.forward[position], graph.backward[position]]
        });
        steps.flatten().collect()
    }

    /// Numbers the FIFOs that run together; gives how many these are, by run.
    fn fifos(&self, present: &mut [Present]) -> HashMap<Run, u32> {
        let mut fifos = HashMap::new();
        if !self.compiled.pipeline.schedule.has_fifo() {
            return fifos;
        }
        for tensor in present.iter_mut().filter(|tensor| tensor.kept.slots > 0) {
            let run = match self.compiled.options.early_fifo {
                true => Some(tensor.kept.home),
                false => tensor.kept.last(),
            };
            let count = fifos.entry(run.unwrap_or(tensor.kept.home)).or_insert(0);
            tensor.fifo = *count;
            *count += 1;
        }
        fifos
    }

    /// A micro-batch that starts when all stages run.
    fn steady(&self) -> u32 {
        2 * self.compiled.stages.count() + 2
    }

    fn window(&self, axis: &Axis, stages: &[u32]) -> Range<u32> {
        let run = (stages[0], Pass::Forward);
        let start = |micro_batch| {
            let time = self.compiled.pipeline.time(run, micro_batch);
            time.checked_sub(1)
                .map_or(0, |before| axis.after_time(before))
        };
        start(self.steady())..start(self.steady() + 1)
    }

    fn tensor(&self, present: &Present, sum: &Sum, axis: &Axis, each: &mut impl FnMut(Variable)) {
        let tensor = present.route.tensor;
        let name = tensor.name.as_str();
        let all = Copies {
            axis,
            compiled: self.compiled,
            route: present.route,
            kept: &present.kept,
            fifo: present.fifo,
        };
        let mut copies: Vec<(What, Vec<Copy>)> = Vec::new();
        for copy in (0..self.steady() + 2).flat_map(|micro_batch| all.of(micro_batch)) {
            match copies.iter_mut().find(|(what, _)| *what == copy.what) {
                Some((_, same)) => same.push(copy),
                None => copies.push((copy.what, vec![copy])),
            }
        }
        for part in &tensor.on_tiles {
            let (tile, Lowered { class, bytes, .. }) = (part.0 as usize, part.1);
            if present.kept.slots > 0 {
                let (of, bytes) = (Of::Ring(name), u64::from(present.kept.slots) * bytes);
                each(Variable { tile, of, bytes });
            }
            for (what, copies) in &copies {
                let lives = sum.lives(tensor, class, copies);
                let of = Of::Copy(name, *what, &lives);
                each(Variable { tile, of, bytes });
            }
        }
    }

    fn locals(&self, sum: &Sum, each: &mut impl FnMut(Variable)) {
        let places = self.places();
        let mut lives = HashMap::new();
        for (tile, locals) in self.compiled.graph.locals.iter().enumerate() {
            let here = |(local, _): &(&Local, _)| local.places.meets(places);
            for (local, &bytes) in locals.iter().filter(here) {
                let class = local.class;
                let lives = lives.entry(class).or_insert_with(|| sum.steps(class));
                let (bytes, summed) = self.shared_out((tile, local), bytes);
                let of = Of::Local(local, lives);
                each(Variable { tile, of, bytes });
                if summed > 0 {
                    let lives = &sum.in_period(lives);
                    let (of, bytes) = (Of::Local(local, lives), summed);
                    each(Variable { tile, of, bytes });
                }
            }
        }
    }

    /// Bytes of single operations without gradients, and those of gradients, which are summed
    /// up when the passes end at the latest. Where state is elsewhere, replicas share out what
    /// an update makes.
    fn shared_out(&self, (tile, local): (usize, &Local), bytes: u64) -> (u64, u64) {
        let elsewhere = self.compiled.options.elsewhere;
        let updates = &self.compiled.graph.updates;
        let summed = updates.gradients[tile].get(local).copied().unwrap_or(0);
        let mut rest = bytes - summed;
        for &(update, made) in updates.made[tile].get(local).into_iter().flatten() {
            if updates.is_shared_out(&updates.all[update], elsewhere) {
                rest = rest - made + made.div_ceil(elsewhere.replicas);
            }
        }
        (rest, summed)
    }

    /// State that comes and goes, and what replicas gather.
    fn updates(&self, sum: &Sum, each: &mut impl FnMut(Variable)) {
        let places = self.places();
        let updates = &self.compiled.graph.updates;
        for update in &updates.all {
            let Moments {
                load,
                operation,
                gather,
                store,
            } = sum.update(update.steps);
            let (there, pads) = (load.start..store.end, [load, store]);
            for tile in 0..self.compiled.graph.tiles as usize {
                let taken = updates.taken(update, (tile, places), self.compiled.options);
                for (bytes, lives) in [
                    (taken.loaded, from_ref(&there)),
                    // A load and a store have pads for all of it.
                    (taken.loaded, &pads[..]),
                    (taken.shares, from_ref(&operation)),
                    (taken.gathered, from_ref(&gather)),
                ] {
                    let of = Of::State(lives);
                    each(Variable { tile, of, bytes });
                }
            }
        }
    }

    fn accumulators(&self, each: &mut impl FnMut(Variable)) {
        let places = self.places();
        let is_needed = self.compiled.graph.backward_start.is_some();
        let weights = self.compiled.graph.weights.iter();
        for weight in weights.filter(|weight| is_needed && weight.places.meets(places)) {
            let on_tiles = weight.on_tiles.iter().copied().enumerate();
            for (tile, bytes) in on_tiles.filter(|(_, bytes)| *bytes > 0) {
                let of = Of::Accumulator(&weight.name);
                each(Variable { tile, of, bytes });
            }
        }
    }
}
