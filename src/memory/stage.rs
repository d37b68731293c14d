//! The memory of given stages, in full (analysis.md, section 7).

use super::MemoryModel;
use super::code::CodeKind;
use super::peak::Liveness;
use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;

/// Bytes by what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Live variables at the step where they are most.
    pub variables: u64,
    /// Code of vertex types.
    pub vertex_code: u64,
    /// State of vertex instances.
    pub vertex_state: u64,
    /// Code of internal exchanges.
    pub exchange_code: u64,
    /// Control code.
    pub control_code: u64,
}

impl Parts {
    /// All parts together.
    pub fn total(&self) -> u64 {
        let Parts {
            variables,
            vertex_code,
            vertex_state,
            exchange_code,
            control_code,
        } = self;
        variables + vertex_code + vertex_state + exchange_code + control_code
    }

    fn of(&mut self, kind: CodeKind) -> &mut u64 {
        match kind {
            CodeKind::VertexCode => &mut self.vertex_code,
            CodeKind::VertexState => &mut self.vertex_state,
            CodeKind::ExchangeCode => &mut self.exchange_code,
            CodeKind::ControlCode => &mut self.control_code,
        }
    }

    fn add(&mut self, other: &Parts) {
        self.variables += other.variables;
        self.vertex_code += other.vertex_code;
        self.vertex_state += other.vertex_state;
        self.exchange_code += other.exchange_code;
        self.control_code += other.control_code;
    }
}

/// The memory of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageMemory {
    /// By tile: its bytes. Variables are those of the tile's own peak step.
    pub tiles: Vec<Parts>,
    /// By tile: the first step at which its variables are most; `None` when
    /// the stage has no steps.
    pub peak_steps: Vec<Option<u32>>,
}

impl StageMemory {
    /// The fullest tile; the first of several.
    pub fn max_tile(&self) -> usize {
        let fullest = self.tiles.iter().enumerate().rev();
        fullest
            .max_by_key(|(_, parts)| parts.total())
            .map_or(0, |(tile, _)| tile)
    }

    /// Bytes on the fullest tile.
    pub fn max_tile_bytes(&self) -> u64 {
        self.tiles.get(self.max_tile()).map_or(0, Parts::total)
    }

    /// Sums over all tiles.
    pub fn sums(&self) -> Parts {
        let mut sums = Parts::default();
        for parts in &self.tiles {
            sums.add(parts);
        }
        sums
    }
}

impl MemoryModel<'_> {
    /// The memory of each of `stages`, ranges of layer positions (end
    /// exclusive), which need not be apart.
    pub fn stages(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        let tiles = self.model.target.num_tiles;
        let windows: Vec<_> = stages.iter().map(|s| self.window(s.clone())).collect();
        let stages_of: Vec<Vec<u32>> = self.stages_of_sets(stages);
        let peaks: Vec<Vec<(u64, u32)>> = (0..tiles)
            .into_par_iter()
            .map_init(Scratch::default, |scratch, tile| {
                self.tile_peaks(tile, &windows, &stages_of, scratch)
            })
            .collect();
        let stage = |(stage, range): (usize, &Range<usize>)| {
            let mut parts = self.code_of(range);
            for (parts, peaks) in parts.iter_mut().zip(&peaks) {
                parts.variables = peaks[stage].0;
            }
            let step = |peaks: &Vec<(u64, u32)>| windows[stage].map(|_| peaks[stage].1);
            StageMemory {
                tiles: parts,
                peak_steps: peaks.iter().map(step).collect(),
            }
        };
        stages.iter().enumerate().map(stage).collect()
    }

    /// By set of layers: the stages that have one of them.
    fn stages_of_sets(&self, stages: &[Range<usize>]) -> Vec<Vec<u32>> {
        let meets = |layers: &[u32], stage: &Range<usize>| {
            layers
                .iter()
                .any(|&layer| stage.contains(&(layer as usize)))
        };
        let of_set = |layers: &[u32]| {
            let numbered = (0u32..).zip(stages);
            let met = numbered.filter(|(_, stage)| meets(layers, stage));
            met.map(|(number, _)| number).collect()
        };
        self.users.sets.iter().map(of_set).collect()
    }

    /// For each stage the highest sum of live variables on `tile`, and where.
    fn tile_peaks(
        &self,
        tile: u32,
        windows: &[Option<(u32, u32)>],
        stages_of: &[Vec<u32>],
        scratch: &mut Scratch,
    ) -> Vec<(u64, u32)> {
        scratch.stages.resize_with(windows.len(), Liveness::default);
        for (liveness, window) in scratch.stages.iter_mut().zip(windows) {
            liveness.restart(window.unwrap_or_default());
        }
        for item in self.model.variables.on_tile(tile) {
            let set = self.users.layered[item.set as usize];
            for &stage in &stages_of[set as usize] {
                let ranges = self.model.classes.ranges(item.class);
                scratch.stages[stage as usize].add(item.bytes, ranges);
            }
        }
        let stages = scratch.stages.iter_mut().zip(windows);
        stages
            .map(|(liveness, window)| match window {
                Some(_) => liveness.peak(),
                None => (0, 0),
            })
            .collect()
    }

    /// Code and vertex state by tile of a range of layers.
    fn code_of(&self, range: &Range<usize>) -> Vec<Parts> {
        let mut tiles = vec![Parts::default(); self.model.target.num_tiles as usize];
        for item in &self.code {
            let layers = self.users.sets.layers(item.set);
            if !layers
                .iter()
                .any(|&layer| range.contains(&(layer as usize)))
            {
                continue;
            }
            for sum in &item.bytes {
                for parts in &mut tiles[sum.from as usize..sum.to as usize] {
                    *parts.of(item.kind) += sum.bytes;
                }
            }
        }
        tiles
    }
}

/// What one thread uses again for each tile.
#[derive(Default)]
struct Scratch {
    stages: Vec<Liveness>,
}
