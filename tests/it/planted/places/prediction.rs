//! What the library predicts.

use std::ops::Range;

use popliner::debug_info::DebugInfo;
use popliner::memory::MemoryModel;
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model,
    Placement, PlacementOptions,
};
use popliner::profile::Profile;
use popliner::solve::{Problem, solve};
use regex::Regex;

use super::planted::Planted;

/// What is asked for.
pub struct Prediction {
    /// By range and tile: bytes.
    pub ranges: Vec<Vec<u64>>,
    /// By question: the stages that are called best.
    pub splits: Vec<Option<Vec<Range<usize>>>>,
}

/// Weighs these ranges, and splits the model for so many IPUs with so many bytes
/// on each tile.
pub fn predict(planted: &Planted, ranges: &[Range<usize>], questions: &[(usize, u64)]) -> Prediction {
    let folder = planted.folder.path();
    let profile = Profile::read(&folder.join("profile.pop")).expect("a profile");
    let contexts = DebugInfo::read(&folder.join("debug.cbor")).expect("contexts");
    let model = Model::build(profile, &contexts, false).expect("a model");
    let options = LayerOptions {
        layer_regex: Regex::new(DEFAULT_LAYER_REGEX).expect("a regex"),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).expect("a regex"),
        order: LayerOrder::Natural,
    };
    let layering = Layering::new(&model.operations, &options);
    let placement = Placement::new(&model, &layering, &PlacementOptions::default());
    let memory = MemoryModel::full(&model, &layering, &placement).expect("memory");
    let stages = memory.stages(ranges);
    let bytes = stages.iter().map(|stage| {
        let tiles = stage.tiles.iter();
        tiles.map(|parts| parts.total()).collect()
    });
    let split = |&(ipus, limit): &(usize, u64)| {
        let costs = memory.range_costs(limit);
        let cut_bytes = memory.between().cut_bytes();
        let problem = Problem::new(&costs, &cut_bytes, ipus, limit);
        let solution = solve(&problem).expect("an answer");
        solution.map(|solution| solution.plan.stages().to_vec())
    };
    Prediction {
        ranges: bytes.collect(),
        splits: questions.iter().map(split).collect(),
    }
}
