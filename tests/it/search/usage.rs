//! What a search cannot answer is wrong usage.

use super::TRAINING;
use crate::support::{cases, run_fixture};

#[test]
fn what_cannot_be_asked_is_wrong_usage() {
    refused(
        "poplar-mlp",
        "
        --pin=9=0
            there is no layer 9
        --pin=3
            LAYER=IPU
        --pin=0=7 --num-ipus=4
            --pin 0=7
        --pin=2=0 --cut-after=1
            --pin 2=0 clashes with --cut-after 1
        --together=0,2 --cut-after=1
            clashes with
        --cut-after=Out
            no cut after the last
        --check-splits=2,1
            in the order of the model
        --layers-per-ipu=1,1
            add up to 2, but the model has 5 layers
        --layers-per-ipu=5 --check-splits=1
            cannot be used with
        --mem-per-tile=1,2 --num-ipus=3
            has 2 amounts
        --solver=greedy --pin=0=0
            does not support constraints
        --solver=greedy --sweep
            does not support --sweep
        ",
    );
}

#[test]
fn what_no_framework_or_model_of_memory_has_is_wrong_usage() {
    refused(
        TRAINING,
        "
        --solver=greedy --schedule=popart
            --schedule: --solver greedy
        --memory-model=classic --recompute=stage
            --recompute: --memory-model classic
        --memory-model=classic --accumulator=float32
            --accumulator: 
        --schedule=sometimes
            possible values: auto, none, popart
        --optimizer-state=sharded
            state can only be shared by several replicas
        --at-micro-batch=9
            --micro-batch <B>
        ",
    );
}

/// Checks that each line of options is refused with the text below it.
fn refused(fixture: &str, list: &str) {
    for (options, texts) in cases(list) {
        let run = run_fixture(fixture, &format!("--solve {options}"));
        run.exits(2).says(texts[0]);
        assert_eq!(run.out, "", "{options}");
    }
}
