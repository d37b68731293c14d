//! Where operations without a layer go.
//!
//! The classic model keeps them apart as a pseudo-layer and forgets their
//! variables: embedding tables, heads, losses, the optimiser's state. Here each
//! gets a home among the layers, so that all of its memory is somewhere.

use super::{Layering, Model, NO_LAYER};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What becomes of operations without a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layerless {
    /// Each goes to a layer: to one whose operations use at least half of the
    /// bytes of its variables; without such a layer, to the first before the
    /// first layered operation, to the last after the last, and in between to
    /// that of the nearest layered operation before it.
    #[default]
    Home,
    /// All of them go with the first stage, as a pseudo-layer.
    First,
    /// They are left out.
    Ignore,
}

/// The layer that each operation counts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// By operation: a position of the layer order, [`NO_LAYER`] for the
    /// pseudo-layer; `None` when it is left out.
    pub layers: Vec<Option<u32>>,
    /// Are more variables shared with operations without a layer than can be
    /// looked at? Then these have no right place. No real model comes near.
    pub is_beyond_bounds: bool,
}

impl Placement {
    /// Every operation in the layer that its names say, the others in the
    /// pseudo-layer.
    pub fn by_name(layering: &Layering) -> Self {
        let layers = layering.layers.iter().map(|&layer| Some(layer));
        Self {
            layers: layers.collect(),
            is_beyond_bounds: false,
        }
    }

    /// Gives the operations without a layer what `layerless` says.
    pub fn new(model: &Model, layering: &Layering, layerless: Layerless) -> Self {
        if layerless == Layerless::First || layering.is_empty() {
            return Self::by_name(layering);
        }
        if layerless == Layerless::Ignore {
            let layers = layering.layers.iter();
            return Self {
                layers: layers
                    .map(|&l| Some(l).filter(|&l| l != NO_LAYER))
                    .collect(),
                is_beyond_bounds: false,
            };
        }
        let companions = companions(model, layering);
        let is_beyond_bounds = companions.is_none();
        let home = Homes::new(model, layering, companions.unwrap_or_default());
        let layers = layering.layers.iter().enumerate();
        let place = |(operation, &layer): (usize, &u32)| match layer {
            NO_LAYER => home.of(operation),
            layer => layer,
        };
        Self {
            layers: layers.map(place).map(Some).collect(),
            is_beyond_bounds,
        }
    }
}

/// An operation goes with a layer that uses at least this part of the bytes of
/// its variables: 1 in so many.
const SHARED_PART: u64 = 2;

/// Finds homes.
struct Homes<'a> {
    model: &'a Model,
    layering: &'a Layering,
    /// The operations that have a layer, in order.
    layered: Vec<usize>,
    /// By body: the layer that uses most of its variables, if that is enough.
    /// Empty when they are not known.
    companions: Vec<Option<u32>>,
}

impl<'a> Homes<'a> {
    fn new(model: &'a Model, layering: &'a Layering, companions: Vec<Option<u32>>) -> Self {
        let layers = layering.layers.iter().enumerate();
        let layered = layers.filter(|&(_, &layer)| layer != NO_LAYER);
        Self {
            model,
            layering,
            layered: layered.map(|(index, _)| index).collect(),
            companions,
        }
    }

    /// The home of an operation without a layer. What it shares decides before
    /// where it stands: weights are uploaded before the first layer, and
    /// optimisers update them behind the last.
    fn of(&self, operation: usize) -> u32 {
        let body = self.model.operations[operation].body;
        if let Some(Some(layer)) = self.companions.get(body as usize) {
            return *layer;
        }
        let is_last = self.layered.last().is_none_or(|&last| last < operation);
        let before = self.layered.partition_point(|&layered| layered < operation);
        match before.checked_sub(1) {
            None => 1,
            Some(_) if is_last => self.layering.len() as u32 - 1,
            Some(nearest) => self.layering.layers[self.layered[nearest]],
        }
    }
}

/// How many bodies, and pairs of a body without a layer and a layer, are looked
/// at over all sets, and how many such pairs are kept. Real models have some
/// 10^6 and 10^4; few bytes of a file can ask for any number.
const MOST_LOOKS: usize = 1 << 28;
const MOST_PAIRS: usize = 1 << 22;

/// By body of an operation without a layer: the layer whose operations use most
/// bytes of its variables, the first of several, if that is enough of them.
/// `None` when too much is shared to tell.
fn companions(model: &Model, layering: &Layering) -> Option<Vec<Option<u32>>> {
    let Shared { all, pairs } = shared(model, layering)?;
    let mut best: Vec<Option<(u64, Reverse<u32>)>> = vec![None; model.bodies.len()];
    for ((body, layer), bytes) in pairs {
        let best = &mut best[body as usize];
        *best = (*best).max(Some((bytes, Reverse(layer))));
    }
    let enough = |(best, all): (Option<(u64, Reverse<u32>)>, u64)| {
        let (bytes, Reverse(layer)) = best?;
        (bytes >= all / SHARED_PART).then_some(layer)
    };
    Some(best.into_iter().zip(all).map(enough).collect())
}

/// Bytes of the variables of bodies without a layer.
struct Shared {
    /// By body: all of them.
    all: Vec<u64>,
    /// Those that operations of a layer use too, by body and layer.
    pairs: FxHashMap<(u32, u32), u64>,
}

fn shared(model: &Model, layering: &Layering) -> Option<Shared> {
    let mut layers_of = vec![Vec::new(); model.bodies.len()];
    let mut is_layerless = vec![false; model.bodies.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        match layer {
            NO_LAYER => is_layerless[operation.body as usize] = true,
            layer => layers_of[operation.body as usize].push(layer),
        }
    }
    for layers in &mut layers_of {
        layers.sort_unstable();
        layers.dedup();
    }
    let mut all = vec![0u64; model.bodies.len()];
    let mut pairs: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let (mut layerless, mut layers) = (Vec::new(), Vec::new());
    let mut left = MOST_LOOKS;
    for (set, bytes) in bytes_of_sets(model) {
        layerless.clear();
        layers.clear();
        for body in model.body_sets.bodies(set) {
            let of_body = &layers_of[body as usize];
            left = left.checked_sub(1 + of_body.len())?;
            layers.extend_from_slice(of_body);
            layerless.extend(Some(body).filter(|&body| is_layerless[body as usize]));
        }
        layers.sort_unstable();
        layers.dedup();
        left = left.checked_sub(layerless.len().checked_mul(layers.len())?)?;
        for &body in &layerless {
            all[body as usize] += bytes;
            for &layer in &layers {
                *pairs.entry((body, layer)).or_default() += bytes;
            }
            if pairs.len() > MOST_PAIRS {
                return None;
            }
        }
    }
    Some(Shared { all, pairs })
}

/// Bytes over all tiles of the variables of each set of bodies that has any.
fn bytes_of_sets(model: &Model) -> impl Iterator<Item = (u32, u64)> {
    let mut bytes = vec![0u64; model.body_sets.len()];
    for tile in 0..model.variables.tiles() {
        for item in model.variables.on_tile(tile) {
            bytes[item.set as usize] += u64::from(item.bytes);
        }
    }
    (0u32..).zip(bytes).skip(1).filter(|&(_, bytes)| bytes > 0)
}
