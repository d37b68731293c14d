//! The backward pass of the planted model.

use super::Builder;
use crate::model::{Op, Phase, Read};
use crate::places::Places;
use crate::settings::{Framework, Outlined};
use crate::templates::{Kind, named};
use crate::tensors::Part;

impl Builder<'_> {
    fn gradient(&self, of: usize, suffix: &str, layer: Option<u32>) -> Op {
        let forward = &self.model.ops[of];
        let name = || forward.name.clone();
        let base = layer.map_or_else(name, |layer| self.renamed(forward, layer));
        let name = named(&self.templates.names.gradient, format!("{base}/{suffix}"));
        let mut op = self.outside(Phase::Backward, &name, forward.kind, forward.activation);
        op.inputs = vec![format!("Gradient___{base}:0")];
        op.outputs = vec![format!("Gradient___{base}/{suffix}:0")];
        op.made_for = layer;
        op.places = layer.map_or(forward.places, Places::layer);
        op.partner = match (forward.function, layer) {
            // The body's own activations are gone: its gradients start from what the call of the
            // layer has kept.
            (Some(_), Some(layer)) => self.calls_of_layers.get(layer as usize).copied(),
            _ => Some(of),
        };
        if self.nameless_gradients() {
            op.name.clear();
            if layer.is_none() {
                op.inputs.extend(forward.inputs.clone());
            }
        }
        op
    }

    pub(super) fn gradient_of(&mut self, op: usize, part: Part, slot: usize) {
        let weight = self.weight_of.get(&(part, slot)).copied();
        let weight = weight.map(|weight| &mut self.model.weights[weight]);
        if let Some(weight) = weight.filter(|weight| weight.is_trained) {
            weight.gradients.push(op);
        }
    }

    /// The name that a forward operation has in `layer` (an outlined one
    /// stands there under the name of the first layer).
    pub(super) fn renamed(&self, forward: &Op, layer: u32) -> String {
        let forward_name = self.templates.name(forward.made_for.unwrap_or(0), "");
        match forward.name.strip_prefix(&forward_name) {
            Some(path) => self.templates.name(layer, path),
            None => forward.name.clone(),
        }
    }

    pub(super) fn backward(&mut self, layer: u32) {
        let mut gradient = Vec::new();
        let slots = self.model.forward[layer as usize].clone();
        for (slot, of) in slots.into_iter().enumerate().rev() {
            self.gradients_of_slot(layer, (slot, of), &mut gradient);
        }
    }

    /// The gradients of one template, with what flows in before and out after.
    /// Those of a body follow each other; they flow in and out at its call.
    fn gradients_of_slot(
        &mut self,
        layer: u32,
        (slot, of): (usize, usize),
        gradient: &mut Vec<Read>,
    ) {
        let outlined = |slot: usize| {
            let template = self.templates.layer.get(slot);
            let outlines = self.settings.outlined != Outlined::None;
            outlines && template.is_some_and(|template| template.outlined)
        };
        let is_first = !outlined(slot) || !outlined(slot + 1);
        let is_last = !outlined(slot) || slot == 0 || !outlined(slot - 1);
        let is_called = outlined(slot) && self.settings.features.outline_backward;
        let main = match outlined(slot) {
            true => self.calls_of_layers[layer as usize],
            false => of,
        };
        if !self.gradients.needed[main] {
            return;
        }
        if is_first {
            *gradient = self.gradients.made[main].clone();
        }
        match is_called {
            true if is_first => *gradient = vec![Read::next(self.call_backward(layer))],
            true => {}
            false => self.gradients_in_layer(layer, (slot, of), main, gradient),
        }
        if is_called {
            self.gradients_in_body(layer, slot, of);
        }
        if is_last && self.passes_back(main) {
            let by = gradient[0].from;
            let first = self.residual_gradient(layer, slot, by);
            self.hand_back(main, by, first.unwrap_or(by));
        }
    }

    fn gradients_in_layer(
        &mut self,
        layer: u32,
        (slot, of): (usize, usize),
        main: usize,
        gradient: &mut Vec<Read>,
    ) {
        if self.passes_back(main) {
            let op = self.input_gradient(layer, of);
            let reads = gradient.clone();
            *gradient = vec![Read::next(self.run(Op { reads, ..op }))];
        }
        if self.trains(layer, slot, main) {
            let op = self.weight_gradient(layer, of, slot);
            let op = self.run(Op {
                reads: gradient.clone(),
                hands_on: false,
                ..op
            });
            self.gradient_of(op, Part::Layer(layer), slot);
        }
    }

    fn trains(&self, layer: u32, slot: usize, main: usize) -> bool {
        let weight = self.weight_of.get(&(Part::Layer(layer), slot));
        let weight = weight.map(|&weight| &self.model.weights[weight]);
        weight.is_some_and(|weight| weight.is_trained_for(main))
    }

    /// PopART's gradients have no names. Those of element-wise operations take
    /// only a gradient, whose name `Gradient___Layer3/..` gives no layer away
    /// (PopTorch's `Gradient___bert/encoder/layer/3/..` does).
    fn input_gradient(&self, layer: u32, of: usize) -> Op {
        let mut op = self.gradient(of, "InputGrad", Some(layer));
        let has_input =
            op.kind != Kind::Elementwise || self.settings.framework != Framework::Popart;
        if self.nameless_gradients() && has_input {
            let input = format!("{}:0", self.renamed(&self.model.ops[of], layer));
            op.inputs.push(input);
        }
        op
    }

    /// The gradients of an outlined operation; the last layer's stand in the
    /// body, as the backward pass comes there first.
    fn gradients_in_body(&mut self, layer: u32, slot: usize, of: usize) {
        if layer + 1 < self.settings.layers {
            return;
        }
        let function = self.backward_function.expect("it was called");
        let mut ops = vec![self.input_gradient(layer, of)];
        if self.trains(layer, slot, self.calls_of_layers[layer as usize]) {
            ops.push(self.weight_gradient(layer, of, slot));
        }
        for op in ops {
            let op = self.push(Op {
                function: Some(function),
                places: Places::NONE,
                ..op
            });
            self.model.functions[function].push(op);
        }
    }

    fn weight_gradient(&self, layer: u32, of: usize, slot: usize) -> Op {
        let mut op = self.gradient(of, "WeightGrad", Some(layer));
        let weight = self.weight_of[&(Part::Layer(layer), slot)];
        let weight = self.model.weights[weight].name.clone();
        op.outputs = vec![format!("Gradient___{weight}")];
        op.inputs.push(weight);
        op
    }

    /// The residual connection sums gradients of two layers: inputs from both,
    /// so no layer. What it sums is made in the layer.
    fn residual_gradient(&mut self, layer: u32, slot: usize, by: usize) -> Option<usize> {
        let is_summed = self.nameless_gradients() && layer + 1 < self.settings.layers;
        let before = self.model.forward[layer as usize][0];
        let before = self.model.ops[before].reads.first()?.from;
        if slot > 0 || !is_summed || !self.gradients.needed[before] {
            return None;
        }
        let path = &self.templates.layer[0].path;
        let summed = [Some(by), self.gradient_of_addition(layer)];
        let names = [layer, layer + 1].map(|of| self.templates.name(of, path));
        let op = Op {
            op_type: "Sum".into(),
            made_for: Some(layer),
            places: Places::layer(layer),
            reads: summed.into_iter().flatten().map(Read::next).collect(),
            inputs: names.map(|name| format!("{name}:0")).to_vec(),
            outputs: vec![format!("Gradient___sum_{layer}")],
            ..self.outside(Phase::Backward, "", Kind::Elementwise, 4)
        };
        Some(self.run(op))
    }

    /// The gradient of what adds the input of a layer to what it made of it.
    fn gradient_of_addition(&self, layer: u32) -> Option<usize> {
        let addition = self.templates.addition()?;
        let of = self.model.forward[layer as usize][addition];
        let mut order = self.model.order.iter().copied();
        order.find(|&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Backward && op.partner == Some(of)
        })
    }

    /// The gradients of operations of the forward pass that are in no layer of a template, the
    /// last first: each of its inputs and of its weights.
    pub(super) fn gradients(&mut self, phases: impl Fn(Phase) -> bool) {
        for of in (0..self.model.ops.len()).rev() {
            if !phases(self.model.ops[of].phase) || !self.gradients.needed[of] {
                continue;
            }
            let op = match self.settings.graph.is_some() {
                true => self.gradient_in_graph(of),
                false => self.gradient(of, "Grad", None),
            };
            let reads = self.gradients.made[of].clone();
            let op = self.run(Op { reads, ..op });
            let weights = self.model.weights.iter_mut();
            for weight in weights.filter(|weight| weight.is_trained_for(of)) {
                weight.gradients.push(op);
            }
            self.hand_back(of, op, op);
        }
    }
}
