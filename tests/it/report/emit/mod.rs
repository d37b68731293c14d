//! Splits as configuration, read by their languages: Python parses and runs them with stand-ins for
//! the frameworks, YAML is loaded, and the result is compared with the stages that `--solve`
//! prints.

mod counts;
mod graphs;
mod modules;
mod pipelines;
mod places;

use crate::support::{DEFAULT_REGEX, FORMS, python, read_json, run_fixture, run_once, sections};
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

/// Adds the regex, and for training the pipeline of its framework, which may not be the fastest.
fn usual<'a>(fixture: &str, options: &[&'a str]) -> Vec<&'a str> {
    let schedule = match fixture {
        "tensorflow-cnn" => "--schedule=tf-grouped",
        _ => "--schedule=popart",
    };
    let has = |name: &str| options.iter().any(|option| option.starts_with(name));
    let mut all = [options, &[DEFAULT_REGEX]].concat();
    if trains(fixture) && !options.contains(&"--schedule=none") {
        all.extend((!has("--schedule")).then_some(schedule));
        all.extend((!has("--recompute")).then_some("--recompute=stage"));
    }
    all
}

/// Returns the stages as JSON, and the split in the form `emit`. One run prints all forms.
fn emitted(fixture: &str, options: &[&str], emit: &str) -> (Vec<Value>, String) {
    let forms = FORMS.map(|form| format!("--emit={form}"));
    let mut all = usual(fixture, options);
    all.push("--solve");
    all.extend(forms.iter().map(String::as_str));
    let run = run_once(fixture, &all);
    assert!(run.code < 2, "{run:?}");
    assert_eq!(sections(&run.out).len(), forms.len() + 1, "{run:?}");
    let stages = serde_json::from_str(&run.section("solve")).expect("JSON");
    let text = run.section(&format!("emit-{emit}"));
    let is_warning = |line: &str| line.starts_with("WARNING: the model does not fit.");
    let mut lines = text.lines().map(|line| line.trim_start_matches("# "));
    let warns = lines.next().is_some_and(is_warning) || run.err.lines().any(is_warning);
    assert_eq!(warns, run.code == 1, "{text}");
    (stages, text)
}

/// Writes the modules that the comments of a form for PopTorch ask for, as a user would.
fn filled(text: &str) -> String {
    let text = text.replace("module of Out, such as the head", "module of layer head");
    let asked =
        r"BeginBlock\(\.{3},(.*)\)  # replace \.{3} with the (?:first )?module of layer (\S+)";
    let asked = regex::Regex::new(asked).expect("a regex");
    let filled = asked.replace_all(&text, r#"BeginBlock(model.get("$2"),$1)"#);
    filled.into_owned()
}

/// Runs a form in Python, with stand-ins for its framework; `None` if the test is skipped.
#[track_caller]
fn parsed(form: &str, text: &str) -> Option<Value> {
    let stub = match form {
        "popart" => include_str!("popart.py"),
        "poptorch" => include_str!("poptorch.py"),
        "keras" => include_str!("keras.py"),
        "mmcv" => include_str!("mmcv.py"),
        _ => include_str!("optimum.py"),
    };
    Some(read_json(&python(stub, text)?))
}

/// Runs the configuration of Optimum and its form for the command line, from the notes.
#[track_caller]
fn parsed_optimum(text: &str, notes: &str) -> Option<Value> {
    let mut lines = notes.lines();
    let overrides = lines.find_map(|line| line.strip_prefix("--ipu_config_overrides "));
    let given = json!({ "config": text, "overrides": overrides });
    parsed("optimum", &given.to_string())
}

/// Names with numbers: the blocks or the layers of a form.
fn numbered(list: &Value) -> Vec<(String, usize)> {
    serde_json::from_value(list.clone()).expect("names with numbers")
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
        layers.last() == Some(&json!("Out"))
    };
    let ipu = stages.iter().position(ends_with_out);
    ipu.expect("a stage with Out")
}

/// Returns the IPU of each pipeline stage. Out on the first IPU is in a stage of its own.
fn mapping(stages: &[Value]) -> Vec<usize> {
    let mut mapping: Vec<usize> = (0..stages.len()).collect();
    mapping.extend((stage_of_out(stages) == stages.len()).then_some(0));
    mapping
}

/// Returns the parts of a PopART model, each with its IPU and pipeline stage.
fn popart_parts(stages: &[Value]) -> Value {
    let layers = placed(stages).into_iter();
    let layers = layers.map(|(name, at)| json!([format!("layer {name}"), at, at]));
    let mut parts = vec![json!(["what runs before the layers", 0, 0])];
    parts.extend(layers);
    let (ipu, stage) = (ipu_of_out(stages), stage_of_out(stages));
    parts.push(json!(["what runs after the layers", ipu, stage]));
    parts.into()
}

/// Returns every layer with its stage.
fn placed(stages: &[Value]) -> Vec<(&str, usize)> {
    let of = |(stage, layers): (usize, Vec<_>)| layers.into_iter().map(move |name| (name, stage));
    named(stages).into_iter().enumerate().flat_map(of).collect()
}

/// Returns the pipeline stage of Out, which is an extra stage if Out runs on the first IPU.
fn stage_of_out(stages: &[Value]) -> usize {
    match ipu_of_out(stages) {
        0 if stages.len() > 1 => stages.len(),
        ipu => ipu,
    }
}

/// Is the fixture a training model of a framework with a pipeline?
fn trains(fixture: &str) -> bool {
    let others = "popart-bert-inference poplar-mlp impossible large-embedding";
    !others.split(' ').any(|other| other == fixture)
}

/// Returns the default number of micro-batches, as the schedule of the fixture's framework needs
/// it.
fn accumulation(fixture: &str, stages: &[Value]) -> usize {
    let forward = mapping(stages).len();
    match fixture {
        "tensorflow-cnn" => 128usize.div_ceil(2 * forward) * 2 * forward,
        _ => 128.max(2 * forward - 1),
    }
}

/// Returns the expected counts of blocks and settings of the fixture's pipeline.
fn counted(fixture: &str, stages: &[Value]) -> Value {
    let counts: Vec<usize> = named(stages).iter().map(Vec::len).collect();
    let mut all = json!({ "layers_per_ipu": counts, "ipus_per_replica": stages.len() });
    if trains(fixture) {
        all["gradient_accumulation"] = json!(accumulation(fixture, stages));
        all["replication_factor"] = json!(1);
        all["recompute_checkpoint_every_layer"] = json!(false);
        all["optimizer_state_offchip"] = json!(false);
        all["replicated_tensor_sharding"] = json!(false);
    }
    all
}

/// Keys of BERT and GPT-2 in Graphcore's examples. ViT has `enable_rts` for the last one.
const OF_EXAMPLES: &str = "layers_per_ipu ipus_per_replica device_iterations \
    gradient_accumulation replication_factor recompute_checkpoint_every_layer \
    optimizer_state_offchip replicated_tensor_sharding";

fn has_known_keys(examples: &Value) {
    let known: Vec<&str> = OF_EXAMPLES.split(' ').collect();
    let mut keys = examples.as_object().expect("keys").keys();
    let is_known = |key: &String| known.contains(&&**key);
    assert!(keys.all(is_known), "{examples}");
}

#[test]
fn examples_are_yaml_and_add_up() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "examples");
        let read: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        let mut all = counted(fixture, &stages);
        if !trains(fixture) {
            all["device_iterations"] = json!(mapping(&stages).len());
        }
        assert_eq!(read, all, "{text}");
        has_known_keys(&read);
        let counts: Vec<usize> = named(&stages).iter().map(Vec::len).collect();
        check_round_trip(fixture, ipus, &counts, &stages);
    }
}

/// Checks that the output, given as input, means the same split and is printed again.
fn check_round_trip(fixture: &str, ipus: &str, counts: &[usize], stages: &[Value]) {
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    let given = format!("--layers-per-ipu=[{}]", counts.join(", "));
    let options = ["--solve", "--emit=examples", ipus, &given, DEFAULT_REGEX];
    let found = sections(&run_fixture(fixture, &options).out);
    let read: Vec<Value> = serde_json::from_str(&found[0].1).expect("JSON");
    // Only layers are compared, since without a schedule the fastest one is chosen.
    assert_eq!(named(&read), named(stages), "{fixture} {given}");
    let line = format!("layers_per_ipu: [{}]\n", counts.join(", "));
    assert!(found[1].1.contains(&line), "{}", found[1].1);
}

/// The list of mmcv, given as a split to judge, is the split that it was written for.
#[test]
fn mmcv_begins_each_ipu_and_is_read_back() {
    for (fixture, ipus) in CASES {
        let (stages, text) = emitted(fixture, &[ipus], "mmcv");
        let found = or_skip!(parsed("mmcv", &text));
        let edges = numbered(&found["edges"]);
        let ipus: Vec<usize> = edges.iter().map(|&(_, ipu)| ipu).collect();
        if stage_of_out(&stages) == stages.len() {
            assert!(edges.is_empty(), "{text}");
            continue;
        }
        assert_eq!(ipus, Vec::from_iter(1..stages.len()), "{text}");
        let steps = &found["options"]["Training"]["gradientAccumulation"];
        let expected = trains(fixture).then(|| accumulation(fixture, &stages));
        assert_eq!(steps, &json!(expected), "{text}");
        let is_known = edges.iter().all(|(module, _)| !module.starts_with('<'));
        // --splits knows the first module of Out only as Out.
        let has_layers = named(&stages).last().is_some_and(|own| !own.is_empty());
        if is_known && has_layers {
            let split = format!("--splits={text}");
            let (again, _) = emitted(fixture, &[&split], "mmcv");
            assert_eq!(named(&again), named(&stages), "{text}");
        }
    }
}

#[test]
fn a_search_that_gave_up_leaves_nothing_to_paste() {
    let run = run_fixture("impossible", "--emit=keras --emit=examples --solver=greedy");
    for (name, text) in sections(&run.exits(1).out) {
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text}");
        let is_said = text.contains("in no stage: In 0 1 2 3 Out");
        assert!(is_said, "{name}: {text}");
        let read: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        assert_eq!(read, Value::Null);
        python("import ast, sys; ast.parse(sys.stdin.read())", &text);
    }
}

#[test]
fn forms_come_once_and_in_order() {
    let options = "--emit=keras --emit=popart --emit=keras --layer-breakdown";
    let sections = sections(&run_fixture("poplar-mlp", options).out);
    let names: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["layer-breakdown", "emit-popart", "emit-keras"]);
}
