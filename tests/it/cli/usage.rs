//! The tool as users meet it: exit codes, wrong usage, and which stream has which output.

use std::ffi::OsStr;

use crate::support::{
    Run, command, finish_unread, one_line, popliner, profile, run_fixture, sections,
};

const FIXTURE: &str = "poplar-mlp";

fn fixture_with(options: &[&str]) -> Run {
    run_fixture(FIXTURE, options)
}

#[test]
fn a_model_that_fits_ends_with_0() {
    let run = fixture_with(&["--solve", "--num-ipus=3"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.err.contains("SUCCESS: [ In 0 "), "{}", run.err);
    let stages: serde_json::Value = serde_json::from_str(&run.out).expect("JSON alone");
    assert_eq!(stages.as_array().map(Vec::len), Some(3));
}

#[test]
fn a_model_that_does_not_fit_ends_with_1_and_names_bytes_and_layers() {
    let run = run_fixture("impossible", &["--solve"]);
    assert_eq!(run.code, 1, "{run:?}");
    let stages: serde_json::Value = serde_json::from_str(&run.out).expect("JSON alone");
    let peaks = stages.as_array().expect("stages").iter();
    let peaks = peaks.map(|stage| stage["mem"]["max_tile_mem"].as_u64().expect("bytes"));
    let missing = format!(
        "{} bytes over the limit of 262144",
        peaks.max().unwrap() - 262_144
    );
    let message = run.err.replace(',', "");
    assert!(message.contains("FAILURE: ["), "{message}");
    assert!(message.contains(&missing), "{missing} in {message}");
    for layer in ["Layer Embedding by itself", "Layer CLS by itself"] {
        assert!(message.contains(layer), "{layer} in {message}");
    }
}

#[test]
fn a_greedy_search_that_gives_up_ends_with_1() {
    let run = fixture_with(&["--solve", "--solver=greedy", "--num-ipus=1"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains("FAILURE"), "{run:?}");
}

#[test]
fn wrong_usage_ends_with_2() {
    let cases: [(&[&str], &str); 18] = [
        (&["--num-ipus=0"], "--num-ipus"),
        (&["--num-ipus=many"], "--num-ipus"),
        (&["--mem-per-tile=0"], "--mem-per-tile"),
        (&["--mem-per-tile=-1"], "--mem-per-tile"),
        (
            &["--mem-per-tile=18446744073709551615"],
            "not a number of bytes from 1 to 1099511627776",
        ),
        (&["--solve", "--pin=None=0"], "there is no None"),
        (
            &["--solve", "--cut-after=In", "--memory-model=classic"],
            "name one of the layers None 0 1 2 3 4",
        ),
        (
            &["--layers-per-ipu=2,0,3", "--num-ipus=2"],
            "counts for 3 IPUs, but --num-ipus is 2",
        ),
        (
            &["--layers-per-ipu=2,0,3", "--mem-per-tile=9,9,9"],
            "IPU 1 would run nothing",
        ),
        (&["--layers-per-ipu=2,4"], "the model has 5"),
        (&["--solver=fast"], "--solver"),
        (&["--format=xml"], "--format"),
        (&["--layer-order=random"], "--layer-order"),
        (&["--tiles=1"], "--memory-totals"),
        (&["--memory-totals", "--tiles=x"], "'x' is not a tile"),
        (
            &["--memory-totals", "--tiles=99"],
            "give tiles from 0 to 15",
        ),
        (&["-q", "-v"], "--verbose"),
        (&["--no-such-option"], "--no-such-option"),
    ];
    for (options, part) in cases {
        let run = fixture_with(options);
        assert_eq!(run.code, 2, "{options:?}: {run:?}");
        assert_eq!(run.out, "", "{options:?}");
        assert!(run.err.contains(part), "{options:?}: {}", run.err);
    }
    assert_eq!(popliner::<&str>([]).code, 2);
}

#[test]
fn a_wrong_regex_is_shown_with_the_place() {
    let cases = [
        ("a(b", "unclosed group"),
        ("layer(?=x)", "look-around"),
        (r"(a)\1", "backreferences"),
    ];
    for option in ["--layer-name-regex", "--inputs-regex-layer-0"] {
        for (regex, reason) in cases {
            let run = fixture_with(&["--solve", option, regex]);
            assert_eq!(run.code, 2, "{run:?}");
            let parts = [option, regex, reason, "^\n"];
            for part in parts {
                assert!(run.err.contains(part), "{part:?} in {}", run.err);
            }
        }
    }
}

#[test]
fn a_regex_without_layers_is_refused_and_modules_are_shown() {
    let run = fixture_with(&["--solve", "--layer-name-regex=none such"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(run.out, "");
    for part in [
        "none such",
        "(embed, Layer0, ",
        "--layer-name-regex to auto",
    ] {
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
}

#[test]
fn messages_are_as_many_as_asked_for() {
    let options = ["--solve", "--layer-name-regex=Layer([0-3])"];
    let with = |more: &str| fixture_with(&[options.as_slice(), &[more]].concat());
    let runs = ["-q", "", "-v", "-vv"].map(|more| match more {
        "" => fixture_with(&options),
        _ => with(more),
    });
    let warns = |line: &str| line.starts_with("warning: ");
    assert!(runs[0].err.contains("but the modules of the model are"));
    assert!(runs[0].err.lines().all(warns), "{}", runs[0].err);
    assert!(runs[1].err.contains("warning: ") && runs[1].err.contains("SUCCESS: "));
    let lines: Vec<usize> = runs.iter().map(|run| run.err.lines().count()).collect();
    assert!(lines.is_sorted_by(|fewer, more| fewer < more), "{lines:?}");
    for run in &runs {
        assert_eq!((run.code, &run.out), (0, &runs[0].out));
    }
    // `-q` does not silence errors.
    let run = popliner(["no-such-file", "no-such-file", "-q", "--solve"]);
    one_line(&run, 3);
}

#[test]
fn a_pipe_that_nobody_reads_is_no_error() {
    let profile = profile("poptorch-bert-training");
    let cases: [&[&str]; 4] = [
        &["--solve", "--schedule=none"],
        // More output than any buffer in between holds.
        &["--operation-breakdown"],
        &["--operation-breakdown", "--solve", "--schedule=none"],
        &["--diagnose", "--operation-breakdown", "--format=csv"],
    ];
    for options in cases {
        let arguments = [profile.as_os_str()].into_iter();
        let mut command = command(arguments.chain(options.iter().map(OsStr::new)));
        let run = finish_unread(&mut command);
        assert!(!run.err.contains("error"), "{options:?}: {run:?}");
        assert_eq!(run.code, 0, "{options:?}");
    }
}

#[test]
fn several_results_come_in_order_and_with_names() {
    let options = [
        "--diagnose",
        "--solve",
        "--interlayer-communication",
        "--memory-affinity",
        "--memory-totals",
        "--layer-breakdown",
        "--operation-breakdown",
    ];
    let run = fixture_with(&options);
    let sections = sections(&run.out);
    let names: Vec<&str> = sections.iter().map(|(name, _)| &**name).collect();
    let mut expected: Vec<String> = options[2..].iter().rev().map(|o| o[2..].into()).collect();
    expected.push("solve".into());
    let of_diagnosis = [
        "programs",
        "missing-programs",
        "code",
        "memory-peak",
        "variables",
        "coverage",
    ];
    expected.extend(of_diagnosis.map(|name| format!("diagnose-{name}")));
    assert_eq!(names, expected);
    for (option, (_, text)) in options[2..].iter().rev().zip(&sections) {
        assert_eq!(&fixture_with(&[option]).out, text, "{option}");
    }
    assert_eq!(fixture_with(&["--solve"]).out, sections[5].1);
}
