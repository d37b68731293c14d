//! A command line with only a profile gets an answer: whether the model fits, and what to do next.
//! Printed commands run unchanged.

use super::goldens;
use crate::support::{Run, command, finish, piped, python, root, run_fixture};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Splits a line into words as a shell does.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().expect("a word").push(c),
        }
    }
    words
}

/// Runs a line that the tool printed, in a folder.
pub(super) fn typed(line: &str, folder: &Path) -> Run {
    let words = words(line);
    assert_eq!(words[0], "popliner", "{line}");
    finish(command(&words[1..]).current_dir(folder))
}

/// Returns the commands that the tool printed to be copied.
fn next_steps(run: &Run) -> Vec<String> {
    let lines = run.err.lines().skip_while(|line| *line != "next:").skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  "));
    let commands = lines.filter_map(|line| Some(line.split_once("  ")?.1.trim()));
    commands.map(String::from).collect()
}

#[test]
fn the_first_ten_minutes_need_no_manual() {
    for name in [
        "popart-bert-inference",
        "training-pipeline",
        "tied-weights",
        "large-embedding",
        "poplar-mlp",
    ] {
        let folder = TempDir::new().expect("a folder");
        let path = root().join("fixtures").join(name);
        let first = typed(&format!("popliner '{}'", path.display()), folder.path());
        assert_eq!(first.code, 0, "{first:?}");
        assert!(
            first.err.contains("\nIt does not fit on one IPU, "),
            "{first:?}"
        );
        assert!(first.err.contains("\nSUCCESS: [ In "), "{first:?}");
        assert!(first.err.lines().count() <= 10, "{first:?}");
        let steps = next_steps(&first);
        assert_eq!(steps.len(), 3, "{first:?}");
        let configuration = typed(&steps[0], folder.path());
        assert_eq!(configuration.code, 0, "{configuration:?}");
        assert!(configuration.out.contains("Stages: "), "{configuration:?}");
        let page = typed(&steps[1], folder.path());
        assert_eq!(page.code, 0, "{page:?}");
        assert!(folder.path().join("report.html").exists());
        let more = typed(&steps[2], folder.path());
        assert_eq!(more.code, 0, "{more:?}");
        assert_eq!(next_steps(&more).len(), 3, "{more:?}");
    }
}

/// Returns a command and everything that it prints, as a terminal shows it.
fn shown(line: &str, folder: &Path) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_popliner")).parent();
    let tools = [tool.expect("a folder").to_path_buf()].into_iter();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(tools.chain(std::env::split_paths(&others)));
    let mut shell = piped("sh");
    shell
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .current_dir(folder);
    finish(shell.env("PATH", path.expect("a path"))).out
}

/// From an unknown folder to a configuration that a framework accepts. Each command except the
/// first was printed by the command before.
#[cfg(unix)]
#[test]
fn a_new_user_needs_no_more_than_what_is_printed() {
    let folder = TempDir::new().expect("a folder");
    let report = folder.path().join("report");
    std::fs::create_dir(&report).expect("a folder");
    for (name, fixture) in [
        ("inference", "popart-bert-inference"),
        ("training", "training-pipeline"),
    ] {
        let fixture = root().join("fixtures").join(fixture);
        std::os::unix::fs::symlink(fixture, report.join(name)).expect("a link");
    }
    let mut session = String::new();
    let mut printed = "popliner -h".to_string();
    // Texts that the user looks for in the output.
    for wanted in [
        "popliner -h",
        "popliner report ",
        "training/profile.pop",
        "--emit",
        "--export-html",
    ] {
        let mut lines = printed.lines().filter(|line| line.contains(wanted));
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("{wanted} in {printed}"));
        let command = &line[line.find("popliner").expect("a command")..];
        // Examples have their purpose beside them.
        let command = command.split("  ").next().expect("a command");
        let output = shown(command, folder.path());
        session += &format!("$ {command}\n{output}");
        if wanted == "--emit" {
            let options = python(
                include_str!("../report/emit/popart.py"),
                &typed(command, folder.path()).out,
            );
            assert!(options.is_none_or(|own| own.contains("\"accumulationFactor\": 128")));
        } else {
            printed = output;
        }
    }
    assert!(folder.path().join("report.html").exists());
    assert_eq!(goldens::difference(&goldens::session(), &session), None);
}

#[test]
fn a_number_of_ipus_is_enough_to_ask_for() {
    let run = run_fixture("poplar-mlp", &["--num-ipus=5", "-v"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.err.contains("Tried: 1 to 5 IPUs"), "{run:?}");
    let refused = run_fixture("impossible", &["--num-ipus=5"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("No configuration fits on 5 IPUs"));
}

#[test]
fn a_model_that_fits_on_one_ipu_is_told_so() {
    let run = run_fixture("poplar-mlp", &["--mem-per-tile=1000000"]);
    assert_eq!((run.code, &*run.out), (0, ""), "{run:?}");
    let says = "SUCCESS: the model fits on one IPU, where it needs 490,756 bytes of 1,000,000";
    assert!(run.err.contains(says), "{run:?}");
    let more = next_steps(&run);
    assert_eq!(typed(&more[0], root()).code, 0, "{more:?}");
    let reserved = run_fixture("poplar-mlp", &["--mem-per-tile=1000000", "--reserve=60%"]);
    assert!(
        reserved.err.contains("\nIt does not fit on one IPU"),
        "{reserved:?}"
    );
}

#[test]
fn a_split_takes_no_more_ipus_than_are_enough() {
    let stages = |fixture: &str, options: &[&str]| {
        let run = run_fixture(fixture, &[&["--solve"], options].concat());
        let stages: serde_json::Value = serde_json::from_str(&run.out).expect("stages");
        (stages.as_array().map_or(0, Vec::len), run.err)
    };
    assert_eq!(stages("popart-bert-inference", &[]).0, 4);
    let (one, message) = stages("poplar-mlp", &["--mem-per-tile=1000000"]);
    assert!(
        one == 1 && message.contains("a pipeline is not needed"),
        "{message}"
    );
    let (given, message) = stages("popart-bert-inference", &["--num-ipus=8"]);
    assert_eq!(given, 8);
    assert!(
        message.contains("\n4 IPUs are enough (--num-ipus 4)\n"),
        "{message}"
    );
    let (fewest, message) = stages("popart-bert-inference", &["--num-ipus=4"]);
    assert!(fewest == 4 && !message.contains("are enough"), "{message}");
    let (_, message) = stages("poptorch-bert-training", &["--mem-per-tile=700000"]);
    assert!(message.contains("PopTorch needs a power of 2"), "{message}");
    for original in ["--solver=greedy", "--memory-model=classic"] {
        let limit = "--mem-per-tile=400000";
        let with = |ipus: &[&str]| stages("poplar-mlp", &[&[original, limit], ipus].concat()).0;
        assert_eq!(with(&[]), with(&["--num-ipus=16"]), "{original}");
    }
}

#[test]
fn a_compiled_pipeline_is_judged_as_it_is() {
    let alone = run_fixture("training-pipelined", "");
    let judged = run_fixture("training-pipelined", &["--fit"]);
    assert_eq!(
        (alone.code, alone.out, alone.err),
        (judged.code, judged.out, judged.err)
    );
}

#[test]
fn results_have_the_format_that_is_wanted() {
    let run = |format: &str| {
        let format = format!("--format={format}");
        run_fixture(
            "poplar-mlp",
            &["--solve", "--sweep", "--num-ipus=4", "-q", &format],
        )
        .out
    };
    let (auto, json) = (run("auto"), run("json"));
    let stages = |text: &str| text.split_once("# solve\n").expect("stages").1.to_owned();
    let parsed = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let json = parsed(&json);
    assert_eq!(parsed(&stages(&auto)), json["solve"]);
    assert!(auto.starts_with("# sweep\nIPUs\tFits\t"), "{auto}");
    let row = &json["sweep"][3];
    assert_eq!(row["ipus"], 4);
    assert_eq!(row["fits"], true);
    assert!(row["peak_memory"].is_u64() && row["cycles_of_a_step"].is_u64());
    assert_eq!(row["layers_of_each_stage"][0][0], "In");
    let csv = stages(&run("csv"));
    assert!(csv.starts_with("Stage,First layer,Last layer,"), "{csv}");
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let table = stages(&run("table"));
    assert!(table.starts_with(" Stage  Layers"), "{table}");
    assert_eq!(table.lines().count(), 5, "{table}");
}

#[test]
fn gaps_between_variables_are_a_warning_and_no_verdict() {
    let needs = |limit: &str| {
        let run = run_fixture("poplar-mlp", &[&format!("--mem-per-tile={limit}")]);
        assert_eq!(run.code, 0, "{run:?}");
        (
            run.err.contains("SUCCESS: the model fits on one IPU"),
            run.err,
        )
    };
    let (fits, text) = needs("490760");
    assert!(
        fits && text.contains("but 490,776 bytes with the gaps"),
        "{text}"
    );
    let (fits, text) = needs("490776");
    assert!(fits && !text.contains("gaps"), "{text}");
    let (fits, text) = needs("490755");
    assert!(
        !fits && text.contains("needs 490,756 bytes of 490,755"),
        "{text}"
    );
}
