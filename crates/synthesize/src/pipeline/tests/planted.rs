//! Planted models, held against what they need on one IPU.

use std::ops::Range;
use std::path::Path;

use super::super::graph::Graph;
use super::super::options::{PipelineOptions, Recompute, Schedule};
use super::super::{PipelineModel, PipelineTruth};
use super::SCHEDULES;
use crate::place_truth::PlaceTruth;
use crate::places::Places;

pub(super) fn models(mode: &str) -> Vec<PipelineModel> {
    let frameworks = ["popart", "poptorch", "tensorflow", "poplar"];
    let rest = [
        "--classes 300 --masks --gaps 4 --compiler-made 300",
        "--outlined once --optimiser adam-each --gradient-norm --constants",
        "--outlined per-call --outline-backward --head-reads-layer --classes 200",
        "--tied ends --gaps 9 --optimiser adam-fused",
    ];
    let models = frameworks
        .iter()
        .zip(rest)
        .zip(1..)
        .map(|((framework, rest), seed)| {
            let options = format!(
                "--framework {framework} --mode {mode} --layers 4 --tiles 8 \
             --seed {seed} --vars-per-layer-tile 30 {rest}"
            );
            let rest = match mode {
                "training" => options,
                _ => options
                    .replace("--outline-backward", "")
                    .replace("--gradient-norm", ""),
            };
            model(&rest)
        });
    models.collect()
}

fn model(options: &str) -> PipelineModel {
    let options = options.split_whitespace();
    let settings = crate::parsed(Path::new("unused"), options)
        .expect("options")
        .settle()
        .expect("settings");
    PipelineModel::new(&crate::plan::build(settings))
}

fn alone(truth: PipelineTruth) -> super::super::StageTruth {
    let [stage] = <[_; 1]>::try_from(truth.stages).expect("one IPU");
    stage
}

fn all(places: &PlaceTruth) -> Vec<u64> {
    places.bytes(Places::positions(places.layers(), 0..=places.layers() + 1))
}

#[test]
fn one_stage_of_inference_needs_what_all_places_need() {
    for model in models("inference") {
        for schedule in SCHEDULES {
            let options = PipelineOptions::new(schedule, Recompute::Layer);
            let stage = alone(model.simulate(&[], &options));
            assert_eq!(stage.tiles, all(model.places()));
            assert!(
                stage
                    .accumulators
                    .iter()
                    .chain(&stage.stash)
                    .all(|&bytes| bytes == 0)
            );
        }
    }
}

/// Gradients are gone when the passes end, and are not live beside what updates make.
#[test]
fn one_stage_of_training_adds_accumulators() {
    for model in models("training") {
        for schedule in SCHEDULES {
            for recompute in [Recompute::None, Recompute::Stage] {
                let options = PipelineOptions::new(schedule, recompute);
                let stage = alone(model.simulate(&[], &options));
                let positions = 0..=model.places().layers() + 1;
                let places = Places::positions(model.places().layers(), positions);
                for (tile, bytes) in stage.tiles.iter().enumerate() {
                    let gradients = model.graph.updates.gradients[tile].values();
                    let all = model.places().explained_on(tile, places) + stage.accumulators[tile];
                    let range = all - gradients.sum::<u64>()..=all;
                    let bytes = bytes - stage.gaps[tile];
                    assert!(range.contains(&bytes), "{bytes} in {range:?}: {options:?}");
                }
                assert_eq!(stage.slots, 0);
                assert!(stage.accumulators.iter().all(|&bytes| bytes > 0));
            }
        }
    }
}

/// The stages of one micro-batch at a time, beside what their places need on one
/// IPU: the least and the most, in thousandths.
fn beside_places(mode: &str, all_steps: bool) -> (u64, u64) {
    let options = PipelineOptions {
        all_steps,
        ..PipelineOptions::new(Schedule::Sequential, Recompute::None)
    };
    let mut shares = Vec::new();
    for model in models(mode) {
        let truth = model.simulate(&[2, 4], &options);
        for (stage, range) in truth.stages.iter().zip([0..=1, 2..=3, 4..=5]) {
            let places = model.places().bytes(Places::positions(4, range));
            let tiles = stage.tiles.iter().zip(&stage.accumulators);
            let rest = tiles.map(|(all, accumulators)| all - accumulators);
            shares.extend(rest.zip(places).map(|(rest, places)| 1000 * rest / places));
        }
    }
    let least = shares.iter().min().copied().unwrap_or(0);
    (least, shares.into_iter().max().unwrap_or(0))
}

/// An IPU gives up what it received after its own last use of it, and not only
/// after the last one of all. Bodies that other layers call too run in its own
/// steps alone, when less of its gradients waits for the update.
#[test]
fn sequential_stages_need_no_more_than_their_places() {
    for (mode, least) in [("inference", 970), ("training", 820)] {
        let (from, to) = beside_places(mode, false);
        assert!(from >= least && to <= 1000, "{mode}: {from}..{to}");
    }
}

/// Tensors that wait for a copy meet bodies that are listed once at the calls of other
/// layers, others at the calls of its own IPU alone.
#[test]
fn going_through_all_steps_is_nearly_what_places_need() {
    for (mode, least) in [("inference", 970), ("training", 820)] {
        let (from, to) = beside_places(mode, true);
        assert!(from >= least && to <= 1020, "{mode}: {from}..{to}");
    }
}

/// Where nothing is recomputed, a ring has what the backward pass of its stage
/// needs of the forward pass, as often as the walk counts.
#[test]
fn stages_stash_what_their_backward_pass_needs() {
    for model in models("training") {
        for schedule in SCHEDULES {
            let options = PipelineOptions::new(schedule, Recompute::None);
            let truth = model.simulate(&[2, 4], &options);
            for (stage, found) in truth.stages.iter().enumerate() {
                let positions = 2 * stage as u32..2 * stage as u32 + 2;
                let once = needed_backward(&model.graph, positions);
                let times = u64::from(found.slots);
                let stash: Vec<u64> = once.iter().map(|bytes| times * bytes).collect();
                assert_eq!(found.stash, stash, "{options:?}, stage {stage}");
            }
        }
    }
}

/// By tile: bytes of tensors that are made before the backward pass and used in it by
/// these positions.
fn needed_backward(graph: &Graph, positions: Range<u32>) -> Vec<u64> {
    let backward_start = graph.backward_start.expect("training");
    let mut bytes = vec![0; graph.tiles as usize];
    for tensor in &graph.tensors {
        let mut uses = tensor.uses.iter();
        let is_forward = uses.clone().any(|usage| usage.steps.0 < backward_start);
        let is_needed = uses
            .any(|usage| usage.steps.0 >= backward_start && positions.contains(&usage.position));
        if is_forward && is_needed {
            for on_tile in &tensor.on_tiles {
                bytes[on_tile.tile as usize] += on_tile.bytes;
            }
        }
    }
    bytes
}

#[test]
fn early_restores_need_no_less_than_late_ones() {
    for model in models("training") {
        for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
            let late = PipelineOptions::new(Schedule::Popart, recompute);
            let early = PipelineOptions {
                early_restore: true,
                ..late
            };
            let [late, early] = [late, early].map(|options| model.simulate(&[1, 3, 4], &options));
            for (late, early) in late.stages.iter().zip(&early.stages) {
                assert_eq!(late.stash, early.stash);
                let mut tiles = late.tiles.iter().zip(&early.tiles);
                assert!(tiles.all(|(late, early)| late <= early));
            }
        }
    }
}

/// All combinations of what can be asked for.
fn all_options() -> Vec<PipelineOptions> {
    let recomputes = [Recompute::None, Recompute::Stage, Recompute::Layer];
    let kinds = SCHEDULES
        .iter()
        .flat_map(|&schedule| recomputes.map(|recompute| (schedule, recompute)));
    let options = kinds.flat_map(|(schedule, recompute)| {
        (0..32u32).map(move |bits| PipelineOptions {
            float_accumulators: bits & 1 > 0,
            early_restore: bits & 2 > 0,
            early_fifo: bits & 2 > 0,
            out_on_first: bits & 4 > 0,
            keep_buffers: bits & 8 > 0,
            all_steps: bits & 16 > 0,
            ..PipelineOptions::new(schedule, recompute)
        })
    });
    options.collect()
}

/// An IPU has in any case its rings and accumulators, and the always-live bytes
/// of its places. That no copy is needed after the next one is made is asserted
/// on the way.
#[test]
fn all_options_are_possible() {
    let inference = models("inference").into_iter().take(1);
    for model in models("training").into_iter().chain(inference) {
        let cuts = [&[1u32, 3][..], &[2, 3, 4, 5], &[4]];
        for (options, cuts) in all_options().iter().zip(cuts.iter().cycle()) {
            let truth = model.simulate(cuts, options);
            let ipus = cuts.iter().filter(|&&cut| !options.out_on_first || cut < 5);
            assert_eq!(truth.stages.len(), ipus.count() + 1);
            for stage in &truth.stages {
                let added = stage.stash.iter().zip(&stage.accumulators);
                let mut tiles = stage.tiles.iter().zip(added);
                assert!(tiles.all(|(all, (stash, accumulators))| *all > stash + accumulators));
            }
        }
    }
}
