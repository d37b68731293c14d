//! The part of the recorded memory that operations explain.

use std::collections::BTreeMap;

use super::Oracle;
use super::memory::Parts;
use super::read::Program;

/// The part of a tile's memory that predicts a category of code.
pub type Part = fn(&Parts) -> u64;

/// The categories of code, each with the part that predicts it.
pub const CODE: [(&str, Part); 4] = [
    ("vertexCode", |tile| tile.vertex_code),
    ("vertexInstanceState", |tile| tile.vertex_state),
    ("internalExchangeCode", |tile| tile.exchange_code),
    ("controlCode", |tile| tile.control_code),
];

/// The tile and step with the most live bytes of any category.
#[derive(Default)]
pub struct Bottleneck {
    pub tile: usize,
    pub step: usize,
    pub bytes: u64,
}

/// Predicted and recorded bytes of a category of code.
pub struct Code {
    pub predicted: u64,
    pub recorded: u64,
    /// Predicted less recorded bytes, by tile.
    pub differences: Vec<i64>,
}

/// A variable that no operation explains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unexplained {
    pub bytes: u64,
    pub name: String,
    pub category: String,
}

impl Oracle {
    /// Returns all operations, or only the ones with a layer.
    pub fn explaining(&self, layered_only: bool) -> Vec<usize> {
        let all: Vec<usize> = (0..self.operations.len()).collect();
        match layered_only {
            true => self.layered(&all),
            false => all,
        }
    }

    /// Returns the programs of a kind in two lists: the programs that belong to an operation, and
    /// all other programs.
    pub fn explained_programs(
        &self,
        operations: &[usize],
        kind: &str,
    ) -> (Vec<&Program>, Vec<&Program>) {
        let explained = self.programs(operations);
        let of_kind = self.profile.programs.values().filter(|p| p.kind == kind);
        of_kind.partition(|program| explained.iter().any(|other| other.id == program.id))
    }

    /// Returns the bytes by which a program is ranked: the state of its vertices, or the code of
    /// its exchange.
    pub fn program_bytes(&self, program: &Program) -> u64 {
        let Some(set) = program.compute_set else {
            return program.exchange_code.iter().sum();
        };
        let vertices = &self.profile.compute_sets[&set].vertices;
        let state = vertices.iter().map(|(vertex_type, instances)| {
            instances.iter().sum::<u64>() * self.profile.vertex_types[vertex_type].size
        });
        state.sum()
    }

    pub fn code(&self, operations: &[usize], category: &str, part: Part) -> Code {
        let mut recorded = vec![0; self.profile.tiles];
        for variable in self.profile.variables.values() {
            if variable.category == category {
                recorded[variable.tile] += variable.bytes;
            }
        }
        let stage = self.stage(operations);
        let predicted: Vec<u64> = stage.tiles.iter().map(part).collect();
        let pairs = predicted.iter().zip(&recorded);
        let difference = |(&predicted, &recorded): (&u64, &u64)| predicted as i64 - recorded as i64;
        Code {
            differences: pairs.map(difference).collect(),
            predicted: predicted.iter().sum(),
            recorded: recorded.iter().sum(),
        }
    }

    /// Returns the first tile and step with the most live bytes.
    pub fn bottleneck(&self) -> Bottleneck {
        let all = self.profile.variables.keys().copied().collect();
        let live = self.live(&all, 0..self.profile.steps.len());
        let mut found = Bottleneck::default();
        for (tile, steps) in live.iter().enumerate() {
            for (step, &bytes) in steps.iter().enumerate() {
                if bytes > found.bytes {
                    found = Bottleneck { tile, step, bytes };
                }
            }
        }
        found
    }

    /// Returns the bytes that the operations predict on the tile and step of `at`: their variables
    /// that are live then, and their code, as one stage.
    pub fn predicted_at(&self, operations: &[usize], at: &Bottleneck) -> u64 {
        let live = self.live(&self.variables(operations), at.step..at.step + 1);
        let code = self.stage(operations).tiles[at.tile];
        live[at.tile][0] + code.total() - code.variables
    }

    /// Returns the variables that are live on the tile and step of `at`, that no operation uses,
    /// and whose category code does not predict; the largest first.
    pub fn unexplained(&self, operations: &[usize], at: &Bottleneck) -> Vec<Unexplained> {
        let used = self.variables(operations);
        let predicted: BTreeMap<&str, _> = CODE.into_iter().collect();
        let live = |class| self.live_steps(class).contains(&at.step);
        let mut found = Vec::new();
        for (id, variable) in &self.profile.variables {
            let is_there = variable.tile == at.tile && live(variable.class);
            if is_there && !used.contains(id) && !predicted.contains_key(&*variable.category) {
                found.push(Unexplained {
                    bytes: variable.bytes,
                    name: variable.name.clone(),
                    category: variable.category.clone(),
                });
            }
        }
        found.sort();
        found.reverse();
        found
    }
}
