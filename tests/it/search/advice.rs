//! Advice if nothing fits: each change frees the bytes that the message says.

use super::{TRAINING, number, report, stages};
use crate::support::{DEFAULT_REGEX, popliner, run_fixture};
use serde_json::Value;

/// Returns the bytes of the stage that the advice is about.
fn bytes(report: &Value, advice: &Value) -> u64 {
    let mut stages = stages(report).iter();
    let stage = stages.find(|stage| stage["layers"] == advice["layers"]);
    number(&stage.expect("the same split")["fullest_tile"]["bytes"])
}

#[test]
fn options_free_what_is_said() {
    let mut checked = 0;
    for split in ["3,3", "2,2,2", "1,3,2"] {
        let question = format!(
            "--solve --layers-per-ipu={split} --mem-per-tile=150000 --schedule=popart {DEFAULT_REGEX}"
        );
        let (_, refused) = report(TRAINING, &format!("{question} --recompute=stage"));
        let advice = &refused["refusal"]["advice"];
        let needed = bytes(&refused, advice);
        assert_eq!(advice["bytes"], needed, "{split}");
        for change in advice["changes"].as_array().expect("advice") {
            let options = match change["change"].as_str().expect("a name") {
                "state-off-chip" => "--optimizer-state=off-chip --recompute=stage",
                "checkpoints" => "--recompute=layer",
                "interleaved" => "--schedule=tf-interleaved --recompute=stage",
                _ => continue,
            };
            let (_, changed) = report(TRAINING, &format!("{question} {options}"));
            let freed = needed - bytes(&changed, advice);
            assert_eq!(change["frees"], freed, "{split} {options}");
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked}");
}

/// The commands after a refusal fit.
#[test]
fn what_is_called_enough_fits() {
    let mut kinds = [0; 2];
    for question in [
        "--num-ipus=4 --recompute=none",
        "--num-ipus=3 --recompute=stage",
        "--num-ipus=2 --mem-per-tile=150000",
        "--num-ipus=4 --mem-per-tile=240000",
    ] {
        let refused = run_fixture(TRAINING, &format!("--solve {DEFAULT_REGEX} {question}"));
        refused.exits(1);
        let lines = refused.err.lines();
        for (_, command) in lines.filter_map(|line| line.split_once("this fits:")) {
            let words = command.split_whitespace().skip(1);
            popliner(words.map(|word| word.trim_matches('\''))).exits(0);
            let options = ["--num-ipus=", "--optimizer-state="];
            for (count, option) in kinds.iter_mut().zip(options) {
                *count += usize::from(command.contains(option));
            }
        }
    }
    assert!(kinds[0] > 3 && kinds[1] > 0, "{kinds:?}");
}
