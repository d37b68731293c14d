//! Sums up the cycles of layers by pass. The cycles of an operation are attributed to the positions
//! where it runs. An operation that runs after the backward pass and works on several layers, such
//! as a norm of all gradients, counts as part of the update (docs/model.md, "Time").

use super::cycles::{CycleSource, OperationCycles, WorkCycles, share};
use super::{Model, Pass, PlaceSet, Placement};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Cycles of some operations, divided by the pass of a training step in which they run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassCycles {
    /// Cycles of the forward pass; of all operations in inference.
    pub forward: u64,
    /// Cycles of the backward pass, without recomputation.
    pub backward: u64,
    /// Cycles of forward operations that run again for the backward pass.
    pub recomputed: u64,
    /// Cycles of the weight update.
    pub update: u64,
}

impl PassCycles {
    /// Returns the sum over all passes; saturates at `u64::MAX`.
    pub fn total(self) -> u64 {
        [self.forward, self.backward, self.recomputed, self.update]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Cycles of one run of the program, for each position (In, each layer, Out). If several runs were
/// measured, each number is the mean of the runs, rounded up.
#[derive(Debug, Clone)]
pub struct CyclesByLayer {
    /// Whether the cycles in all fields are executed or estimated.
    pub source: CycleSource,
    /// One entry per position (In, each layer, Out): its cycles in all passes.
    pub by_layer: Vec<u64>,
    /// One entry per position (In, each layer, Out): the part of its cycles in `by_layer` that
    /// exchanges take.
    pub exchange_by_layer: Vec<u64>,
    /// One entry per position (In, each layer, Out): its cycles broken down by pass. The sum over
    /// all passes is the position's entry in `by_layer`.
    pub passes_by_layer: Vec<PassCycles>,
    /// The part of the first position's cycles that belongs to Out (the operations after the last
    /// layer) if Out runs on the first IPU; otherwise 0.
    pub out_in_first: PassCycles,
    /// Cycles that belong to no position: the cycles of operations that are in every stage or in
    /// none, and of compute sets and exchanges that belong to no operation.
    pub unplaced: u64,
    /// The part of `unplaced` that exchanges take; compute sets take the rest.
    pub unplaced_exchange: u64,
    /// Executed cycles of stream copies, syncs and control flow, which belong to no operation.
    pub other: u64,
    /// Clock frequency of a tile in Hz; `None` if the profile does not record it.
    pub clock_hertz: Option<u64>,
}

impl Model {
    /// Sums up the cycles of each position (In, each layer, Out). `placement` tells the positions
    /// of each operation. Returns `None` if the profile has no cycles ([`NoCycles`]).
    ///
    /// If an operation is at several positions, its cycles are divided. The cycles of programs that
    /// use only variables of some of these positions go to those positions. All other cycles are
    /// divided equally among all positions of the operation (docs/model.md, "Time").
    pub fn layer_cycles(&self, placement: &Placement) -> Option<CyclesByLayer> {
        let cycles = self.cycles.as_ref()?;
        let mut sums = LayerSums {
            by_layer: vec![PassSums::default(); placement.positions.len()],
            out: PassSums::default(),
            unplaced: PassSums::default(),
        };
        let end = self.end_of_passes(cycles, placement);
        for (number, &all) in cycles.by_operation.iter().enumerate() {
            let (operation, place) = (&self.operations[number], placement.operations[number]);
            let is_after = operation
                .window
                .zip(end)
                .is_some_and(|((start, _), end)| start > end);
            let pass = match operation.pass {
                // A backward operation that runs after the passes of all layers, and has no place
                // by its own data, works on all gradients before the weights are updated.
                Pass::Backward if is_after && !place.reason.is_own() => Pass::Update,
                pass => pass,
            };
            let of = |counted| pass_sums(pass, counted, self.recording.recomputes);
            let mut left = all;
            for (places, counted) in self.of_clusters(cycles, placement, number) {
                left = left.without(counted);
                sums.add(placement, places, of(counted));
            }
            sums.add(placement, place.places, of(left));
        }
        Some(sums.means(cycles, self.made.clock_hertz.filter(|&clock| clock > 0)))
    }

    /// Returns the last step of all backward operations that have cycles and whose place follows
    /// from their own data ([`Reason::is_own`](super::placement::Reason)); `None` if there are no
    /// such operations.
    fn end_of_passes(&self, cycles: &OperationCycles, placement: &Placement) -> Option<u32> {
        let placed = self
            .operations
            .iter()
            .enumerate()
            .filter(|&(number, operation)| {
                operation.pass == Pass::Backward
                    && cycles.by_operation[number].all > 0
                    && placement.operations[number].reason.is_own()
            });
        placed.filter_map(|(_, own)| Some(own.window?.1)).max()
    }

    /// Iterates over the clusters of `operation` (its programs, grouped by the use sets of their
    /// variables). Each item has the places and the cycles of a cluster; clusters without places
    /// are left out. There are no items unless the operation is at several places.
    fn of_clusters<'a>(
        &self,
        cycles: &'a OperationCycles,
        placement: &'a Placement,
        operation: usize,
    ) -> impl Iterator<Item = (PlaceSet, WorkCycles)> + 'a {
        let group = self.operations[operation].group as usize;
        let reaches = placement.places_of(operation).len() > 1;
        let places = placement.of_cluster[group].as_slice();
        let number = operation as u32;
        cycles
            .by_cluster
            .range((number, 0)..=(number, u32::MAX))
            .filter(move |_| reaches)
            .filter_map(|(&(_, cluster), &own)| Some((*places.get(cluster as usize)?, own)))
            .filter(|(places, _)| !placement.sets.places(*places).is_empty())
    }
}

/// Cumulative cycles: items 0 to 3 have the cycles of the first one, two, three and all passes, in
/// the order of the fields of [`PassCycles`]. Item 4 has the cycles of exchanges in all passes. If
/// each cumulative number is divided and rounded up, the numbers stay ascending, and the
/// differences between neighbours add up to the rounded total.
type PassSums = [u64; 5];

/// Returns the cycles `counted` of an operation with the pass `pass`, as [`PassSums`]. If
/// the operation runs in both the forward and the backward pass, its cycles before the start of the
/// backward pass are forward cycles. Its later cycles are recomputed cycles if `is_recomputed` (the
/// profile was recorded with recomputation), and backward cycles otherwise.
fn pass_sums(pass: Pass, counted: WorkCycles, is_recomputed: bool) -> PassSums {
    let all = counted.all;
    let earlier = all.saturating_sub(counted.later);
    let [forward, backward, recomputed] = match pass {
        Pass::Forward => [all; 3],
        Pass::Backward => [0, all, all],
        Pass::Update => [0; 3],
        Pass::Both if is_recomputed => [earlier, earlier, all],
        Pass::Both => [earlier, all, all],
    };
    [forward, backward, recomputed, all, counted.exchange]
}

/// Cycles summed over all runs of the program: one entry per position (In, each layer, Out) in
/// `by_layer`, and the cycles of operations without a position in `unplaced`.
struct LayerSums {
    by_layer: Vec<PassSums>,
    /// The part of the cycles of position 0 that belongs to Out, if Out runs on the first IPU.
    out: PassSums,
    unplaced: PassSums,
}

impl LayerSums {
    /// Adds `sums` to the positions of the place set `set` in equal parts, or to `unplaced` if the
    /// set has no places.
    fn add(&mut self, placement: &Placement, set: PlaceSet, sums: PassSums) {
        let places = placement.sets.places(set);
        if places.is_empty() {
            add_all(&mut self.unplaced, sums);
        }
        let count = places.len() as u64;
        for (&place, number) in places.iter().zip(0..) {
            // If the cycles do not divide evenly, each of the first places gets one cycle more.
            let parts = sums.map(|sum| sum / count + u64::from(number < sum % count));
            add_all(&mut self.by_layer[place as usize], parts);
            if place == 0 {
                let (out_part, all) = placement.out_in_first(set);
                let of_out = parts.map(|cycles| share(cycles, out_part, all));
                add_all(&mut self.out, of_out);
            }
        }
    }

    /// Divides all sums by the number of executed runs, rounding up, and adds the cycles from
    /// `cycles` that belong to no operation. Rounding never makes a part of a sum, such as one
    /// pass, larger than the sum.
    fn means(self, cycles: &OperationCycles, clock_hertz: Option<u64>) -> CyclesByLayer {
        let runs = match cycles.source {
            CycleSource::Executed { runs } => runs.max(1),
            CycleSource::Estimated => 1,
        };
        let mean = |sum: u64| sum.div_ceil(runs);
        let passes = |sums: &PassSums| {
            let [forward, backward, recomputed, update, _] = sums.map(mean);
            PassCycles {
                forward,
                backward: backward - forward,
                recomputed: recomputed - backward,
                update: update - recomputed,
            }
        };
        let layers = self.by_layer.iter();
        let [.., unplaced, unplaced_exchange] = self.unplaced;
        let unexplained = cycles.unexplained;
        CyclesByLayer {
            source: cycles.source,
            by_layer: layers.clone().map(|sums| mean(sums[3])).collect(),
            exchange_by_layer: layers.clone().map(|sums| mean(sums[4])).collect(),
            passes_by_layer: layers.map(passes).collect(),
            out_in_first: passes(&self.out),
            unplaced: mean(unplaced.saturating_add(unexplained.all)),
            unplaced_exchange: mean(unplaced_exchange.saturating_add(unexplained.exchange)),
            other: mean(cycles.other),
            clock_hertz,
        }
    }
}

fn add_all(sums: &mut PassSums, more: PassSums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// Error: cycles are needed, but the profile has neither executed cycles nor the compiler's
/// estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the profile has no cycles: neither executed steps nor the compiler's estimates; record it \
     again with \
     POPLAR_ENGINE_OPTIONS='{{\"autoReport.all\":\"true\",\"profiler.includeCycleEstimates\":\"true\"}}' \
     for estimates, or run the model with the engine option autoReport.outputExecutionProfile set \
     to true for measured cycles"
)]
pub struct NoCycles;
