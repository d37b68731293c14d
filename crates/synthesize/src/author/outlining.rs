//! Plants outlined bodies: the operations that several layers have in common are in one function,
//! which each layer calls.

use super::Builder;
use crate::model::{Call, Op, Phase, Shape};
use crate::places::Places;
use crate::templates::{Kind, Template};
use crate::tensors::Part;

impl Builder<'_> {
    /// Adds the call of a layer. Every other call has inputs whose names identify no layer, so that
    /// its layer follows from the operation after it.
    pub(super) fn call(&mut self, layer: u32) {
        if self.model.functions.is_empty() {
            self.model.functions.push(Vec::new());
        }
        let input = match layer % 2 {
            0 => self.last_output(),
            _ => format!("graph_input_{}", self.model.calls.len()),
        };
        let op = self.call_op(0, layer, Vec::new());
        let call = self.run_next(Op {
            inputs: vec![input],
            activation: self.outlined_share(),
            ..op
        });
        for (slot, template) in self.templates.layer.iter().enumerate() {
            if template.outlined {
                let user = (call, Part::Layer(layer), slot);
                self.weight_of_template(user, template);
            }
        }
        // The call does not name the weights that a layer hands to the body.
        self.model.ops[call].inputs.truncate(1);
    }

    /// Adds the call of the gradients of the operations that the forward pass of a layer outlines.
    /// Every other call has inputs whose names identify no layer.
    pub(super) fn call_backward(&mut self, forward: usize) -> usize {
        let layer = self.model.ops[forward].made_for.unwrap_or(0);
        if layer + 1 == self.settings.layers {
            self.model.functions.push(Vec::new());
        }
        let mut inputs = vec![format!("Gradient___{}", self.last_output())];
        if layer.is_multiple_of(2) {
            let path = &self.templates.layer[0].path;
            inputs.push(format!("{}:0", self.templates.name(layer, path)));
        }
        let op = self.call_op(self.model.functions.len() - 1, layer, Vec::new());
        let call = self.run(Op {
            name: match self.settings.is_popart() {
                true => String::new(),
                false => self.templates.named("gradient", &op.name),
            },
            phase: Phase::Backward,
            outputs: vec![format!("Gradient___{}", op.outputs[0])],
            inputs,
            activation: self.outlined_share(),
            partner: Some(forward),
            reads: self.gradients.made[forward].clone(),
            ..op
        });
        let weights = self.model.weights.iter_mut();
        for weight in weights.filter(|weight| weight.is_trained_for(forward)) {
            weight.gradients.push(call);
        }
        call
    }

    fn call_op(&mut self, function: usize, layer: u32, stood_here: Vec<usize>) -> Op {
        let site = self.model.calls.len();
        self.model.calls.push(Call {
            function,
            layer,
            stood_here,
        });
        let is_anonymous = self.settings.features.anonymous_calls;
        let name = match (self.settings.is_popart(), is_anonymous) {
            (true, _) => String::new(),
            (_, true) => format!("call_{site}"),
            _ => self.templates.name(layer, &format!("call_{function}")),
        };
        Op {
            op_type: "Call".into(),
            made_for: Some(layer),
            places: Places::layer(layer),
            shapes: vec![Shape::Exchanged, Shape::Copy],
            stages: 2,
            outputs: vec![format!("call_{site}:0")],
            call: Some(site),
            ..self.outside(Phase::Forward, &name, Kind::Call, 0)
        }
    }

    /// Returns the share of activations in outlined operations. Activations stay with the call
    /// sites, since the body works on copies.
    fn outlined_share(&self) -> u32 {
        let templates = self.templates.layer.iter();
        let outlined = templates.filter(|template| template.outlined);
        outlined.map(|template| template.activation).sum()
    }

    /// Adds an operation to the body, or returns the one that is there. The layer of the first call
    /// names the body; later layers share it.
    pub(super) fn outlined_op(&mut self, layer: u32, slot: usize, template: &Template) -> usize {
        if layer > 0 {
            return self.model.forward[0][slot];
        }
        let mut op = self.op_of(Part::Layer(layer), template);
        op.function = Some(0);
        op.places = Places::NONE;
        if template.weight > 0 {
            let weight = self.weight_name(Part::Layer(layer), template);
            op.inputs.push(weight);
        }
        let index = self.push(op);
        match (self.settings.nested, template.kind) {
            (true, Kind::MatMul | Kind::Conv) => self.outline_again(index),
            _ => self.model.functions[0].push(index),
        }
        index
    }

    /// Moves an operation of the body into a function of its own. The next equal operation only
    /// calls that function; its own name remains in the contexts of the call.
    fn outline_again(&mut self, index: usize) {
        if self.model.functions.len() == 1 {
            self.model.functions.push(vec![index]);
            self.model.ops[index].function = Some(1);
        } else {
            self.model.ops[index].function = None;
            self.model.ops[index].stages = 0;
        }
        let mut call = self.call_op(1, 0, vec![index]);
        call.inputs = vec![format!("subgraph_0/in_{}", self.model.calls.len())];
        call.function = Some(0);
        call.places = Places::NONE;
        let call = self.push(call);
        self.model.functions[0].push(call);
    }
}
