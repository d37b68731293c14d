//! Bytes that could be reduced in a stage that does not fit (docs/model.md, "Advice").

use super::{MemoryModel, PlacedStage, StageMemory};
use crate::model::{NO_USERS, TensorKind, VariableGroup};
use rustc_hash::FxHashMap;

/// Bytes on the fullest tile of a stage, at its fullest step, that could be reduced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reducible {
    /// Bytes of temporaries, which only one operation group uses. A lower available memory
    /// proportion bounds them.
    pub temporaries: u64,
    /// The weight whose operations use the most temporaries: its name and the bytes.
    pub by_weight: Option<(String, u64)>,
    /// Bytes of always-live variables whose elements are known to take 32 bits.
    pub wide: u64,
}

impl MemoryModel<'_> {
    /// Computes what could be reduced in `memory`, the memory of `stage`.
    pub fn reducible(&self, stage: &PlacedStage, memory: &StageMemory) -> Reducible {
        let Some(step) = memory.peak_step() else {
            return Reducible::default();
        };
        let positions = &stage.positions;
        let is_live = |item: &VariableGroup| {
            self.is_live_in(positions, (item.class, item.set), (step, false))
        };
        let on_tile = self.uses.on_tile(memory.max_tile() as u32);
        let live: Vec<VariableGroup> = on_tile.filter(is_live).collect();
        let sets = &self.model.use_sets;
        let (mut found, mut temporaries) = (Reducible::default(), FxHashMap::default());
        for item in live.iter().filter(|item| item.set != NO_USERS) {
            let mut groups = sets.groups(item.set);
            let bytes = u64::from(item.bytes);
            match (groups.next(), groups.next()) {
                _ if self.model.classes.lasts(item.class) => {
                    let is_wide = self.model.label_of(item.set).element_bytes == Some(4);
                    found.wide += if is_wide { bytes } else { 0 };
                }
                (Some(group), None) => {
                    found.temporaries += bytes;
                    *temporaries.entry(group).or_insert(0) += bytes;
                }
                _ => {}
            }
        }
        let weights = live.iter().filter_map(|item| {
            let label = self.model.label_of(item.set);
            let is_weight = label.kind == TensorKind::Variable && !label.weight_name().is_empty();
            let of_groups = sets
                .groups(item.set)
                .filter_map(|group| temporaries.get(&group));
            is_weight.then(|| (of_groups.sum::<u64>(), label.weight_name()))
        });
        let most = weights.max().filter(|&(bytes, _)| bytes > 0);
        found.by_weight = most.map(|(bytes, name)| (name.to_string(), bytes));
        found
    }
}
