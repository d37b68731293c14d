//! Computes the content of each tile of an IPU over time: the moments of a period of the steady
//! state, then the steps before the first micro-batch and after the last one.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::slice::from_ref;

use super::axis::{Axis, Kind};
use super::compilation::{Compilation, Run};
use super::copies::Copy;
use super::graph::{Graph, Local, Pass};
use super::route::{Route, Stay};
use crate::liveness::{Steps, Variable as Lowered};
use crate::overhead::category;
use crate::places::Places;

pub(super) struct Ipu<'a> {
    compiled: &'a Compilation<'a>,
    pub places: Places,
    axis: Axis,
    /// The period that starts with the micro-batch that is followed.
    window: Range<u32>,
    stays: Vec<Stay<'a>>,
    /// The steps of the IPU's own positions in both passes.
    own: Vec<Steps>,
}

/// The moments at which a variable is live.
pub(super) enum When<'a> {
    /// At these moments, counted from the start of a period.
    At(&'a [Range<u32>]),
    /// At these moments: a copy of a tensor.
    Copy(&'a [Range<u32>]),
    /// At these moments a tensor has any copy; this is no further variable.
    Any(&'a [Range<u32>]),
    /// Always: a ring of stashed copies of a tensor.
    Ring,
    /// Always: the accumulator of a weight.
    Accumulator,
}

/// The category and the name of a variable.
pub(super) type Named<'a> = (usize, &'a str);

impl<'a> Ipu<'a> {
    pub fn new(compiled: &'a Compilation, routes: &'a [Route], number: u32) -> Self {
        let steady = 2 * compiled.count() + 2;
        let stages = compiled.on_ipu(number);
        let parts = compiled.parts(number, 2 * steady);
        let routes = routes.iter();
        let stays = routes.filter_map(|route| Stay::new(compiled, route, (&stages, &parts)));
        let mut stays: Vec<Stay> = stays.collect();
        let fifos = number_fifos(compiled, &mut stays);
        let axis = Axis::new(compiled, &fifos, (parts, steady));
        let start = |micro_batch| {
            let time = compiled.time((stages[0], Pass::Forward), micro_batch);
            axis.after_time(time - 1)
        };
        let positions = compiled.positions_on(number);
        let passes = compiled.graph.passes.each_ref();
        let own = positions.flat_map(|at| passes.map(|pass| pass[at as usize]));
        Self {
            compiled,
            places: compiled.places(number),
            window: start(steady)..start(steady + 1),
            stays,
            own: own.flatten().collect(),
            axis,
        }
    }

    /// Visits all variables that the IPU has, except for those that are always live in the
    /// compilation for one IPU too: the tile, the name and the bytes of each, and its moments.
    pub fn visit(&self, mut each: impl FnMut(usize, Named, u64, When)) {
        self.locals(&mut each);
        self.accumulators(&mut each);
        if self.compiled.options.elsewhere.is_any() {
            self.updates(&mut each);
        }
        for stay in &self.stays {
            self.tensor(stay, &mut each);
        }
    }

    fn tensor(&self, stay: &Stay, each: &mut impl FnMut(usize, Named, u64, When)) {
        let tensor = stay.route.tensor;
        let names = ["Stashed___{}", "{}/fifo/buffer/0"];
        let ring = self.compiled.name(names, &tensor.name);
        let copies = stay.copies(&self.axis);
        for &(tile, Lowered { class, bytes, .. }) in &tensor.on_tiles {
            let tile = tile as usize;
            if stay.slots > 0 {
                let bytes = u64::from(stay.slots) * bytes;
                each(tile, (category::VARIABLE, &ring), bytes, When::Ring);
            }
            let mut all = Vec::new();
            for (name, copy) in &copies {
                let lives = self.lives(tensor.end(), class, copy);
                each(tile, (category::VARIABLE, name), bytes, When::Copy(&lives));
                all.extend(lives);
            }
            let named = (category::VARIABLE, &*tensor.name);
            each(tile, named, bytes, When::Any(&merged(all)));
        }
    }

    /// Visits the variables of single operations; variables that are live together are visited as
    /// one. If state is elsewhere, replicas share the variables that an update makes.
    fn locals(&self, each: &mut impl FnMut(usize, Named, u64, When)) {
        let mut lives = HashMap::new();
        for (tile, locals) in self.compiled.graph.locals.iter().enumerate() {
            let mut sums = BTreeMap::new();
            let is_here = |local: &&Local| local.places.meets(self.places);
            for local in locals.iter().filter(is_here) {
                let variable = &local.variable;
                let (class, category) = (variable.class, variable.category);
                let key = (local.places, class, category, local.is_gradient);
                let bytes = variable.bytes.div_ceil(self.sharing(local));
                *sums.entry(key).or_insert(0) += bytes;
            }
            for ((_, class, category, is_gradient), bytes) in sums {
                let key = (class, is_gradient);
                let lives = lives.entry(key).or_insert_with(|| self.steps(key));
                let name = &format!("local_{class}");
                each(tile, (category, name), bytes, When::At(lives));
            }
        }
    }

    /// Returns the number of replicas that share a variable.
    fn sharing(&self, local: &Local) -> u64 {
        let Compilation { graph, options, .. } = self.compiled;
        let update = local.made_by.map(|update| &graph.updates.all[update]);
        update.map_or(1, |update| graph.updates.sharing(update, options.elsewhere))
    }

    /// Visits the state that is loaded and stored, and the variables that replicas gather.
    fn updates(&self, each: &mut impl FnMut(usize, Named, u64, When)) {
        let Compilation { graph, options, .. } = self.compiled;
        for update in &graph.updates.all {
            let (from, to) = update.steps;
            let [start, end] = [from, to].map(|step| self.period() + 4 * step);
            let (there, pads) = (start..end, [start..start + 1, end - 1..end]);
            for tile in 0..graph.tiles as usize {
                let on_tile = (tile, self.places);
                let taken = graph.updates.taken(update, on_tile, options.elsewhere);
                for (bytes, lives) in [
                    (taken.loaded, from_ref(&there)),
                    // A load and a store have pads for all of it.
                    (taken.loaded, &pads[..]),
                    (taken.shares, from_ref(&self.once(from, to))),
                    (taken.gathered, from_ref(&(end - 2..end - 1))),
                ] {
                    each(tile, (category::VARIABLE, "state"), bytes, When::At(lives));
                }
            }
        }
    }

    fn accumulators(&self, each: &mut impl FnMut(usize, Named, u64, When)) {
        let Compilation { graph, .. } = self.compiled;
        let weights = graph.weights.iter();
        let weights = weights.filter(|_| graph.backward_start.is_some());
        for weight in weights.filter(|weight| weight.places.meets(self.places)) {
            let names = ["Accum___{}", "{}/Accumulator"];
            let name = self.compiled.name(names, &weight.name);
            let on_tiles = weight.on_tiles.iter().copied().enumerate();
            for (tile, bytes) in on_tiles.filter(|(_, bytes)| *bytes > 0) {
                each(tile, (category::VARIABLE, &name), bytes, When::Accumulator);
            }
        }
    }
}

/// Moments.
impl Ipu<'_> {
    /// Returns the number of moments of the period.
    fn period(&self) -> u32 {
        self.window.end - self.window.start
    }

    /// Adds the moments of the period at which a variable lives that lives, for each micro-batch,
    /// from one moment of the axis to another.
    fn fold(&self, from: u32, to: u32, lives: &mut Vec<Range<u32>>) {
        let [mut from, to] = [from, to].map(|moment| moment - self.window.start);
        while from < to {
            let start = from % self.period();
            let length = (to - from).min(self.period() - start);
            lives.push(start..start + length);
            from += length;
        }
    }

    /// Returns the moments of steps outside of both passes. If state is elsewhere, each step has
    /// one moment before it, for loads, and two after it, for gathering by replicas and for stores.
    fn once(&self, from: u32, to: u32) -> Range<u32> {
        let base = self.period();
        match self.compiled.options.elsewhere.is_any() {
            true => base + 4 * from + 1..base + 4 * to - 2,
            false => base + from..base + to,
        }
    }

    /// Returns the moments at which variables of single operations with this class live; gradients
    /// are summed up at the latest when the passes end. If a body is listed for each call, its
    /// variables live only at the calls of this IPU.
    fn steps(&self, (class, is_gradient): (u32, bool)) -> Vec<Range<u32>> {
        let ranges = &self.compiled.graph.classes[class as usize];
        let is_own = |&&(from, to): &&Steps| {
            let mut own = self.own.iter();
            own.any(|steps| from < steps.1 && steps.0 < to)
        };
        let has_own = ranges.len() > 1 && ranges.iter().any(|range| is_own(&range));
        let mut lives = Vec::new();
        for &(from, to) in ranges.iter().filter(|range| !has_own || is_own(range)) {
            let segments = self.axis.segments.iter();
            let segments = segments.filter(|segment| segment.kind != Kind::Fifo);
            for segment in segments.filter(|segment| self.window.contains(&segment.start)) {
                let (first, end) = (from.max(segment.steps.0), to.min(segment.steps.1));
                if first < end {
                    let at = |step| segment.start + step - segment.steps.0;
                    self.fold(at(first), at(end), &mut lives);
                }
            }
            let Graph { first, update, .. } = *self.compiled.graph;
            if from < first && !is_gradient {
                lives.push(self.once(from, to.min(first)));
            }
            if to > update && !is_gradient {
                lives.push(self.once(from.max(update), to));
            }
        }
        lives
    }

    /// Returns the moments at which a copy of a tensor lives on a tile where it has this class: it
    /// may outlive its uses, or live again.
    fn lives(&self, end: u32, class: u32, copy: &Copy) -> Vec<Range<u32>> {
        let ranges = &self.compiled.graph.classes[class as usize];
        let later = ranges.iter().filter(|range| range.1 > end);
        let later = later.map(|range| (range.0.max(end), range.1));
        let mut lives = Vec::new();
        let mut to = copy.to;
        if let Some(tail) = copy.tail {
            for (from, end) in later {
                let moments = [from, end].map(|step| self.axis.reach(tail, step));
                match moments[0] <= to {
                    true => to = to.max(moments[1]),
                    false => self.fold(moments[0], moments[1], &mut lives),
                }
                // The tensor that is used last may live on when all micro-batches are through.
                let is_rerun = matches!(self.axis.segments[tail].kind, Kind::Rerun(_));
                let update = self.compiled.graph.update;
                if !is_rerun && end > update {
                    lives.push(self.once(from.max(update), end));
                }
            }
        }
        self.fold(copy.from, to, &mut lives);
        lives
    }
}

/// Returns the moments in any of these ranges, as ranges in ascending order without overlap.
fn merged(mut all: Vec<Range<u32>>) -> Vec<Range<u32>> {
    all.sort_unstable_by_key(|live| live.start);
    let mut merged: Vec<Range<u32>> = Vec::new();
    for live in all {
        match merged.last_mut() {
            Some(last) if live.start <= last.end => last.end = last.end.max(live.end),
            _ => merged.push(live),
        }
    }
    merged
}

/// Numbers the FIFOs that run together. Returns the number of FIFOs at the end of each forward run
/// and at the start of each backward run.
fn number_fifos(compiled: &Compilation, stays: &mut [Stay]) -> HashMap<Run, u32> {
    let mut fifos = HashMap::new();
    if compiled.options.schedule.has_fifo() {
        for stay in stays.iter_mut().filter(|stay| stay.slots > 0) {
            let last = stay.takers.last().filter(|_| !compiled.options.early_fifo);
            let (run, _) = last.unwrap_or(&stay.home);
            let count = fifos.entry(*run).or_insert(0);
            stay.fifo = *count;
            *count += 1;
        }
    }
    fifos
}
