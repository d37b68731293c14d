//! What a pipeline adds to one stage on one tile, by the rules word by word.

use super::flows::{Flow, Flows, Life, Part, TileFlows};
use super::{PlacedStage, Recompute, Schedule};
use crate::memory::MemoryModel;
use crate::memory::stage::meets;
use crate::model::{EVERYWHERE, Model, VariableGroup};
use std::ops::Range;

/// Bytes on one tile beside those of the layers themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory) struct Additions {
    /// What is made again in the backward pass: of the one layer that needs most,
    /// or what a stage makes again while the originals wait.
    pub(in crate::memory) recomputed: u64,
    /// Copies for the micro-batches that are under way.
    pub(in crate::memory) stash: u64,
    /// What sums up gradients.
    pub(in crate::memory) accumulators: u64,
    /// Tensors that wait for another stage.
    pub(in crate::memory) waiting: u64,
    /// Tensors on their way to another stage.
    pub(in crate::memory) passing: u64,
}

impl Additions {
    /// All that a stage needs beside what it needs at least.
    pub(in crate::memory) fn beside_least(&self, flows: &Flows) -> u64 {
        let recomputed = match flows.recomputes_layers() {
            true => 0,
            false => self.recomputed,
        };
        recomputed + self.stash + self.waiting + self.passing
    }
}

/// A stage in places, Out apart.
struct StagePlaces {
    places: Range<u32>,
    /// Is Out, a pipeline stage of its own, on the same IPU?
    has_out_beside: bool,
}

impl Flows {
    /// What it adds to a stage, with the flows of the tile.
    pub(in crate::memory) fn additions(
        &self,
        memory: &MemoryModel<'_>,
        stage: &PlacedStage,
        tile: &TileFlows,
    ) -> Additions {
        let own = self.places_of(&stage.positions);
        let counts = |set| set == EVERYWHERE || meets(memory.sets.places(set), &stage.positions);
        let accumulators = tile.accumulators.iter().filter(|&&(set, _)| counts(set));
        let least = Additions {
            recomputed: match self.recomputes_layers() {
                true => self.largest_layer(&own, tile),
                false => 0,
            },
            accumulators: accumulators.map(|&(_, bytes)| bytes).sum(),
            ..Additions::default()
        };
        let Some(after) = stage.after else {
            return least;
        };
        let depth = self.depth(&stage.positions, after);
        Additions {
            recomputed: least.recomputed + self.made_again(&own, tile),
            stash: self.stash(&own, depth, tile),
            waiting: self.waiting(&own.places, tile)
                + match own.has_out_beside {
                    true => self.waiting(&(self.places - 1..self.places), tile),
                    false => 0,
                },
            passing: self.sum(&own.places, tile, |_, part| part.passes),
            ..least
        }
    }

    fn places_of(&self, positions: &Range<usize>) -> StagePlaces {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = end - start + 1 == self.places;
        match (self.out_is_first, is_whole) {
            (true, true) => StagePlaces {
                places: 0..self.places,
                has_out_beside: false,
            },
            (out_is_first, _) => StagePlaces {
                places: start..end,
                has_out_beside: out_is_first && start == 0,
            },
        }
    }

    /// The bytes of the flows of which a stage does something.
    fn sum(
        &self,
        places: &Range<u32>,
        tile: &TileFlows,
        is_so: impl Fn(&Flow, Part) -> bool,
    ) -> u64 {
        let met = tile.met.iter().filter(|&&flow| {
            let own = &self.list[flow as usize];
            is_so(own, own.part_of(places))
        });
        met.map(|&flow| tile.bytes(flow)).sum()
    }

    /// What is kept from the forward to the backward pass in the layer that
    /// keeps most, or in In and the first layer together, with what the layer
    /// makes again for others and the gradient that waits for it.
    fn largest_layer(&self, own: &StagePlaces, tile: &TileFlows) -> u64 {
        let of_units = |unit: Range<u32>| {
            self.sum(&unit, tile, |flow, _| {
                let used = |users: &[u32]| users.iter().any(|user| unit.contains(user));
                let ends = flow.forward.first().zip(flow.forward.last());
                match flow.life {
                    Life::OverTurn if !flow.backward.is_empty() => {
                        used(&flow.forward) || used(&flow.backward)
                    }
                    Life::OverTurn | Life::Forward => {
                        ends.is_some_and(|(maker, last)| unit.contains(maker) && *last >= unit.end)
                    }
                    Life::Backward => {
                        used(&flow.backward)
                            && flow.backward.last().is_some_and(|&maker| maker >= unit.end)
                    }
                }
            })
        };
        let single = own.places.clone().map(|place| place..place + 1);
        let first = (own.places.start == 0 && own.places.end > 1).then_some(0..2);
        let out = own.has_out_beside.then_some(self.places - 1..self.places);
        single
            .chain(first)
            .chain(out)
            .map(of_units)
            .max()
            .unwrap_or(0)
    }

    /// What is made again stage by stage while the originals wait to be sent.
    fn made_again(&self, own: &StagePlaces, tile: &TileFlows) -> u64 {
        match self.pipeline.recompute {
            Recompute::Stage if self.is_training => {
                self.sum(&own.places, tile, |_, part| part.leaves && !part.kept)
            }
            _ => 0,
        }
    }

    fn stash(&self, own: &StagePlaces, depth: usize, tile: &TileFlows) -> u64 {
        let recompute = self.pipeline.recompute;
        let copies = self.copies(depth);
        let is_stashed = |_: &Flow, part: Part| part.is_stashed(recompute);
        let stashed = match (copies, self.recomputes_layers()) {
            // Checkpoints are kept as long as the layers that need them wait.
            (0, true) => self.sum(&own.places, tile, |flow, part| {
                is_stashed(flow, part) && part.kept
            }),
            (0, false) => 0,
            _ => copies * self.sum(&own.places, tile, is_stashed),
        };
        stashed + (depth as u64 + 1) * self.shared_with_out(own, tile)
    }

    /// What Out, on the same IPU, takes from the first stage: it waits there for
    /// all stages between (only where the pipeline itself keeps it).
    fn shared_with_out(&self, own: &StagePlaces, tile: &TileFlows) -> u64 {
        if !own.has_out_beside || self.pipeline.schedule != Schedule::Popart {
            return 0;
        }
        let out = self.places - 1;
        self.sum(&own.places, tile, |flow, part| {
            let is_stashed = self.is_training && part.is_stashed(self.pipeline.recompute);
            let is_used = flow.forward.iter().any(|user| own.places.contains(user));
            is_used && flow.life != Life::Backward && flow.forward.contains(&out) && !is_stashed
        })
    }

    pub(super) fn waiting(&self, places: &Range<u32>, tile: &TileFlows) -> u64 {
        if self.gradients_wait() && !self.has_waiting() {
            return self.sum(places, tile, |_, part| part.gradient_in);
        }
        if !self.has_waiting() {
            return 0;
        }
        let leaves = self.sum(places, tile, |_, part| part.leaves);
        if !self.is_backward_first() {
            return leaves.max(self.sum(places, tile, |_, part| part.gradient_in));
        }
        let enters = self.sum(places, tile, |_, part| part.enters);
        let kept = tile.met.iter().filter(|&&flow| {
            let part = self.list[flow as usize].part_of(places);
            part.kept
        });
        let largest = kept.map(|&flow| tile.largest(flow)).max().unwrap_or(0);
        self.sum(places, tile, |_, part| part.gradient_out) + largest.max(enters + leaves)
    }
}

impl Flows {
    /// By flow: does a stage keep it from its forward to its backward pass?
    pub(in crate::memory) fn kept(&self, positions: &Range<usize>) -> Vec<bool> {
        let own = self.places_of(positions);
        let kept = self.list.iter().map(|flow| flow.part_of(&own.places).kept);
        kept.collect()
    }

    /// Does a stage keep copies of a variable?
    pub(in crate::memory) fn is_stashed(
        &self,
        model: &Model,
        positions: &Range<usize>,
        item: &VariableGroup,
    ) -> bool {
        let own = self.places_of(positions);
        self.of(model, item).is_some_and(|flow| {
            let part = self.list[flow as usize].part_of(&own.places);
            part.is_stashed(self.pipeline.recompute)
        })
    }
}
