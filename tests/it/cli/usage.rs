//! Exit codes, wrong usage, and which stream has which output.

use crate::support::{Run, cases, popliner, run_fixture};

const FIXTURE: &str = "poplar-mlp";

fn fixture_with(options: &str) -> Run {
    run_fixture(FIXTURE, options)
}

/// Wrong options, each with a part of the message.
const WRONG: &str = "
    --num-ipus=0
        --num-ipus
    --num-ipus=many
        --num-ipus
    --mem-per-tile=0
        --mem-per-tile
    --mem-per-tile=-1
        --mem-per-tile
    --mem-per-tile=18446744073709551615
        not a number of bytes from 1 to 1099511627776
    --solve --pin=None=0
        there is no None
    --solve --cut-after=In --memory-model=classic
        name one of the layers None 0 1 2 3 4
    --layers-per-ipu=2,0,3 --num-ipus=2
        counts for 3 IPUs, but --num-ipus is 2
    --layers-per-ipu=2,0,3 --mem-per-tile=9,9,9
        IPU 1 would run nothing
    --layers-per-ipu=2,4
        the model has 5
    --solver=fast
        --solver
    --format=xml
        --format
    --layer-order=random
        --layer-order
    --tiles=1
        --memory-totals
    --memory-totals --tiles=x
        'x' is not a tile
    --memory-totals --tiles=99
        give tiles from 0 to 15
    -q -v
        --verbose
    --no-such-option
        --no-such-option
    --generate=man
        --generate
    --generate=complete-cmd
        complete-bash
    --num-ipus -2
        a number from 1 to
    --solve --layer-name-regex=a(b
        unclosed group
        ^
    --solve --layer-name-regex=layer(?=x)
        look-around
        ^
    --solve --inputs-regex-layer-0=(a)\\1
        --inputs-regex-layer-0
        backreferences
        ^
    --module-in=model.embedding
        --emit
    --module-root=bert
        --emit
    --module=model[{}]
        --emit
    --emit=json
        examples
    --emit=keras --module-out=head --memory-model=classic
        has no Out
    --emit=keras --module=model
        write {} once
    --emit=poptorch --module=model.{}
        model.0
    --emit=layers-per-ipu --layer-name-regex=nowhere
        nowhere
";

#[test]
fn wrong_usage_ends_with_2() {
    for (options, parts) in cases(WRONG) {
        let run = fixture_with(&options);
        assert_eq!(run.exits(2).out, "", "{options}");
        for part in parts {
            run.says(part);
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
