//! The memory of the stages of a split.

use super::SearchRequest;
use crate::memory::RangeCosts;
use crate::report::{Layer, Memory, Split, Stage, layer_name, layer_names};
use crate::run::subject::Subject;
use crate::solve::greedy;
use std::ops::Range;

impl Subject<'_> {
    /// The stages of the original's search, with a word on what it settled on.
    pub(super) fn greedy_stages(
        &self,
        costs: &RangeCosts,
        max_stages: usize,
        limit: u64,
    ) -> Vec<Range<usize>> {
        let found = greedy(costs, limit, max_stages);
        self.messages.summary(format_args!(
            "greedy: {} at {} of the memory of a tile and at least {} layers in a stage",
            if found.fits { "settled" } else { "gave up" },
            found.proportion,
            found.min_layers
        ));
        found.stages
    }

    /// The split with these stages (positions of the layer order).
    pub(super) fn judged(
        &self,
        request: &SearchRequest,
        stages: &[Range<usize>],
        (costs, max_stages): (&RangeCosts, usize),
        is_given: bool,
        broken: &[String],
    ) -> Split {
        let names = &self.placement.positions;
        let stages = stages.iter().zip(self.memory.stages(stages));
        let stages: Vec<Stage> = stages
            .map(|(range, memory)| Stage::new(names, range, memory))
            .collect();
        let placed = stages.last().map_or(0, |last| last.positions.end);
        let mut split = Split {
            pseudo_layers: names.pseudo_layers(),
            limit: request.limits().highest(),
            limits: request.limits().by_ipu().unwrap_or_default().to_vec(),
            broken: broken.to_vec(),
            is_given,
            max_stages,
            stages,
            unplaced: layer_names(names, placed..names.len()),
            too_large: Vec::new(),
        };
        if !split.fits() {
            split.too_large = self.too_large(costs, split.limit);
        }
        split
    }

    /// The positions that are over the limit by themselves, as `costs` say:
    /// few or none, so only they are weighed in full.
    fn too_large(&self, costs: &RangeCosts, limit: u64) -> Vec<Layer> {
        let names = &self.placement.positions;
        let alone = (0..names.len()).map(|layer| layer..layer + 1);
        let is_over = |range: &Range<usize>| {
            let peak = costs.peak(range.clone());
            peak.is_none_or(|peak| peak > limit)
        };
        let ranges: Vec<_> = alone.filter(is_over).collect();
        let weighed = ranges.iter().zip(self.memory.stages(&ranges));
        weighed
            .map(|(range, stage)| Layer {
                name: layer_name(names, range.start),
                mem: Memory::of(&stage),
                max_tile: stage.max_tile(),
            })
            .collect()
    }
}
