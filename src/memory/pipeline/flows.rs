//! Which stages a tensor is made in, used in, kept in and passed through.

use super::{Pipeline, Recompute, Schedule};
use crate::memory::MemoryModel;
use crate::model::{
    EVERYWHERE, Framework, Model, PassPlaces, PlaceSet, Placement, TensorKind, TooManyPlaces,
    VariableGroup,
};
use rustc_hash::FxHashMap;
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
    /// By user set: the first of the numbers of its flows, or none where nobody
    /// has a place or it holds weights or constants.
    first_of_set: Vec<Option<u32>>,
    /// By user set: do only places that use it count it?
    is_plain: Vec<bool>,
    /// By class: when it is live; `None` for parameters.
    life_of_class: Vec<Option<Life>>,
    /// By user set: the steps of host copies to it.
    streamed: Vec<Option<(u32, u32)>>,
    /// By user set: bytes of an accumulator are these for each byte of it.
    accumulators: Vec<Option<AccumulatorSize>>,
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
        let (list, first_of_set) = flows(model, &by_pass);
        let positions = &placement.positions;
        let life = |class| life(model, class);
        Ok(Self {
            pipeline,
            is_training: model.turn.is_some(),
            places: positions.len() as u32 + u32::from(positions.out_is_first()),
            out_is_first: positions.out_is_first(),
            is_plain: is_plain(placement, &by_pass),
            list,
            first_of_set,
            life_of_class: (0..model.classes.len() as u32).map(life).collect(),
            accumulators: accumulators(model, &by_pass, pipeline),
            streamed: by_pass.streamed,
        })
    }

    /// The flow of a variable; `None` for parameters, constants, and what no
    /// operation with a place uses.
    pub(in crate::memory) fn of(&self, model: &Model, item: &VariableGroup) -> Option<u32> {
        let life = self.life_of_class[item.class as usize]?;
        let first = self.first_of_set[item.set as usize]?;
        let streamed = self.streamed[item.set as usize].is_some_and(|(first, last)| {
            let begin = model.classes.ranges(item.class).first();
            begin.is_some_and(|&(begin, _)| (first..=last).contains(&begin))
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
            && self.is_plain[item.set as usize]
            && self.of(model, item).is_some_and(|flow| {
                let flow = &self.list[flow as usize];
                flow.life == Life::OverTurn && !flow.backward.is_empty()
            })
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

    /// Does the backward pass come before the forward pass in a cycle?
    pub(super) fn is_backward_first(&self) -> bool {
        matches!(
            self.pipeline.schedule,
            Schedule::TfGrouped | Schedule::TfInterleaved
        )
    }
}

/// The flows of all user sets, and by set the first of them. Six belong to each
/// pair of forward and backward places.
fn flows(model: &Model, by_pass: &PassPlaces) -> (Vec<Flow>, Vec<Option<u32>>) {
    let mut known: FxHashMap<(PlaceSet, PlaceSet), u32> = FxHashMap::default();
    let mut list = Vec::new();
    let first = |set: u32| {
        let users = (
            by_pass.forward[set as usize],
            by_pass.backward[set as usize],
        );
        let forward = by_pass.sets.places(users.0);
        let backward = by_pass.sets.places(users.1);
        let is_tensor = !matches!(
            model.label_of(set).kind,
            TensorKind::Variable | TensorKind::Constant
        );
        if !is_tensor || (forward.is_empty() && backward.is_empty()) {
            return None;
        }
        Some(*known.entry(users).or_insert_with(|| {
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
        }))
    };
    let of_set = (0..model.user_sets.len() as u32).map(first).collect();
    (list, of_set)
}

/// By user set: do only places count it that use it in one of the passes?
fn is_plain(placement: &Placement, by_pass: &PassPlaces) -> Vec<bool> {
    let positions = &placement.positions;
    let is_used = |place: u32, users: &PlaceSet| {
        let mut users = by_pass.sets.places(*users).iter();
        users.any(|&user| positions.of_place(user) == place as usize)
    };
    let users = by_pass.forward.iter().zip(&by_pass.backward);
    let sets = placement.counted.iter().zip(users);
    let is_plain = sets.map(|(&counted, (forward, backward))| {
        let mut places = placement.sets.places(counted).iter();
        counted != EVERYWHERE
            && places.all(|&place| is_used(place, forward) || is_used(place, backward))
    });
    is_plain.collect()
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
            first_of_set: Vec::new(),
            is_plain: Vec::new(),
            life_of_class: Vec::new(),
            streamed: Vec::new(),
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
