//! Small graphs for tests: one tile, two layers with two steps in each pass.

use std::collections::BTreeMap;

use super::super::graph::{Graph, OnTile, Tensor, Use, Weight};
use super::super::updates::Updates;
use crate::places::Places;

/// A graph of In, layers and Out with so many steps for each in each pass, and
/// no tensors yet.
pub(super) fn empty(layers: u32, each: u32, is_training: bool) -> Graph {
    let positions = layers + 2;
    let start = positions * each;
    let forward = |at: u32| Some((at * each, (at + 1) * each));
    let backward = |at: u32| Some((2 * start - (at + 1) * each, 2 * start - at * each));
    Graph {
        layers,
        tiles: 1,
        first: 0,
        backward_start: is_training.then_some(start),
        update: if is_training { 2 * start } else { start },
        forward: (0..positions).map(forward).collect(),
        backward: match is_training {
            true => (0..positions).map(backward).collect(),
            false => vec![None; positions as usize],
        },
        locals: vec![BTreeMap::new()],
        updates: Updates {
            made: vec![BTreeMap::new()],
            gradients: vec![BTreeMap::new()],
            ..Updates::default()
        },
        ..Graph::default()
    }
}

impl Graph {
    /// Adds a tensor; gives it for changes. Its uses: position and step.
    pub(super) fn plant(&mut self, bytes: u64, uses: &[(u32, u32)]) -> &mut Tensor {
        let first = uses.iter().map(|usage| usage.1).min().unwrap_or(0);
        let last = uses.iter().map(|usage| usage.1).max().unwrap_or(0);
        let class = self.classes.len() as u32;
        self.classes.push(vec![(first, last + 1)]);
        let uses = uses.iter().map(|&(position, step)| Use {
            position,
            steps: (step, step + 1),
        });
        self.tensors.push(Tensor {
            name: String::new(),
            from_host: false,
            uses: uses.collect(),
            on_tiles: vec![OnTile {
                tile: 0,
                bytes,
                class,
            }],
        });
        self.tensors.last_mut().expect("one was added")
    }

    /// Adds a weight of a place.
    pub(super) fn plant_weight(&mut self, bytes: u64, places: Places) {
        self.weights.push(Weight {
            name: String::new(),
            places,
            is_float: false,
            on_tiles: vec![(0, bytes)],
        });
    }
}

/// In, two layers, Out, each with an output of 1, 10, 100 and 1000 bytes that the
/// next one and its own backward pass use, and in training with a gradient of
/// twice that for the one before it. The host sends 4 bytes.
pub(super) fn chain(is_training: bool) -> Graph {
    let mut graph = empty(2, 2, is_training);
    graph.plant(4, &[(0, 0)]).from_host = true;
    for position in 0..4u32 {
        let bytes = 10u64.pow(position);
        let mut uses = vec![(position, 2 * position + 1)];
        if position < 3 {
            uses.push((position + 1, 2 * position + 2));
        }
        let back = 14 - 2 * position;
        if is_training {
            uses.push((position, back));
        }
        graph.plant(bytes, &uses);
        if is_training {
            let before = (position > 0).then(|| (position - 1, back + 2));
            let uses: Vec<_> = [(position, back + 1)].into_iter().chain(before).collect();
            graph.plant(2 * bytes, &uses);
        }
    }
    graph
}
