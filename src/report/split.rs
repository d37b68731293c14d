//! A split and how it was judged.

use crate::memory::{Parts, StageMemory};
use crate::model::Positions;
use serde::Serialize;
use std::ops::Range;

/// A split and how it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Split {
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
    /// The layers that a search gave up on; none in a solver's answer.
    pub unplaced: Vec<Option<String>>,
    /// Single layers that are over the limit by themselves: no number of IPUs
    /// helps.
    pub too_large: Vec<Layer>,
}

/// One pipeline stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Its first layer; `None` for the operations without a layer.
    pub layer_from: Option<String>,
    /// Its last layer, the same way.
    pub layer_to: Option<String>,
    /// All its layers, in order.
    pub layers: Vec<Option<String>>,
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

/// A single layer and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Its name; `None` for the operations without a layer.
    pub name: Option<String>,
    /// Its memory.
    pub mem: Memory,
    /// The fullest tile.
    pub max_tile: usize,
}

/// The name of a position of the layer order as results show it: the first
/// has none.
pub fn layer_name(positions: &Positions, position: usize) -> Option<String> {
    (position > 0).then(|| positions.name(position).to_string())
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
    /// Describes the stage with these layer positions.
    pub fn new(positions: &Positions, range: &Range<usize>, memory: &StageMemory) -> Self {
        let max_tile = memory.max_tile();
        Self {
            layer_from: layer_name(positions, range.start),
            layer_to: layer_name(positions, range.end - 1),
            layers: range
                .clone()
                .map(|layer| layer_name(positions, layer))
                .collect(),
            mem: Memory::of(memory),
            max_tile,
            peak_step: memory.peak_steps.get(max_tile).copied().flatten(),
        }
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

    /// The positions of each stage in the layer order (ends exclusive): stages
    /// are contiguous, from the first layer on.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let stages = self.stages.iter().map(|stage| {
            let start = end;
            end += stage.layers.len();
            start..end
        });
        stages.collect()
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
        let positions = Positions::classic(&Layering::of(names.to_vec(), Vec::new()));
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
        Split {
            limit: 638_976,
            limits: Vec::new(),
            broken: Vec::new(),
            is_given: false,
            max_stages: 2,
            unplaced: Vec::new(),
            stages: vec![
                Stage::new(&positions, &(0..2), &first),
                Stage::new(&positions, &(2..4), &second),
            ],
            too_large: vec![Layer {
                name: Some("2".into()),
                mem: Memory::of(&second),
                max_tile: 1,
            }],
        }
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
