//! docs/model.md, "The memory of a stage": the memory of a stage, tile by tile.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Oracle;
use super::read::Program;

/// The five parts of the memory of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    pub variables: u64,
    pub vertex_code: u64,
    pub vertex_state: u64,
    pub exchange_code: u64,
    pub control_code: u64,
}

impl Parts {
    pub fn total(&self) -> u64 {
        self.variables
            + self.vertex_code
            + self.vertex_state
            + self.exchange_code
            + self.control_code
    }
}

pub struct Stage {
    /// Parts of each tile.
    pub tiles: Vec<Parts>,
    /// For each tile, the first step at which variables take the most bytes.
    pub peak_steps: Vec<Option<usize>>,
}

impl Stage {
    /// Returns every part summed over all tiles.
    pub fn sums(&self) -> Parts {
        let mut sums = Parts::default();
        for tile in &self.tiles {
            sums.variables += tile.variables;
            sums.vertex_code += tile.vertex_code;
            sums.vertex_state += tile.vertex_state;
            sums.exchange_code += tile.exchange_code;
            sums.control_code += tile.control_code;
        }
        sums
    }

    /// Returns the bytes on the fullest tile.
    pub fn peak(&self) -> u64 {
        self.tiles.iter().map(Parts::total).max().expect("a tile")
    }

    /// Returns the first of the fullest tiles.
    pub fn fullest(&self) -> usize {
        let peak = self.peak();
        let full = |tile: &Parts| tile.total() == peak;
        self.tiles.iter().position(full).expect("a tile")
    }
}

impl Oracle {
    /// Returns the memory of some operations as a stage.
    pub fn stage(&self, operations: &[usize]) -> Stage {
        let programs = self.programs(operations);
        let (variables, peak_steps) = self.peaks(operations);
        let tile = |tile: usize| Parts {
            variables: variables[tile],
            vertex_code: self.vertex_code(&programs, tile),
            vertex_state: self.vertex_state(&programs, tile),
            exchange_code: self.exchange_code(&programs, tile),
            control_code: self.control_code(&programs, tile),
        };
        Stage {
            tiles: (0..self.profile.tiles).map(tile).collect(),
            peak_steps,
        }
    }

    /// Returns the distinct programs of some operations.
    pub fn programs(&self, operations: &[usize]) -> Vec<&Program> {
        let operations = operations.iter().map(|&op| &self.operations[op]);
        let ids: BTreeSet<i64> = operations.flat_map(|op| &op.programs).copied().collect();
        ids.iter().map(|id| &self.profile.programs[id]).collect()
    }

    /// Returns the operations that have a layer.
    pub fn layered(&self, operations: &[usize]) -> Vec<usize> {
        let has_layer = |&operation: &usize| self.layering.layer[operation].is_some();
        operations.iter().copied().filter(has_layer).collect()
    }

    /// Returns the lowest first and the highest last step of some operations, both inclusive.
    pub fn window(&self, operations: &[usize]) -> Option<(usize, usize)> {
        let operations = operations.iter();
        let windows = operations.filter_map(|&op| self.operations[op].window);
        windows.reduce(|(first, last), other| (first.min(other.0), last.max(other.1)))
    }

    /// Returns the distinct variables of some operations.
    pub fn variables(&self, operations: &[usize]) -> BTreeSet<i64> {
        let operations = operations.iter();
        let variables = operations.flat_map(|&op| &self.operations[op].variables);
        variables.copied().collect()
    }

    /// Returns the highest live bytes on each tile, and their step. Only steps between the first
    /// and the last step of the operations count, or of those with a layer, if any has one.
    fn peaks(&self, operations: &[usize]) -> (Vec<u64>, Vec<Option<usize>>) {
        let tiles = self.profile.tiles;
        let layered = self.layered(operations);
        let window = match layered.is_empty() {
            true => self.window(operations),
            false => self.window(&layered),
        };
        let Some((first, last)) = window else {
            return (vec![0; tiles], vec![None; tiles]);
        };
        let live = self.live(&self.variables(&layered), first..last + 1);
        let peak = |tile: &Vec<u64>| tile.iter().copied().max().expect("a step");
        let peaks: Vec<u64> = live.iter().map(peak).collect();
        let step = |(tile, peak): (&Vec<u64>, &u64)| {
            let step = tile.iter().position(|bytes| bytes == peak);
            step.map(|step| first + step)
        };
        let steps = live.iter().zip(&peaks).map(step).collect();
        (peaks, steps)
    }

    /// Returns the live bytes of some variables, by tile and by step of `window`.
    pub fn live(&self, variables: &BTreeSet<i64>, window: Range<usize>) -> Vec<Vec<u64>> {
        let mut live = vec![vec![0; window.len()]; self.profile.tiles];
        for id in variables {
            let variable = &self.profile.variables[id];
            let tile = &mut live[variable.tile];
            let steps = self.live_steps(variable.class);
            let [from, to] =
                [window.start, window.end].map(|end| steps.partition_point(|&step| step < end));
            for step in &steps[from..to] {
                tile[step - window.start] += variable.bytes;
            }
        }
        live
    }

    /// Returns the distinct steps at which a class is live; empty without a row.
    pub fn live_steps(&self, class: i64) -> &[usize] {
        let steps = self.profile.live_steps.get(&class);
        steps.map_or(&[], Vec::as_slice)
    }

    /// Returns the vertex types of programs with their instances on a tile, once for each program.
    fn vertices(&self, programs: &[&Program], tile: usize) -> Vec<(i64, u64)> {
        let sets = programs.iter().filter_map(|program| program.compute_set);
        let vertices = sets.flat_map(|set| &self.profile.compute_sets[&set].vertices);
        let on_tile = vertices.map(|(vertex_type, instances)| (*vertex_type, instances[tile]));
        on_tile.collect()
    }

    fn vertex_code(&self, programs: &[&Program], tile: usize) -> u64 {
        let vertices = self.vertices(programs, tile).into_iter();
        let present = vertices.filter(|(_, instances)| *instances > 0);
        let types: BTreeSet<i64> = present.map(|(vertex_type, _)| vertex_type).collect();
        let code = |id: &i64| self.profile.vertex_types[id].code[tile];
        types.iter().map(code).sum()
    }

    fn vertex_state(&self, programs: &[&Program], tile: usize) -> u64 {
        let vertices = self.vertices(programs, tile).into_iter();
        let state = |(id, instances)| instances * self.profile.vertex_types[&id].size;
        vertices.map(state).sum()
    }

    fn exchange_code(&self, programs: &[&Program], tile: usize) -> u64 {
        let exchanges = programs.iter().filter(|p| p.kind == "DoExchange");
        exchanges.map(|program| program.exchange_code[tile]).sum()
    }

    fn control_code(&self, programs: &[&Program], tile: usize) -> u64 {
        let is_childless = |p: &&&Program| p.kind == "Call" || p.children.is_empty();
        let childless = programs.iter().filter(is_childless);
        childless.map(|program| program.control_code[tile]).sum()
    }
}
