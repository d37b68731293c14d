//! Sets of layers: who uses a variable, who runs a piece of code.

use super::Rules;
use crate::model::{BodySets, Layering, Model, NO_LAYER, Placement};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Sets of layer positions in ascending order, each kept once. Set 0 is empty.
#[derive(Debug, Clone)]
pub(super) struct LayerSets {
    sets: Vec<Arc<[u32]>>,
    ids: FxHashMap<Arc<[u32]>, u32>,
    /// How many more layers the sets may have together.
    left: usize,
    is_full: bool,
}

/// How many layers all sets may have together. Real models have some 10^6; few
/// bytes of a profile can ask for any number.
const MOST: usize = 1 << 24;

impl LayerSets {
    fn new() -> Self {
        let mut sets = Self {
            sets: Vec::new(),
            ids: FxHashMap::default(),
            left: MOST,
            is_full: false,
        };
        sets.intern(&[]);
        sets
    }

    /// Was there a set that had no room? It counts as empty then, and nothing
    /// that is computed with these sets is right.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The number of a set, which must ascend.
    pub(super) fn intern(&mut self, layers: &[u32]) -> u32 {
        if let Some(&id) = self.ids.get(layers) {
            return id;
        }
        let Some(left) = self.left.checked_sub(layers.len()) else {
            self.is_full = true;
            return 0;
        };
        self.left = left;
        let id = self.sets.len() as u32;
        let layers: Arc<[u32]> = layers.into();
        self.sets.push(layers.clone());
        self.ids.insert(layers, id);
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
        if self.is_full {
            return 0;
        }
        let mut both = [self.layers(a), self.layers(b)].concat();
        both.sort_unstable();
        both.dedup();
        self.intern(&both)
    }
}

/// The layers of each body, and of each set of bodies.
#[derive(Debug, Clone)]
pub(super) struct Users {
    pub(super) sets: LayerSets,
    /// By body: the layers that carry its code.
    pub(super) of_body: Vec<u32>,
    /// By set of bodies: the layers that use what all of them use.
    pub(super) of_set: Vec<u32>,
    /// By set of bodies: the layers that a stage must have to count what they
    /// use among its variables.
    pub(super) counted: Vec<u32>,
    /// By body: does an operation of it have a layer by its name?
    pub(super) named_bodies: Vec<bool>,
    /// By set of bodies: has any of them?
    pub(super) named_sets: Vec<bool>,
}

impl Users {
    pub(super) fn new(
        model: &Model,
        layering: &Layering,
        placement: &Placement,
        rules: Rules,
    ) -> Self {
        let mut sets = LayerSets::new();
        let placed = |operation: usize| placement.layers[operation];
        let named = |operation: usize| Some(layering.layers[operation]).filter(|&l| l != NO_LAYER);
        let of_body = of_bodies(model, placed, &mut sets);
        let of_named = of_bodies(model, named, &mut sets);
        let is_computing = |operation: usize| {
            let body = model.operations[operation].body as usize;
            !model.bodies[body].code.vertex_types.is_empty()
        };
        let firm = |operation: usize| match is_computing(operation) {
            true => placed(operation),
            false => named(operation),
        };
        let of_firm = of_bodies(model, firm, &mut sets);
        let of_set = of_sets(&model.body_sets, &of_body, &mut sets);
        let named = of_sets(&model.body_sets, &of_named, &mut sets);
        let named_sets = named.iter().map(|&set| set != 0).collect();
        let (of_set, counted) = match rules {
            Rules::Classic => (of_set, named),
            Rules::Full => {
                let firm = of_sets(&model.body_sets, &of_firm, &mut sets);
                let counted = prefer(firm, of_set);
                (counted.clone(), counted)
            }
        };
        Self {
            sets,
            of_body,
            of_set,
            counted,
            named_bodies: of_named.iter().map(|&set| set != 0).collect(),
            named_sets,
        }
    }
}

/// The first of two sets of layers, by set of bodies; the second where the
/// first is empty.
///
/// A variable belongs to the layers that use it by name and to those where
/// operations that compute with it are at home; only without any, to those of
/// operations that move it. Otherwise the upload of all weights would put every
/// one of them into one layer more.
fn prefer(first: Vec<u32>, second: Vec<u32>) -> Vec<u32> {
    let both = first.into_iter().zip(second);
    both.map(|(first, second)| if first == 0 { second } else { first })
        .collect()
}

fn of_bodies(
    model: &Model,
    layer: impl Fn(usize) -> Option<u32>,
    sets: &mut LayerSets,
) -> Vec<u32> {
    let mut layers: Vec<Vec<u32>> = vec![Vec::new(); model.bodies.len()];
    for (index, operation) in model.operations.iter().enumerate() {
        layers[operation.body as usize].extend(layer(index));
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
        of_set[set as usize] = match (a, b) {
            (0, one) | (one, 0) => one,
            _ if a == b => a,
            _ => *unions.entry((a, b)).or_insert_with(|| sets.union(a, b)),
        };
    }
    of_set
}
