//! Which operations run on which IPU, with the contexts that they have in the
//! `debug.cbor` of the compilation for one IPU.

use std::collections::HashMap;

use super::super::code::{Code, VertexType};
use super::super::places::Places;
use super::super::plan::Plan;
use super::super::random::{Random, topic};
use super::super::tree::{Type, Window};

/// The compute sets of a model.
#[derive(Debug, Clone)]
pub(super) struct Operations {
    sets: Vec<Set>,
    code: Code,
    random: Random,
    /// Debug contexts of variables by name.
    contexts: HashMap<String, u32>,
}

/// A compute set of the compilation for one IPU.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub name: String,
    /// The context of the program that runs it.
    pub program_context: u32,
    /// Its own context.
    pub context: u32,
    places: Places,
    /// The parts of a global operation.
    parts: Vec<(Places, Window)>,
}

/// The vertices of one type: by tile of an IPU.
pub(super) struct Instances {
    pub vertex_type: usize,
    pub by_tile: Vec<u64>,
}

impl Operations {
    pub fn new(plan: &Plan) -> Self {
        let mut program_contexts = vec![0; plan.tree.compute_sets.len()];
        for program in &plan.tree.programs {
            if let (Type::OnTileExecute, Some(set)) = (program.kind, program.index) {
                program_contexts[set] = program.debug_id;
            }
        }
        let sets = plan.tree.compute_sets.iter().zip(program_contexts);
        let groups = plan.groups.iter().enumerate();
        Self {
            sets: sets
                .map(|(set, program_context)| Set {
                    name: set.name.clone(),
                    program_context,
                    context: set.debug_id,
                    places: set.share.places,
                    parts: set.share.parts.clone(),
                })
                .collect(),
            code: plan.code.clone(),
            random: plan.settings.random,
            contexts: groups
                .map(|(index, group)| (group.name.clone(), plan.context_of_group(group, index)))
                .collect(),
        }
    }

    /// The compute sets that run for these places, in the order of programs.
    pub fn for_places(&self, places: Places) -> impl Iterator<Item = usize> + '_ {
        (0..self.sets.len()).filter(move |&set| {
            let set = &self.sets[set];
            let mut parts = set.parts.iter();
            match set.parts.is_empty() {
                true => set.places.meets(places),
                false => parts.any(|part| part.0.meets(places)),
            }
        })
    }

    pub fn set(&self, set: usize) -> &Set {
        &self.sets[set]
    }

    pub fn vertex_types(&self) -> &[VertexType] {
        &self.code.types
    }

    /// The context of a variable of the model.
    pub fn context_of(&self, variable: &str) -> Option<u32> {
        self.contexts.get(variable).copied()
    }

    /// The vertices that a compute set has for these places.
    pub fn instances(&self, set: usize, places: Places, tiles: u32) -> Vec<Instances> {
        let types = self.code.sets[set].iter().enumerate();
        let instances = types.map(|(slot, &vertex_type)| Instances {
            vertex_type,
            by_tile: (0..tiles)
                .map(|tile| self.code.instances_for(set, slot, tile, places))
                .collect(),
        });
        instances.collect()
    }

    /// Cycles of a compute set, by tile.
    pub fn cycles(&self, set: usize, instances: &[Instances]) -> Vec<u64> {
        let tiles = instances
            .first()
            .map_or(0, |instance| instance.by_tile.len());
        let cycles = |tile: usize| {
            let is_active = instances.iter().any(|instance| instance.by_tile[tile] > 0);
            let about = [topic::CYCLES, set as u64, tile as u64 / 128, 7];
            match is_active {
                true => 60 + self.random.below(4000, about),
                false => 0,
            }
        };
        (0..tiles).map(cycles).collect()
    }
}
