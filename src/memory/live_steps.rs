//! The variables that count, and the steps at which they are live in a stage. They are grouped by
//! class and use set: each group is a use and has a number.
//!
//! Tiles whose memory is computed side by side share most uses, so that facts which depend only on
//! the use are looked up once.

use super::{MemoryModel, Rules};
use crate::model::{
    EVERYWHERE, Model, PlaceSet, Placement, TileUse, VariableGroup, VariableGroups, VariableUse,
};
use std::sync::Arc;

/// The uses that count. Uses of data have the first numbers, and uses of code follow.
#[derive(Debug, Clone)]
pub(super) struct CountedUses<'a> {
    data: &'a VariableGroups,
    /// The same uses with estimated bytes, which replace `data`.
    estimated: Option<Arc<VariableGroups>>,
    /// Code, where it counts as variables: by the full rules, its recorded bytes count instead.
    code: Option<&'a VariableGroups>,
    /// By number of the use.
    known: Arc<[KnownUse]>,
}

/// Facts of a use that depend neither on tile nor on stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownUse {
    pub(super) class: u32,
    /// The places that count its variables.
    pub(super) counted: PlaceSet,
}

impl<'a> CountedUses<'a> {
    pub(super) fn new(model: &'a Model, placement: &Placement) -> Self {
        let has_code = placement.rules == Rules::Classic;
        let (data, code) = (&model.variables, &model.code_variables);
        let mut uses = Self {
            data,
            estimated: None,
            code: has_code.then_some(code),
            known: Arc::default(),
        };
        let known = |variable: &VariableUse| KnownUse {
            class: variable.class,
            counted: placement.counted[variable.set as usize],
        };
        uses.known = uses.all().map(known).collect();
        uses
    }

    /// The variables that hold data.
    pub(super) fn data(&self) -> &VariableGroups {
        self.estimated.as_deref().unwrap_or(self.data)
    }

    /// The uses with the bytes of `data`.
    pub(super) fn with_data(&self, data: VariableGroups) -> Self {
        Self {
            estimated: Some(data.into()),
            ..self.clone()
        }
    }

    /// All uses by number, with their bytes over all tiles.
    pub(super) fn all(&self) -> impl Iterator<Item = &VariableUse> {
        let code = self.code.map_or(&[][..], VariableGroups::uses);
        self.data().uses().iter().chain(code)
    }

    /// The facts of a use.
    #[inline]
    pub(super) fn known(&self, number: u32) -> &KnownUse {
        &self.known[number as usize]
    }

    /// The number of the use of data with this class and use set; `None` if no variable
    /// has it.
    pub(super) fn of_data(&self, class: u32, set: u32) -> Option<u32> {
        self.data().number(class, set)
    }

    /// The variables on `tile`.
    pub(super) fn on_tile(&self, tile: u32) -> impl Iterator<Item = VariableGroup> + '_ {
        let code = self.code.map(|code| code.on_tile(tile));
        self.data().on_tile(tile).chain(code.into_iter().flatten())
    }

    /// The numbers of the uses on `tile`, with their bytes.
    pub(super) fn numbered_on_tile(&self, tile: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let lists = self.lists(tile).into_iter();
        lists.flat_map(|(first, uses)| {
            let numbered = uses.iter();
            numbered.map(move |tile_use| (first + tile_use.number, tile_use.bytes.into()))
        })
    }

    /// The uses on `tile` in two lists, of data and of code, each in order and with the offset of
    /// its numbers.
    pub(super) fn lists(&self, tile: u32) -> [(u32, &[TileUse]); 2] {
        let code = self.code.map_or(&[][..], |code| code.uses_on_tile(tile));
        let data = self.data();
        let first = data.uses().len() as u32;
        [(0, data.uses_on_tile(tile)), (first, code)]
    }
}

impl MemoryModel<'_> {
    /// Calls `visit` for each part of the life of a use's variables: with the places whose stages
    /// count them, with a position that these stages must have too (if any), and with the half-open
    /// step ranges at which they are live there (`None` for all steps).
    #[inline]
    pub(super) fn each_life<'b>(
        &'b self,
        number: u32,
        mut visit: impl FnMut((PlaceSet, Option<u32>), Option<&'b [(u32, u32)]>),
    ) {
        if self.is_away(number) {
            return;
        }
        let counted = self.uses.known(number).counted;
        let flows = self.flows.as_ref();
        let Some(parts) = flows.and_then(|flows| flows.lives(number)) else {
            return visit((counted, None), self.live_ranges(number));
        };
        for part in parts.iter().filter(|part| !part.steps.is_empty()) {
            let counted = part.places.unwrap_or(counted);
            let with = part.with.filter(|_| counted != EVERYWHERE);
            visit((counted, with), Some(&part.steps));
        }
    }

    /// Half-open step ranges at which the variables of a use are live in the profile; `None` for
    /// every step.
    #[inline]
    pub(super) fn live_ranges(&self, number: u32) -> Option<&[(u32, u32)]> {
        let (class, classes) = (self.uses.known(number).class, &self.model.classes);
        (!classes.is_always_live(class)).then(|| classes.ranges(class))
    }
}
