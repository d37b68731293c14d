//! In and Out: what runs before the layers, and after them.

use super::place_sets::{IN, NOWHERE, PlaceSet};
use super::touches::{Known, Touches};
use crate::model::Model;

/// The parts of the program, by operations in the order of the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramParts {
    /// The first operation of a layer.
    first: usize,
    /// The last operation of a layer before the backward pass.
    last_forward: usize,
    /// The first operation of a layer in the backward pass; without one, there
    /// are only operations before it.
    first_backward: usize,
    /// The last operation of a layer.
    last: usize,
    /// Do contexts tell the backward pass?
    pub(super) has_turn: bool,
}

/// A part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramPart {
    /// Before the first layer.
    Before,
    /// From the first operation of a layer to the last, but for the next part.
    Layers,
    /// After the last layer and before the backward pass returns into it.
    AfterForward,
    /// After the backward pass of the layers.
    AfterBackward,
}

impl ProgramParts {
    /// The parts of a program; `None` without a layer.
    pub(super) fn new(model: &Model, layered: &Layered<'_>) -> Option<Self> {
        let with_names = || with_places(layered.named);
        let all: Vec<usize> = with_places(layered.all).collect();
        let first = with_names().next().or(all.first().copied())?;
        let Some(turn) = turn(model) else {
            let named: Vec<usize> = with_names().collect();
            let (last_forward, first_backward) = return_into(model, layered.named, &named)?;
            let last = end_of_backward(layered.named, &named, first_backward)?;
            return Some(Self {
                first,
                last_forward,
                first_backward,
                last,
                has_turn: false,
            });
        };
        let last_forward = with_names()
            .take_while(|&operation| operation < turn)
            .last();
        let backward = |operation: usize| {
            let own = &model.operations[operation];
            let is_named = layered.named[operation] != NOWHERE && !own.is_update;
            operation >= turn && (own.is_backward || is_named)
        };
        let backward: Vec<usize> = all.into_iter().filter(|&own| backward(own)).collect();
        let returns = |operation: &usize| layered.is_of_a_layer(*operation);
        Some(Self {
            first,
            last_forward: last_forward.unwrap_or(first),
            first_backward: backward.iter().copied().find(returns).unwrap_or(usize::MAX),
            last: backward.last().copied().or(last_forward).unwrap_or(first),
            has_turn: true,
        })
    }

    /// The part that an operation is in.
    pub(super) fn of(&self, operation: usize) -> ProgramPart {
        if operation < self.first {
            ProgramPart::Before
        } else if operation > self.last_forward && operation < self.first_backward {
            ProgramPart::AfterForward
        } else if operation > self.last {
            ProgramPart::AfterBackward
        } else {
            ProgramPart::Layers
        }
    }

    /// Are these operations in one pass, forward or backward?
    pub(super) fn same_pass(&self, a: usize, b: usize) -> bool {
        (a < self.first_backward) == (b < self.first_backward)
    }
}

fn with_places(places: &[PlaceSet]) -> impl Iterator<Item = usize> {
    let numbered = places.iter().enumerate();
    numbered.filter_map(|(operation, &own)| (own != NOWHERE).then_some(operation))
}

/// What is known of the layers of operations before In and Out are known.
pub(super) struct Layered<'a> {
    /// By operation: the places that its own name, or its call, says.
    pub(super) named: &'a [PlaceSet],
    /// The same with those that its inputs say.
    pub(super) all: &'a [PlaceSet],
    /// By operation: its operation group uses no variable of what comes after
    /// the last layer, or a weight of a layer.
    pub(super) is_of_a_layer: &'a dyn Fn(usize) -> bool,
}

impl Layered<'_> {
    /// Inputs of a layer are also those of what comes after it, in its forward
    /// and backward pass; this uses variables of its own.
    fn is_of_a_layer(&self, operation: usize) -> bool {
        self.named[operation] != NOWHERE || (self.is_of_a_layer)(operation)
    }
}

/// The operations after the last that a name gives to a layer and before the
/// backward pass, where contexts tell: they are of Out for certain.
pub(super) fn after_layers(model: &Model, named: &[PlaceSet]) -> std::ops::Range<usize> {
    let turn = turn(model).unwrap_or(0);
    let last = with_places(named)
        .take_while(|&operation| operation < turn)
        .last();
    last.map_or(0, |last| last + 1)..turn
}

/// The first operation of the backward pass, where contexts tell. Inside
/// function bodies they do not (pipeline.md, section 12).
fn turn(model: &Model) -> Option<usize> {
    let mut operations = model.operations.iter();
    operations.position(|operation| operation.is_backward && !operation.is_nested)
}

/// The last operation of a layer before the backward pass and the first in it,
/// where no context tells: it begins within the operations of the layer that
/// comes last, where most others lie between two of them, if an earlier layer
/// comes again after it.
fn return_into(model: &Model, by_layer: &[PlaceSet], layered: &[usize]) -> Option<(usize, usize)> {
    let last = *layered.last()?;
    let mut seen: Vec<PlaceSet> = Vec::new();
    let mut newest = 0;
    for (number, &operation) in layered.iter().enumerate() {
        if !seen.contains(&by_layer[operation]) {
            seen.push(by_layer[operation]);
            newest = number;
        }
    }
    let of_newest = by_layer[layered[newest]];
    let run = layered[newest..].iter();
    let run = run.take_while(|&&operation| by_layer[operation] == of_newest);
    let end = newest + run.count();
    if end == layered.len() {
        return Some((last, usize::MAX));
    }
    let between = |pair: &[usize]| {
        let own = &model.operations[pair[0] + 1..pair[1]];
        let computes = |group: u32| model.operation_groups[group as usize].computes();
        own.iter()
            .filter(|operation| computes(operation.group))
            .count()
    };
    let pairs = layered[newest..=end].windows(2).rev();
    let widest = pairs.max_by_key(|pair| between(pair));
    Some(widest.map_or((last, usize::MAX), |pair| (pair[0], pair[1])))
}

/// The last operation of a layer in the backward pass, where no context tells:
/// an optimiser whose names give layers goes through these once more.
fn end_of_backward(
    by_layer: &[PlaceSet],
    layered: &[usize],
    first_backward: usize,
) -> Option<usize> {
    let first = by_layer[*layered.first()?];
    let mut last = *layered.last()?;
    let backward = layered
        .iter()
        .copied()
        .skip_while(|&own| own < first_backward);
    let mut is_at_first = false;
    for operation in backward {
        if is_at_first && by_layer[operation] != first {
            break;
        }
        is_at_first |= by_layer[operation] == first;
        last = operation;
    }
    Some(last)
}

/// Does an operation compute, and is it part of the model? What the compiler
/// makes and what only moves data does not belong to In or Out because of its
/// position.
pub(super) fn computes(model: &Model, operation: usize) -> bool {
    let operation = &model.operations[operation];
    let group = &model.operation_groups[operation.group as usize];
    group.computes() && !operation.is_anonymous && !operation.is_tensor
}

/// Which operations without a layer are of In or Out: by operation.
pub(super) struct Ends<'a> {
    pub(super) model: &'a Model,
    pub(super) parts: &'a ProgramParts,
    pub(super) by_layer: &'a [PlaceSet],
    /// What operations touch of the variables of layers, and of what comes
    /// after them for certain.
    pub(super) touches: &'a Touches,
    pub(super) known: &'a Known,
    /// The position of Out.
    pub(super) out: u32,
}

impl Ends<'_> {
    /// By operation: In or Out, if it runs before the layers or after them in
    /// the forward pass, or in the backward pass before that of the layers.
    pub(super) fn around_layers(&self) -> Vec<Option<u32>> {
        let end = |operation: usize| match self.parts.of(operation) {
            _ if self.is_apart(operation) => None,
            ProgramPart::Before => Some(IN),
            ProgramPart::AfterForward => Some(self.out),
            _ => None,
        };
        let operations = 0..self.by_layer.len();
        let is_ours = |place| place == IN || place == self.out;
        let own = |operation| end(operation).filter(|_| self.is_own(operation, is_ours));
        operations.map(own).collect()
    }

    /// By operation: does it run in the backward pass of what is before the
    /// layers? Where no context tells the pass, it follows that of the layers
    /// and uses what is made in the layers or before them; an update does not.
    pub(super) fn backward_before_layers(&self) -> Vec<bool> {
        let mut is_over = false;
        let is_one = |operation: usize| {
            let own = &self.model.operations[operation];
            let is_after = self.parts.of(operation) == ProgramPart::AfterBackward;
            is_over |= is_after && self.by_layer[operation] != NOWHERE;
            let is_backward = if self.parts.has_turn {
                own.is_backward
            } else {
                !is_over
                    && self
                        .touches
                        .uses_passing(own.group, |place| place != self.out)
            };
            let is_free = is_after && is_backward && !self.is_apart(operation);
            is_free && self.is_own(operation, |place| place == IN) && !self.ends_layers(own.group)
        };
        (0..self.by_layer.len()).map(is_one).collect()
    }

    /// Does it use variables of the layers but none of In: is it what sums the
    /// gradients of the first layer?
    fn ends_layers(&self, group: u32) -> bool {
        let touched = self.touches.of(group).iter();
        let local = touched.filter(|touch| touch.local.all > 0);
        let places: Vec<u32> = local.map(|touch| touch.place).collect();
        !places.is_empty() && !places.contains(&IN)
    }

    fn is_apart(&self, operation: usize) -> bool {
        self.known.apart[self.model.operations[operation].group as usize]
    }

    /// Is it part of the model but of no layer: does it neither reach over the
    /// model nor use weights of other places than these? An operation that casts
    /// the weights of a layer belongs to that.
    fn is_own(&self, operation: usize, is_ours: impl Fn(u32) -> bool) -> bool {
        let own = &self.model.operations[operation];
        self.by_layer[operation] == NOWHERE
            && computes(self.model, operation)
            && !own.is_update
            && !self.known.shared[own.group as usize]
            && !self.touches.reaches_over(own.group, self.out)
            && !self
                .touches
                .has_parameters(own.group, |place| !is_ours(place))
    }
}
