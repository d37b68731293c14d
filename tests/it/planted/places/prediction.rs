//! Predictions of the library.

use std::ops::Range;
use std::path::Path;

use crate::support::model_in;
use popliner::memory::MemoryModel;
use popliner::model::{Model, Placement, PlacementOptions};
use popliner::solve::{Constraint, Problem, Rule, solve};

use super::operations::{self, Found};
use super::planted::Planted;

/// The predicted numbers.
pub struct Prediction {
    /// Bytes by range and by tile.
    pub ranges: Vec<Vec<u64>>,
    /// The chosen stages of each question; `None` without a split.
    pub splits: Vec<Option<Vec<Range<usize>>>>,
    /// The assignment of operations without a layer.
    pub operations: Found,
}

/// A question to the search.
pub struct Question {
    /// Number of IPUs.
    pub ipus: usize,
    /// Bytes of each tile.
    pub limit: u64,
}

/// Computes these ranges and answers these questions; `None` if the number of positions is not the
/// planted one, since a tie was missed.
pub fn predict(
    planted: &Planted,
    ranges: &[Range<usize>],
    questions: &[Question],
) -> Option<Prediction> {
    let model = model(planted.folder.path());
    let layering = planted.layering(&model);
    let placement = Placement::full(&model, &layering, &PlacementOptions::default());
    let placement = placement.expect("places");
    let memory = MemoryModel::new(&model, &placement).expect("memory");
    if memory.layers() != planted.positions() {
        return None;
    }
    let tied = constraints(&placement);
    let split = |question| split(&memory, &tied, question);
    let stages = memory.stages(ranges);
    let bytes = stages.iter().map(|stage| {
        let tiles = stage.tiles.iter();
        tiles.map(|parts| parts.total()).collect()
    });
    Some(Prediction {
        ranges: bytes.collect(),
        splits: questions.iter().map(split).collect(),
        operations: operations::check(planted, &model, &layering, &placement),
    })
}

fn model(folder: &Path) -> Model {
    let model = model_in(folder);
    assert_eq!(model.contradictions, [], "{}", folder.display());
    model
}

fn split(
    memory: &MemoryModel<'_>,
    tied: &[Constraint],
    question: &Question,
) -> Option<Vec<Range<usize>>> {
    let &Question { ipus, limit } = question;
    let costs = memory.range_costs(limit).expect("costs");
    let cut_bytes = memory.between().cut_bytes();
    let problem = Problem {
        constraints: tied,
        ..Problem::new(&costs, &cut_bytes, ipus, limit)
    };
    let solution = solve(&problem).expect("an answer");
    solution.map(|solution| solution.plan.stages().to_vec())
}

/// Returns the constraints of tied weights, whose layers stay together.
fn constraints(placement: &Placement) -> Vec<Constraint> {
    let ties = placement.ties.iter();
    let together = ties.filter_map(|tie| tie.binds(&placement.positions));
    together
        .map(|(first, last)| Constraint::option(Rule::Together { first, last }, "tied"))
        .collect()
}
