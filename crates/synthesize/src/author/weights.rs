//! Weights, and who computes with them.

use super::Builder;
use crate::features::Names;
use crate::places::Places;
use crate::settings::Framework;
use crate::tensors::{Part, Weight};

impl Builder<'_> {
    /// Plants a weight of `op`; `name` is what it is called where names tell
    /// something. Its number stands in [`Builder::weight_of`].
    pub(super) fn plant_weight(
        &mut self,
        op: usize,
        part: Part,
        slot: usize,
        share: u32,
        name: &str,
    ) -> usize {
        let index = self.model.weights.len();
        self.model.weights.push(Weight {
            name: self.tensor_name(index, name),
            part,
            slot,
            share,
            places: Places::NONE,
            users: Vec::new(),
            gradients: Vec::new(),
            is_trained: false,
            bytes: None,
        });
        self.use_weight(index, op, part, slot);
        index
    }

    /// Lets `op`, in a part of the model, compute with a weight.
    pub(super) fn use_weight(&mut self, weight: usize, op: usize, part: Part, slot: usize) {
        let is_trained = self.is_trained(part);
        let planted = &mut self.model.weights[weight];
        planted.is_trained |= is_trained;
        planted.users.push(op);
        planted.places |= part.places();
        self.weight_of.insert((part, slot), weight);
    }

    /// Whether the weights of a part of the model are trained.
    fn is_trained(&self, part: Part) -> bool {
        let is_frozen = match part {
            Part::In => true,
            Part::Layer(layer) => layer < self.settings.layers / 2,
            Part::Out => false,
        };
        self.settings.training() && !(is_frozen && self.settings.features.frozen)
    }

    /// Exporters number weights that have no name.
    fn tensor_name(&self, index: usize, name: &str) -> String {
        match (self.settings.features.names, self.framework()) {
            (Names::Operation | Names::Variable, _) => name.to_owned(),
            (_, Framework::Tensorflow) => format!("Variable_{index}"),
            (_, Framework::Poplar) => format!("weights_{index}"),
            _ => format!("onnx::MatMul_{}", 1000 + 7 * index),
        }
    }
}
