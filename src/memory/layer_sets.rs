//! Sets of layers: who uses a variable, who runs a piece of code.

use crate::model::{BodySets, Layering, Model, NO_LAYER};
use rustc_hash::FxHashMap;

/// Sets of layer positions in ascending order, each kept once. Set 0 is empty.
#[derive(Debug, Clone)]
pub(super) struct LayerSets {
    sets: Vec<Box<[u32]>>,
    ids: FxHashMap<Box<[u32]>, u32>,
}

impl LayerSets {
    fn new() -> Self {
        let mut sets = Self {
            sets: Vec::new(),
            ids: FxHashMap::default(),
        };
        sets.intern(&[]);
        sets
    }

    /// The number of a set, which must ascend.
    pub(super) fn intern(&mut self, layers: &[u32]) -> u32 {
        if let Some(&id) = self.ids.get(layers) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(layers.into());
        self.ids.insert(layers.into(), id);
        id
    }

    /// The layers of a set.
    pub(super) fn layers(&self, set: u32) -> &[u32] {
        &self.sets[set as usize]
    }

    /// All sets, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.sets.iter().map(|set| &**set)
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        let mut both = [self.layers(a), self.layers(b)].concat();
        both.sort_unstable();
        both.dedup();
        self.intern(&both)
    }

    /// The set without the pseudo-layer.
    fn without_pseudo(&mut self, set: u32) -> u32 {
        let kept: Vec<u32> = self.layers(set).to_vec();
        match kept.first() {
            Some(&NO_LAYER) => self.intern(&kept[1..]),
            _ => set,
        }
    }
}

/// The layers of each body, and of each set of bodies.
#[derive(Debug, Clone)]
pub(super) struct Users {
    pub(super) sets: LayerSets,
    /// By body: its layers, the pseudo-layer included.
    pub(super) of_body: Vec<u32>,
    /// By set of bodies: the layers of all of them, the pseudo-layer included.
    pub(super) of_set: Vec<u32>,
    /// The same without the pseudo-layer: a stage counts the variables of
    /// operations that have a layer.
    pub(super) layered: Vec<u32>,
}

impl Users {
    pub(super) fn new(model: &Model, layering: &Layering) -> Self {
        let mut sets = LayerSets::new();
        let of_body = of_bodies(model, layering, &mut sets);
        let of_set = of_sets(&model.body_sets, &of_body, &mut sets);
        let layered = of_set.iter().map(|&set| sets.without_pseudo(set));
        let layered = layered.collect();
        Self {
            sets,
            of_body,
            of_set,
            layered,
        }
    }
}

fn of_bodies(model: &Model, layering: &Layering, sets: &mut LayerSets) -> Vec<u32> {
    let mut layers: Vec<Vec<u32>> = vec![Vec::new(); model.bodies.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        layers[operation.body as usize].push(layer);
    }
    let set = |mut layers: Vec<u32>| {
        layers.sort_unstable();
        layers.dedup();
        sets.intern(&layers)
    };
    layers.into_iter().map(set).collect()
}

fn of_sets(body_sets: &BodySets, of_body: &[u32], sets: &mut LayerSets) -> Vec<u32> {
    let mut unions: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut of_set = vec![0; body_sets.len()];
    for (set, smaller, body) in body_sets.iter() {
        let (a, b) = (of_set[smaller as usize], of_body[body as usize]);
        of_set[set as usize] = match a == b || a == 0 {
            true => b,
            false => *unions.entry((a, b)).or_insert_with(|| sets.union(a, b)),
        };
    }
    of_set
}
