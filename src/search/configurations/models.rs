//! The models that configurations are found with: one for each pipeline, and where layers are
//! chosen, those that tell between which bytes and times a choice is.

use crate::memory::{MemoryModel, Pipeline, Recompute};
use crate::search::SearchError;
use crate::search::alternatives::OtherPipeline;
use crate::search::chosen::together::{CostsByChoice, open};

/// The models of some pipelines, and those that tell of what is chosen.
pub(super) struct Others<'a> {
    /// Those of pipelines that do not choose come first.
    pub(super) models: Vec<OtherPipeline<'a>>,
    /// How many of these there are.
    pub(super) plain: usize,
    /// Those that choose.
    pub(super) chosen: Vec<Choosing<'a>>,
}

/// A pipeline that chooses, and which of the other models has nothing recomputed, which has
/// every layer, and which has everything open.
pub(super) struct Choosing<'a> {
    pub(super) memory: MemoryModel<'a>,
    pub(super) none: usize,
    layer: usize,
    open: usize,
}

impl<'a> Others<'a> {
    pub(super) fn new(
        memory: &MemoryModel<'a>,
        pipelines: &[Pipeline],
        limit: u64,
    ) -> Result<Self, SearchError> {
        let is_plain = |pipeline: &&Pipeline| pipeline.recompute != Recompute::Chosen;
        let plain = pipelines.iter().filter(is_plain);
        let mut others = Self {
            models: Vec::new(),
            plain: 0,
            chosen: Vec::new(),
        };
        for &pipeline in plain {
            let other = OtherPipeline::new(others.like(pipeline, memory), pipeline, limit)?;
            others.models.push(other);
        }
        others.plain = others.models.len();
        for &pipeline in pipelines.iter().filter(|pipeline| !is_plain(pipeline)) {
            let memory = others.like(pipeline, memory).in_pipeline(pipeline)?;
            let mut with = |recompute| {
                let pipeline = Pipeline {
                    recompute,
                    ..pipeline
                };
                let mut known = others.models.iter();
                if let Some(at) = known.position(|other| other.pipeline() == pipeline) {
                    return Ok(at);
                }
                let other = match recompute {
                    Recompute::Chosen => OtherPipeline::of(open(&memory)?, limit),
                    _ => OtherPipeline::new(&memory, pipeline, limit)?,
                };
                others.models.push(other);
                Ok::<_, SearchError>(others.models.len() - 1)
            };
            let (none, layer) = (with(Recompute::None)?, with(Recompute::Layer)?);
            let open = with(Recompute::Chosen)?;
            others.chosen.push(Choosing {
                memory,
                none,
                layer,
                open,
            });
        }
        Ok(others)
    }

    /// The model of another pipeline in which variables are live as in this one, if there is any, so
    /// that it is not found out again: where layers are chosen, each is recomputed at first.
    fn like<'m>(&'m self, pipeline: Pipeline, memory: &'m MemoryModel<'a>) -> &'m MemoryModel<'a> {
        let again = [Recompute::Layer, Recompute::Chosen].contains(&pipeline.recompute);
        let mut models = self.models.iter().filter(|_| again);
        let known = models.find(|other| other.pipeline().recompute == Recompute::Layer);
        known.map_or(memory, |other| other.wanted().0)
    }

    /// The costs that tell of a pipeline that chooses.
    pub(super) fn costs(&self, choosing: &Choosing<'a>) -> CostsByChoice<'_> {
        let of = |number: usize| self.models[number].costs();
        CostsByChoice {
            none: of(choosing.none),
            layer: of(choosing.layer),
            open: of(choosing.open),
        }
    }
}
