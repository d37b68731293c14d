//! Every form for training of real models: the output is parsed by its language, and agrees with
//! the split and the settings of the report of the same run.
//!
//! With `SEEDS=0..1` all graphs run, by default a share.

use super::{OF_EXAMPLES, ipu_of_out, named, placed, read_json, stage_of_out};
use crate::cli::goldens;
use crate::support::models::share;
use crate::support::{FORMS, command, each, finish, graph_file, popliner, python, sections};
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
struct Printed {
    forms: BTreeMap<String, String>,
    notes: String,
    report: Value,
}

impl Printed {
    fn of(graph: &str, framework: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        write_model(folder.path(), graph, framework);
        let forms = FORMS.map(|form| format!("--emit={form}"));
        let mut options = vec![folder.path().to_str().expect("a path"), "--num-ipus=4"];
        options.extend(forms.iter().map(String::as_str));
        options.extend(["--mem-per-tile=2000000", "--export-json=-"]);
        let run = popliner(options);
        assert_eq!(run.code, 0, "{graph}: {}", run.err);
        let mut forms: BTreeMap<String, String> = sections(&run.out).into_iter().collect();
        let report = forms.remove("export-json").expect("a report");
        Self {
            report: read_json(&report),
            forms,
            notes: run.err,
        }
    }

    fn form(&self, name: &str) -> &str {
        &self.forms[&format!("emit-{name}")]
    }

    fn stages(&self) -> &[Value] {
        self.report["split"]["stages"].as_array().expect("stages")
    }

    fn micro_batches(&self) -> &Value {
        &self.report["step"]["micro_batches"]
    }
}

/// Writes the profile of a graph's training.
fn write_model(folder: &Path, graph: &str, framework: &str) {
    let file = graph_file(graph);
    let options = format!(
        "--graph {} --framework {framework} --mode training --tiles 4",
        file.display()
    );
    synthesize::write(folder, options.split(' ')).expect("both files");
}

fn check(&(graph, framework): &(&str, &str)) {
    let printed = Printed::of(graph, framework);
    let counts = check_counts(graph, &printed);
    check_lists(graph, &printed, counts);
    check_popart(graph, &printed);
    check_keras(graph, &printed);
    check_starts(graph, &printed);
}

/// The two forms with counts of blocks say the same in the keys of their parsers. Returns the
/// counts.
fn check_counts(graph: &str, printed: &Printed) -> Vec<u64> {
    let examples: Value = serde_yaml_ng::from_str(printed.form("examples")).expect("YAML");
    let keys = examples.as_object().expect("keys").keys();
    assert!(keys.clone().all(|key| OF_EXAMPLES.contains(&&key[..])));
    let stages = printed.stages().len();
    assert_eq!(examples["ipus_per_replica"], stages, "{graph}");
    let counts: Vec<u64> =
        serde_json::from_value(examples["layers_per_ipu"].clone()).expect("counts");
    assert_eq!(counts.len(), stages, "{graph}");
    assert_eq!(&examples["gradient_accumulation"], printed.micro_batches());
    let is_layer_by_layer = printed.report["pipeline"]["recompute"] == "layer";
    let every = &examples["recompute_checkpoint_every_layer"];
    assert_eq!(every, is_layer_by_layer, "{graph}");

    let text = printed.form("optimum");
    let mut lines = printed.notes.lines();
    let overrides = lines.find_map(|line| line.strip_prefix("--ipu_config_overrides "));
    let given = json!({ "config": text, "overrides": overrides }).to_string();
    let Some(found) = python(include_str!("optimum.py"), &given) else {
        return counts;
    };
    let found = read_json(&found);
    assert_eq!(found["config"], found["overridden"], "{graph}");
    let config = &found["config"];
    assert_eq!(config["layers_per_ipu"], examples["layers_per_ipu"]);
    assert_eq!(
        &config["gradient_accumulation_steps"],
        printed.micro_batches()
    );
    assert_eq!(config["ipus_per_replica"], stages, "{graph}");
    assert_eq!(&config["recompute_checkpoint_every_layer"], every);
    counts
}

/// The stages of TensorFlow's BERT have as many layers as other forms count blocks.
fn check_lists(graph: &str, printed: &Printed, mut counts: Vec<u64>) {
    let read = read_json(printed.form("tf-stages"));
    let lists = read["ipu_config"]["pipeline_stages"].as_array();
    let lists = lists.expect("lists").iter();
    let hidden = |list: &Value| {
        let parts = list.as_array().expect("a list").iter();
        parts.filter(|&part| part == "hid").count() as u64
    };
    let mut mapping: Vec<usize> = (0..counts.len()).collect();
    if stage_of_out(printed.stages()) == counts.len() {
        counts.push(0);
        mapping.push(0);
    }
    assert_eq!(lists.map(hidden).collect::<Vec<_>>(), counts, "{graph}");
    let found = &read["ipu_config"]["pipeline_device_mapping"];
    assert_eq!(found, &json!(mapping), "{graph}");
    let steps = &read["global_batch"]["grad_acc_steps_per_replica"];
    assert_eq!(steps, printed.micro_batches(), "{graph}");
}

fn check_popart(graph: &str, printed: &Printed) {
    let Some(found) = python(include_str!("popart.py"), printed.form("popart")) else {
        return;
    };
    let found = read_json(&found);
    let stages = printed.stages();
    let layers = named(stages);
    let layers = placed(&layers).into_iter();
    let layers = layers.map(|(name, at)| json!([format!("layer {name}"), at, at]));
    let mut parts = vec![json!(["what runs before the layers", 0, 0])];
    parts.extend(layers);
    let (ipu, stage) = (ipu_of_out(stages), stage_of_out(stages));
    parts.push(json!(["what runs after the layers", ipu, stage]));
    assert_eq!(found["parts"], json!(parts), "{graph}");
    let factor = &found["options"]["accumulationFactor"];
    assert_eq!(factor, printed.micro_batches(), "{graph}");
    let recompute = match printed.report["pipeline"]["recompute"].as_str() {
        Some("none") => "none",
        _ => "pipeline",
    };
    assert_eq!(found["options"]["autoRecomputation"], recompute, "{graph}");
}

/// Layers by their names in the split, or where the names are those of Keras by these.
fn check_keras(graph: &str, printed: &Printed) {
    let Some(found) = python(include_str!("keras.py"), printed.form("keras")) else {
        return;
    };
    let found = read_json(&found);
    let entries: Vec<(String, usize)> =
        serde_json::from_value(found["entries"].clone()).expect("entries");
    assert!(entries.is_sorted_by_key(|(_, stage)| stage), "{entries:?}");
    let last = entries.last().map(|&(_, stage)| stage);
    let is_out_unnamed = printed
        .form("keras")
        .contains("WARNING: the Keras layers of Out");
    let of_layers = printed.stages().len() - 1;
    let expected = match is_out_unnamed {
        true => of_layers,
        false => stage_of_out(printed.stages()),
    };
    assert_eq!(last, Some(expected), "{graph}");
}

/// A block, or a module of `pipeline_splits`, begins each stage but the first.
fn check_starts(graph: &str, printed: &Printed) {
    let stages = printed.stages();
    let returns = stage_of_out(stages) == stages.len();
    let splits: Value = serde_yaml_ng::from_str(printed.form("pipeline-splits")).expect("YAML");
    match splits["pipeline_splits"].as_array() {
        // It has no way to say that Out is on the first IPU.
        None => assert_eq!(printed.report["pseudo_layers"], "out-with-in", "{graph}"),
        Some(splits) => assert_eq!(splits.len() + 1, stages.len(), "{graph}"),
    }
    // Each placeholder is a module of its own.
    let mut pieces = printed.form("poptorch").split("BeginBlock(...,");
    let mut text = pieces.next().unwrap_or_default().to_string();
    for (number, piece) in pieces.enumerate() {
        text += &format!("BeginBlock(model.none[{number}],{piece}");
    }
    let Some(found) = python(include_str!("poptorch.py"), &text) else {
        return;
    };
    let blocks: Vec<(String, usize)> =
        serde_json::from_value(read_json(&found)["blocks"].clone()).expect("blocks");
    let ipus: Vec<usize> = blocks.iter().map(|&(_, ipu)| ipu).collect();
    let mut begun = ipus.clone();
    begun.dedup();
    let mut expected: Vec<usize> = (0..stages.len()).collect();
    expected.extend(returns.then_some(0));
    assert_eq!(begun, expected, "{graph}: {text}");
}

#[test]
fn every_form_is_the_split_of_the_report() {
    each(
        &GRAPHS.into_iter().step_by(share(6)).collect::<Vec<_>>(),
        check,
    );
}

/// A newcomer to BART runs the command without options, then the configuration command that it
/// prints, and pastes what that prints. The session is a golden.
#[test]
fn a_newcomer_pastes_what_runs() {
    let folder = TempDir::new().expect("a folder");
    write_model(&folder.path().join("report"), "bart", "poptorch");
    let run = |words: &[&str]| finish(command(words).current_dir(&folder));
    let first = run(&["report"]);
    let line = first.err.lines().find_map(|line| {
        let command = line.trim_start().strip_prefix("configuration:")?;
        command.trim_start().strip_prefix("popliner ")
    });
    let words: Vec<&str> = line.expect("a command").split(' ').collect();
    let second = run(&words);
    let session = format!(
        "$ popliner report\n{}{}$ popliner {}\n{}{}",
        first.out,
        first.err,
        words.join(" "),
        second.out,
        second.err
    );
    assert_eq!(goldens::difference(&goldens::newcomer(), &session), None);
    let report = run(&[&words[..words.len() - 2], &["--export-json=-"]].concat());
    let report = read_json(&report.out);
    let Some(found) = python(include_str!("poptorch.py"), &second.out) else {
        return;
    };
    let blocks: Vec<(String, usize)> =
        serde_json::from_value(read_json(&found)["blocks"].clone()).expect("blocks");
    let modules = report["split"]["modules"].as_array().expect("modules");
    let begins = modules.iter().filter_map(|one| one["begin"].as_str());
    let begins: Vec<String> = begins.map(|path| path.replace('.', "")).collect();
    for (module, _) in &blocks[1..] {
        let path = module.strip_prefix("model.").expect("below the model");
        let path = path.replace(['.', '[', ']'], "");
        assert!(begins.contains(&path), "{module}: {begins:?}");
    }
}
