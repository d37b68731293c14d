//! In and Out: what runs before the layers, and after them.

use super::place_sets::{NOWHERE, PlaceSet};
use super::touches::Touches;
use crate::model::Model;

/// The parts of the program, by operations in the order of the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    /// The first operation of a layer.
    first: usize,
    /// The last operation of a layer before the backward pass.
    last_forward: usize,
    /// The first operation of a layer in the backward pass; without one, there
    /// are only operations before it.
    first_backward: usize,
    /// The last operation of a layer.
    last: usize,
}

/// A part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Before the first layer.
    Before,
    /// From the first operation of a layer to the last, but for the next part.
    Layers,
    /// After the last layer and before the backward pass returns into it.
    AfterForward,
    /// After the backward pass of the layers.
    AfterBackward,
}

impl Parts {
    /// The parts of a program whose operations have these places by their
    /// layers; `None` without a layer.
    pub(super) fn new(model: &Model, by_layer: &[PlaceSet]) -> Option<Self> {
        let layered: Vec<usize> = (0..by_layer.len())
            .filter(|&operation| by_layer[operation] != NOWHERE)
            .collect();
        let (&first, &last) = (layered.first()?, layered.last()?);
        let (last_forward, first_backward) = match turn(model) {
            Some(turn) => around(&layered, turn),
            None => return_into(model, by_layer, &layered),
        };
        Some(Self {
            first,
            last_forward,
            first_backward,
            last,
        })
    }

    /// The part that an operation is in.
    pub(super) fn of(&self, operation: usize) -> Part {
        if operation < self.first {
            Part::Before
        } else if operation > self.last_forward && operation < self.first_backward {
            Part::AfterForward
        } else if operation > self.last {
            Part::AfterBackward
        } else {
            Part::Layers
        }
    }

    /// Are these operations in one pass, forward or backward?
    pub(super) fn same_pass(&self, a: usize, b: usize) -> bool {
        (a < self.first_backward) == (b < self.first_backward)
    }
}

/// The first operation of the backward pass, where contexts tell. Inside
/// function bodies they do not (pipeline.md, section 12).
fn turn(model: &Model) -> Option<usize> {
    let mut operations = model.operations.iter();
    operations.position(|operation| operation.is_backward && !operation.is_nested)
}

/// The operations of layers on both sides of the turn.
fn around(layered: &[usize], turn: usize) -> (usize, usize) {
    let before = layered.partition_point(|&operation| operation < turn);
    let last_forward = before.checked_sub(1).map_or(0, |last| layered[last]);
    (
        last_forward,
        layered.get(before).copied().unwrap_or(usize::MAX),
    )
}

/// The same where no context tells: the backward pass begins within the
/// operations of the layer that comes last, where most others lie between two
/// of them, if an earlier layer comes again after it.
fn return_into(model: &Model, by_layer: &[PlaceSet], layered: &[usize]) -> (usize, usize) {
    let last = layered[layered.len() - 1];
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
        return (last, usize::MAX);
    }
    let between = |pair: &[usize]| {
        let own = &model.operations[pair[0] + 1..pair[1]];
        let computes = |body: u32| !model.bodies[body as usize].code.vertex_types.is_empty();
        own.iter()
            .filter(|operation| computes(operation.body))
            .count()
    };
    let pairs = layered[newest..=end].windows(2).rev();
    match pairs.max_by_key(|pair| between(pair)) {
        Some(pair) => (pair[0], pair[1]),
        None => (last, usize::MAX),
    }
}

/// Which operations without a layer are of In or Out: by operation.
pub(super) struct Ends<'a> {
    pub(super) model: &'a Model,
    pub(super) parts: &'a Parts,
    pub(super) by_layer: &'a [PlaceSet],
    /// What operations touch of the variables of layers.
    pub(super) touches: &'a Touches,
    /// The position of Out.
    pub(super) out: u32,
}

/// The position of In.
pub(super) const IN: u32 = 0;

impl Ends<'_> {
    /// By operation without a layer: In or Out, if it is of one of these.
    pub(super) fn find(&self) -> Vec<Option<u32>> {
        let mut is_over = false;
        let mut ends = vec![None; self.by_layer.len()];
        for operation in 0..self.by_layer.len() {
            let may_be = self.by_layer[operation] == NOWHERE && self.is_computing(operation);
            let is_own = may_be && self.is_of_no_layer(operation);
            ends[operation] = match self.parts.of(operation) {
                Part::Before => is_own.then_some(IN),
                Part::AfterForward => is_own.then_some(self.out),
                // What follows the layers' backward pass is that of In, up to
                // the first operation that updates or looks at all layers.
                Part::AfterBackward => {
                    is_over |= may_be && !is_own;
                    (is_own && !is_over).then_some(IN)
                }
                Part::Layers => None,
            };
        }
        ends
    }

    /// Does it compute, and is it part of the model? What the compiler makes
    /// and what only moves data is not of In or Out by where it stands.
    fn is_computing(&self, operation: usize) -> bool {
        let operation = &self.model.operations[operation];
        let body = &self.model.bodies[operation.body as usize];
        !body.code.vertex_types.is_empty() && !operation.is_anonymous && !operation.is_tensor
    }

    /// Does it neither reach over the model nor use weights of a layer? An
    /// operation that casts the weights of a layer belongs to that.
    fn is_of_no_layer(&self, operation: usize) -> bool {
        let operation = &self.model.operations[operation];
        let touches = self.touches;
        !operation.is_update
            && !touches.reaches_over(operation.body)
            && !touches.has_parameters(operation.body, |_| true)
    }
}
