//! A pipelined compilation: its stages, what runs again, and where tensors go.

use super::graph::Graph;
use super::keep::Reruns;
use super::options::PipelineOptions;
use super::route::Route;
use super::stages::Stages;
use super::walk::Pipeline;

pub(super) struct Compilation<'a> {
    pub graph: &'a Graph,
    pub options: &'a PipelineOptions,
    pub stages: Stages,
    pub reruns: Reruns,
    /// By tensor.
    pub routes: Vec<Route<'a>>,
    pub pipeline: Pipeline,
}

impl<'a> Compilation<'a> {
    pub fn new(graph: &'a Graph, cuts: &[u32], options: &'a PipelineOptions) -> Self {
        let stages = Stages::new(graph.positions(), cuts, options.out_on_first);
        let tensors = graph.tensors.iter();
        let routes = tensors.map(|tensor| Route::new(graph, &stages, tensor));
        Self {
            graph,
            options,
            reruns: Reruns::new(graph, &stages, options),
            routes: routes.collect(),
            pipeline: Pipeline {
                schedule: options.schedule,
                stages: stages.count(),
                is_training: graph.backward_start.is_some(),
            },
            stages,
        }
    }
}
