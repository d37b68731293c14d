//! Pipelines whose IPUs have different compilations of one model, each with an available memory
//! proportion of its own.

use super::compilation::Compilation;
use super::ipu::Ipu;
use super::model::{PipelineModel, StageTruth};
use super::options::PipelineOptions;
use super::route::Route;
use crate::liveness::Variable;

/// Returns the true memory of each IPU, as [`PipelineModel::simulate`] does, from compilations of
/// one model, one for each IPU. What is always live on an IPU, and what its operations make, is as
/// in its own compilation. A tensor that comes from another IPU has the bytes of that one on each
/// tile, also where it is stashed.
///
/// # Panics
/// If the compilations are of different models, or fewer than IPUs.
pub fn simulate_mixed(
    models: &[&PipelineModel],
    cuts: &[u32],
    options: &PipelineOptions,
) -> Vec<StageTruth> {
    let ipus = Compilation::new(&models[0].graph, cuts, options).ipus();
    let truths = (0..ipus).map(|number| {
        let own = models[number as usize];
        let compiled = Compilation::new(&own.graph, cuts, options);
        let mut graph = own.graph.clone();
        for (at, route) in Route::all(&compiled).iter().enumerate() {
            let made = &models[compiled.ipu(route.made.0) as usize].graph.tensors[at];
            let tensor = &mut graph.tensors[at];
            assert_eq!(made.name, tensor.name);
            let on_tile = |&(tile, made): &(u32, Variable)| {
                let class = own
                    .plan
                    .classes
                    .on_tile(&own.plan.settings, tensor.group, tile);
                (tile, Variable { class, ..made })
            };
            tensor.on_tiles = made.on_tiles.iter().map(on_tile).collect();
        }
        let compiled = Compilation::new(&graph, cuts, options);
        let routes = Route::all(&compiled);
        own.stage(&Ipu::new(&compiled, &routes, number), options)
    });
    truths.collect()
}
