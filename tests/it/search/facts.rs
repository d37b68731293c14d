//! The numbers of every split of a model, and the best split by trying all of them.

use std::ops::Range;
use std::path::Path;

use crate::oracle::search::{Numbers, Split, ranges};
use crate::support::model;
use popliner::memory::MemoryModel;
use popliner::model::{Layering, Placement, PlacementOptions, Positions};
use serde_json::Value;

/// All numbers by which splits of a model are compared, in positions of the layer order.
pub struct Facts {
    pub positions: Positions,
    pub numbers: Numbers,
    pub limit: u64,
    /// First and last position of each weight that several positions share.
    pub ties: Vec<(usize, usize)>,
}

impl Facts {
    /// Computes the facts of any model.
    pub fn of(profile: &Path, debug: &Path, options: &PlacementOptions) -> Self {
        let model = model(profile, debug);
        let layering = Layering::original(&model.operations);
        let placement = Placement::full(&model, &layering, options).expect("few sets");
        let memory = MemoryModel::new(&model, &placement).expect("few sets");
        let positions = placement.positions.len();
        let ranges: Split = ranges(positions).collect();
        let stages = memory.stages(&ranges);
        let peaks = stages.iter().map(|stage| stage.max_tile_bytes());
        let ties = placement.ties.iter();
        Self {
            ties: ties
                .filter_map(|tie| tie.binds(&placement.positions))
                .collect(),
            numbers: Numbers {
                positions,
                peaks: ranges.into_iter().zip(peaks).collect(),
                cut_bytes: memory.cut_bytes(),
                cycles: model.layer_cycles(&placement).map(|cycles| {
                    let passes = cycles.passes_by_layer.iter();
                    passes.map(|pass| pass.forward + pass.backward).collect()
                }),
            },
            positions: placement.positions,
            limit: model.target.bytes_per_tile,
        }
    }

    /// Returns the positions of the layers of each stage in a report or in printed results.
    pub fn stages(&self, stages: &Value) -> Split {
        let mut start = 0;
        let stages = stages.as_array().expect("stages").iter().map(|stage| {
            let layers = stage.get("layers").unwrap_or(stage);
            // Out may come last and be in the first position.
            let names = layers.as_array().expect("a list").iter();
            let end = names.map(|name| self.position(name)).max().expect("a name") + 1;
            std::mem::replace(&mut start, end)..end
        });
        stages.collect()
    }

    /// Returns the position with this name in a report; `null` is the first position.
    pub fn position(&self, name: &Value) -> usize {
        let named = |name| self.positions.find(name).layer().expect("a layer");
        name.as_str().map_or(0, named)
    }

    /// Returns the bytes on the fullest tile of a range.
    pub fn peak(&self, range: &Range<usize>) -> u64 {
        self.numbers.peaks[range]
    }

    /// Returns the best split within `limits` (by IPU).
    pub fn best(&self, objective: &str, limits: &[u64]) -> Option<Split> {
        let keeps_ties = |stages: &[Range<usize>]| {
            let is_in_one = |tie: &(usize, usize)| {
                let mut stages = stages.iter();
                stages.any(|stage| stage.contains(&tie.0) && stage.contains(&tie.1))
            };
            self.ties.iter().all(is_in_one)
        };
        self.numbers.best(objective, limits, keeps_ties)
    }

    /// Returns the split with the lowest peak on at most `ipus` IPUs with `limit` bytes on a tile.
    pub fn lowest(&self, ipus: usize, limit: u64) -> Option<Split> {
        self.best("peak", &vec![limit; ipus])
    }

    /// Returns the bytes on the fullest tile of a split.
    pub fn peak_of(&self, stages: &[Range<usize>]) -> u64 {
        let peaks = stages.iter().map(|stage| self.peak(stage));
        peaks.max().expect("a stage")
    }
}
