//! The numbers of every split of a model, and the best split by trying all of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::{debug, model, profile, root};
use popliner::memory::MemoryModel;
use popliner::model::{Layering, Placement, PlacementOptions, Positions};
use serde_json::Value;

/// All numbers by which splits of a fixture are compared, in positions of the layer order.
pub struct Facts {
    pub positions: Positions,
    /// Bytes on the fullest tile, by first position and end (exclusive).
    pub peaks: BTreeMap<(usize, usize), u64>,
    /// Bytes over the cut after each position.
    pub cut_bytes: Vec<u64>,
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
        let files = [profile(fixture), debug(fixture)].map(|file| root().join(file));
        let facts = Arc::new(Self::of(&files[0], &files[1], &PlacementOptions::default()));
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
        let pairs = (0..layers).flat_map(|start| (start + 1..=layers).map(move |end| (start, end)));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let ranges: Vec<Range<usize>> = pairs.iter().map(|&(start, end)| start..end).collect();
        let stages = memory.stages(&ranges);
        let peaks = stages.iter().map(|stage| stage.max_tile_bytes());
        let cycles = model.layer_cycles(&placement);
        let ties = placement.ties.iter();
        let ties = ties.filter_map(|tie| tie.binds(&placement.positions));
        Self {
            ties: ties.collect(),
            peaks: pairs.into_iter().zip(peaks).collect(),
            cut_bytes: memory.cut_bytes(),
            cycles: cycles.map(|cycles| {
                let passes = cycles.passes_by_layer.iter();
                passes.map(|pass| pass.forward + pass.backward).collect()
            }),
            positions: placement.positions,
            limit: model.target.bytes_per_tile,
        }
    }

    /// May a stage end before this position, by the ties of weights?
    pub fn may_cut(&self, position: usize) -> bool {
        let mut ties = self.ties.iter();
        !ties.any(|&(first, last)| first < position && position <= last)
    }

    /// Returns the last position of a list of names. Out may come last and be in the first
    /// position.
    pub fn last(&self, names: &Value) -> usize {
        let names = names.as_array().expect("a list").iter();
        names.map(|name| self.position(name)).max().expect("a name")
    }

    /// Returns the position with this name in a report; `null` is the first position.
    pub fn position(&self, name: &Value) -> usize {
        match name.as_str() {
            Some(name) => self.positions.find(name).expect("a layer"),
            None => 0,
        }
    }

    /// Returns all splits into at most `ipus` stages, as the ends of their stages.
    pub fn splits(&self, ipus: usize) -> Vec<Vec<usize>> {
        let layers = self.positions.len();
        let ends = |bits: usize| -> Vec<usize> {
            let cuts = (1..layers).filter(|cut| bits >> (cut - 1) & 1 == 1);
            cuts.chain([layers]).collect()
        };
        let all = (0..1usize << (layers - 1)).map(ends);
        all.filter(|ends| ends.len() <= ipus).collect()
    }

    pub fn stages(&self, ends: &[usize]) -> Vec<(usize, usize)> {
        let starts = [0].into_iter().chain(ends.iter().copied());
        starts.zip(ends.iter().copied()).collect()
    }

    /// Returns the numbers of a split by which `objective` compares, and its ends.
    pub fn rank(&self, objective: &str, ends: &[usize]) -> (Vec<u128>, Vec<usize>) {
        let stages = self.stages(ends);
        let peaks: Vec<u128> = stages
            .iter()
            .map(|stage| self.peaks[stage].into())
            .collect();
        let peak = peaks.iter().copied().max().unwrap();
        let count = stages.len() as u128;
        let squares: u128 = peaks.iter().map(|peak| peak * peak).sum();
        let cuts = ends[..ends.len() - 1].iter();
        let cut_bytes: u128 = cuts.map(|&end| u128::from(self.cut_bytes[end - 1])).sum();
        let slowest: u128 = self.cycles.as_ref().map_or(0, |cycles| {
            let of = |&(start, end): &(usize, usize)| -> u64 { cycles[start..end].iter().sum() };
            stages.iter().map(of).max().unwrap().into()
        });
        let numbers = match objective {
            "peak" => vec![peak, count, slowest, squares, cut_bytes],
            "fewest" => vec![count, peak, slowest, squares, cut_bytes],
            "communication" => vec![cut_bytes, peak, count, slowest, squares],
            "cycles" => vec![slowest, peak, count, squares, cut_bytes],
            other => panic!("{other}"),
        };
        (numbers, ends.to_vec())
    }

    /// Returns the best split within `limits` (by IPU) that `obeys`.
    pub fn best(
        &self,
        objective: &str,
        limits: &[u64],
        obeys: impl Fn(&[usize]) -> bool,
    ) -> Option<Vec<usize>> {
        let fits = |ends: &Vec<usize>| {
            let stages = self.stages(ends);
            let mut stages = stages.iter().zip(limits);
            stages.all(|(stage, &limit)| self.peaks[stage] <= limit)
        };
        let splits = self.splits(limits.len()).into_iter();
        let keeps_ties = |ends: &Vec<usize>| ends.iter().all(|&end| self.may_cut(end));
        let allowed = splits.filter(|ends| fits(ends) && keeps_ties(ends) && obeys(ends));
        allowed.min_by_key(|ends| self.rank(objective, ends))
    }
}

/// Returns the ends of the stages that the command printed.
pub fn printed(facts: &Facts, out: &str) -> Vec<usize> {
    let stages: Value = serde_json::from_str(out).expect("stages");
    let last = |stage: &Value| facts.last(&stage["layers"]) + 1;
    stages.as_array().unwrap().iter().map(last).collect()
}
