//! The step that runs popliner, for each of its exit codes.

use super::{Values, fake, outputs, read, run_action, values, with_files};
use crate::support::{copy, finish, piped};
use std::path::Path;

/// Returns the outputs of a run without the name of its report.
fn told(folder: &Path) -> Values {
    let mut found = outputs(&folder.join("outputs"));
    assert!(found.remove("report").is_some());
    found
}

/// Returns outputs with these values.
fn verdict(fits: &str, code: &str, page: &str) -> Values {
    values(&[
        ("fits", fits),
        ("exit-code", code),
        ("page", page),
        ("split", ""),
    ])
}

#[test]
fn a_model_that_fits_passes_and_its_report_is_posted() {
    let folder = with_files("popart-bert-inference");
    let options = "--reserve 1%\n\n  --layer-name-regex=(?i)layer *(\\d+)\r\n--explain";
    let given = [
        ("profile", "profile.pop"),
        ("debug", "debug.cbor"),
        ("num-ipus", "4"),
    ];
    let mut given = values(&given);
    given.insert("options".to_owned(), options.to_owned());
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    let summary = read(folder.path(), "summary.md");
    assert!(summary.contains("fits"), "{summary}");
    assert_eq!(summary, read(folder.path(), "popliner-report.md"));
    let report = read(folder.path(), "popliner-report.json");
    for argument in ["--reserve=1%", "--layer-name-regex=(?i)layer *(\\\\d+)"] {
        assert!(report.contains(&format!("\"{argument}\"")), "{argument}");
    }
    assert!(read(folder.path(), "popliner-report.txt").starts_with('['));
    let page = "popliner-report.html";
    assert_eq!(told(folder.path()), verdict("true", "0", page));
    assert!(read(folder.path(), page).starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_model_that_does_not_fit_fails_and_its_report_is_posted() {
    let folder = with_files("impossible");
    let given = values(&[("profile", "."), ("report", "own name")]);
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 1, "{run:?}");
    let summary = read(folder.path(), "summary.md");
    assert!(!summary.is_empty() && summary == read(folder.path(), "own name.md"));
    assert_eq!(told(folder.path()), verdict("false", "1", "own name.html"));
}

#[test]
fn help_is_no_verdict_and_what_is_read_is_not_replaced() {
    let folder = with_files("popart-bert-inference");
    let help = values(&[("profile", "profile.pop"), ("options", "--help")]);
    let Some(run) = run_action(&help, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(told(folder.path())["fits"], "");
    let earlier = folder.path().join("popliner-report.json");
    std::fs::write(&earlier, "earlier").expect("a file");
    let compare = [
        ("profile", "profile.pop"),
        ("compare", "popliner-report.json"),
    ];
    let run = run_action(&values(&compare), folder.path()).expect("a run");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.out.contains("would replace popliner-report.json"),
        "{run:?}"
    );
    assert_eq!(read(folder.path(), "popliner-report.json"), "earlier");
}

/// popliner itself gives codes 2 and 3. A script in its place gives 4 and 130, which need an
/// internal error or a person who interrupts the run.
#[test]
fn what_has_no_verdict_fails_and_leaves_no_earlier_report() {
    for (code, options, error) in [
        ("2", "--objective=peek", "error: invalid value 'peek'"),
        ("3", "", "error: nowhere.pop: it cannot be read"),
        ("4", "", "no popliner"),
        ("130", "", "no popliner"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let forms = ["md", "html", "layers-per-ipu.yml", "keras.py"];
        let earlier = forms.map(|form| folder.path().join(format!("popliner-report.{form}")));
        for file in &earlier {
            std::fs::write(file, "earlier").expect("a file");
        }
        if error == "no popliner" {
            let script = format!("echo 'no popliner' >&2; exit {code}");
            fake(folder.path(), "popliner", &script);
        }
        let given = [("profile", "nowhere.pop"), ("options", options)];
        let given = values(&[given[0], given[1], ("emit", "keras layers-per-ipu")]);
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        assert_eq!(run.code.to_string(), code, "{run:?}");
        assert!(run.err.contains(error), "{run:?}");
        let text = format!(
            "popliner ended with exit code {code} and without a verdict; the log of this step \
             says why"
        );
        let last = format!("::error title=popliner::{text}");
        assert_eq!(run.out.lines().last(), Some(&*last));
        assert_eq!(read(folder.path(), "summary.md"), format!("{text}\n"));
        for file in &earlier {
            assert!(!file.exists(), "{code}: {}", file.display());
        }
        assert_eq!(told(folder.path()), verdict("", code, ""));
    }
}

/// Each input that is an option sets that option.
#[test]
fn inputs_are_options() {
    let folder = with_files("training-pipeline");
    let first = values(&[("profile", "."), ("num-ipus", "4"), ("report", "first")]);
    let Some(run) = run_action(&first, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    let given = [
        ("profile", "."),
        ("num-ipus", "auto"),
        ("reserve", "1%"),
        ("layer-name-regex", "(?i)layer *(\\d+)"),
        ("compare", "first.json"),
        ("plan", "true"),
        ("options", "--objective fewest"),
    ];
    let run = run_action(&values(&given), folder.path()).expect("bash");
    assert!(run.code <= 1, "{run:?}");
    for result in ["# compare", "# plan\n"] {
        assert!(read(folder.path(), "popliner-report.txt").contains(result));
    }
    let report = read(folder.path(), "popliner-report.json");
    for argument in [
        "--num-ipus=auto",
        "--reserve=1%",
        "--layer-name-regex=(?i)layer *(\\\\d+)",
        "--compare=first.json",
        "--objective=fewest",
    ] {
        assert!(report.contains(&format!("\"{argument}\"")), "{argument}");
    }
}

/// Each form of `emit` is in a file of its own, equal to the output without the action.
#[test]
fn the_split_is_written_as_configuration() {
    let folder = with_files("popart-bert-inference");
    let forms = [
        ("layers-per-ipu", "yml"),
        ("optimum", "json"),
        ("poptorch", "py"),
        ("popart", "py"),
        ("keras", "py"),
        ("tf-stages", "json"),
        ("pipeline-splits", "yml"),
    ];
    let names = forms.map(|(form, _)| form).join(" ");
    let module = "--module=model.layer[{}]";
    let given = values(&[
        ("profile", "."),
        ("num-ipus", "4"),
        ("emit", &names),
        ("options", module),
        ("report", "-out=a/report"),
    ]);
    let Some(run) = run_action(&given, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    let paths = forms.map(|(form, end)| format!("-out=a/report.{form}.{end}"));
    assert_eq!(told(folder.path())["split"], paths.join("\n"));
    for ((form, _), path) in forms.iter().zip(&paths) {
        let mut alone = piped(env!("CARGO_BIN_EXE_popliner"));
        let options = ["--emit", form, "--num-ipus=4", module, "-q", "."];
        let alone = finish(alone.args(options).current_dir(folder.path()));
        assert!(!alone.out.is_empty());
        assert_eq!(read(folder.path(), path), alone.out, "{form}");
    }
}

/// Output of popliner cannot act as a command of the workflow, nor turn commands on again.
#[test]
fn commands_are_stopped_while_names_are_printed() {
    let folder = with_files("popart-bert-inference");
    let given = values(&[("profile", "."), ("report", "a/new folder/report")]);
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        assert_eq!(run.code, 0, "{run:?}");
        assert!(!read(folder.path(), "a/new folder/report.json").is_empty());
        let token = run
            .out
            .strip_prefix("::stop-commands::")
            .expect("a command");
        let (token, rest) = token.split_once('\n').expect("a line");
        assert_eq!(rest, format!("::{token}::\n"));
        assert_eq!(token.len(), 32);
        tokens.push(token.to_owned());
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_compiled_pipeline_is_judged_with_and_without_a_prediction() {
    let folder = with_files("training-pipeline");
    let predicted = values(&[("profile", "."), ("num-ipus", "4"), ("report", "predicted")]);
    let Some(run) = run_action(&predicted, folder.path()) else {
        return;
    };
    assert_eq!(run.code, 0, "{run:?}");
    copy("training-pipelined", folder.path());
    for given in [
        values(&[("profile", "."), ("against", "predicted.json")]),
        values(&[("profile", "."), ("options", "--fit")]),
        values(&[
            ("profile", "."),
            ("options", "--fit"),
            ("against", "predicted.json"),
        ]),
    ] {
        let run = run_action(&given, folder.path()).expect("bash");
        assert_eq!(run.code, 0, "{given:?} {run:?}");
        let report = read(folder.path(), "popliner-report.txt");
        assert!(report.contains("IPU\t") || report.contains("# fit\n"));
        let is_compared = report.contains("# against\n");
        assert_eq!(is_compared, given.contains_key("against"), "{given:?}");
    }
}

#[test]
fn no_value_runs_as_a_command() {
    let folder = with_files("popart-bert-inference");
    let hostile = "./$(touch ran) `touch ran` && touch ran & touch ran #\" ' * \\";
    for name in [
        "profile",
        "debug",
        "num-ipus",
        "layer-name-regex",
        "reserve",
        "compare",
        "emit",
        "against",
        "options",
        "report",
    ] {
        let mut given = values(&[("profile", "profile.pop"), ("debug", "debug.cbor")]);
        given.insert(name.to_owned(), hostile.to_owned());
        let Some(run) = run_action(&given, folder.path()) else {
            return;
        };
        let is_a_name = name == "report";
        assert_eq!(run.code == 0, is_a_name, "{name}: {run:?}");
        assert!(!folder.path().join("ran").exists(), "{name}");
    }
}
