//! Plants weights, and the operations that compute with them.

use super::Builder;
use crate::places::Places;
use crate::settings::Framework;
use crate::settings::{Names, Tied};
use crate::templates::Template;
use crate::tensors::{Part, Weight};

impl Builder<'_> {
    pub(super) fn weight_of_template(
        &mut self,
        op: usize,
        part: Part,
        slot: usize,
        template: &Template,
    ) {
        if template.weight == 0 {
            return;
        }
        let lender = match (self.settings.features.tied, part) {
            // The third layer shares the first weight of the first layer.
            (Some(Tied::Layers), Part::Layer(2)) if slot == 0 => {
                let mut weights = self.model.weights.iter();
                weights.position(|weight| weight.part == Part::Layer(0))
            }
            (Some(Tied::Ends), Part::In | Part::Out) => template.may_be_tied.then_some(0),
            _ => None,
        };
        let name = self.weight_name(part, template);
        self.give_weight((op, part, slot), (&name, template.weight), lender);
    }

    pub(super) fn weight_name(&self, part: Part, template: &Template) -> String {
        if let Some(name) = &template.weight_name {
            return name.clone();
        }
        let path = template.path.as_str();
        let owner = path.rsplit_once('/').map_or(path, |(owner, _)| owner);
        let owner = self.name_in(part, owner);
        match self.settings.framework {
            Framework::Poptorch => format!("{}.weight", owner.replace('/', ".")),
            _ => format!("{owner}/weight"),
        }
    }

    /// Makes an operation compute with a weight, and adds the name of the weight to its inputs: the
    /// weight of the lending operation, or a new one, which is called `name` if names are to
    /// identify weights. Returns the number of the weight.
    pub(super) fn give_weight(
        &mut self,
        (op, part, slot): (usize, Part, usize),
        (name, share): (&str, u32),
        lender: Option<usize>,
    ) -> usize {
        let index = lender.unwrap_or(self.model.weights.len());
        if lender.is_none() {
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
        }
        let is_trained = self.is_trained(part);
        let weight = &mut self.model.weights[index];
        if !weight.users.contains(&op) {
            weight.is_trained |= is_trained;
            weight.users.push(op);
            weight.places |= part.places();
        }
        self.model.ops[op].inputs.push(weight.name.clone());
        index
    }

    fn is_trained(&self, part: Part) -> bool {
        let is_frozen = match part {
            Part::In => true,
            Part::Layer(layer) => layer < self.settings.layers / 2,
            Part::Out => false,
        };
        self.settings.training() && !(is_frozen && self.settings.features.frozen)
    }

    /// Returns the name of the tensor of a weight. Exporters number weights that have no name.
    fn tensor_name(&self, index: usize, name: &str) -> String {
        match (self.settings.features.names, self.settings.framework) {
            (Names::Operation | Names::Variable, _) => name.to_owned(),
            (_, Framework::Tensorflow) => format!("Variable_{index}"),
            (_, Framework::Poplar) => format!("weights_{index}"),
            _ => format!("onnx::MatMul_{}", 1000 + 7 * index),
        }
    }
}
