//! Compares the memory that the compiler recorded with the memory that is predicted from the
//! operations, to show how much of the recorded memory the prediction explains.

use super::{MemoryModel, Rules, code::explained};
use crate::{
    model::{EVERYWHERE, MemoryPeak, NOWHERE, NamedVariable, OwnedProgram},
    profile::CodeKind,
};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeMap, ops::Range};

/// Selects the operations whose predicted bytes are compared with the bytes that the compiler
/// recorded. All selected operations are regarded as one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explaining {
    /// Selects all operations for the comparison of predicted with recorded bytes.
    All,
    /// Selects only operations that get a layer from names: from their own or, for example, from
    /// those of their inputs. Operations that only the flow of data assigns to a layer are left
    /// out.
    Layered,
}

/// The bytes of one kind of code, as predicted from the operations and as recorded by the compiler.
#[derive(Debug, Clone)]
pub struct CodeCategory {
    /// The profile's name for this kind of code, such as `vertexCode`. If the profile has several
    /// names for the kind, this is the first.
    pub name: &'static str,
    /// The bytes of one kind of code that operations are predicted to need, summed over all tiles.
    pub predicted: u64,
    /// The bytes of one kind of code that the compiler recorded, summed over all tiles.
    pub recorded: u64,
    /// The tile where predicted and recorded bytes of code differ most, in either direction; the
    /// first of several such tiles.
    pub worst_tile: u32,
    /// The predicted bytes of one kind of code minus the recorded bytes, both on the tile where
    /// they differ most.
    pub worst_difference: i64,
}

/// The recorded bytes of one tile at its peak step, all of them or those of one category of
/// variables, split into bytes of layers, bytes of overhead and a rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "CoverageFacts"))]
pub struct Coverage {
    /// Index of the tile that has the bytes of this entry. Without meaning and always 0 in an entry
    /// for a category of variables that hold data, not code.
    pub tile: u32,
    /// The bytes that the compiler recorded on the tile. In an entry for one category of variables,
    /// only the bytes of this category.
    pub recorded: u64,
    /// The bytes of code and live variables of operations that get a layer from names: from their
    /// own or, for example, from those of their inputs.
    pub layers: u64,
    /// The bytes of code and live variables of operations that get no layer from names, but that
    /// the flow of data assigns to a layer, to In (before the first layer) or to Out (after the
    /// last layer).
    pub assigned: u64,
    /// The bytes of variables that count in several layers only because an operation on the whole
    /// model, such as a norm of all gradients, uses them. They are part of `assigned` (bytes of
    /// operations that get no layer from names).
    pub by_touch: u64,
    /// The bytes that every stage needs, whatever its layers. In an entry for all bytes of the
    /// tile, its fragmentation (bytes that belong to no variable) is included.
    pub overhead: u64,
    /// The recorded bytes that the memory model does not explain: `recorded` minus the bytes of
    /// operations that get a layer from names (`layers`), of other operations (`assigned`) and of
    /// every stage (`overhead`). Below 0 if more bytes are predicted than recorded.
    pub rest: i64,
}

impl Coverage {
    fn with_rest(self) -> Self {
        let explained = [self.layers, self.assigned, self.overhead].map(i128::from);
        let rest = i128::from(self.recorded) - explained.iter().sum::<i128>();
        Self {
            rest: i64::try_from(rest).unwrap_or(i64::MIN),
            ..self
        }
    }
}

impl MemoryModel<'_> {
    /// Returns whether `program` belongs to an operation that `explaining` selects: any operation,
    /// or one that gets a layer from names. The predicted bytes of the selected operations are
    /// compared with the bytes that the compiler recorded.
    pub fn explains_program(&self, explaining: Explaining, program: &OwnedProgram) -> bool {
        program
            .group
            .is_some_and(|group| self.explains_by(explaining, group as usize))
    }

    /// Returns whether the memory model explains the memory of `variable`: it holds code, or an
    /// operation uses it. With [`Explaining::Layered`], this must be an operation that gets a layer
    /// from names.
    pub fn explains_variable(&self, explaining: Explaining, variable: &NamedVariable) -> bool {
        self.code_category(&variable.category).is_some() || self.explains(explaining, variable.set)
    }

    /// Returns the name under which code in variables of the category `category` is compared with
    /// recorded bytes: the first of the profile's categories for the same kind of code, such as
    /// `vertexCode`. Returns `None` if variables of `category` hold data.
    fn code_category(&self, category: &str) -> Option<&'static str> {
        CodeKind::ALL
            .into_iter()
            .map(|kind| self.categories(kind))
            .find(|names| names.contains(&category))
            .map(|names| names[0])
    }

    fn explains(&self, explaining: Explaining, set: u32) -> bool {
        self.model
            .use_sets
            .groups(set)
            .any(|group| self.explains_by(explaining, group))
    }

    /// Returns the names of the profile's categories of variables that hold code of this `kind`.
    /// For vertex state there are several. With `--memory-model classic` only the first is
    /// returned, the state of vertex instances, since the rules of the original tool predict no
    /// other vertex state.
    fn categories(&self, kind: CodeKind) -> &'static [&'static str] {
        match self.rules {
            Rules::Classic => &kind.categories()[..1],
            Rules::Full => kind.categories(),
        }
    }

    /// Compares, for each kind of code, the bytes that operations are predicted to need with the
    /// bytes that the compiler recorded. `explaining` selects the operations: all, or those that
    /// get a layer from names. The result is in the order of [`CodeKind`]. Kinds of code that the
    /// profile does not record are left out.
    pub fn code_categories(&self, explaining: Explaining) -> Vec<CodeCategory> {
        let tiles = 0..self.tiles();
        let predicted = self.explained(tiles, |group| self.explains_by(explaining, group));
        let compare = |kind: CodeKind| {
            let names = self.categories(kind);
            let categories = self.model.recorded.categories.iter();
            let own: Vec<_> = categories
                .filter(|category| names.contains(&category.name.as_str()))
                .collect();
            if own.is_empty() {
                return None;
            }
            let mut recorded = vec![0; predicted.len()];
            for category in own {
                category.bytes.add_to(&mut recorded);
            }
            let of_kind = predicted.iter().map(|tile| tile[kind as usize]);
            let differences = of_kind.clone().zip(&recorded);
            let (worst_tile, worst_difference) = (0u32..)
                .zip(differences.map(|(predicted, &recorded)| predicted as i64 - recorded as i64))
                .min_by_key(|(_, difference)| Reverse(difference.unsigned_abs()))
                .unwrap_or_default();
            Some(CodeCategory {
                name: names[0],
                predicted: of_kind.sum(),
                recorded: recorded.iter().sum(),
                worst_tile,
                worst_difference,
            })
        };
        CodeKind::ALL.into_iter().filter_map(compare).collect()
    }

    fn explained(&self, tiles: Range<u32>, is_wanted: impl Fn(usize) -> bool) -> Vec<[u64; 4]> {
        explained((self.model, self.rules), tiles, is_wanted)
    }

    fn explains_by(&self, explaining: Explaining, group: usize) -> bool {
        explaining == Explaining::All || self.placement.layered_groups[group]
    }

    /// Predicts the bytes that the operations selected by `explaining` take on the tile and at the
    /// liveness step of `memory_peak`: the bytes of their code and of their live variables.
    pub fn predicted_at(&self, explaining: Explaining, memory_peak: &MemoryPeak) -> u64 {
        let &MemoryPeak { tile, step, .. } = memory_peak;
        let code = self.explained(tile..tile + 1, |group| self.explains_by(explaining, group));
        let variables = self
            .uses
            .on_tile(tile)
            .filter(|item| {
                self.explains(explaining, item.set) && self.model.classes.is_live(item.class, step)
            })
            .map(|item| item.bytes);
        code.into_iter().flatten().chain(variables).sum()
    }

    /// Splits the recorded bytes of the fullest tile at its peak step into bytes of layers, bytes
    /// of overhead (which every stage needs) and a rest. If several tiles are equally full, the
    /// first is chosen. Returns `None` if the profile has no bytes by tile.
    pub fn coverage(&self) -> Option<Coverage> {
        let (tile, recorded) = self.recorded_fullest_tile()?;
        let (_, step) = self.model.peak_on(tile);
        let mut coverage = Coverage {
            tile,
            recorded,
            overhead: self.overhead[tile as usize].fragmentation,
            ..Coverage::default()
        };
        for code in self.code_coverage(tile) {
            coverage.layers += code.layers;
            coverage.assigned += code.assigned;
            coverage.overhead += code.overhead;
        }
        let classes = &self.model.classes;
        for item in self
            .uses
            .on_tile(tile)
            .filter(|item| classes.is_live(item.class, step))
        {
            if let Some(part) = self.part_of(item.set) {
                *part(&mut coverage) += item.bytes;
            }
            if self.placement.by_touch[item.set as usize] {
                coverage.by_touch += item.bytes;
            }
        }
        Some(coverage.with_rest())
    }

    /// Splits the recorded bytes at `memory_peak` into bytes of layers, bytes of overhead (which
    /// every stage needs) and a rest. Returns one entry per category of variables in the profile,
    /// by its name. If the profile divides one kind of code, such as exchange code, into several
    /// categories, their bytes are all in the entry of the first. Categories without bytes are left
    /// out.
    pub fn coverage_by_category(&self, memory_peak: &MemoryPeak) -> BTreeMap<String, Coverage> {
        let mut by_category: BTreeMap<String, Coverage> = CodeKind::ALL
            .into_iter()
            .map(|kind| self.categories(kind)[0].to_string())
            .zip(self.code_coverage(memory_peak.tile))
            .collect();
        for variable in &memory_peak.variables {
            let code = self.code_category(&variable.category);
            let coverage = by_category
                .entry(code.unwrap_or(&variable.category).to_string())
                .or_default();
            coverage.recorded += u64::from(variable.bytes);
            if let Some(part) = self.part_of(variable.set).filter(|_| code.is_none()) {
                *part(coverage) += u64::from(variable.bytes);
            }
        }
        by_category.retain(|_, coverage| {
            let has_bytes = *coverage != Coverage::default();
            *coverage = coverage.with_rest();
            has_bytes
        });
        by_category
    }

    /// Returns the field of [`Coverage`] to which the bytes of variables are added. `set` is their
    /// use set (the operations that use them).
    ///
    /// - `overhead`: every stage has the variables.
    /// - `layers`: one of the operations gets a layer from names.
    /// - `assigned`: the variables are in a layer, In or Out for another reason.
    /// - `None`: no stage has the variables.
    fn part_of(&self, set: u32) -> Option<fn(&mut Coverage) -> &mut u64> {
        match self.counted(set) {
            EVERYWHERE => Some(|coverage| &mut coverage.overhead),
            _ if self.explains(Explaining::Layered, set) => Some(|coverage| &mut coverage.layers),
            NOWHERE => None,
            _ => Some(|coverage| &mut coverage.assigned),
        }
    }

    /// Returns the predicted bytes of code on `tile`, with one entry per [`CodeKind`]. An entry has
    /// the bytes of operations that get a layer from names (`layers`), of other operations of a
    /// layer, In or Out (`assigned`), and of code that every stage needs (`overhead`). The recorded
    /// bytes are not filled in yet, so the fields `recorded` and `rest` are 0.
    fn code_coverage(&self, tile: u32) -> [Coverage; 4] {
        let of_tile = &self.overhead[tile as usize];
        let capped = |is_wanted: &dyn Fn(usize) -> bool| {
            of_tile.capped(self.explained(tile..tile + 1, is_wanted)[0])
        };
        let of_group = &self.placement.of_group;
        let layers = capped(&|group| self.explains_by(Explaining::Layered, group));
        let placed = capped(&|group| !matches!(of_group[group], NOWHERE | EVERYWHERE));
        let all = capped(&|group| of_group[group] != NOWHERE);
        std::array::from_fn(|kind| Coverage {
            tile,
            layers: layers[kind],
            assigned: placed[kind].saturating_sub(layers[kind]),
            overhead: of_tile.code[kind] + (all[kind] - placed[kind]),
            ..Coverage::default()
        })
    }
}
