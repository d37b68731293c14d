//! Places of real models. Their layers are blocks with the operations between them.
//!
//! `cargo test --test it planted::places::graphs -- --nocapture` prints the distribution of errors;
//! `SEEDS=0..500` runs more models.

use super::{assert_few_over, drawn, models, print};

/// Number of models to draw.
const MODELS: u64 = 3;

/// Largest relative error by which a stage may be predicted too low on any tile.
pub const MOST_UNDER: f64 = 0.01;

/// Largest share of a model's bytes that may be assigned elsewhere than planted. CLIP computes
/// small numbers from its input for its head.
const MOST_ELSEWHERE: f64 = 0.0015;

/// Nearly all operations are assigned as planted. The chosen split fits, and is at most 2 % worse
/// than the best.
#[test]
fn blocks_of_real_models_are_placed_as_planted() {
    let all = models(MODELS, drawn::of_graph);
    print(&all);
    for model in &all {
        assert!(model.has_places, "{}", model.name);
        let under = model.under();
        assert!(under <= MOST_UNDER, "{under} under: {}", model.name);
        let elsewhere: f64 = model.wrong.iter().map(|wrong| wrong.share).sum();
        assert!(elsewhere <= MOST_ELSEWHERE, "{elsewhere}: {}", model.name);
        let wrong = model.splits.iter().find(|split| !split.is_right());
        assert!(wrong.is_none(), "{wrong:?}: {}", model.name);
    }
    assert_few_over(&all);
}

/// A block that runs twice is one layer with both runs. The chosen split fits.
#[test]
fn blocks_that_run_twice_are_placed_as_planted() {
    let all = models(2, drawn::called);
    print(&all);
    for model in &all {
        assert!(model.has_places, "{}", model.name);
        let under = model.under();
        assert!(under <= MOST_UNDER, "{under} under: {}", model.name);
        let wrong = model.splits.iter().find(|split| !split.is_right());
        assert!(wrong.is_none(), "{wrong:?}: {}", model.name);
    }
    assert_few_over(&all);
}
