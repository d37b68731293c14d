//! Which stages a tensor is made in, used in, kept in and passed through.

use super::{Pipeline, Recompute, Schedule};
use crate::memory::{MemoryModel, join};
use crate::model::{
    Framework, Model, Pass, PassPlaces, PlaceSet, Placement, TensorKind, TooManyPlaces,
    VariableGroup,
};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// When a variable that is no parameter is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// In the forward pass alone, or in both without a step at the turn.
    Forward,
    /// Over the turn: on its last step of the forward pass and on the first of the
    /// backward pass.
    OverTurn,
    /// From some step after the turn on.
    Backward,
}

impl Life {
    const ALL: [Life; 3] = [Life::Forward, Life::OverTurn, Life::Backward];
}

/// Variables that are alike in where and when they are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    /// The places that use it in the forward pass, ascending. Out is the last.
    pub(super) forward: Box<[u32]>,
    /// The same for the backward pass and updates.
    pub(super) backward: Box<[u32]>,
    pub(super) life: Life,
    /// Does the host send it?
    pub(super) is_streamed: bool,
}

/// What a stage does with a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// K: kept from its forward to its backward pass.
    pub(super) kept: bool,
    /// X: made before it, and used in its forward pass.
    pub(super) enters: bool,
    /// C: handed from a layer of it to another.
    pub(super) between_layers: bool,
    /// Y: made in it or received by it, and used after it.
    pub(super) leaves: bool,
    /// A gradient that comes from a later stage.
    pub(super) gradient_in: bool,
    /// A gradient for an earlier stage.
    pub(super) gradient_out: bool,
    /// On its way to another stage, without being used here.
    pub(super) passes: bool,
}

impl Flow {
    /// What a stage with these places does with it: the definitions of
    /// pipeline.md, sections 13 and 15, word by word.
    pub(super) fn part_of(&self, places: &Range<u32>) -> Part {
        let (before, after) = (places.start, places.end);
        let met = |users: &[u32]| users.iter().any(|user| places.contains(user));
        let comes_before = |users: &[u32]| users.iter().any(|&user| user < before);
        let comes_after = |users: &[u32]| users.iter().any(|&user| user >= after);
        let (forward, backward) = (&*self.forward, &*self.backward);
        let is_gradient = self.life == Life::Backward;
        let has_forward = met(forward) && !is_gradient;
        let layers = forward
            .iter()
            .filter(|&&user| user > 0 && places.contains(&user));
        let gradient_maker = backward.last().filter(|_| is_gradient);
        Part {
            kept: self.life == Life::OverTurn && met(backward),
            enters: has_forward && (self.is_streamed || comes_before(forward)),
            between_layers: has_forward && layers.count() > 1,
            leaves: has_forward && comes_after(forward),
            gradient_in: is_gradient && met(backward) && comes_after(backward),
            gradient_out: gradient_maker.is_some_and(|maker| places.contains(maker))
                && comes_before(backward),
            passes: {
                let users = if is_gradient { backward } else { forward };
                comes_before(users) && comes_after(users) && !met(users)
            },
        }
    }
}

impl Part {
    /// Is a copy of it kept for each micro-batch that is under way?
    pub(super) fn is_stashed(self, recompute: Recompute) -> bool {
        match recompute {
            Recompute::None => self.kept,
            Recompute::Stage => self.enters,
            Recompute::Layer => self.enters || self.between_layers,
        }
    }
}

/// All flows of a model.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Flows {
    pub(super) pipeline: Pipeline,
    /// Is there a backward pass?
    pub(super) is_training: bool,
    /// The places: those of In, of each layer, and of Out.
    pub(super) places: u32,
    /// Is Out, the last place, in one position with In?
    pub(super) out_is_first: bool,
    /// The flows by number.
    pub(super) list: Vec<Flow>,
    /// By user set: the first of the numbers of its flows.
    of_set: Vec<OfSet>,
    /// Where a set is used in several places: the same by set and class, since a
    /// variable of a function is used in all that call it, but live in one call.
    of_class: FxHashMap<(u32, u32), u32>,
    /// By user set: where it counts.
    counted: Vec<Box<[u32]>>,
    /// By class: when it is live; `None` for parameters.
    life_of_class: Vec<Option<Life>>,
    /// By user set: the operation groups that copy it from or to the host.
    streams: Vec<Box<[u32]>>,
    /// By user set: bytes of an accumulator are these for each byte of it.
    accumulators: Vec<Option<AccumulatorSize>>,
}

/// Which flow a user set has.
#[derive(Debug, Clone, Copy)]
enum OfSet {
    /// None: it holds weights or constants, or no operation with a place uses it.
    None,
    /// By life from this one on.
    First(u32),
    /// It depends on the class.
    ByClass,
}

/// For a weight: the bytes of its elements, if they are known.
#[derive(Debug, Clone, Copy)]
struct AccumulatorSize(Option<u8>);

/// Flows of one set: by life, streamed or not.
const OF_SET: u32 = 2 * Life::ALL.len() as u32;

impl Flows {
    /// Those of `model` in `pipeline`.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(in crate::memory) fn new(
        model: &Model,
        placement: &Placement,
        pipeline: Pipeline,
    ) -> Result<Self, TooManyPlaces> {
        let by_pass = PassPlaces::new(model, placement)?;
        let positions = &placement.positions;
        let life = |class| life(model, class);
        let life_of_class: Vec<_> = (0..model.classes.len() as u32).map(life).collect();
        let mut known = KnownFlows::default();
        if positions.out_is_first() {
            known.out = Some(positions.len() as u32);
        }
        let of_set = known.of_sets(model, &by_pass);
        let of_class = known.of_classes(model, (&by_pass, placement), &of_set, &life_of_class);
        let counted = placement.counted.iter();
        let counted = counted.map(|&set| placement.sets.places(set).into());
        Ok(Self {
            pipeline,
            is_training: model.turn.is_some(),
            places: positions.len() as u32 + u32::from(positions.out_is_first()),
            out_is_first: positions.out_is_first(),
            list: known.list,
            of_set,
            of_class,
            counted: counted.collect(),
            life_of_class,
            accumulators: accumulators(model, &by_pass, pipeline),
            streams: by_pass.streams,
        })
    }

    /// The flow of a variable; `None` for parameters, constants, and what no
    /// operation with a place uses.
    pub(in crate::memory) fn of(&self, model: &Model, item: &VariableGroup) -> Option<u32> {
        let life = self.life_of_class[item.class as usize]?;
        let first = match self.of_set[item.set as usize] {
            OfSet::None => return None,
            OfSet::First(first) => first,
            OfSet::ByClass => *self.of_class.get(&(item.set, item.class))?,
        };
        // What the host sends begins to be live as it is copied.
        let begin = model.classes.ranges(item.class).first();
        let streamed = begin.is_some_and(|&(begin, _)| {
            let mut streams = self.streams[item.set as usize].iter();
            streams.any(|&group| {
                let copies = &model.operation_groups[group as usize].host_copies;
                copies.binary_search(&begin).is_ok()
            })
        });
        Some(first + 2 * life as u32 + u32::from(streamed))
    }

    /// Bytes of the accumulator of a variable, if it is a weight that gets one.
    pub(super) fn accumulator(&self, item: &VariableGroup) -> Option<u64> {
        let AccumulatorSize(element) = self.accumulators[item.set as usize]?;
        let lasts = self.life_of_class[item.class as usize].is_none();
        let bytes = self.pipeline.accumulator.bytes(item.bytes.into(), element);
        lasts.then_some(bytes)
    }

    /// Is a variable made again layer by layer, so that it is not live in all
    /// layers at once?
    pub(in crate::memory) fn is_recomputed(&self, model: &Model, item: &VariableGroup) -> bool {
        self.recomputes_layers()
            && self.of(model, item).is_some_and(|flow| {
                let flow = &self.list[flow as usize];
                flow.life == Life::OverTurn
                    && !flow.backward.is_empty()
                    && self.is_only_used_by(flow, item.set)
            })
    }

    /// Do only places count a set that use this flow of it?
    fn is_only_used_by(&self, flow: &Flow, set: u32) -> bool {
        let out = self.places - 1;
        let is_used = |place: u32| {
            let own = [
                place,
                if self.out_is_first && place == 0 {
                    out
                } else {
                    place
                },
            ];
            let users = flow.forward.iter().chain(&flow.backward);
            users.into_iter().any(|user| own.contains(user))
        };
        let counted = &self.counted[set as usize];
        !counted.is_empty() && counted.iter().all(|&place| is_used(place))
    }

    pub(in crate::memory) fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    pub(in crate::memory) fn recomputes_layers(&self) -> bool {
        self.is_training && self.pipeline.recompute == Recompute::Layer
    }

    /// Forward pipeline stages after a stage with these positions, which has
    /// `after` stages after it. Out is one more where it is on the first IPU.
    pub(in crate::memory) fn depth(&self, positions: &Range<usize>, after: usize) -> usize {
        let is_whole = positions.len() + 1 == self.places as usize;
        match self.out_is_first {
            true if !is_whole => after + 1,
            _ => after,
        }
    }

    /// How many more copies of what it stashes a stage keeps.
    pub(in crate::memory) fn copies(&self, depth: usize) -> u64 {
        match self.is_training {
            true => self.pipeline.schedule.copies(depth),
            false => 0,
        }
    }

    /// Do gradients and activations wait for other stages?
    pub(super) fn has_waiting(&self) -> bool {
        self.is_training && self.pipeline.schedule.overlaps()
    }

    /// Do gradients wait that come from a later stage? Even where stages do not
    /// overlap they do, while their stage makes its activations again.
    pub(super) fn gradients_wait(&self) -> bool {
        let is_again = self.is_training && self.pipeline.recompute != Recompute::None;
        (self.has_waiting() && !self.is_backward_first())
            || (self.pipeline.schedule == Schedule::Sequential && is_again)
    }

    /// Does the backward pass come before the forward pass in a cycle?
    pub(super) fn is_backward_first(&self) -> bool {
        matches!(
            self.pipeline.schedule,
            Schedule::TfGrouped | Schedule::TfInterleaved
        )
    }
}

/// Flows, each pair of forward and backward places once.
#[derive(Default)]
struct KnownFlows {
    list: Vec<Flow>,
    numbers: FxHashMap<(Box<[u32]>, Box<[u32]>), u32>,
    /// The place of Out, where it is on the first IPU.
    out: Option<u32>,
}

impl KnownFlows {
    /// The first of the flows with these places.
    fn number(&mut self, forward: &[u32], backward: &[u32]) -> u32 {
        // What the forward pass does not use in Out, its own backward pass does
        // not use either: then it is that of In, which has the same weights.
        let is_in = |user: &&u32| Some(**user) == self.out && !forward.contains(user);
        let mut own: Vec<u32> = backward
            .iter()
            .filter(|user| !is_in(user))
            .copied()
            .collect();
        if own.len() < backward.len() && !forward.is_empty() && own.first() != Some(&0) {
            own.insert(0, 0);
        } else if forward.is_empty() {
            own = backward.to_vec();
        }
        let backward = &*own;
        let list = &mut self.list;
        let first = || {
            let first = list.len() as u32;
            for number in 0..OF_SET {
                list.push(Flow {
                    forward: forward.into(),
                    backward: backward.into(),
                    life: Life::ALL[number as usize / 2],
                    is_streamed: number % 2 == 1,
                });
            }
            first
        };
        let key = (forward.into(), backward.into());
        *self.numbers.entry(key).or_insert_with(first)
    }

    fn of_sets(&mut self, model: &Model, by_pass: &PassPlaces) -> Vec<OfSet> {
        let of_set = |set: u32| {
            let kind = model.label_of(set).kind;
            let (forward, backward) = by_pass.places(set);
            match (forward.len(), backward.len()) {
                _ if [TensorKind::Variable, TensorKind::Constant].contains(&kind) => OfSet::None,
                (0, 0) => OfSet::None,
                (0..2, 0..2) => OfSet::First(self.number(forward, backward)),
                _ => OfSet::ByClass,
            }
        };
        (0..model.user_sets.len() as u32).map(of_set).collect()
    }

    /// By set and class, for the sets that several places use.
    fn of_classes(
        &mut self,
        model: &Model,
        (by_pass, placement): (&PassPlaces, &Placement),
        of_set: &[OfSet],
        life_of_class: &[Option<Life>],
    ) -> FxHashMap<(u32, u32), u32> {
        let is_wanted = |item: &&VariableGroup| {
            matches!(of_set[item.set as usize], OfSet::ByClass)
                && life_of_class[item.class as usize].is_some()
        };
        let gather = |mut met: FxHashSet<(u32, u32)>, tile| {
            let items = model.variables.on_tile(tile).iter().filter(is_wanted);
            met.extend(items.map(|item| (item.set, item.class)));
            met
        };
        let tiles = (0..model.variables.tiles()).into_par_iter();
        let met = tiles
            .fold(FxHashSet::default, gather)
            .reduce(FxHashSet::default, |a, b| {
                let (mut large, small) = if a.len() < b.len() { (b, a) } else { (a, b) };
                large.extend(small);
                large
            });
        let windows = PassWindows::new(model, placement, by_pass);
        let mut met: Vec<(u32, u32)> = met.into_iter().collect();
        met.sort_unstable();
        let flow = |(set, class)| {
            let (forward, backward) = windows.users(model, by_pass.places(set), class);
            ((set, class), self.number(&forward, &backward))
        };
        met.into_iter().map(flow).collect()
    }
}

/// The steps at which the operations of each place run, by pass, as far as they
/// run in one place alone.
struct PassWindows {
    forward: Vec<Option<(u32, u32)>>,
    backward: Vec<Option<(u32, u32)>>,
}

impl PassWindows {
    fn new(model: &Model, placement: &Placement, by_pass: &PassPlaces) -> Self {
        let mut runs = vec![0u32; model.operation_groups.len()];
        for operation in &model.operations {
            runs[operation.group as usize] += 1;
        }
        // Out may be a place more than there are positions.
        let places = placement.positions.len() + 1;
        let (mut forward, mut backward) = (vec![None; places], vec![None; places]);
        for (number, operation) in model.operations.iter().enumerate() {
            let group = &model.operation_groups[operation.group as usize];
            let own = &placement.operations[number];
            if !own.reason.is_own() || group.only_streams() {
                continue;
            }
            let places = by_pass.sets.places(own.places);
            let (&[place], Some(window), 1) =
                (places, group.window, runs[operation.group as usize])
            else {
                continue;
            };
            let windows = match operation.pass {
                Pass::Forward => &mut forward,
                Pass::Backward => &mut backward,
                Pass::Update | Pass::Both => continue,
            };
            let known = &mut windows[place as usize];
            *known = join(&[*known, Some(window)]);
        }
        Self { forward, backward }
    }

    /// Those of the users of a variable, by pass, that use it in one and the same
    /// live range: the range that is in most places, or that over the turn.
    fn users(
        &self,
        model: &Model,
        (forward, backward): (&[u32], &[u32]),
        class: u32,
    ) -> (Vec<u32>, Vec<u32>) {
        let meet = |users: &[u32], windows: &[Option<(u32, u32)>], (from, to): (u32, u32)| {
            let is_met = |user: &&u32| {
                let window = windows[**user as usize];
                window.is_none_or(|(first, last)| first < to && from <= last)
            };
            users.iter().filter(is_met).copied().collect::<Vec<u32>>()
        };
        let both = |&range: &(u32, u32)| {
            let forward = meet(forward, &self.forward, range);
            (forward, meet(backward, &self.backward, range))
        };
        let is_over_turn =
            |&(from, to): &(u32, u32)| model.turn.is_some_and(|turn| from < turn && turn < to);
        let ranges = model.classes.ranges(class);
        match ranges.iter().find(|range| is_over_turn(range)) {
            Some(range) => both(range),
            None => {
                let all = ranges.iter().map(both).rev();
                let most = all.max_by_key(|(forward, backward)| forward.len() + backward.len());
                most.unwrap_or_default()
            }
        }
    }
}

/// When a class is live; `None` for parameters, which are live on the first and
/// on the last step, and for what is never live.
fn life(model: &Model, class: u32) -> Option<Life> {
    let (classes, steps) = (&model.classes, model.steps());
    let is_live = |step| classes.is_live(class, step);
    let &(begin, _) = classes.ranges(class).first()?;
    if is_live(0) && is_live(steps - 1) {
        return None;
    }
    Some(match model.turn {
        Some(turn) if begin >= turn => Life::Backward,
        Some(turn) if is_live(turn - 1) && is_live(turn) => Life::OverTurn,
        _ => Life::Forward,
    })
}

/// By user set: which are weights that need an accumulator (pipeline.md, section
/// 14). None do where the profile has accumulators or gradients are not summed up.
fn accumulators(
    model: &Model,
    by_pass: &PassPlaces,
    pipeline: Pipeline,
) -> Vec<Option<AccumulatorSize>> {
    let sets = model.user_sets.len();
    if !pipeline.is_on() || model.turn.is_none() || model.recording.accumulates {
        return vec![None; sets];
    }
    let has_kinds = model.recording.framework != Framework::Tensorflow
        && model
            .labels
            .iter()
            .any(|own| own.kind == TensorKind::Variable);
    let updates = model.updates_by_set();
    let size = |set: u32| {
        let label = model.label_of(set);
        let is_forward = !by_pass
            .sets
            .places(by_pass.forward[set as usize])
            .is_empty();
        let is_weight = if has_kinds {
            // The optimiser's state has these marks in front of the weight.
            let is_state = ["Accum___", "Accl"]
                .iter()
                .any(|mark| label.tensor.starts_with(mark));
            label.kind == TensorKind::Variable && !is_state
        } else {
            // What several updates use, such as a learning rate, is not a weight.
            label.kind != TensorKind::Constant && updates[set as usize] == 1
        };
        (is_weight && is_forward).then_some(AccumulatorSize(label.element_bytes))
    };
    (0..sets as u32).map(size).collect()
}

/// The flows of one tile; used again for the next.
#[derive(Debug, Default)]
pub(in crate::memory) struct TileFlows {
    /// By flow: all bytes, and those of the largest variable.
    bytes: Vec<(u64, u64)>,
    /// The flows that have bytes.
    pub(super) met: Vec<u32>,
    /// Bytes of accumulators, with the places where they count.
    pub(super) accumulators: Vec<(PlaceSet, u64)>,
}

impl TileFlows {
    /// Gathers what is on `tile`.
    pub(in crate::memory) fn load(&mut self, memory: &MemoryModel<'_>, flows: &Flows, tile: u32) {
        for &flow in &self.met {
            self.bytes[flow as usize] = (0, 0);
        }
        self.bytes.resize(flows.list.len(), (0, 0));
        self.met.clear();
        self.accumulators.clear();
        for item in memory.variables(tile) {
            if let Some(bytes) = flows.accumulator(item) {
                let places = memory.counted(item.set);
                match self.accumulators.last_mut() {
                    Some((last, sum)) if *last == places => *sum += bytes,
                    _ => self.accumulators.push((places, bytes)),
                }
            }
            let Some(flow) = flows.of(memory.model, item) else {
                continue;
            };
            let (all, largest) = &mut self.bytes[flow as usize];
            if *all == 0 {
                self.met.push(flow);
            }
            *all += u64::from(item.bytes);
            *largest = (*largest).max(item.bytes.into());
        }
    }

    /// All bytes of a flow.
    pub(super) fn bytes(&self, flow: u32) -> u64 {
        self.bytes[flow as usize].0
    }

    /// Those of its largest variable.
    pub(super) fn largest(&self, flow: u32) -> u64 {
        self.bytes[flow as usize].1
    }
}

#[cfg(test)]
impl Flows {
    /// Those that a test made, of a training model.
    pub(super) fn made(
        list: Vec<Flow>,
        pipeline: Pipeline,
        places: u32,
        out_is_first: bool,
    ) -> Self {
        Self {
            pipeline,
            is_training: true,
            places,
            out_is_first,
            list,
            of_set: Vec::new(),
            of_class: FxHashMap::default(),
            counted: Vec::new(),
            life_of_class: Vec::new(),
            streams: Vec::new(),
            accumulators: Vec::new(),
        }
    }
}

#[cfg(test)]
impl TileFlows {
    /// A tile with these bytes of each flow.
    pub(super) fn made(bytes: impl Iterator<Item = u64>) -> Self {
        let bytes: Vec<(u64, u64)> = bytes.map(|bytes| (bytes, bytes)).collect();
        Self {
            met: (0..bytes.len() as u32).collect(),
            bytes,
            accumulators: Vec::new(),
        }
    }
}
