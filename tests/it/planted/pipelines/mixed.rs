//! Pipelines whose stages come from compilations of their own, with different available memory
//! proportions.

use synthesize::pipeline::{PipelineModel, StageTruth, simulate_mixed};

use super::super::places::drawn;
use super::drawn::{Case, Trained};
use crate::support::each;
use crate::support::models::seeds;

/// Bytes by tile: of all variables, and of stashes.
type Bytes = [Vec<u64>; 2];

/// Returns the bytes of IPUs that take turns in these models.
fn mixed(models: &[&PipelineModel], case: &Case) -> Vec<Bytes> {
    let models: Vec<_> = models.iter().cycle().take(20).copied().collect();
    bytes(simulate_mixed(&models, &case.cuts, &case.options))
}

fn bytes(stages: Vec<StageTruth>) -> Vec<Bytes> {
    let stages = stages.into_iter();
    stages.map(|stage| [stage.tiles, stage.stash]).collect()
}

/// If tensors are on the same tiles in all compilations, each stage has the bytes of its own one.
/// Otherwise a stage stashes what it makes on its own tiles, and what it receives on tiles of the
/// sender. Returns whether that differs from its own compilation.
fn check(seed: u64) -> bool {
    let models = ["0.6", "0.2", "0.05", "0.2 --moved"].map(|own| {
        let mut drawn = drawn::model(seed);
        let options = format!("--temporaries 8 --proportion {own}");
        drawn.options.extend(options.split(' ').map(str::to_string));
        Trained::new(seed, drawn)
    });
    let [Some(one), Some(two), Some(three), Some(moved)] = models else {
        return false;
    };
    let same_tiles = [&one.truth, &two.truth, &three.truth];
    let cases = one.cases().into_iter();
    let cases = cases.filter(|case| one.holds_weights(case));
    let differ = cases.map(|mut case| {
        let alone = same_tiles.map(|model| mixed(&[model], &case));
        let simulated = two.truth.simulate(&case.cuts, &case.options);
        assert_eq!(alone[1], bytes(simulated), "{}", one.name(&case));
        for (ipu, stage) in mixed(&same_tiles, &case).into_iter().enumerate() {
            assert_eq!(stage, alone[ipu % 3][ipu], "{ipu}: {}", one.name(&case));
        }
        case.cuts.truncate(1);
        let (a, b) = (&two.truth, &moved.truth);
        let pairs = [[a, b], [b, a], [a, a], [b, b]];
        let [ab, ba, aa, bb] =
            pairs.map(|pair| mixed(&pair, &case).pop().unwrap_or_default()[1].clone());
        let mut tiles = 0..aa.len();
        assert!(tiles.all(|tile| ab[tile] + ba[tile] == aa[tile] + bb[tile]));
        ab != bb
    });
    differ.fold(false, |any, differs| any | differs)
}

#[test]
fn stages_are_those_of_their_own_compilations() {
    let seeds: Vec<u64> = seeds(8).collect();
    assert!(each(&seeds, |&seed| check(seed)).contains(&true));
}
