//! The example of a CI job: its scripts and the action run on the fixtures.

use super::action::{Job, Values, filled_in, has, step, yaml};
use serde_yaml_ng::Value;

/// The action of this repository, as the example names it.
const ACTION: &str = concat!("OWNER/popliner@v", env!("CARGO_PKG_VERSION"));

fn workflow() -> Value {
    yaml("examples/ci/github-actions.yml")
}

/// The example, which runs in a folder with the profile of a fixture.
struct Example {
    workflow: Value,
    job: Job,
    /// The variables of the workflow.
    set: Values,
}

impl Example {
    /// Downloads a fixture, for this number of IPUs. `None` if the test is skipped.
    fn new(fixture: &str, ipus: &str) -> Option<Self> {
        let (job, workflow) = (Job::new()?, workflow());
        job.copy(fixture, "report/training");
        let mut set = filled_in(&workflow["env"], |expression| panic!("{expression}"));
        set.insert("NUM_IPUS".to_owned(), ipus.to_owned());
        Some(Self { workflow, job, set })
    }

    /// Returns the inputs of a step with the action, with variables and outputs of earlier steps.
    fn inputs(&self, step: &Value) -> Values {
        assert_eq!(step["uses"], ACTION);
        let known = |expression: &str| match expression.split('.').collect::<Vec<_>>()[..] {
            ["env", name] => self.set[name].clone(),
            ["steps", id, "outputs", name] => {
                let mut outputs = self.job.outputs(&format!("outputs-{id}"));
                outputs.remove(name).unwrap_or_default()
            }
            _ => panic!("{expression}"),
        };
        filled_in(&step["with"], known)
    }

    /// Runs a step as GitHub does, a script or the action, and returns its exit code.
    fn run(&self, name: &str) -> i32 {
        let step = step(&self.workflow, name);
        let run = match step["run"].as_str() {
            None => self.job.run(&self.inputs(step)),
            Some(script) => {
                let file = format!("outputs-{}", step["id"].as_str().unwrap_or_default());
                let file = self.job.path(&file);
                let _ = std::fs::remove_file(&file);
                let mut set = self.set.clone();
                set.insert("GITHUB_OUTPUT".to_owned(), file.display().to_string());
                self.job.bash(script, &set)
            }
        };
        assert_eq!(run.err.contains("error:"), run.code > 1, "{run:?}");
        run.code
    }

    /// Runs the steps that choose the options and check the model with them.
    fn check(&self) -> i32 {
        assert_eq!(self.run(CHOOSE), 0);
        self.run(FITS)
    }

    /// Checks that a file has this text.
    #[track_caller]
    fn has(&self, file: &str, text: &str) {
        let found = self.job.read(file);
        assert!(found.contains(text), "{text} in {file}: {found}");
    }
}

/// A model that fits on 5 IPUs.
fn inference() -> Option<Example> {
    Example::new("popart-bert-inference", "5")
}

/// A model on 4 IPUs that leaves less than a tenth of a tile's memory free.
fn training() -> Option<Example> {
    Example::new("training-pipeline", "4")
}

const CHOOSE: &str = "Choose what to keep free and what to compare with";
const FITS: &str = "Check that the model fits";
const COMPILED_FITS: &str = "Check that the compiled pipeline fits";
const KEEP: &str = "Keep the reserve that the prediction needed";

#[test]
fn the_job_passes_when_the_model_fits_and_posts_the_report() {
    let ci = or_skip!(inference());
    assert_eq!(ci.check(), 0);
    ci.has("summary.md", "|");
    assert_eq!(ci.job.read("summary.md"), ci.job.read("prediction.md"));
    ci.has("prediction.examples.yml", "layers_per_ipu: [");
    // The next run compares with this one.
    assert_eq!(ci.run("Keep the report of the main branch"), 0);
    assert_eq!(ci.check(), 0);
    ci.has("prediction.txt", "# compare-layers\n");
}

/// Jobs pass artifacts from one folder to the next.
#[test]
fn the_compiled_pipeline_is_checked_and_says_which_reserve_is_enough() {
    let mut ci = or_skip!(training());
    // The model leaves less than a tenth of a tile's memory free.
    ci.set.insert("RESERVE".to_owned(), "0".to_owned());
    assert_eq!(ci.check(), 0);
    std::fs::remove_file(ci.job.path("summary.md")).expect("a summary");
    let configuration = "prediction.examples.yml";
    ci.has(configuration, "layers_per_ipu: [");
    let compile = step(&ci.workflow, "Compile the pipeline and record the profile");
    let compile = compile["run"].as_str().expect("a script");
    assert!(compile.contains(&format!("prediction/{configuration}")));
    ci.job.copy("training-pipelined", "pipeline/training");
    let report = ci.job.read("prediction.json");
    ci.job.write("prediction/prediction.json", &report);
    assert_eq!(ci.run(COMPILED_FITS), 0);
    ci.has("summary.md", "## The compiled model fits on 4 IPUs");
    ci.has("summary.md", "Compared with the prediction:");
    if has("jq") {
        assert_eq!(ci.run(KEEP), 0);
        // The next prediction uses this reserve in place of a tenth.
        assert_eq!(ci.check(), 0);
        ci.has("prediction.json", "\"--reserve=1492\"");
    }
}
