//! `--compare`: a run against the report of an earlier one. `src/report/compare/tests.rs` compares
//! reports of every kind.

use crate::support::{Earlier, Run, cells, run_fixture};

const FIXTURE: &str = "poplar-mlp";

impl Earlier {
    fn of(options: &str) -> Self {
        Self::new(FIXTURE, options)
    }

    fn compared(&self, options: &str) -> Run {
        run_fixture(FIXTURE, &format!("{options} --compare={}", self.path()))
    }
}

#[test]
fn a_model_that_fitted_and_no_longer_does_ends_with_1() {
    let run = Earlier::of("--solve --num-ipus=3").compared("--num-ipus=2");
    run.exits(1).says("it fitted and no longer does");
}

#[test]
fn a_model_that_never_fitted_ends_with_1_only_where_the_verdict_is_asked_for() {
    let earlier = Earlier::of("--solve --num-ipus=2");
    earlier.compared("--num-ipus=2").exits(0);
    earlier.compared("--num-ipus=2 --solve").exits(1);
    earlier.compared("--num-ipus=3 --solve").exits(0);
}

#[test]
fn layers_of_another_model_of_memory_differ_with_a_warning() {
    let run = Earlier::of("--solve --memory-model=classic").compared("");
    run.warns(&["compared with another report: the memory model was classic and is full"]);
    run.says("what is before and after the layers was None before them and is In before them");
    let layers = cells(&run.section("compare-layers"), '\t').split_off(1);
    assert!(layers.iter().any(|row| row[1] == "grew"), "{layers:?}");
    let is_other = |row: &&Vec<String>| ["new", "gone"].contains(&&*row[1]);
    let others = layers.iter().filter(is_other).map(|row| &row[..2]);
    let expected = [["In", "new"], ["Out", "new"], ["None", "gone"]];
    assert_eq!(others.collect::<Vec<_>>(), expected);
}
