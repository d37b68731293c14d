//! The commands after a refusal fit.

use super::TRAINING;
use crate::support::{DEFAULT_REGEX, root, run_fixture, typed};

#[test]
fn what_is_said_to_fit_fits() {
    let mut count = 0;
    for question in [
        "--num-ipus=4 --recompute=none --optimizer-state=on-chip",
        "--num-ipus=2 --mem-per-tile=150000",
        "--num-ipus=4 --mem-per-tile=240000 --optimizer-state=on-chip",
    ] {
        let refused = run_fixture(TRAINING, &format!("--solve {DEFAULT_REGEX} {question}"));
        let lines = refused.exits(1).err.lines();
        for (_, command) in lines.filter_map(|line| line.split_once("this fits:")) {
            typed(command.trim(), root()).exits(0);
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}
