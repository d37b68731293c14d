//! The step that runs popliner, for each of its exit codes.

use super::{Job, Values, job::values};
use crate::support::{Words, finish, piped};

/// Checks all outputs of a step that wrote no configuration, except the name of its report.
fn tells(job: &Job, fits: &str, code: &str, page: &str) {
    let mut found = job.outputs("outputs");
    assert!(found.remove("report").is_some());
    let expected = [
        ("exit-code", code),
        ("fits", fits),
        ("page", page),
        ("split", ""),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found, Values::from(expected));
}

fn has_arguments(job: &Job, arguments: &[&str]) {
    let report = job.read("popliner-report.json");
    for argument in arguments {
        assert!(report.contains(&format!("\"{argument}\"")), "{argument}");
    }
}

#[test]
fn a_model_that_fits_passes_and_its_report_is_posted() {
    let job = or_skip!(Job::new());
    job.copy("popart-bert-inference", ".");
    let mut given = values("{profile: profile.pop, debug: debug.cbor, num-ipus: 4}");
    let options = "--reserve 1%\n\n  --layer-name-regex=(?i)layer *(\\d+)\r\n--explain";
    given.insert("options".to_owned(), options.to_owned());
    job.run(&given).exits(0);
    let summary = job.read("summary.md");
    assert!(summary.contains("fits"), "{summary}");
    assert_eq!(summary, job.read("popliner-report.md"));
    let arguments = ["--reserve=1%", "--layer-name-regex=(?i)layer *(\\\\d+)"];
    has_arguments(&job, &arguments);
    assert!(job.read("popliner-report.txt").starts_with('['));
    let page = "popliner-report.html";
    tells(&job, "true", "0", page);
    assert!(job.read(page).starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_model_that_does_not_fit_fails_and_its_report_is_posted() {
    let job = or_skip!(Job::new());
    job.copy("impossible", ".");
    job.run(&values("{profile: ., report: own name}")).exits(1);
    let summary = job.read("summary.md");
    assert!(!summary.is_empty() && summary == job.read("own name.md"));
    tells(&job, "false", "1", "own name.html");
}

/// popliner itself gives codes 2 and 3. A script in its place gives 4 and 130, which need an
/// internal error or a person who interrupts the run.
#[test]
fn what_has_no_verdict_fails_and_leaves_no_earlier_report() {
    for (code, options, error) in [
        ("2", "--objective=peek", "error: invalid value 'peek'"),
        ("3", "''", "error: nowhere.pop: it cannot be read"),
        ("4", "''", "no popliner"),
        ("130", "''", "no popliner"),
    ] {
        let job = or_skip!(Job::new());
        let forms = ["md", "html", "examples.yml", "keras.py"];
        let earlier = forms.map(|form| format!("popliner-report.{form}"));
        earlier.iter().for_each(|file| job.write(file, "earlier"));
        if error == "no popliner" {
            job.fake("popliner", &format!("echo 'no popliner' >&2; exit {code}"));
        }
        let given = format!("profile: nowhere.pop\noptions: {options}\nemit: keras examples");
        let run = job.run(&values(&given));
        assert_eq!(run.says(error).code.to_string(), code, "{run:?}");
        let text = format!(
            "popliner ended with exit code {code} and without a verdict; the log of this step \
             says why"
        );
        let last = format!("::error title=popliner::{text}");
        assert_eq!(run.out.lines().last(), Some(&*last));
        assert_eq!(job.read("summary.md"), format!("{text}\n"));
        let left = earlier.iter().find(|file| job.path(file).exists());
        assert_eq!(left, None, "{code}");
        tells(&job, "", code, "");
    }
}

/// Each input that is an option sets that option.
#[test]
fn inputs_are_options() {
    let job = or_skip!(Job::new());
    job.copy("training-pipeline", ".");
    job.run(&values("{profile: ., num-ipus: 4, report: first}"))
        .exits(0);
    let given = r"{profile: ., num-ipus: auto, reserve: 1%, layer-name-regex: '(?i)layer *(\d+)',
        compare: first.json, plan: true}";
    let run = job.run(&values(given));
    assert!(run.code <= 1, "{run:?}");
    let arguments = [
        "--num-ipus=auto",
        "--reserve=1%",
        "--layer-name-regex=(?i)layer *(\\\\d+)",
        "--compare=first.json",
        "--plan",
    ];
    has_arguments(&job, &arguments);
}

/// Each form of `emit` is in a file of its own, equal to the output without the action.
#[test]
fn the_split_is_written_as_configuration() {
    let job = or_skip!(Job::new());
    job.copy("popart-bert-inference", ".");
    let files = "examples.yml optimum.json poptorch.py popart.py keras.py tf-stages.json \
                 pipeline-splits.yml mmcv.py";
    let files = files.words();
    let form = |file: &&str| file.split_once('.').expect("a form").0.to_owned();
    let forms: Vec<String> = files.iter().map(form).collect();
    let forms_in_line = forms.join(" ");
    let given = format!("profile: .\nnum-ipus: 4\nemit: {forms_in_line}\nreport: -out=a/report");
    job.run(&values(&given)).exits(0);
    let paths = files.iter().map(|file| format!("-out=a/report.{file}"));
    let paths: Vec<String> = paths.collect();
    assert_eq!(job.outputs("outputs")["split"], paths.join("\n"));
    for (form, path) in forms.iter().zip(&paths) {
        let mut alone = piped(env!("CARGO_BIN_EXE_popliner"));
        let options = ["--emit", form, "--num-ipus=4", "-q", "."];
        let alone = finish(alone.args(options).current_dir(job.path("")));
        assert!(!alone.out.is_empty());
        assert_eq!(job.read(path), alone.out, "{form}");
    }
}

/// Output of popliner cannot act as a command of the workflow, nor turn commands on again.
#[test]
fn commands_are_stopped_while_names_are_printed() {
    let job = or_skip!(Job::new());
    job.copy("popart-bert-inference", ".");
    let tokens = [(); 2].map(|()| {
        let run = job.run(&values("{profile: ., report: a/new folder/report}"));
        assert!(!job.read("a/new folder/report.json").is_empty());
        let token = run.exits(0).out.strip_prefix("::stop-commands::");
        let (token, rest) = token.expect("a command").split_once('\n').expect("a line");
        assert_eq!(rest, format!("::{token}::\n"));
        assert_eq!(token.len(), 32);
        token.to_owned()
    });
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn no_value_runs_as_a_command() {
    let job = or_skip!(Job::new());
    job.copy("popart-bert-inference", ".");
    let hostile = "./$(touch ran) `touch ran` && touch ran & touch ran #\" ' * \\";
    let inputs = "profile debug num-ipus layer-name-regex reserve compare emit options report";
    for name in inputs.split(' ') {
        let mut given = values("{profile: profile.pop, debug: debug.cbor}");
        given.insert(name.to_owned(), hostile.to_owned());
        let run = job.run(&given);
        assert_eq!(run.code == 0, name == "report", "{name}: {run:?}");
        assert!(!job.path("ran").exists(), "{name}");
    }
}
