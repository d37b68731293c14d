//! Names of layers in the forms in which the tool prints them and people write them.
//!
//! With `SEEDS=0..1` all graphs run, by default a share.

use crate::support::models::{generate, pairs};
use crate::support::{each, graph_file, run_fixture};
use popliner::analysis::{Analysis, JudgedSplit, Layers, Request};
use popliner::report::{LayerMemory, Report};
use tempfile::TempDir;

const GRAPHS: [(&str, &str); 8] = [
    ("bert", "poptorch"),
    ("bart", "poptorch"),
    ("t5", "popart"),
    ("clip", "poptorch"),
    ("hrnet", "poptorch"),
    ("unet_sd", "poptorch"),
    ("keras_resnet50", "tensorflow"),
    ("tf_bert", "tensorflow"),
];

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

/// The first module of Out stands for Out, or for a layer after the layers of the report.
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

#[test]
fn printed_and_pasted_names_stand_for_their_layer() {
    let modes = ["--mode inference", "--mode training --calls 2"];
    let cases: Vec<_> = pairs(&GRAPHS, &modes, 5).collect();
    each(&cases, |&(&(graph, framework), options)| {
        let folder = TempDir::new().expect("a folder");
        let file = graph_file(graph).display().to_string();
        let model = format!("--graph {file} --tiles 4 --framework {framework} {options}");
        let [profile, debug] = generate(folder.path(), &model);
        let analysis = Analysis::read(&profile, &debug).expect("a model");
        let report = analysis.split(&Request::default()).expect("a report");
        check(&analysis, &report, &format!("{graph} {options}"));
    });
}
