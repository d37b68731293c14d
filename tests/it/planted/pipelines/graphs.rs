//! Pipelines of real models: the whole prediction against the truth, with the layers and the memory
//! that the pipeline adds.
//!
//! `cargo test --test it planted::pipelines::graphs -- --nocapture` prints the distribution of
//! errors by model; `SEEDS=0..500` runs more models.

use synthesize::pipeline::Recompute;

use super::super::places::MOST_UNDER;
use super::super::places::drawn::{self, Drawn};
use super::errors::{Errors, StageError, stages};
use super::{assert_on_page, per_cent};

/// Number of models to draw.
const MODELS: u64 = 6;

/// Largest relative error by which the fullest tile may be predicted too high: in 95 of 100 stages,
/// and in all. The aims are 3, 6 and 8 %, and 12, 15 and 20 %.
fn most_over(recompute: Recompute) -> (f64, f64) {
    match recompute {
        Recompute::None => (0.06, 0.24),
        Recompute::Stage => (0.07, 0.33),
        Recompute::Layer => (0.08, 0.29),
    }
}

/// No stage is too low on any tile by more than [`MOST_UNDER`], or too high on its fullest tile by
/// more than [`most_over`].
#[test]
fn stages_of_real_models_need_what_the_simulation_needs() {
    check(drawn::of_graph);
    check(|seed| drawn::recompiled(seed, drawn::of_graph(seed)));
}

fn check(drawn: fn(u64) -> Drawn) {
    let all = Errors::all(MODELS, drawn);
    let is_miss = |(errors, stage): &(&Errors, &StageError)| {
        stage.under > MOST_UNDER || stage.over > most_over(errors.recompute).1
    };
    super::assert_none(&all, is_miss);
    for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
        let chosen = stages(&all).filter(|(errors, _)| errors.recompute == recompute);
        let over = chosen.map(|(_, stage)| (stage.over, most_over(recompute).0));
        super::assert_few_beyond(&format!("{recompute:?}"), &over.collect::<Vec<_>>());
    }
}

#[test]
fn the_reference_has_these_bounds() {
    let all = [Recompute::None, Recompute::Stage, Recompute::Layer].map(most_over);
    let [few, most] = [all.map(|own| own.0), all.map(|own| own.1)]
        .map(|bounds| per_cent(bounds.into_iter().fold(0.0, f64::max)));
    let sentence = format!(
        "at most {} % too low on any tile; its fullest tile is at most {few} % too high in 95 of \
         100 stages, and {most} % in all",
        per_cent(MOST_UNDER)
    );
    assert_on_page("docs/reference.md", &sentence);
}
