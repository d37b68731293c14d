//! Estimates the memory and cycles of a micro-batch of another size than the profile's
//! (docs/model.md, "Another micro-batch").

use super::MemoryModel;
use crate::model::{CyclesByLayer, TensorKind, VariableUse};

/// The sizes of two micro-batches: the one that the profile was recorded with, and the one to
/// estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroBatchScale {
    /// Samples in the recorded micro-batch; at least 1.
    pub recorded: u64,
    /// Samples in the micro-batch to estimate.
    pub wanted: u64,
}

impl MicroBatchScale {
    /// Returns `amount`, which is proportional to the number of samples, converted from the
    /// recorded micro-batch to the one to estimate. It is rounded up, and at most `u64::MAX`.
    fn of(self, amount: u64) -> u64 {
        let product = u128::from(amount) * u128::from(self.wanted);
        u64::try_from(product.div_ceil(self.recorded.max(1).into())).unwrap_or(u64::MAX)
    }

    /// Returns `cycles`, recorded with one micro-batch, as estimated for the other: the cycles of
    /// layers in the forward and backward pass are scaled, those of weight updates stay unchanged.
    pub(crate) fn cycles(self, mut cycles: CyclesByLayer) -> CyclesByLayer {
        let layers = cycles.passes_by_layer.iter_mut();
        for passes in layers.chain([&mut cycles.out_in_first]) {
            for cycles in [
                &mut passes.forward,
                &mut passes.backward,
                &mut passes.recomputed,
            ] {
                *cycles = self.of(*cycles);
            }
        }
        let totals = cycles.passes_by_layer.iter().map(|passes| passes.total());
        let exchange = cycles.exchange_by_layer.iter().zip(totals.clone());
        let exchange = exchange.map(|(&exchange, total)| self.of(exchange).min(total));
        cycles.exchange_by_layer = exchange.collect();
        cycles.by_layer = totals.collect();
        cycles
    }
}

impl<'a> MemoryModel<'a> {
    /// Returns the model with estimated bytes of its variables for another micro-batch. Always-live
    /// variables (weights, optimizer state, accumulators), variables that only updates or no
    /// operation uses, and code stay unchanged; all other variables scale with the number of
    /// samples.
    pub fn at_micro_batch(&self, scale: MicroBatchScale) -> Self {
        let model = self.model;
        let others = model.groups_with(|operation| !operation.is_update);
        let of_updates = model.sets_of_only(|group| !others[group]);
        let stays = |variable: &VariableUse| {
            let kind = model.label_of(variable.set).kind;
            model.classes.lasts(variable.class)
                || [TensorKind::Variable, TensorKind::Constant].contains(&kind)
                || of_updates[variable.set as usize]
        };
        let stays: Vec<bool> = model.variables.uses().iter().map(stays).collect();
        let bytes = |number: u32, bytes: u32| match stays[number as usize] {
            true => bytes,
            false => u32::try_from(scale.of(bytes.into())).unwrap_or(u32::MAX),
        };
        Self {
            uses: self.uses.with_data(model.variables.with_bytes(bytes)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_and_never_overflow() {
        let scale = |recorded, wanted| MicroBatchScale { recorded, wanted };
        assert_eq!(scale(8, 8).of(7), 7);
        assert_eq!(scale(8, 12).of(7), 11);
        assert_eq!(scale(8, 1).of(7), 1);
        assert_eq!(scale(1, u64::MAX).of(3), u64::MAX);
    }
}
