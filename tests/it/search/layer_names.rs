//! Names of layers and modules in the forms in which the tool prints them and people write them.
//!
//! With `SEEDS=0..1` all graphs run, by default a share; `POPLINER_GRAPHS` names a folder of more graphs,
//! which run too.

use crate::support::models::{generate, pairs};
use crate::support::{each, graph_file, more_graphs, read_graph, run_fixture};
use popliner::analysis::{Analysis, JudgedSplit, Layers, Request};
use popliner::model::ModuleCalls;
use popliner::report::emit::{EmitForm, emit};
use popliner::report::{LayerMemory, Report};
use regex::Regex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const GRAPHS: [(&str, &str); 13] = [
    ("albert", "poptorch"),
    ("bert", "poptorch"),
    ("bart", "poptorch"),
    ("t5", "popart"),
    ("clip", "poptorch"),
    ("hrnet", "poptorch"),
    ("unet_sd", "poptorch"),
    ("resnet50", "poptorch"),
    ("keras_inceptionv3", "tensorflow"),
    ("keras_nasnet", "tensorflow"),
    ("keras_resnet50", "tensorflow"),
    ("keras_xception", "tensorflow"),
    ("tf_bert", "tensorflow"),
];

const MODES: [&str; 2] = ["--mode inference", "--mode training --calls 2"];

/// Returns the texts that stand for a layer of this name and path.
fn texts(name: &str, path: &str) -> Vec<String> {
    let mut bracketed = String::new();
    for part in path.split(['.', '/']) {
        match part.parse::<u32>() {
            Ok(number) => bracketed += &format!("[{number}]"),
            Err(_) if bracketed.is_empty() => bracketed += part,
            Err(_) => bracketed += &format!(".{part}"),
        }
    }
    let mut texts = vec![name.to_owned()];
    if !path.is_empty() {
        let below = format!("model.{path}");
        texts.extend([path.to_owned(), below, path.replace('.', "/"), bracketed]);
    }
    texts
}

fn check(analysis: &Analysis, report: &Report, of: &str) {
    let mut layers: Vec<(usize, Vec<String>)> = Vec::new();
    for (position, layer) in report.layers.iter().enumerate() {
        if let Some(name) = layer.name.as_deref().filter(|&name| name != "Out") {
            // Several calls of a module without weights have one path.
            let is_same = |other: &&LayerMemory| other.module == layer.module;
            let is_one = report.layers.iter().filter(is_same).count() == 1;
            let path = layer.module.as_deref().filter(|_| is_one);
            layers.push((position, texts(name, path.unwrap_or_default())));
        }
    }
    let all = layers.iter().flat_map(|(_, texts)| texts).cloned();
    let found = named(analysis, all.collect());
    for (position, texts) in &layers {
        for text in texts {
            assert_eq!(found.position(text), Some(*position), "{of}: {text}");
        }
    }
    check_out(analysis, report, of);
}

/// Finds the layers of a request that begins stages at these texts.
fn named(analysis: &Analysis, texts: Vec<String>) -> Layers<'_> {
    let request = Request {
        judged: Some(JudgedSplit::FirstLayers(texts)),
        ..Request::default()
    };
    analysis.layers(&request).expect("layers")
}

/// Checks that the name of Out's first module means Out, or a layer after the layers of the report.
fn check_out(analysis: &Analysis, report: &Report, of: &str) {
    let split = report.split.as_ref().expect("a split");
    let out = split.modules.last().and_then(|out| out.begin.as_deref());
    let out = out.map_or(Vec::new(), |path| texts(path, path));
    let found = named(analysis, out.clone());
    let names = report
        .layers
        .iter()
        .filter_map(|layer| layer.name.as_deref());
    let last = names.rev().find(|&name| name != "Out").expect("a layer");
    let last = found.position(last).unwrap_or(0);
    for text in out {
        let at = found.position(&text);
        let is_out = at.is_some_and(|at| at > last || found.placement.positions.out_is_first());
        assert!(is_out, "{of}: {text} at {at:?}, {last}");
    }
}

/// TensorFlow's examples separate the layers of a split by blanks.
#[test]
fn a_split_with_blanks_is_one_with_commas() {
    let run = |split| run_fixture("poplar-mlp", &["--solve", split]);
    let (blanks, commas) = (run("--splits=1 3"), run("--splits=1,3"));
    assert_eq!((blanks.code, blanks.out), (commas.code, commas.out));
    assert!(blanks.code < 2);
}

/// The scope of the loss in TensorFlow.
const KERAS_LOSS: &str = "sparse_categorical_crossentropy";

/// Returns the paths of all modules of a graph, and of the loss.
fn modules_of(graph: &Path, framework: &str) -> HashSet<String> {
    let (scope_or_module, loss) = match framework {
        "tensorflow" => (0, KERAS_LOSS),
        _ => (2, "loss"),
    };
    let mut paths = HashSet::from([loss.to_owned()]);
    for operation in read_graph(graph)["ops"].as_array().expect("operations") {
        let path = operation[scope_or_module].as_str().expect("a path");
        let path = path.replace('/', ".");
        let ends = path.match_indices('.').map(|(end, _)| end);
        paths.extend(ends.chain([path.len()]).map(|end| path[..end].to_owned()));
    }
    paths
}

/// Every path of the report is that of a module of the model.
fn check_paths(report: &Report, known: &HashSet<String>, of: &str) {
    let split = report.split.as_ref().expect("a split");
    let calls = |own: &ModuleCalls| {
        [&own.begin, &own.leaf, &own.inside, &own.output].map(|path| path.clone())
    };
    let called = split.modules.iter().flat_map(calls);
    // TensorFlow writes the blocks of Keras into names of layers: `conv2_block1_1_conv`.
    let layers = report.layers.iter().map(|layer| layer.module.clone());
    let layers = layers.filter(|_| !known.contains(KERAS_LOSS));
    for path in called.chain(layers).flatten() {
        assert!(known.contains(&path.replace('/', ".")), "{of}: {path}");
    }
}

/// Lines of forms that name the module or layer at which a stage begins, and the stage.
const BEGINNINGS: [(EmitForm, &str); 3] = [
    (EmitForm::Poptorch, r"BeginBlock\((model.*), ipu_id=(\d+)\)"),
    (EmitForm::Mmcv, r#"layer_to_call="([^<].*)", ipu_id=(\d+)"#),
    (EmitForm::Keras, r#""([^<].*)": (\d+),"#),
];

/// Returns the lists of texts that stand for the beginnings of stages, each with the number of the
/// stage: those of all forms, and those of the report for programs.
fn beginnings(report: &Report) -> Vec<Vec<(usize, String)>> {
    let mut lists = Vec::new();
    for (form, line) in BEGINNINGS {
        let text = emit(form, report, "model", None).text;
        let line = Regex::new(line).expect("a regex");
        let begins = line.captures_iter(&text);
        let begins = begins.map(|own| (own[2].parse().expect("a stage"), own[1].to_owned()));
        lists.push(begins.collect::<Vec<_>>());
    }
    let splits = emit(EmitForm::PipelineSplits, report, "model", None).text;
    let modules = splits.lines().filter_map(|line| line.strip_prefix("- "));
    let modules = (1..).zip(modules.map(|module| module.trim_matches('"').to_owned()));
    lists.push(modules.filter(|own| !own.1.starts_with('<')).collect());
    let split = report.split.as_ref().expect("a split");
    let begins = split.modules.iter().map(|own| own.begin.clone());
    let leaves = split.modules.iter().map(|own| own.leaf.clone());
    for paths in [begins.collect::<Vec<_>>(), leaves.collect()] {
        let paths = (0..).zip(paths);
        lists.push(
            paths
                .filter_map(|(stage, path)| Some((stage, path?)))
                .collect(),
        );
    }
    let is_cut = |&(stage, _): &(usize, String)| (1..split.stages.len()).contains(&stage);
    lists.iter_mut().for_each(|list| list.retain(is_cut));
    lists
}

/// Splits before each layer, and pastes what stands for the beginnings of the stages.
fn check_beginnings(analysis: &Analysis, of: &str) {
    let layers = analysis.layers(&Request::default()).expect("layers");
    let positions = &layers.placement.positions;
    let all = (1..positions.len()).map(|layer| positions.name(layer).to_owned());
    let judged = Some(JudgedSplit::FirstLayers(all.collect()));
    let report = analysis.split(&Request {
        judged,
        ..Request::default()
    });
    let report = report.expect("a report");
    let modules = &report.split.as_ref().expect("a split").modules;
    let lists = beginnings(&report);
    assert!(lists.concat().len() > 3, "{of}: {lists:?}");
    for list in lists {
        let found = named(
            analysis,
            list.iter().map(|(_, text)| text.clone()).collect(),
        );
        for (stage, text) in list {
            // A Keras layer that ran before, too, keeps its first stage, so the next one stands there.
            let is_first = !modules[stage]
                .top
                .iter()
                .skip(1)
                .any(|layer| *layer == text);
            let before = modules[stage].operations_before;
            let is_meant = means(&found, &text, (&layers, stage, before));
            // Several calls of a module without weights have one path.
            let is_one = !positions.name(stage).contains('@');
            assert!(!(is_first && is_one) || is_meant, "{of}: {text} of {stage}");
        }
    }
}

/// Returns the first operation of a layer; `None` for Out.
fn first_operation(layers: &Layers<'_>, position: usize) -> Option<usize> {
    let mut operations = layers.layering.layers.iter();
    operations.position(|&layer| layer as usize == position)
}

/// Does `text` stand for the stage of a layer, in which `before` operations run before its first
/// module?
fn means(
    found: &Layers<'_>,
    text: &str,
    (layers, stage, before): (&Layers<'_>, usize, u32),
) -> bool {
    let Some(at) = found.position(text) else {
        return false;
    };
    match (first_operation(found, at), first_operation(layers, stage)) {
        (Some(own), Some(_)) if before > 0 => layers.layering.layers[own] as usize == stage,
        (own, begin) => own == begin || begin.is_none(),
    }
}

fn check_graph((file, framework, options): &(PathBuf, &str, &str)) {
    let of = format!("{} {options}", file.display());
    let folder = TempDir::new().expect("a folder");
    let model = format!(
        "--graph {} --tiles 4 --framework {framework} {options}",
        file.display()
    );
    let [profile, debug] = generate(folder.path(), &model);
    let analysis = Analysis::read(&profile, &debug).expect("a model");
    let report = analysis.split(&Request::default()).expect("a report");
    check(&analysis, &report, &of);
    check_paths(&report, &modules_of(file, framework), &of);
    check_beginnings(&analysis, &of);
}

/// Returns the graphs of the folder that `POPLINER_GRAPHS` names, in both modes.
fn more() -> Vec<(PathBuf, &'static str, &'static str)> {
    let in_modes = |file: PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_keras = name.starts_with("keras_") || name.starts_with("tf_");
        let framework = if is_keras { "tensorflow" } else { "poptorch" };
        MODES.map(|mode| (file.clone(), framework, mode))
    };
    more_graphs().into_iter().flat_map(in_modes).collect()
}

#[test]
fn printed_and_pasted_names_stand_for_their_layer() {
    let own = pairs(&GRAPHS, &MODES, 5);
    let own = own.map(|(&(graph, framework), &mode)| (graph_file(graph), framework, mode));
    each(&own.chain(more()).collect::<Vec<_>>(), check_graph);
}
