//! Computes the memory of each operation by itself, as if a stage had only this operation
//! (docs/model.md, "The memory of a stage"). For a stage that does not fit, also computes how many
//! bytes the user could save by changes of the model (docs/model.md, "Advice").

use super::{MemoryModel, Parts, PlacedStage, Rules, StageMemory, code::by_kind, steps::StepSums};
use crate::model::{NO_USERS, OperationGroup, TensorKind, VariableUse};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The bytes that the user could reduce by changes of the model, on the fullest tile of a stage
/// that does not fit. They belong to variables that are live at the liveness step at which this
/// tile takes the most bytes. A variable is counted in `temporaries` or in `wide` (32-bit
/// elements), but never in both.
#[derive(Debug, Clone, Default)]
pub struct Reducible {
    /// Bytes of temporaries: variables that only one operation group (operations with one debug
    /// context) uses and that are not always live. A lower available memory proportion, a setting
    /// of matrix products and convolutions, limits these bytes.
    pub temporaries: u64,
    /// The name of the weight whose operations use the most bytes of temporaries, and these bytes.
    /// `None` if no operation with temporaries uses a named weight.
    pub by_weight: Option<(String, u64)>,
    /// Bytes of always-live variables whose elements take 32 bits; elements of 16 bits would halve
    /// these bytes.
    pub wide: u64,
}

impl MemoryModel<'_> {
    /// Returns the memory of each operation group (operations with one debug context) by itself:
    /// the bytes of a stage that has only this group, summed over all tiles. On each tile,
    /// variables are counted at the liveness step at which the group's variables take the most
    /// bytes on this tile.
    pub fn operation_groups(&self) -> Vec<Parts> {
        let groups = &self.model.operation_groups;
        let nothing = || vec![0u64; groups.len()];
        let variables = (0..self.tiles())
            .into_par_iter()
            .fold(nothing, |sums, tile| self.with_tile(tile, sums))
            .reduce(nothing, |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            });
        groups
            .iter()
            .zip(variables)
            .map(|(group, variables)| {
                let [state, exchange, control] =
                    by_kind(&group.code, self.rules).map(|(_, bytes)| bytes.total());
                Parts {
                    variables,
                    ..Parts::of_code([self.vertex_code(group), state, exchange, control])
                }
            })
            .collect()
    }

    /// Computes the bytes that the user could reduce on the fullest tile of `stage`. `memory` is
    /// the memory of this stage; if the stage has no liveness steps, all numbers in the result are
    /// 0.
    pub fn reducible(&self, stage: &PlacedStage, memory: &StageMemory) -> Reducible {
        let Some(step) = memory.peak_step() else {
            return Reducible::default();
        };

        let live: Vec<VariableUse> = self
            .uses
            .on_tile(memory.max_tile())
            .filter(|item| self.is_live_in(&stage.positions, (item.class, item.set), (step, false)))
            .collect();
        let sets = &self.model.use_sets;
        let (mut found, mut temporaries) = (Reducible::default(), FxHashMap::default());
        for item in live.iter().filter(|item| item.set != NO_USERS) {
            let (mut groups, bytes) = (sets.groups(item.set), item.bytes);
            if self.model.is_parameter(item.class, item.set) {
                if self.model.label_of(item.set).element_bytes == Some(4) {
                    found.wide += bytes;
                }
            } else if let (Some(group), None) = (groups.next(), groups.next()) {
                found.temporaries += bytes;
                *temporaries.entry(group).or_insert(0) += bytes;
            }
        }
        found.by_weight = live
            .iter()
            .filter_map(|item| {
                let label = self.model.label_of(item.set);
                let name = label.weight_name();
                let bytes: u64 = sets
                    .groups(item.set)
                    .filter_map(|group| temporaries.get(&group))
                    .sum();
                (label.kind == TensorKind::Variable && !name.is_empty()).then_some((bytes, name))
            })
            .max()
            .filter(|&(bytes, _)| bytes > 0)
            .map(|(bytes, name)| (name.to_string(), bytes));
        found
    }

    /// For each operation group, adds to the group's entry of `sums` the highest bytes that the
    /// variables of the group take on `tile` at one liveness step. Returns `sums`.
    fn with_tile(&self, tile: u32, mut sums: Vec<u64>) -> Vec<u64> {
        let model = self.model;
        let without_variables = |group: usize| {
            let window = match self.rules {
                Rules::Classic => model.operation_groups[group].window,
                Rules::Full => self.all_steps(),
            };
            StepSums::new(window.map_or(0..0, |(first, last)| first..last + 1))
        };
        let mut by_group = FxHashMap::default();
        for item in self.uses.on_tile(tile) {
            for group in model.use_sets.groups(item.set) {
                by_group
                    .entry(group)
                    .or_insert_with(|| without_variables(group))
                    .add([item.bytes], model.classes.ranges(item.class));
            }
        }
        for (group, mut liveness) in by_group {
            let [highest] = liveness.highest();
            sums[group] += highest;
        }
        sums
    }

    fn vertex_code(&self, group: &OperationGroup) -> u64 {
        group
            .code
            .vertex_types
            .iter()
            .flat_map(|(vertex_type, present)| {
                let code = &self.model.vertex_code[*vertex_type as usize];
                present
                    .runs()
                    .iter()
                    .map(|run| code.total_of(run.from as usize..run.to as usize))
            })
            .sum()
    }
}
