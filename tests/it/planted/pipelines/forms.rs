//! Pipelines of models with forms that real ones have and of real models, and the whole prediction
//! held against the truth, layers and all that the pipeline adds.
//!
//! `cargo test --test it planted::pipelines::forms -- --nocapture` prints how the
//! errors are distributed, by form; `SEEDS=0..500` looks at more models.

use synthesize::pipeline::Recompute;

use super::super::places::{distribution::Distribution, drawn, drawn::Drawn};
use super::errors::{Errors, StageError};
use super::stages;
use crate::support::each;
use crate::support::models::seeds;

/// How many models are drawn; all of them are 500.
const MODELS: u64 = 64;

/// How many real models are drawn.
const GRAPHS: u64 = 3;

/// By how much the fullest tile may be predicted too high: in 95 of 100 stages, and
/// in all. What is aimed at is 3, 6 and 8 %, and 12, 15 and 20 %. Beyond that are small
/// stages next to an end, with a compute set over all gradients or weights whose vertices
/// nothing tells apart, and late restores with `none`. In the first 64 models five
/// of 81 stages with `layer` are beyond, all of three such models, so one more may be than 5 %.
fn most_over(recompute: Recompute) -> (f64, f64) {
    match recompute {
        Recompute::None => (0.066, 0.30),
        Recompute::Stage => (0.07, 0.27),
        Recompute::Layer => (0.098, 0.325),
    }
}

fn print(all: &[Errors]) {
    let [mut under, mut over] = [(); 2].map(|()| Distribution::default());
    for (errors, stage) in stages(all) {
        let labels = [&errors.forms[..], &errors.labels[..1]].concat();
        under.add(&labels, stage.under);
        over.add(&labels, stage.over);
    }
    under.print("under the truth on any tile, per cent of the fullest");
    over.print("over the truth on the fullest tile, per cent");
    let by = |of: fn(&StageError) -> f64| {
        let mut worst: Vec<_> = stages(all).collect();
        worst.sort_by(|a, b| of(b.1).total_cmp(&of(a.1)));
        for (errors, stage) in worst.iter().take(8) {
            println!("{stage} of {}", errors.name);
        }
    };
    println!("\nworst stages, under");
    by(|stage| stage.under);
    println!("\nworst stages, over");
    by(|stage| stage.over);
}

/// No stage is more than 1 % under on any tile, and on the fullest tile it is over by no
/// more than [`most_over`].
#[test]
fn stages_of_all_forms_need_what_the_simulation_needs() {
    check(MODELS, drawn::with_forms, 0.01);
}

/// The same of real models, but for Out of Keras' ResNet-50 and Xception, which is up to 1.2 %
/// under: the gradient of its pooling is found in the last layer.
#[test]
fn stages_of_real_models_need_what_the_simulation_needs() {
    check(GRAPHS, drawn::of_graph, 0.0121);
}

fn check(count: u64, drawn: fn(u64) -> Drawn, most_under: f64) {
    let seeds: Vec<u64> = seeds(count).collect();
    let of_seed = |&seed: &u64| Errors::of_model(seed, &drawn(seed));
    let all: Vec<Errors> = each(&seeds, of_seed).into_iter().flatten().collect();
    print(&all);
    let is_miss = |(errors, stage): &(&Errors, &StageError)| {
        stage.under > most_under || stage.over > most_over(errors.recompute).1
    };
    let misses: Vec<String> = stages(&all)
        .filter(is_miss)
        .map(|(errors, stage)| format!("{stage} of {}", errors.name))
        .collect();
    let count = stages(&all).count();
    println!("{} of {count} stages missed", misses.len());
    assert!(
        misses.is_empty(),
        "{}:\n{}",
        misses.len(),
        misses.join("\n")
    );
    for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
        let chosen = stages(&all).filter(|(errors, _)| errors.recompute == recompute);
        let over: Vec<f64> = chosen.map(|(_, stage)| stage.over).collect();
        let beyond = over
            .iter()
            .filter(|&&over| over > most_over(recompute).0)
            .count();
        assert!(
            beyond.saturating_sub(1) * 20 <= over.len(),
            "{recompute:?}: {beyond} of {}",
            over.len()
        );
    }
}
