//! Random models of training and inference, for the tests of several modules.

use super::{
    PlacedStage,
    pipeline::tests::{after, in_passes, model},
    tests::reference_model::ranges,
};
use crate::model::{Layering, Model};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::ops::Range;

/// Returns which share of its cases a test runs: every `part`-th case, to save time, so that the
/// result is `part`. The result is 1, for all cases, if the environment variable `SEEDS` is set.
pub(crate) fn share(part: usize) -> usize {
    if std::env::var_os("SEEDS").is_some() {
        1
    } else {
        part
    }
}

/// Returns the configuration of a property test with a third of `count` cases, or with all cases if
/// the environment variable `SEEDS` is set.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig::with_cases(count / share(3) as u32)
}

/// Returns the seeds of random models to test: `0..count`, or the range in the environment variable
/// `SEEDS`, which is written `from..to`.
pub(crate) fn seeds(count: u64) -> Range<u64> {
    let Ok(seeds) = std::env::var("SEEDS") else {
        return 0..count;
    };
    let (from, to) = seeds.split_once("..").expect("SEEDS=from..to");
    from.parse().expect("a seed")..to.parse().expect("a seed")
}

/// Makes a random training model of some layers on three tiles. Other values of `compilation` give
/// the model of the same seed with other bytes of variables, as if it were compiled with other
/// settings.
pub(crate) fn random_training(seed: u64, compilation: u32) -> (Model, Layering) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    let tree = in_passes().new_tree(&mut runner).expect("a model");
    let mut case = tree.current();
    case.3 = case.3.or(Some(7));
    if compilation > 0 {
        for (number, variable) in (1u32..).zip(&mut case.0.variables) {
            let drawn = number.wrapping_mul(0x9e37_79b9).rotate_left(compilation);
            variable.bytes = (variable.bytes / 2).saturating_mul(drawn >> 30);
        }
    }
    model(&case)
}

/// Returns all possible stages of a model with `positions` positions (In, layers, Out): each range
/// of positions, with each possible number of stages after it.
pub(crate) fn placed(positions: usize) -> Vec<PlacedStage> {
    let stages = ranges(positions).into_iter().flat_map(|range| {
        after(&range, positions).map(move |after| PlacedStage {
            positions: range.clone(),
            after: Some(after),
        })
    });
    stages.collect()
}
