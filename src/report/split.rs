//! A split and how it was judged.

use super::{layer_name, layer_names};
use crate::memory::{Parts, StageMemory};
use crate::model::{Positions, PseudoLayers};
use serde::Serialize;
use std::ops::Range;

/// A split and how it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Which pseudo-layers stand around the layers.
    pub pseudo_layers: PseudoLayers,
    /// Bytes that a stage may take on each tile: the most that any IPU allows.
    pub limit: u64,
    /// The same by IPU; empty when it is the same on all.
    pub limits: Vec<u64>,
    /// Orders that the split breaks, as they were given; none in a solver's
    /// answer.
    pub broken: Vec<String>,
    /// Was it given, to be judged?
    pub is_given: bool,
    /// How many stages there may be: one for each IPU.
    pub max_stages: usize,
    /// The stages in order.
    pub stages: Vec<Stage>,
    /// The positions that a search gave up on; none in a solver's answer.
    pub unplaced: Vec<Option<String>>,
    /// Single positions that are over the limit by themselves: no number of
    /// IPUs helps.
    pub too_large: Vec<Layer>,
}

/// One pipeline stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Its first layer; `None` for the first position.
    pub layer_from: Option<String>,
    /// Its last layer in the order, the same way.
    pub layer_to: Option<String>,
    /// All its layers, as [`layer_names`] has them.
    pub layers: Vec<Option<String>>,
    /// Its positions in the layer order, the end exclusive.
    #[serde(skip)]
    pub positions: Range<usize>,
    /// Does Out run on it?
    #[serde(skip)]
    pub has_out: bool,
    /// Its memory tile by tile, which all below is summed up from.
    #[serde(skip)]
    pub memory: StageMemory,
    /// Its memory.
    pub mem: Memory,
    /// The fullest tile; the first of several.
    pub max_tile: usize,
    /// Index of the first liveness step at which the variables of the fullest
    /// tile are most; `None` when the stage has no steps.
    pub peak_step: Option<u32>,
}

/// The memory of a stage in bytes: sums over all tiles, except `max_tile_mem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All parts together.
    pub total_mem: u64,
    /// Bytes on the fullest tile.
    pub max_tile_mem: u64,
    /// The parts.
    #[serde(flatten)]
    pub parts: Parts,
}

/// What is free of `limit` with so many bytes in use; below 0 when they are
/// more. Beyond what JSON readers take it stays at the last number that they do.
pub fn free_bytes(limit: u64, bytes: u64) -> i64 {
    let free = i128::from(limit) - i128::from(bytes);
    i64::try_from(free).unwrap_or(if free < 0 { i64::MIN } else { i64::MAX })
}

/// A single position of the layer order and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Its name; `None` for the first.
    pub name: Option<String>,
    /// Its memory.
    pub mem: Memory,
    /// The fullest tile.
    pub max_tile: usize,
}

impl Memory {
    /// Sums up a stage.
    pub fn of(memory: &StageMemory) -> Self {
        let parts = memory.sums();
        Self {
            total_mem: parts.total(),
            max_tile_mem: memory.max_tile_bytes(),
            parts,
        }
    }
}

impl Stage {
    /// Describes the stage with these positions of the layer order.
    pub fn new(positions: &Positions, range: &Range<usize>, memory: StageMemory) -> Self {
        let max_tile = memory.max_tile();
        Self {
            layer_from: layer_name(positions, range.start),
            layer_to: layer_name(positions, range.end - 1),
            layers: layer_names(positions, range.clone()),
            positions: range.clone(),
            has_out: match positions.out() {
                Some(out) => range.contains(&out),
                None => positions.out_is_first() && range.start == 0,
            },
            mem: Memory::of(&memory),
            max_tile,
            peak_step: memory.peak_steps.get(max_tile).copied().flatten(),
            memory,
        }
    }

    /// Does it have the first position, what runs before the layers?
    pub fn has_in(&self) -> bool {
        self.positions.start == 0
    }

    /// Its layers without pseudo-layers, in order.
    pub fn named_layers(&self) -> impl Iterator<Item = &str> {
        let count = self.layers.len() - usize::from(self.has_out);
        let layers = self.layers[..count].iter();
        layers.flatten().map(String::as_str)
    }
}

impl Split {
    /// Is every layer in a stage, each within its limit, are there IPUs for
    /// all, and is every order obeyed?
    pub fn fits(&self) -> bool {
        let placed = self.unplaced.is_empty() && self.stages.len() <= self.max_stages;
        let mut stages = self.stages.iter().enumerate();
        placed
            && self.broken.is_empty()
            && stages.all(|(number, stage)| stage.mem.max_tile_mem <= self.limit_of(number))
    }

    /// The positions of each stage in the layer order, ends exclusive.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let stages = self.stages.iter();
        stages.map(|stage| stage.positions.clone()).collect()
    }

    /// Bytes that this stage may take on each tile.
    pub fn limit_of(&self, stage: usize) -> u64 {
        self.limits.get(stage).copied().unwrap_or(self.limit)
    }

    /// The number of the stage that is most over its limit, that stage, and by
    /// how many bytes.
    pub fn worst(&self) -> Option<(usize, &Stage, u64)> {
        let over = |(number, stage): (usize, &Stage)| {
            stage.mem.max_tile_mem.checked_sub(self.limit_of(number))
        };
        let stages = self.stages.iter().enumerate().rev();
        let worst = stages.filter_map(|stage| Some((over(stage)?, stage)));
        let worst = worst.max_by_key(|&(over, _)| over);
        worst.map(|(over, (number, stage))| (number, stage, over))
    }

    /// The number of the stage with the fullest tile, and that stage.
    pub fn fullest(&self) -> Option<(usize, &Stage)> {
        let stages = self.stages.iter().enumerate().rev();
        stages.max_by_key(|(_, stage)| stage.mem.max_tile_mem)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Layering;

    /// A split with two stages, the second of which is over the limit.
    pub(crate) fn split() -> Split {
        let names = ["", "0", "1\u{1b}[31m", "2"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        let positions = Positions::full(&layering, false);
        let memory = |bytes: [u64; 2]| StageMemory {
            tiles: bytes
                .map(|variables| Parts {
                    variables,
                    control_code: 24,
                    ..Parts::default()
                })
                .to_vec(),
            peak_steps: vec![Some(3), None],
        };
        let (first, second) = (memory([600_000, 400]), memory([100, 700_000]));
        let too_large = Layer {
            name: Some("2".into()),
            mem: Memory::of(&second),
            max_tile: 1,
        };
        Split {
            pseudo_layers: positions.pseudo_layers(),
            limit: 638_976,
            limits: Vec::new(),
            broken: Vec::new(),
            is_given: false,
            max_stages: 2,
            unplaced: Vec::new(),
            stages: vec![
                Stage::new(&positions, &(0..2), first),
                Stage::new(&positions, &(2..5), second),
            ],
            too_large: vec![too_large],
        }
    }

    #[test]
    fn free_bytes_keep_their_sign() {
        assert_eq!(free_bytes(5, 7), -2);
        assert_eq!(free_bytes(u64::MAX, 0), i64::MAX);
        assert_eq!(free_bytes(0, u64::MAX), i64::MIN);
    }

    #[test]
    fn one_stage_over_the_limit_is_enough_not_to_fit() {
        let mut split = split();
        assert!(!split.fits());
        assert_eq!(split.fullest().unwrap().0, 1);
        split.stages.pop();
        assert!(split.fits());
        split.unplaced = vec![Some("2".into())];
        assert!(!split.fits());
        let split = Split {
            max_stages: 0,
            unplaced: Vec::new(),
            ..split
        };
        assert!(!split.fits());
    }
}
