//! The variables that count in stages, and the steps at which they are live. Variables are grouped
//! by equivalence class and use set (the operation groups that use them). Each such group is a
//! *use* and has a number.

use super::{MemoryModel, Rules};
use crate::model::{
    EVERYWHERE, Model, PlaceSet, TileUse, VariableGroup, VariableGroups, VariableUse,
};
use std::ops::Range;

/// All variables that count in stages, grouped by equivalence class and use set. Such a group is a
/// *use*. Uses are numbered from 0: first those of variables with data, in the order of the model,
/// then those of variables with code.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedUses<'a> {
    /// The uses of variables with data.
    pub data: &'a VariableGroups,
    /// The uses of variables with code; `None` in the full memory model, where the recorded bytes
    /// of code count instead.
    code: Option<&'a VariableGroups>,
}

impl<'a> CountedUses<'a> {
    pub fn new(model: &'a Model, rules: Rules) -> Self {
        Self {
            data: &model.variables,
            code: (rules == Rules::Classic).then_some(&model.code_variables),
        }
    }

    /// Iterates over all uses in the order of their numbers, with their bytes over all tiles.
    pub fn all(&self) -> impl Iterator<Item = &VariableUse> {
        self.data
            .uses()
            .iter()
            .chain(self.code.map_or(&[][..], VariableGroups::uses))
    }

    /// Returns the use with this number (see [`CountedUses`]).
    #[inline]
    pub fn of(&self, number: u32) -> &VariableUse {
        let (data, number) = (self.data.uses(), number as usize);
        match self.code {
            Some(code) if number >= data.len() => &code.uses()[number - data.len()],
            _ => &data[number],
        }
    }

    /// Iterates over the uses on `tile`, data before code, each with its bytes on this tile. A use
    /// may come several times.
    pub fn on_tile(&self, tile: u32) -> impl Iterator<Item = VariableGroup> + '_ {
        self.data.on_tile(tile).chain(
            self.code
                .map(|code| code.on_tile(tile))
                .into_iter()
                .flatten(),
        )
    }

    /// Iterates over the uses on `tile`: pairs of the number of the use (see [`CountedUses`]) and
    /// its bytes on this tile. A use may come several times.
    pub fn numbered_on_tile(&self, tile: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.lists(tile).into_iter().flat_map(|(first, uses)| {
            uses.iter()
                .map(move |of_tile| (first + of_tile.number, of_tile.bytes.into()))
        })
    }

    /// Returns the uses on `tile` in two lists, of data and of code, each in ascending order. Each
    /// list comes with the number of its first use in [`CountedUses`]: add it to the numbers in the
    /// list.
    pub fn lists(&self, tile: u32) -> [(u32, &[TileUse]); 2] {
        let code = self.code.map_or(&[][..], |code| code.uses_on_tile(tile));
        let data = self.data;
        [
            (0, data.uses_on_tile(tile)),
            (data.uses().len() as u32, code),
        ]
    }
}

impl<'a> MemoryModel<'a> {
    /// Visits the liveness of the variables of a use in stages, in parts, since they may be live at
    /// different steps in different stages. `number` is that of the use in [`CountedUses`].
    ///
    /// `visit` gets a set of positions, a further position (if any), and half-open step ranges
    /// (`None` for all steps). In stages that contain any position of the set, and the further
    /// position, the variables are live at these steps. There is no call for variables that are off
    /// the chip in both passes.
    #[inline]
    pub(super) fn each_life<'b>(
        &'b self,
        number: u32,
        mut visit: impl FnMut((PlaceSet, Option<u32>), Option<&'b [(u32, u32)]>),
    ) {
        if self.is_away(number) {
            return;
        }
        let &VariableUse { class, set, .. } = self.uses.of(number);
        let counted = self.counted(set);
        let flows = self.flows.as_ref();
        let Some(parts) = flows.and_then(|flows| flows.lives(number)) else {
            return visit((counted, None), self.live_ranges(class));
        };
        for part in parts.iter().filter(|part| !part.steps.is_empty()) {
            let counted = part.places.unwrap_or(counted);
            visit(
                (counted, part.with.filter(|_| counted != EVERYWHERE)),
                Some(&part.steps),
            );
        }
    }

    /// Does a stage with the positions `stage` (end exclusive) have the variables of a part that
    /// [`MemoryModel::each_life`] visits? The part counts at any position of `counted` and needs
    /// the position `with`, too.
    pub(super) fn has_part(
        &self,
        (counted, with): (PlaceSet, Option<u32>),
        stage: &Range<usize>,
    ) -> bool {
        self.counts_in(counted, stage)
            && with.is_none_or(|position| stage.contains(&(position as usize)))
    }

    /// Returns the half-open step ranges at which variables with this class are live in the
    /// profile; `None` if they are live at every step.
    #[inline]
    pub(super) fn live_ranges(&self, class: u32) -> Option<&'a [(u32, u32)]> {
        let classes = &self.model.classes;
        (!classes.is_always_live(class)).then(|| classes.ranges(class))
    }
}
