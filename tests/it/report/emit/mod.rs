//! Splits as configuration, read by their languages: Python parses and runs them with stand-ins for
//! the frameworks, YAML is loaded, and the result is compared with the stages that `--solve`
//! prints.

mod graphs;
mod modules;
mod pipelines;
mod places;

use crate::support::models::pairs;
use crate::support::{DEFAULT_REGEX, FORMS, python, run_fixture, run_once, sections};
use serde_json::{Value, json};

/// Splits of every fixture into few and many stages, with idle IPUs, and one that does not fit.
const CASES: [(&str, &str); 9] = [
    ("popart-bert-inference", "--num-ipus=4"),
    ("popart-bert-inference", "--num-ipus=16"),
    ("poptorch-bert-training", "--num-ipus=5"),
    ("tensorflow-cnn", "--num-ipus=4"),
    ("poplar-mlp", "--num-ipus=3"),
    ("impossible", "--num-ipus=2"),
    ("large-embedding", "--num-ipus=4"),
    ("tied-weights", "--num-ipus=4"),
    ("training-pipeline", "--num-ipus=4"),
];

/// Returns the stages as JSON, and the split in the form `emit`.
fn emitted(fixture: &str, options: &[&str], emit: &str) -> (Vec<Value>, String) {
    let (stages, text, _) = with_notes(fixture, options, emit);
    (stages, text)
}

/// Adds the regex, and for training the pipeline of its framework, which may not be the fastest.
fn usual<'a>(fixture: &str, options: &[&'a str]) -> Vec<&'a str> {
    let usual = match fixture {
        "tensorflow-cnn" => ["--schedule=tf-grouped", "--recompute=stage"],
        _ => ["--schedule=popart", "--recompute=stage"],
    };
    let is_free = |usual: &&str| {
        let name = usual.split('=').next().expect("a name");
        let is_given = options.iter().any(|option| option.starts_with(name));
        trains(fixture) && !is_given && !options.contains(&"--schedule=none")
    };
    let usual: Vec<&str> = usual.into_iter().filter(is_free).collect();
    [options, &usual, &[DEFAULT_REGEX]].concat()
}

/// Also returns standard error. One run prints all forms, unless its modules have names that only
/// some forms allow.
fn with_notes(fixture: &str, options: &[&str], emit: &str) -> (Vec<Value>, String, String) {
    let is_odd = |option: &&str| option.starts_with("--module") && !option.contains("=model.");
    let names_modules = options.iter().any(is_odd);
    let is_wanted = |form: &&str| !names_modules || *form == emit;
    let forms = FORMS.into_iter().filter(is_wanted);
    let forms: Vec<String> = forms.map(|form| format!("--emit={form}")).collect();
    let mut all = usual(fixture, options);
    all.push("--solve");
    all.extend(forms.iter().map(String::as_str));
    let run = run_once(fixture, &all);
    assert!(run.code == 0 || run.code == 1, "{run:?}");
    let mut found = sections(&run.out);
    assert_eq!(found.len(), forms.len() + 1, "{run:?}");
    let stages = serde_json::from_str(&found[0].1).expect("JSON");
    let name = format!("emit-{emit}");
    let place = found.iter().position(|(section, _)| *section == name);
    let (_, text) = found.swap_remove(place.expect("the form"));
    let is_warning = |line: &str| line.starts_with("WARNING: the model does not fit.");
    let mut lines = text.lines().map(|line| line.trim_start_matches("# "));
    let warns = lines.next().is_some_and(is_warning) || run.err.lines().any(is_warning);
    assert_eq!(warns, run.code == 1, "{text}");
    (stages, text, run.err)
}

/// Without `--solve` only the configuration is printed, with the same verdict.
#[test]
fn a_form_is_the_same_without_the_stages() {
    for (&(fixture, ipus), form) in pairs(&CASES, &FORMS, 5) {
        let form = format!("--emit={form}");
        let options = [&usual(fixture, &[ipus])[..], &[&form]].concat();
        let alone = run_fixture(fixture, &options);
        let beside = run_fixture(fixture, &[&options[..], &["--solve"]].concat());
        let [_, (_, text)] = <[_; 2]>::try_from(sections(&beside.out)).expect("two");
        assert_eq!(alone.out, text, "{fixture} {form}");
        assert_eq!((alone.code, alone.err), (beside.code, beside.err));
    }
}

/// Returns the layers of each stage, without In and Out.
fn named(stages: &[Value]) -> Vec<Vec<&str>> {
    let names = stages.iter().map(|stage| {
        let layers = stage["layers"].as_array().expect("layers").iter();
        let layers = layers.filter_map(Value::as_str);
        layers.filter(|&name| name != "Out").collect()
    });
    names.collect()
}

/// Returns the IPU of Out.
fn ipu_of_out(stages: &[Value]) -> usize {
    let ends_with_out = |stage: &Value| {
        let layers = stage["layers"].as_array().expect("layers");
        layers.last().and_then(Value::as_str) == Some("Out")
    };
    let ipu = stages.iter().position(ends_with_out);
    ipu.expect("a stage with Out")
}

/// Returns every layer with its stage.
fn placed<'a>(stages: &[Vec<&'a str>]) -> Vec<(&'a str, usize)> {
    let numbered = stages.iter().enumerate();
    let placed =
        numbered.flat_map(|(number, layers)| layers.iter().map(move |&name| (name, number)));
    placed.collect()
}

/// Returns the pipeline stage of Out, which is an extra stage if Out runs on the first IPU.
fn stage_of_out(stages: &[Value]) -> usize {
    let ipu = ipu_of_out(stages);
    match ipu == 0 && stages.len() > 1 {
        true => stages.len(),
        false => ipu,
    }
}

/// Is the fixture a training model of a framework with a pipeline?
fn trains(fixture: &str) -> bool {
    let training = [
        "poptorch-bert-training",
        "tensorflow-cnn",
        "tied-weights",
        "training-pipeline",
    ];
    training.contains(&fixture)
}

/// Returns the default number of micro-batches, as the schedule of the fixture's framework needs
/// it.
fn accumulation(fixture: &str, stages: &[Value]) -> usize {
    let forward = stage_of_out(stages).max(stages.len() - 1) + 1;
    match fixture {
        "tensorflow-cnn" => 128usize.div_ceil(2 * forward) * 2 * forward,
        _ => 128.max(2 * forward - 1),
    }
}

fn read_json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns the expected counts of blocks and settings of the fixture's pipeline, with the parser's
/// key for gradient accumulation.
fn counted(fixture: &str, stages: &[Value], key: &str) -> Value {
    let counts: Vec<usize> = named(stages).iter().map(Vec::len).collect();
    let mut all = json!({ "layers_per_ipu": counts, "ipus_per_replica": stages.len() });
    if trains(fixture) {
        all[key] = json!(accumulation(fixture, stages));
        all["replication_factor"] = json!(1);
        all["recompute_checkpoint_every_layer"] = json!(false);
        all["optimizer_state_offchip"] = json!(false);
        all["replicated_tensor_sharding"] = json!(false);
    }
    all
}

/// Keys of BERT and GPT-2 in Graphcore's examples. ViT has `enable_rts` for the last one.
const OF_EXAMPLES: [&str; 8] = [
    "layers_per_ipu",
    "ipus_per_replica",
    "device_iterations",
    "gradient_accumulation",
    "replication_factor",
    "recompute_checkpoint_every_layer",
    "optimizer_state_offchip",
    "replicated_tensor_sharding",
];

#[test]
fn examples_are_yaml_and_add_up() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "examples");
        let read: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        let mut all = counted(fixture, &stages, "gradient_accumulation");
        if !trains(fixture) {
            let forward = stage_of_out(&stages).max(stages.len() - 1) + 1;
            all["device_iterations"] = json!(forward);
        }
        assert_eq!(read, all, "{text}");
        let mut keys = read.as_object().expect("keys").keys();
        assert!(
            keys.all(|key| OF_EXAMPLES.contains(&key.as_str())),
            "{text}"
        );
        let counts: Vec<usize> = named(&stages).iter().map(Vec::len).collect();
        check_round_trip(fixture, ipus, &counts, &stages);
    }
}

/// The configuration and its form for the command line have the same values, by keys of the parser.
#[test]
fn optimum_is_json_and_overrides_say_the_same() {
    for (fixture, ipus) in CASES {
        let (stages, text, notes) = with_notes(fixture, &[ipus], "optimum");
        let mut lines = notes.lines();
        let overrides = lines.find_map(|line| line.strip_prefix("--ipu_config_overrides "));
        let given = json!({ "config": text, "overrides": overrides }).to_string();
        let Some(found) = python(include_str!("optimum.py"), &given) else {
            return;
        };
        let mut all = counted(fixture, &stages, "gradient_accumulation_steps");
        let found = read_json(&found);
        for (key, default) in found["defaults"].as_object().expect("keys") {
            if all.get(key).is_none() {
                all[key] = default.clone();
            }
        }
        assert_eq!(found["config"], all, "{text}");
        assert_eq!(found["overridden"], all, "{notes}");
    }
}

#[test]
fn tf_stages_are_json_and_have_the_layers_of_each_stage() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "tf-stages");
        let read = read_json(&text);
        let mut lists: Vec<Vec<&str>> = named(&stages)
            .iter()
            .map(|layers| vec!["hid"; layers.len()])
            .collect();
        lists[0].insert(0, "emb");
        let mut mapping: Vec<usize> = (0..stages.len()).collect();
        if stage_of_out(&stages) == stages.len() {
            lists.push(Vec::new());
            mapping.push(0);
        }
        let heads = ["enc_out", "pool", "heads"];
        lists.last_mut().expect("a stage").extend(heads);
        let mut all = json!({
            "ipu_config": {
                "pipeline_stages": lists,
                "pipeline_device_mapping": mapping,
                "replicated_tensor_sharding": false
            }
        });
        if trains(fixture) {
            let steps = accumulation(fixture, &stages);
            all["global_batch"] = json!({ "replicas": 1, "grad_acc_steps_per_replica": steps });
            all["enable_recomputation"] = json!(true);
            all["optimizer_state_offchip"] = json!(false);
        }
        assert_eq!(read, all, "{text}");
    }
}

/// Checks that the output, given as input, means the same split and is printed again.
fn check_round_trip(fixture: &str, ipus: &str, counts: &[usize], stages: &[Value]) {
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    let given = format!("--layers-per-ipu=[{}]", counts.join(", "));
    let options = ["--solve", "--emit=examples", ipus, &given, DEFAULT_REGEX];
    let run = run_fixture(fixture, &options);
    let found = sections(&run.out);
    let read: Vec<Value> = serde_json::from_str(&found[0].1).expect("JSON");
    // Only layers are compared, since without a schedule the fastest one is chosen.
    assert_eq!(named(&read), named(stages), "{fixture} {given}");
    let line = format!("layers_per_ipu: [{}]\n", counts.join(", "));
    assert!(found[1].1.contains(&line), "{}", found[1].1);
}

/// In, Out or both in stages of their own or with layers: each stage of its own is a 0.
#[test]
fn layers_per_ipu_says_where_in_and_out_are_alone() {
    let cases = [
        ("In", "0, 5"),
        ("In,1", "0, 2, 3"),
        ("1,4", "2, 3, 0"),
        ("In,4", "0, 5, 0"),
        ("0,1", "1, 1, 3"),
    ];
    for (names, counts) in cases {
        let split = format!("--check-splits={names}");
        let options = ["--num-ipus=5", "--emit=layers-per-ipu"];
        let run = run_fixture("poplar-mlp", &[&options[..], &[&split]].concat());
        let line = format!("\nlayers_per_ipu: [{counts}]\n");
        assert!(run.out.contains(&line), "{names}: {run:?}");
        let given = format!("--layers-per-ipu={counts}");
        let again = run_fixture("poplar-mlp", &[&options[..], &[&given]].concat());
        assert_eq!((again.code, again.out), (run.code, run.out), "{given}");
    }
}

#[test]
fn pipeline_splits_is_yaml_and_begins_each_ipu() {
    for (fixture, ipus) in CASES {
        let module = r#"--module=a "b"/{}: #é"#;
        let (stages, text) = emitted(
            fixture,
            &[ipus, module, "--module-out=head"],
            "pipeline-splits",
        );
        let read: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        if stage_of_out(&stages) == stages.len() {
            assert_eq!(read, Value::Null, "{text}");
            continue;
        }
        let starts = named(&stages).into_iter().skip(1);
        let starts = starts.map(|layers| match layers.first() {
            Some(layer) => format!(r#"a "b"/{layer}: #é"#),
            None => "head".to_string(),
        });
        let expected: Vec<String> = starts.collect();
        let mut all = json!({ "pipeline_splits": expected });
        if trains(fixture) {
            all["gradient_accumulation"] = json!(accumulation(fixture, &stages));
            all["replicas"] = json!(1);
            all["offload_optimizer"] = json!(false);
            all["enable_optimizer_rts"] = json!(false);
        }
        assert_eq!(read, all, "{text}");
    }
}

#[test]
fn a_search_that_gave_up_leaves_nothing_to_paste() {
    let options = ["--emit=keras", "--emit=examples", "--solver=greedy"];
    let run = run_fixture("impossible", &options);
    assert_eq!(run.code, 1, "{run:?}");
    for (name, text) in sections(&run.out) {
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text}");
        assert!(
            text.contains("in no stage: In 0 1 2 3 Out"),
            "{name}: {text}"
        );
        let read: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        assert_eq!(read, Value::Null);
        python("import ast, sys; ast.parse(sys.stdin.read())", &text);
    }
}

#[test]
fn wrong_usage_ends_with_2_before_and_after_the_search() {
    let cases: [(&[&str], &str); 8] = [
        (&["--module-in=model.embedding"], "--emit"),
        (
            &[
                "--emit=keras",
                "--module-out=head",
                "--memory-model=classic",
            ],
            "has no Out",
        ),
        (&["--module-root=bert"], "--emit"),
        (&["--emit=json"], "examples"),
        (&["--module=model[{}]"], "--emit"),
        (&["--emit=keras", "--module=model"], "write {} once"),
        (&["--emit=poptorch", "--module=model.{}"], "model.0"),
        (
            &["--emit=layers-per-ipu", "--layer-name-regex=none such"],
            "none such",
        ),
    ];
    for (options, part) in cases {
        let run = run_fixture("poplar-mlp", options);
        assert_eq!(run.code, 2, "{options:?}: {run:?}");
        assert_eq!(run.out, "", "{options:?}");
        assert!(run.err.contains(part), "{options:?}: {}", run.err);
    }
}

#[test]
fn forms_come_once_and_in_order() {
    let options = [
        "--emit=keras",
        "--emit=popart",
        "--emit=keras",
        "--layer-breakdown",
    ];
    let run = run_fixture("poplar-mlp", &options);
    let sections = sections(&run.out);
    let names: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["layer-breakdown", "emit-popart", "emit-keras"]);
}
