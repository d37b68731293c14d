//! Outlined bodies: what several layers have in common stands once, in a
//! function, and each layer calls it.

use super::model::{Builder, Call, Function, Op, Phase};
use super::templates::{self, Kind, Template};

impl Builder<'_> {
    /// The call site of a layer. Every other one has inputs that name no layer,
    /// so that its layer follows from the operation after it.
    pub(super) fn call(&mut self, layer: u32) {
        if self.model.functions.is_empty() {
            self.model.functions.push(Function::default());
        }
        let input = match layer % 2 {
            0 => self.last_output(),
            _ => format!("graph_input_{}", self.model.calls.len()),
        };
        let shares = self.outlined_shares();
        let op = self.call_op(0, layer, Vec::new());
        self.run(Op {
            inputs: vec![input],
            weight: shares[0],
            activation: shares[1],
            ..op
        });
    }

    fn call_op(&mut self, function: usize, layer: u32, stood_here: Vec<usize>) -> Op {
        let site = self.model.calls.len();
        self.model.calls.push(Call {
            function,
            layer,
            stood_here,
        });
        let name = match self.nameless_gradients() {
            true => String::new(),
            false => templates::name(self.framework(), layer, &format!("call_{function}")),
        };
        Op {
            op_type: "Call",
            layer: Some(layer),
            made_for: Some(layer),
            outputs: vec![format!("call_{site}:0")],
            call: Some(site),
            ..self.outside(Phase::Forward, &name, Kind::Call, [0, 0])
        }
    }

    /// Weights and activations stay with the call sites: the body works on
    /// copies.
    fn outlined_shares(&self) -> [u32; 2] {
        let templates = templates::of(self.framework());
        let outlined = templates.iter().filter(|template| template.outlined);
        outlined.fold([0, 0], |[weight, activation], template| {
            [weight + template.weight, activation + template.activation]
        })
    }

    /// The first call's layer names the body; later layers share it.
    pub(super) fn outlined_op(&mut self, layer: u32, slot: usize, template: &Template) -> usize {
        if layer > 0 {
            return self.model.forward[0][slot];
        }
        let mut op = self.layer_op(layer, template);
        op.function = Some(0);
        op.weight = 0;
        let index = self.push(op);
        match (self.settings.nested, template.kind) {
            (true, Kind::MatMul | Kind::Conv) => self.outline_again(index),
            _ => self.model.functions[0].ops.push(index),
        }
        index
    }

    /// Moves an operation of the body into a function of its own. The next one
    /// like it only calls that: its own name lives on in the call's contexts.
    fn outline_again(&mut self, index: usize) {
        if self.model.functions.len() == 1 {
            self.model.functions.push(Function { ops: vec![index] });
            self.model.ops[index].function = Some(1);
        } else {
            self.model.ops[index].function = None;
            self.model.ops[index].stages = 0;
        }
        let mut call = self.call_op(1, 0, vec![index]);
        call.inputs = vec![format!("subgraph_0/in_{}", self.model.calls.len())];
        call.function = Some(0);
        let call = self.push(call);
        self.model.functions[0].ops.push(call);
    }
}
