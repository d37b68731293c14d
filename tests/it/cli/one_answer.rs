//! All forms of output describe the same split, schedule and recomputation, with the same verdict.

use crate::support::models::pairs;
use crate::support::{DEFAULT_REGEX, ONE_IPU_FIXTURES, Run, each, root, run_fixture, typed};
use serde_json::Value;

/// The answer in one form of output: the layers of each stage, the schedule and recomputation, and
/// the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    code: i32,
    stages: Vec<Vec<String>>,
    /// The schedule and recomputation; empty if the form does not have them.
    pipeline: String,
}

/// Returns the names of the layers of each stage; `null` is In.
fn names(stages: &Value) -> Vec<Vec<String>> {
    let name = |layer: &Value| layer.as_str().unwrap_or("In").to_string();
    let stages = stages.as_array().expect("stages").iter();
    let layers = stages.map(|layers| layers.as_array().expect("layers").iter());
    layers.map(|layers| layers.map(name).collect()).collect()
}

fn layers_of(stages: &Value) -> Vec<Vec<String>> {
    let stages = stages.as_array().expect("stages").iter();
    names(&stages.map(|stage| stage["layers"].clone()).collect())
}

fn pipeline_of(facts: &Value) -> String {
    let word = |key: &str| facts[key].as_str().unwrap_or_default().to_string();
    format!("{} {}", word("schedule"), word("recompute"))
}

/// Returns the answer of `--solve`, with the pipeline from the messages.
fn solved(run: &Run) -> Answer {
    let mut lines = run.err.lines();
    let line = lines.find_map(|line| line.strip_prefix("Pipeline: schedule "));
    let words: Vec<&str> = line.expect("a pipeline").split([' ', ',', '(']).collect();
    let recompute = words.iter().position(|word| *word == "recompute");
    let recompute = recompute.map_or("none", |at| words[at + 1]);
    Answer {
        code: run.code,
        stages: layers_of(&run.report()),
        pipeline: format!("{} {recompute}", words[0]),
    }
}

/// Returns the micro-batches of a step, so that times can be compared: 128, rounded up for
/// TensorFlow to a multiple that its schedule requires.
fn micro_batches(pipeline: &str, stages: usize) -> u64 {
    let multiple = match pipeline.split(' ').next() {
        Some("tf-grouped") => 2 * stages as u64,
        Some("tf-interleaved") => stages as u64,
        _ => 1,
    };
    128_u64.div_ceil(multiple) * multiple
}

/// Returns the answers of all forms except `--solve`, each with its name.
fn others(fixture: &str, solved: &Answer, options: &str) -> Vec<(String, Answer)> {
    let run = |more: &str| run_fixture(fixture, &format!("{options} --format=json {more}"));
    let reported = |run: &Run| {
        let report = &run.report()["export_json"];
        let step = &report["step"];
        let micro_batches = micro_batches(&solved.pipeline, solved.stages.len());
        let is_expected = step.is_null() || step["micro_batches"] == micro_batches;
        assert!(is_expected, "{fixture}: {step}");
        Answer {
            code: run.code,
            stages: layers_of(&report["split"]["stages"]),
            pipeline: pipeline_of(&report["pipeline"]),
        }
    };
    let forms = ["", "--explain "].map(|more| format!("{more}--solve --export-json=-"));
    let mut found = forms
        .map(|form| (form.clone(), reported(&run(&form))))
        .to_vec();

    let swept = run("--sweep").report();
    let row = swept.as_array().expect("rows").last().expect("a row");
    let pipeline = match row["schedule"].is_null() {
        true => solved.pipeline.clone(),
        false => pipeline_of(row),
    };
    let row = Answer {
        code: i32::from(row["fits"] != true),
        stages: names(&row["layers_of_each_stage"]),
        pipeline,
    };
    found.push(("--sweep".to_string(), row));

    for option in ["", "--plan"] {
        let planned = run(option);
        let first = &planned.report()[0];
        // A plan has no rows if nothing fits (exit code 1).
        let mut answer = Answer {
            code: planned.code,
            ..solved.clone()
        };
        if planned.code != 1 {
            answer.stages = names(&first["layers_of_each_stage"]);
            answer.pipeline = pipeline_of(first);
        }
        found.push((option.to_string(), answer));
        if planned.code == 0 {
            let command = first["command"].as_str().expect("a command");
            let line = format!("{command} --export-json=- --format=json");
            found.push((command.to_string(), reported(&typed(&line, root()))));
        }
    }
    found
}

#[test]
fn all_forms_have_the_same_answer() {
    let questions = ["4", "8", "4 --recompute=stage"].map(|more| format!("--num-ipus={more}"));
    let cases: Vec<_> = pairs(&ONE_IPU_FIXTURES, &questions, 5).collect();
    let fit = each(&cases, |&(fixture, question)| {
        // Finer layers are not tried, since the regex is given.
        let options = format!("{question} {DEFAULT_REGEX}");
        let expected = solved(&run_fixture(fixture, &format!("{options} --solve")));
        for (form, found) in others(fixture, &expected, &options) {
            assert_eq!(found, expected, "{fixture} {question} {form}");
        }
        expected.code == 0
    });
    assert!(fit.contains(&true) && fit.contains(&false));
}
