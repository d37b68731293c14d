//! A command line with only a profile gets an answer: whether the model fits, and what to do next.
//! Printed commands run unchanged.

use super::goldens;
use crate::support::{Run, python, read_json, root, run_fixture, typed};
use serde_json::Value;
use tempfile::TempDir;

/// Returns the commands that the tool printed to be copied.
fn next_steps(run: &Run) -> Vec<String> {
    let lines = run.err.lines().skip_while(|line| *line != "next:").skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  "));
    let commands = lines.filter_map(|line| Some(line.split_once("  ")?.1.trim()));
    commands.map(String::from).collect()
}

/// A new user gets from an unknown folder to a configuration that a framework accepts. Each command
/// except the first is one that the command before printed.
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
        let line = printed.lines().find(|line| line.contains(wanted));
        let line = line.unwrap_or_else(|| panic!("{wanted} in {printed}"));
        let command = &line[line.find("popliner").expect("a command")..];
        // In the list of examples, a description follows each command.
        let command = command.split("  ").next().expect("a command");
        // Join standard error and standard output, as a terminal does.
        let output = typed(&format!("exec 2>&1\n{command}"), folder.path()).out;
        session += &format!("$ {command}\n{output}");
        if wanted == "--emit" {
            let form = typed(command, folder.path()).out;
            let options = python(include_str!("../report/emit/popart.py"), &form);
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
    let tried = run_fixture("poplar-mlp", "--num-ipus=5 -v");
    tried.exits(0).says("Tried: 1 to 5 IPUs");
    let refused = run_fixture("impossible", "--num-ipus=5");
    refused.exits(1).says("No configuration fits on 5 IPUs");
}

#[test]
fn a_model_that_fits_on_one_ipu_is_told_so() {
    let run = run_fixture("poplar-mlp", "--mem-per-tile=1000000");
    let says = "SUCCESS: the model fits on one IPU, where it needs 490,756 bytes of 1,000,000";
    assert_eq!(run.exits(0).says(says).out, "");
    typed(&next_steps(&run)[0], root()).exits(0);
    let reserved = run_fixture("poplar-mlp", "--mem-per-tile=1000000 --reserve=60%");
    reserved.says("\nIt does not fit on one IPU");
}

#[test]
fn a_split_takes_no_more_ipus_than_are_enough() {
    let bert = "popart-bert-inference";
    let solve = |fixture: &str, options: &str, ipus: usize| {
        let run = run_fixture(fixture, &format!("--solve {options}"));
        let stages: Vec<Value> = serde_json::from_str(&run.out).expect("stages");
        assert_eq!(stages.len(), ipus, "{options}: {run:?}");
        run
    };
    solve(bert, "", 4);
    solve("poplar-mlp", "--mem-per-tile=1000000", 1).says("a pipeline is not needed");
    solve(bert, "--num-ipus=8", 8).says("\n4 IPUs are enough (--num-ipus 4)\n");
    let fewest = solve(bert, "--num-ipus=4", 4);
    assert!(!fewest.err.contains("are enough"), "{fewest:?}");
    let training = run_fixture("poptorch-bert-training", "--solve --mem-per-tile=700000");
    training.says("PopTorch needs a power of 2");
    for original in ["--solver=greedy", "--memory-model=classic"] {
        let stages = |ipus: &str| {
            let options = format!("--solve {original} --mem-per-tile=400000 {ipus}");
            run_fixture("poplar-mlp", &options).out
        };
        assert_eq!(stages(""), stages("--num-ipus=16"), "{original}");
    }
}

#[test]
fn a_compiled_pipeline_is_judged_as_it_is() {
    let [alone, judged] = ["", "--fit"].map(|option| {
        let run = run_fixture("training-pipelined", option);
        (run.code, run.out, run.err)
    });
    assert_eq!(alone, judged);
}

#[test]
fn results_have_the_format_that_is_wanted() {
    let run = |format: &str| {
        let options = format!("--solve --sweep --num-ipus=4 -q --format={format}");
        run_fixture("poplar-mlp", &options)
    };
    let (auto, json) = (run("auto"), run("json").report());
    assert_eq!(read_json(&auto.section("solve")), json["solve"]);
    let sweep = auto.section("sweep");
    assert!(sweep.starts_with("IPUs\tFits\t"), "{sweep}");
    let row = &json["sweep"][3];
    assert_eq!((&row["ipus"], &row["fits"]), (&4.into(), &true.into()));
    assert!(row["peak_memory"].is_u64() && row["cycles_of_a_step"].is_u64());
    assert_eq!(row["layers_of_each_stage"][0][0], "In");
    for (format, head) in [("csv", "Stage,First layer,"), ("table", " Stage  Layers")] {
        let text = run(format).section("stages");
        let is_whole = text.starts_with(head) && text.lines().count() == 5;
        assert!(is_whole, "{text}");
    }
}

#[test]
fn gaps_between_variables_are_a_warning_and_no_verdict() {
    for (limit, fits, message) in [
        ("490760", true, "but 490,776 bytes with the gaps"),
        ("490776", true, ""),
        ("490755", false, "needs 490,756 bytes of 490,755"),
    ] {
        let run = run_fixture("poplar-mlp", &format!("--mem-per-tile={limit}"));
        let text = &run.exits(0).says(message).err;
        let says_so = text.contains("SUCCESS: the model fits on one IPU");
        assert_eq!(says_so, fits, "{text}");
        assert_eq!(text.contains("gaps"), message.contains("gaps"), "{text}");
    }
}
