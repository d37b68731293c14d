//! The numbers of every split of a model, and the best split by trying all of them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::{debug, model, profile, root};
use popliner::memory::MemoryModel;
use popliner::model::{Layering, Placement, PlacementOptions, Positions};
use serde_json::Value;

/// A split: the positions of each stage in the layer order.
pub type Split = Vec<Range<usize>>;

/// Returns all splits into at most `ipus` stages.
pub fn splits(positions: usize, ipus: usize) -> impl Iterator<Item = Split> {
    let all = (0_u32..1 << (positions - 1)).filter(move |bits| (bits.count_ones() as usize) < ipus);
    all.map(move |bits| {
        let is_cut = |cut: &usize| bits >> (cut - 1) & 1 == 1;
        let mut start = 0;
        let ends = (1..positions).filter(is_cut).chain([positions]);
        ends.map(|end| std::mem::replace(&mut start, end)..end)
            .collect()
    })
}

/// All numbers by which splits of a fixture are compared, in positions of the layer order.
pub struct Facts {
    pub positions: Positions,
    /// Bytes on the fullest tile of each range of positions.
    pub peaks: HashMap<Range<usize>, u64>,
    /// Bytes over the cut after each position.
    cut_bytes: Vec<u64>,
    /// Cycles of a micro-batch by position, without updates and recomputation.
    pub cycles: Option<Vec<u64>>,
    pub limit: u64,
    /// First and last position of each weight that several positions share.
    pub ties: Vec<(usize, usize)>,
}

impl Facts {
    /// Returns the facts of a fixture, computed once for all tests.
    pub fn known(fixture: &str) -> Arc<Self> {
        static KNOWN: Mutex<BTreeMap<String, Arc<Facts>>> = Mutex::new(BTreeMap::new());
        if let Some(facts) = KNOWN.lock().expect("facts").get(fixture) {
            return facts.clone();
        }
        let [profile, debug] = [profile(fixture), debug(fixture)].map(|file| root().join(file));
        let facts = Arc::new(Self::of(&profile, &debug, &PlacementOptions::default()));
        let mut known = KNOWN.lock().expect("facts");
        known.insert(fixture.to_owned(), facts.clone());
        facts
    }

    /// Computes the facts of any model.
    pub fn of(profile: &Path, debug: &Path, options: &PlacementOptions) -> Self {
        let model = model(profile, debug);
        let layering = Layering::original(&model.operations);
        let placement = Placement::full(&model, &layering, options).expect("few sets");
        let memory = MemoryModel::new(&model, &placement).expect("few sets");
        let layers = placement.positions.len();
        let ranges = (0..layers).flat_map(|start| (start + 1..=layers).map(move |end| start..end));
        let ranges: Split = ranges.collect();
        let stages = memory.stages(&ranges);
        let peaks = stages.iter().map(|stage| stage.max_tile_bytes());
        let ties = placement.ties.iter();
        Self {
            ties: ties
                .filter_map(|tie| tie.binds(&placement.positions))
                .collect(),
            peaks: ranges.into_iter().zip(peaks).collect(),
            cut_bytes: memory.cut_bytes(),
            cycles: model.layer_cycles(&placement).map(|cycles| {
                let passes = cycles.passes_by_layer.iter();
                passes.map(|pass| pass.forward + pass.backward).collect()
            }),
            positions: placement.positions,
            limit: model.target.bytes_per_tile,
        }
    }

    /// Returns the positions of the layers of each stage in a report or in printed results.
    pub fn stages(&self, stages: &Value) -> Split {
        let mut start = 0;
        let stages = stages.as_array().expect("stages").iter().map(|stage| {
            let layers = if stage.is_array() {
                stage
            } else {
                &stage["layers"]
            };
            // Out may come last and be in the first position.
            let names = layers.as_array().expect("a list").iter();
            let end = names.map(|name| self.position(name)).max().expect("a name") + 1;
            std::mem::replace(&mut start, end)..end
        });
        stages.collect()
    }

    /// Returns the position with this name in a report; `null` is the first position.
    pub fn position(&self, name: &Value) -> usize {
        let named = |name| self.positions.find(name).expect("a layer");
        name.as_str().map_or(0, named)
    }

    /// Returns the numbers of a split by which `objective` compares, and the ends of its stages.
    pub fn rank(&self, objective: &str, stages: &[Range<usize>]) -> (Vec<u128>, Vec<usize>) {
        let peaks = || stages.iter().map(|stage| u128::from(self.peaks[stage]));
        let peak = peaks().max().expect("a stage");
        let count = stages.len() as u128;
        let squares: u128 = peaks().map(|peak| peak * peak).sum();
        let cuts = stages[1..].iter();
        let cut_bytes: u128 = cuts
            .map(|after| u128::from(self.cut_bytes[after.start - 1]))
            .sum();
        let slowest: u128 = self.cycles.as_ref().map_or(0, |cycles| {
            let of = |stage: &Range<usize>| -> u64 { cycles[stage.clone()].iter().sum() };
            stages.iter().map(of).max().expect("a stage").into()
        });
        let numbers = match objective {
            "peak" => vec![peak, count, slowest, squares, cut_bytes],
            "fewest" => vec![count, peak, slowest, squares, cut_bytes],
            "communication" => vec![cut_bytes, peak, count, slowest, squares],
            "cycles" => vec![slowest, peak, count, squares, cut_bytes],
            other => panic!("{other}"),
        };
        (numbers, stages.iter().map(|stage| stage.end).collect())
    }

    /// Returns the best split within `limits` (by IPU) that `obeys`.
    pub fn best(
        &self,
        objective: &str,
        limits: &[u64],
        obeys: impl Fn(&[Range<usize>]) -> bool,
    ) -> Option<Split> {
        let fits = |stages: &Split| {
            let mut stages = stages.iter().zip(limits);
            stages.all(|(stage, &limit)| self.peaks[stage] <= limit)
        };
        let keeps_ties = |stages: &Split| {
            let is_in_one = |tie: &(usize, usize)| {
                stages
                    .iter()
                    .any(|stage| stage.contains(&tie.0) && stage.contains(&tie.1))
            };
            self.ties.iter().all(is_in_one)
        };
        let splits = splits(self.positions.len(), limits.len());
        let allowed = splits.filter(|stages| fits(stages) && keeps_ties(stages) && obeys(stages));
        allowed.min_by_key(|stages| self.rank(objective, stages))
    }

    /// Returns the split with the lowest peak on at most `ipus` IPUs with `limit` bytes on a tile.
    pub fn lowest(&self, ipus: usize, limit: u64) -> Option<Split> {
        self.best("peak", &vec![limit; ipus], |_| true)
    }
}
