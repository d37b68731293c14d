//! Forms for training of real models: the output is parsed by its language, and agrees with the split
//! and the settings of the report of the same run. `places` has PopART and Keras.
//!
//! With `SEEDS=0..1` all graphs run, by default a share.

use super::{has_known_keys, mapping, numbered, parsed, parsed_optimum};
use crate::cli::goldens;
use crate::support::models::{generate, share};
use crate::support::{FORMS, Run, command, each, finish, graph_file, read_json, run_on, sections};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

const GRAPHS: [(&str, &str); 11] = [
    ("albert", "poptorch"),
    ("bart", "poptorch"),
    ("bert", "popart"),
    ("clip", "poptorch"),
    ("hrnet", "poptorch"),
    ("keras_resnet50", "tensorflow"),
    ("keras_xception", "tensorflow"),
    ("resnet50", "poptorch"),
    ("t5", "popart"),
    ("tf_bert", "tensorflow"),
    ("unet_sd", "poptorch"),
];

/// The forms of one run, and its report.
pub struct Printed {
    forms: BTreeMap<String, String>,
    notes: String,
    pub report: Value,
}

impl Printed {
    pub fn of(graph: &str, framework: &str, mode: &str, options: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        write_model(folder.path(), graph, framework, mode);
        let forms = FORMS.map(|form| format!("--emit={form}")).join(" ");
        let run = run_on(folder.path(), &format!("{options} --export-json=- {forms}"));
        let mut forms: BTreeMap<String, String> = sections(&run.exits(0).out).into_iter().collect();
        let report = forms.remove("export-json").expect("a report");
        Self {
            report: read_json(&report),
            forms,
            notes: run.err,
        }
    }

    pub fn form(&self, name: &str) -> &str {
        &self.forms[&format!("emit-{name}")]
    }

    pub fn stages(&self) -> &[Value] {
        self.report["split"]["stages"].as_array().expect("stages")
    }

    fn micro_batches(&self) -> &Value {
        &self.report["step"]["micro_batches"]
    }
}

/// Writes the profile of a graph.
pub fn write_model(folder: &Path, graph: &str, framework: &str, mode: &str) {
    let file = graph_file(graph).display().to_string();
    let options = format!("--graph {file} --framework {framework} --mode {mode} --tiles 4");
    generate(folder, &options);
}

fn check(&(graph, framework): &(&str, &str)) {
    let options = "--num-ipus=4 --mem-per-tile=2000000";
    let printed = Printed::of(graph, framework, "training", options);
    let counts = check_counts(graph, &printed);
    check_lists(graph, &printed, counts);
    check_starts(graph, &printed);
}

/// Checks that the two forms with counts of blocks have the same counts under the keys of their
/// parsers. Returns the counts.
fn check_counts(graph: &str, printed: &Printed) -> Vec<u64> {
    let examples: Value = serde_yaml_ng::from_str(printed.form("examples")).expect("YAML");
    has_known_keys(&examples);
    let counts = &examples["layers_per_ipu"];
    let found = parsed_optimum(printed.form("optimum"), &printed.notes);
    let found = found.unwrap_or_default();
    assert_eq!(found["config"], found["overridden"], "{graph}");
    let ipus = json!(printed.stages().len());
    let by_layer = json!(printed.report["pipeline"]["recompute"] == "layer");
    for (key, expected) in [
        ("ipus_per_replica", &ipus),
        ("gradient_accumulation", printed.micro_batches()),
        ("recompute_checkpoint_every_layer", &by_layer),
        ("layers_per_ipu", counts),
    ] {
        assert_eq!(&examples[key], expected, "{graph}");
        let config = &found["config"][match key {
            "gradient_accumulation" => "gradient_accumulation_steps",
            key => key,
        }];
        assert!(found.is_null() || config == expected, "{graph}: {config}");
    }
    let counts: Vec<u64> = serde_json::from_value(counts.clone()).expect("counts");
    assert_eq!(counts.len(), printed.stages().len(), "{graph}");
    counts
}

/// In the form of TensorFlow's BERT, each stage lists as many layers as other forms count blocks.
fn check_lists(graph: &str, printed: &Printed, mut counts: Vec<u64>) {
    let read = read_json(printed.form("tf-stages"));
    let lists = read["ipu_config"]["pipeline_stages"].as_array();
    let hidden = |list: &Value| {
        let parts = list.as_array().expect("a list").iter();
        parts.filter(|&part| part == "hid").count() as u64
    };
    let lists = lists.expect("lists").iter().map(hidden);
    let mapping = mapping(printed.stages());
    counts.resize(mapping.len(), 0);
    assert_eq!(lists.collect::<Vec<_>>(), counts, "{graph}");
    let found = &read["ipu_config"]["pipeline_device_mapping"];
    assert_eq!(found, &json!(mapping), "{graph}");
    let steps = &read["global_batch"]["grad_acc_steps_per_replica"];
    assert_eq!(steps, printed.micro_batches(), "{graph}");
}

/// A block, or a module of `pipeline_splits`, begins each stage but the first.
fn check_starts(graph: &str, printed: &Printed) {
    let stages = printed.stages();
    let splits: Value = serde_yaml_ng::from_str(printed.form("pipeline-splits")).expect("YAML");
    match splits["pipeline_splits"].as_array() {
        // This form cannot express that Out is on the first IPU.
        None => assert_eq!(printed.report["pseudo_layers"], "out-with-in", "{graph}"),
        Some(splits) => assert_eq!(splits.len() + 1, stages.len(), "{graph}"),
    }
    // Each placeholder is a module of its own.
    let mut pieces = printed.form("poptorch").split("BeginBlock(...,");
    let mut text = pieces.next().unwrap_or_default().to_string();
    for (number, piece) in pieces.enumerate() {
        text += &format!("BeginBlock(model.none[{number}],{piece}");
    }
    let found = or_skip!(parsed("poptorch", &text));
    let blocks = numbered(&found["blocks"]).into_iter();
    let mut begun: Vec<usize> = blocks.map(|(_, ipu)| ipu).collect();
    begun.dedup();
    assert_eq!(begun, mapping(stages), "{graph}: {text}");
}

#[test]
fn every_form_is_the_split_of_the_report() {
    let graphs = GRAPHS.into_iter().step_by(share(6));
    each(&graphs.collect::<Vec<_>>(), check);
}

/// A newcomer to BART runs the command without options, then the configuration command that it
/// prints, and pastes what that prints. The session is a golden.
#[test]
fn a_newcomer_pastes_what_runs() {
    let folder = TempDir::new().expect("a folder");
    let report = folder.path().join("report");
    write_model(&report, "bart", "poptorch", "training");
    let run = |words: &[&str]| finish(command(words).current_dir(&folder));
    let first = run(&["report"]);
    let line = first.err.lines().find_map(|line| {
        let command = line.trim_start().strip_prefix("configuration:")?;
        command.trim_start().strip_prefix("popliner ")
    });
    let words: Vec<&str> = line.expect("a command").split(' ').collect();
    let second = run(&words);
    let printed = |line: &str, run: &Run| format!("$ popliner {line}\n{}{}", run.out, run.err);
    let session = printed("report", &first) + &printed(&words.join(" "), &second);
    assert_eq!(goldens::difference(&goldens::newcomer(), &session), None);
    let report = run(&[&words[..words.len() - 2], &["--solve", "--export-json=-"]].concat());
    let report = report.report();
    let found = or_skip!(parsed("poptorch", &second.out));
    let modules = report["split"]["modules"].as_array().expect("modules");
    let begins = modules.iter().filter_map(|one| one["begin"].as_str());
    let begins: Vec<String> = begins.map(|path| path.replace('.', "")).collect();
    for (module, _) in &numbered(&found["blocks"])[1..] {
        let path = module.strip_prefix("model.").expect("below the model");
        let path = path.replace(['.', '[', ']'], "");
        assert!(begins.contains(&path), "{module}: {begins:?}");
    }
}
