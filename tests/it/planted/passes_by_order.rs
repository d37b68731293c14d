//! Backward passes that no name marks: passes, layers and places are as with the names of
//! TensorFlow.
//!
//! By default a quarter of the graphs run, with `SEEDS=0..1` all; `POPLINER_GRAPHS` names a folder of
//! more, which run too.

use std::path::{Path, PathBuf};

use popliner::memory::MemoryModel;
use popliner::model::{LayerOptions, Layering, Model, Pass, Placement, PlacementOptions};
use popliner::witnesses::Witness;
use tempfile::TempDir;

use super::places::drawn::{GRAPHS, graph_in};
use crate::support::models::{generate, share};
use crate::support::{each, graph_file, model_in, more_graphs};

/// The results for a model that are compared.
struct Read {
    model: Model,
    layering: Layering,
    /// The bytes of each position on its fullest tile.
    peaks: Vec<u64>,
}

fn read(graph: &Path, marks: &str) -> Read {
    let mut drawn = graph_in(graph, "tensorflow", "training");
    drawn.options.extend(["--marks".into(), marks.into()]);
    let folder = TempDir::new().expect("a folder");
    synthesize::write(folder.path(), &drawn.options).expect("both files");
    let model = model_in(folder.path());
    let layering = Layering::new(&model, &LayerOptions::default());
    let placement = Placement::full(&model, &layering, &PlacementOptions::default());
    let placement = placement.expect("places");
    let memory = MemoryModel::new(&model, &placement).expect("memory");
    let positions: Vec<_> = (0..memory.layers()).map(|at| at..at + 1).collect();
    let stages = memory.split(&positions).into_iter();
    let peak = |tiles: Vec<popliner::memory::Parts>| tiles.iter().map(|tile| tile.total()).max();
    let peaks = stages.map(|stage| peak(stage.tiles).unwrap_or(0)).collect();
    Read {
        model,
        layering,
        peaks,
    }
}

/// The share of the fullest position by which others may differ: names of sums of gradients differ.
const MOST_APART: f64 = 0.005;

/// Returns how a model without marks differs from the model with marks: in passes, in the layers of
/// the forward pass, or in the bytes of a position.
fn difference(marked: &Read, other: &Read) -> Option<String> {
    assert_eq!(marked.peaks.len(), other.peaks.len());
    let both = marked.model.operations.iter().zip(&other.model.operations);
    let layers = marked.layering.layers.iter().zip(&other.layering.layers);
    let names: Vec<String> = both
        .zip(layers)
        .filter(|((a, b), (layer, found))| {
            let is_same = (a.pass, a.is_backward) == (b.pass, b.is_backward);
            !is_same || a.pass == Pass::Forward && layer != found
        })
        .map(|((a, b), _)| format!("{}: {}, not {}", b.name, b.pass, a.pass))
        .collect();
    let fullest = marked.peaks.iter().copied().max().unwrap_or(1);
    let apart = marked.peaks.iter().zip(&other.peaks);
    let apart = apart.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0) as f64 / fullest as f64;
    let is_wrong = !names.is_empty() || apart > MOST_APART;
    let (count, first, percent) = (names.len(), names.first(), apart * 100.0);
    is_wrong.then(|| format!("{count} operations ({first:?}), {percent:.2} %"))
}

#[test]
fn passes_and_places_need_no_marks() {
    let graphs = GRAPHS.iter().map(|(name, _)| graph_file(name));
    let mut graphs: Vec<PathBuf> = graphs.step_by(share(4)).collect();
    graphs.extend(more_graphs());
    let wrong: Vec<String> = each(&graphs, |graph| {
        let marked = read(graph, "framework");
        let differences = ["none", "jax"].map(|marks| {
            let difference = difference(&marked, &read(graph, marks))?;
            Some(format!("{}, {marks}: {difference}", graph.display()))
        });
        differences.into_iter().flatten().collect::<Vec<_>>()
    })
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Gradients have no names in PopART, so nothing shows a backward pass without marks.
#[test]
fn updates_without_a_backward_pass_are_a_contradiction() {
    let folder = TempDir::new().expect("a folder");
    for more in ["training", "training --optimiser adam-fused", "inference"] {
        let options = "--marks none --layers 4 --tiles 4 --framework popart --random-state --mode";
        generate(folder.path(), &format!("{options} {more}"));
        let found = model_in(folder.path()).contradictions;
        let found = found.iter().find(|found| found.witness == Witness::Passes);
        let is_refused = found.is_some_and(|found| found.refused);
        assert_eq!(is_refused, more != "inference");
    }
}
