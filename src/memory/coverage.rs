//! How much of what the compiler recorded the operations explain.

use super::MemoryModel;
use super::code::CodeKind;
use crate::model::{Bottleneck, NO_BODY, NamedVariable, OwnedProgram};
use crate::profile::TileBytes;

/// Which operations are asked to explain the memory, all in one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explaining {
    /// All operations.
    All,
    /// Those that have a layer.
    Layered,
}

/// A category of code, predicted and recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeCategory {
    /// The name of the category in the profile, such as `vertexCode`.
    pub name: &'static str,
    /// Bytes over all tiles that the operations explain.
    pub predicted: u64,
    /// Bytes over all tiles that the compiler recorded.
    pub recorded: u64,
    /// The tile where both differ most; the first of several.
    pub worst_tile: u32,
    /// Predicted minus recorded bytes there.
    pub worst_difference: i64,
}

/// The categories of code that programs carry.
const CATEGORIES: [(CodeKind, &str); 4] = [
    (CodeKind::VertexCode, "vertexCode"),
    (CodeKind::VertexState, "vertexInstanceState"),
    (CodeKind::ExchangeCode, "internalExchangeCode"),
    (CodeKind::ControlCode, "controlCode"),
];

impl MemoryModel<'_> {
    /// Does the stage explain what these layers (a set of layers) use?
    fn explains(&self, explaining: Explaining, set: u32) -> bool {
        let layers = self.users.sets.layers(set);
        match explaining {
            Explaining::All => !layers.is_empty(),
            Explaining::Layered => layers.iter().any(|&layer| layer > 0),
        }
    }

    /// Does the stage explain this program?
    pub fn explains_program(&self, explaining: Explaining, program: &OwnedProgram) -> bool {
        let set = program.body.map(|body| self.users.of_body[body as usize]);
        set.is_some_and(|set| self.explains(explaining, set))
    }

    /// Does the stage explain this variable, or is it code that programs
    /// carry, which is compared by category?
    pub fn explains_variable(&self, explaining: Explaining, variable: &NamedVariable) -> bool {
        let is_code = CATEGORIES
            .iter()
            .any(|&(_, name)| *variable.category == *name);
        is_code || self.explains(explaining, self.users.of_set[variable.set as usize])
    }

    /// Compares each category of code; those that the profile does not record
    /// are left out.
    pub fn code_categories(&self, explaining: Explaining) -> Vec<CodeCategory> {
        let recorded = &self.model.recorded.categories;
        let both = CATEGORIES.iter().filter_map(|&(kind, name)| {
            let (_, recorded) = recorded.iter().find(|(category, _)| category == name)?;
            Some(self.compare(explaining, kind, name, recorded))
        });
        both.collect()
    }

    fn compare(
        &self,
        explaining: Explaining,
        kind: CodeKind,
        name: &'static str,
        recorded: &TileBytes,
    ) -> CodeCategory {
        let mut differences: Vec<i64> = self
            .code_by_tile_of(explaining, kind)
            .into_iter()
            .map(|bytes| bytes as i64)
            .collect();
        let predicted = differences.iter().map(|&bytes| bytes as u64).sum();
        for run in recorded.runs() {
            for difference in &mut differences[run.from as usize..run.to as usize] {
                *difference -= i64::from(run.value);
            }
        }
        let mut worst = (0, 0i64);
        for (tile, difference) in (0u32..).zip(differences) {
            if difference.unsigned_abs() > worst.1.unsigned_abs() {
                worst = (tile, difference);
            }
        }
        let (worst_tile, worst_difference) = worst;
        CodeCategory {
            name,
            predicted,
            recorded: recorded.total(),
            worst_tile,
            worst_difference,
        }
    }

    fn code_by_tile_of(&self, explaining: Explaining, kind: CodeKind) -> Vec<u64> {
        let mut tiles = vec![0u64; self.model.target.num_tiles as usize];
        let items = self.code.iter().filter(|item| item.kind == kind);
        for item in items.filter(|item| self.explains(explaining, item.set)) {
            for sum in &item.bytes {
                for tile in &mut tiles[sum.from as usize..sum.to as usize] {
                    *tile += sum.bytes;
                }
            }
        }
        tiles
    }

    /// Bytes at the tile and step of the bottleneck that the operations
    /// explain: their code there, and their variables that are live then.
    pub fn predicted_at(&self, explaining: Explaining, bottleneck: &Bottleneck) -> u64 {
        let code = CATEGORIES.map(|(kind, _)| self.code_by_tile_of(explaining, kind));
        let code: u64 = code
            .iter()
            .map(|tiles| tiles[bottleneck.tile as usize])
            .sum();
        let items = self.model.variables.on_tile(bottleneck.tile).iter();
        let variables = items.filter(|item| {
            let set = self.users.of_set[item.set as usize];
            let ranges = self.model.classes.ranges(item.class);
            item.set != NO_BODY
                && self.explains(explaining, set)
                && ranges.iter().any(|r| (r.0..r.1).contains(&bottleneck.step))
        });
        code + variables.map(|item| u64::from(item.bytes)).sum::<u64>()
    }
}
