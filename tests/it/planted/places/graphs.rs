//! Places of real models. Their layers are blocks with the operations between them.
//!
//! `cargo test --test it planted::places::graphs -- --nocapture` prints the distribution of errors;
//! `SEEDS=0..500` runs more models.

use std::collections::BTreeSet;

use super::planted::Planted;
use super::{as_planted, drawn};
use crate::support::graph_file;

/// Number of models to draw.
const MODELS: u64 = 3;

/// Largest share of a model's bytes that may be assigned elsewhere than planted. CLIP computes
/// small numbers from its input for its head.
const MOST_ELSEWHERE: f64 = 0.0015;

/// Nearly all operations are assigned as planted.
#[test]
fn blocks_of_real_models_are_placed_as_planted() {
    for model in as_planted(MODELS, drawn::of_graph) {
        let elsewhere: f64 = model.wrong.iter().map(|wrong| wrong.share).sum();
        assert!(elsewhere <= MOST_ELSEWHERE, "{elsewhere}: {}", model.name);
    }
}

/// A convolution of the model runs between two operations of a block, beside it.
#[test]
fn an_operation_within_a_block_does_not_divide_it() {
    let drawn = drawn::graph_in(&graph_file("keras_xception"), "tensorflow", "inference");
    let blocks = Planted::with(drawn).truth.blocks;
    let names: BTreeSet<&String> = blocks.iter().collect();
    assert_eq!(names.len(), blocks.len(), "{blocks:?}");
}

/// Largest relative error by which a range of blocks that run twice may be predicted too high.
const MOST_OVER: f64 = 0.01;

/// A block that runs twice is one layer with both runs, and with the code of the loops in it.
#[test]
fn blocks_that_run_twice_are_placed_as_planted() {
    for model in as_planted(2, drawn::called) {
        let over = model.ranges.iter().filter(|range| range.over > MOST_OVER);
        let over: Vec<_> = over.collect();
        assert!(over.is_empty(), "{over:#?} {}", model.name);
    }
}
