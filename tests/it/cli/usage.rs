//! Exit codes, wrong usage, and which stream has which output.

use crate::support::{Run, cases, popliner, run_fixture};

const FIXTURE: &str = "poplar-mlp";

fn fixture_with(options: &str) -> Run {
    run_fixture(FIXTURE, options)
}

/// Wrong options, each with a part of the message. The goldens `wrong-regex`, `no-layers` and
/// `clash` have more.
const WRONG: &str = "
    --mem-per-tile=18446744073709551615 => not a number of bytes from 1 to 1099511627776
    --solve --pin=None=0 => there is no None
    --solve --cut-before=In --memory-model=classic => there is no In, since
    --layers-per-ipu=2,0,3 --num-ipus=2 => counts for 3 IPUs, but --num-ipus is 2
    --layers-per-ipu=2,0,3 --mem-per-tile=9,9,9 => IPU 1 would run nothing
    --tiles=1 => --memory-totals
    --memory-totals --tiles=x => 'x' is not a tile
    --memory-totals --tiles=99 => give tiles from 0 to 15
    -q -v => --verbose
    --no-such-option => --no-such-option
    --generate=man => --generate
    --generate=complete-cmd => complete-bash
    --num-ipus -2 => a number from 1 to
    --solve --layer-name-regex=layer(?=x) => look-around ... ^
    --solve --inputs-regex-layer-0=(a)\\1 => --inputs-regex-layer-0 ... backreferences ... ^
    --module-root=bert => --emit
    --emit=json => examples
    --solve --pin=9=0 => there is no layer 9
    --solve --pin=3 => LAYER=IPU
    --solve --pin=0=7 --num-ipus=4 => --pin 0=7
    --solve --together=0,2 --cut-before=2 => clashes with
    --solve --cut-before=In => no cut before the first
    --solve --splits=2,1 => in the order of the model
    --solve --splits=In,2 => a stage would have no layers
    --solve --layers-per-ipu=1,1 => add up to 2, but the model has 5 layers
    --solve --layers-per-ipu=5 --splits=1 => cannot be used with
    --solve --mem-per-tile=1,2 --num-ipus=3 => has 2 amounts
    --solve --solver=greedy --pin=0=0 => does not support constraints
    --solve --solver=greedy --sweep => does not support --sweep
";

/// Wrong options for a training model: no framework or memory model supports them together.
const WRONG_IN_TRAINING: &str = "
    --solve --solver=greedy --schedule=popart => --schedule: --solver greedy
    --solve --memory-model=classic --recompute=stage => --recompute: --memory-model classic
    --solve --memory-model=classic --accumulator=float32 => --accumulator:
    --solve --schedule=sometimes => possible values: auto, none, popart
    --solve --num-ipus=1 --optimizer-state=sharded => state can only be shared by several replicas
";

/// Options that need more than the profile has.
const WITHOUT_CYCLES: &str = "
    --solve --objective=cycles --num-ipus=3 --schedule=none => profiler.includeCycleEstimates
";

#[test]
fn wrong_usage_ends_with_2() {
    for (fixture, list) in [
        (FIXTURE, WRONG),
        ("training-pipeline", WRONG_IN_TRAINING),
        ("impossible", WITHOUT_CYCLES),
    ] {
        for (options, parts) in cases(list) {
            let run = run_fixture(fixture, &options);
            assert_eq!(run.exits(2).out, "", "{options}");
            for part in parts {
                run.says(part);
            }
        }
    }
    popliner::<&str>([]).exits(2);
}

#[test]
fn messages_are_as_many_as_asked_for() {
    let options = "--solve --layer-name-regex=Layer([0-3])";
    let runs = ["-q", "", "-v", "-vv"].map(|more| fixture_with(&format!("{options} {more}")));
    let warns = |line: &str| line.starts_with("warning: ");
    runs[0].says("but the modules of the model are");
    assert!(runs[0].err.lines().all(warns), "{}", runs[0].err);
    runs[1].says("warning: ").says("SUCCESS: ");
    let lines: Vec<usize> = runs.iter().map(|run| run.err.lines().count()).collect();
    assert!(lines.is_sorted_by(|fewer, more| fewer < more), "{lines:?}");
    for run in &runs {
        assert_eq!((run.code, &run.out), (0, &runs[0].out));
    }
    // `-q` does not silence errors.
    popliner(["no-such-file", "no-such-file", "-q", "--solve"]).refuses(3, &["no-such-file"]);
}
