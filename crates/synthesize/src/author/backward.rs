//! Plants the backward pass: which gradients there are, from what each gradient is made, and where
//! the gradients of one output are summed up, follows from the forward pass.

use super::{Builder, Gradients};
use crate::model::{Op, Phase, Read};
use crate::places::Places;
use crate::settings::Framework;
use crate::templates::Kind;

impl Builder<'_> {
    /// Finds which gradients are needed, from the complete forward pass.
    pub(super) fn find_gradients(&mut self) {
        let count = self.model.ops.len();
        let mut gradients = Gradients {
            needed: vec![false; count],
            expected: vec![0; count],
            made: vec![Vec::new(); count],
        };
        let weights = self.model.weights.iter().filter(|weight| weight.is_trained);
        for &user in weights.flat_map(|weight| &weight.users) {
            gradients.needed[user] = true;
        }
        for &op in &self.model.order {
            for read in self.model.ops[op].reads.iter().filter(|r| r.has_gradient) {
                gradients.needed[op] |= gradients.needed[read.from];
                gradients.expected[read.from] += 1;
            }
        }
        self.gradients = gradients;
    }

    /// Returns whether the backward pass continues from an operation.
    pub(super) fn passes_back(&self, forward: usize) -> bool {
        self.passed_back(forward).next().is_some()
    }

    pub(super) fn passed_back(&self, forward: usize) -> impl Iterator<Item = Read> + '_ {
        let reads = self.model.ops[forward].reads.iter().copied();
        reads.filter(|read| read.has_gradient && self.gradients.needed[read.from])
    }

    /// Passes the gradients of all inputs of an operation to the operations that made these inputs.
    /// `first` makes the gradient for the output before it, `by` all others.
    pub(super) fn hand_back(&mut self, forward: usize, by: usize, first: usize) {
        let reads: Vec<Read> = self.passed_back(forward).collect();
        for (part, read) in reads.iter().enumerate() {
            let from = if part == 0 { first } else { by };
            let gradient = Read {
                part,
                ..Read::next(from)
            };
            self.gradients.made[read.from].push(gradient);
        }
        self.model.ops[by].parts = reads.len().max(1);
        for read in reads {
            self.sum_up(read.from, by);
        }
    }

    /// Adds up all gradients of an output of a graph, as soon as all are made. The sum belongs to
    /// the operation that made the last of them.
    fn sum_up(&mut self, forward: usize, last: usize) {
        let made = self.gradients.made[forward].clone();
        if made.len() < 2 || made.len() < self.gradients.expected[forward] {
            return;
        }
        let name = &self.templates.names["sum"];
        let last_op = &self.model.ops[last];
        let op = Op {
            op_type: "Sum".into(),
            made_for: last_op.made_for,
            places: last_op.places,
            inputs: self.names_of(&made),
            outputs: vec![format!("Gradient___{}", self.model.ops[forward].outputs[0])],
            elements: self.model.ops[forward].elements.clone(),
            reads: made,
            ..self.outside(Phase::Backward, name, Kind::Elementwise, 4)
        };
        let sum = self.run(op);
        self.gradients.made[forward] = vec![Read::next(sum)];
    }

    /// Plants the gradients of all operations of the forward pass, the last operation first.
    pub(super) fn backward_pass(&mut self) {
        for of in (0..self.model.ops.len()).rev() {
            let phase = self.model.ops[of].phase;
            if phase.is_forward() && self.gradients.needed[of] {
                match phase == Phase::Forward && self.settings.graph.is_none() {
                    true => self.gradients_in_layer(of),
                    false => self.gradient_of_all(of),
                }
            }
        }
    }

    /// Plants one operation that makes the gradients of all inputs and weights of `of`.
    fn gradient_of_all(&mut self, of: usize) {
        let op = match self.settings.graph.is_some() {
            true => self.gradient_in_graph(of),
            false => self.gradient(of, of, "Grad"),
        };
        let reads = self.gradients.made[of].clone();
        let op = self.run(Op { reads, ..op });
        let weights = self.model.weights.iter_mut();
        for weight in weights.filter(|weight| weight.is_trained_for(of)) {
            weight.gradients.push(op);
        }
        self.hand_back(of, op, op);
    }

    /// Plants the gradients of an operation of a layer, or of all operations that its call has
    /// outlined. These follow each other; data flow into and out of them at the call.
    fn gradients_in_layer(&mut self, main: usize) {
        let layer = self.layer_of(main);
        let is_call = self.model.ops[main].call.is_some();
        let is_called = is_call && self.settings.features.outline_backward;
        let mut gradient = match is_called {
            true => vec![Read::next(self.call_backward(main))],
            false => self.gradients.made[main].clone(),
        };
        let slots = self.model.forward[layer as usize].clone();
        let slots = slots.into_iter().enumerate().rev();
        let is_here = |&(slot, of): &(usize, usize)| match is_call {
            true => self.templates.layer[slot].outlined,
            false => of == main,
        };
        let slots: Vec<_> = slots.filter(is_here).collect();
        for (slot, of) in slots {
            match is_called {
                true => self.gradients_in_body(main, slot, of),
                false => self.gradients_of_op(main, slot, of, &mut gradient),
            }
        }
        if self.passes_back(main) {
            let by = gradient[0].from;
            let first = self.residual_gradient(main, by);
            self.hand_back(main, by, first.unwrap_or(by));
        }
    }

    fn layer_of(&self, op: usize) -> u32 {
        self.model.ops[op].made_for.unwrap_or(0)
    }

    fn gradients_of_op(&mut self, main: usize, slot: usize, of: usize, gradient: &mut Vec<Read>) {
        if self.passes_back(main) {
            let op = self.input_gradient(of, main);
            let reads = gradient.clone();
            *gradient = vec![Read::next(self.run(Op { reads, ..op }))];
        }
        if let Some(weight) = self.trained_weight(main, slot) {
            let op = self.weight_gradient(of, main, weight);
            let op = self.run(Op {
                reads: gradient.clone(),
                hands_on: false,
                ..op
            });
            self.model.weights[weight].gradients.push(op);
        }
    }

    /// Returns the trained weight in `slot` of its part with which an operation computes.
    pub(super) fn trained_weight(&self, op: usize, slot: usize) -> Option<usize> {
        let mut weights = self.model.weights.iter();
        weights.position(|weight| weight.slot == slot && weight.is_trained_for(op))
    }

    /// Creates a gradient operation of `of`. The activations of a body no longer exist then, so its
    /// gradients start from the data that the call in the layer, `main`, has kept.
    fn gradient(&self, of: usize, main: usize, suffix: &str) -> Op {
        let (forward, here) = (&self.model.ops[of], &self.model.ops[main]);
        let base = self.renamed(forward, here.made_for);
        let name = self.templates.named("gradient", format!("{base}/{suffix}"));
        let mut op = self.outside(Phase::Backward, &name, forward.kind, forward.activation);
        op.inputs = vec![format!("Gradient___{base}:0")];
        op.outputs = vec![format!("Gradient___{base}/{suffix}:0")];
        op.made_for = here.made_for;
        op.places = here.places;
        op.partner = Some(main);
        if self.settings.is_popart() {
            op.name.clear();
            if here.made_for.is_none() {
                op.inputs.extend(forward.inputs.clone());
            }
        }
        op
    }

    /// Returns the name that a forward operation has in `layer`. An outlined operation has the name
    /// of the first layer in the model.
    fn renamed(&self, forward: &Op, layer: Option<u32>) -> String {
        let forward_name = self.templates.name(forward.made_for.unwrap_or(0), "");
        match (layer, forward.name.strip_prefix(&forward_name)) {
            (Some(layer), Some(path)) => self.templates.name(layer, path),
            _ => forward.name.clone(),
        }
    }

    /// PopART's gradients have no names. Those of element-wise operations take
    /// only a gradient, whose name `Gradient___Layer3/..` gives no layer away
    /// (PopTorch's `Gradient___bert/encoder/layer/3/..` does).
    fn input_gradient(&self, of: usize, main: usize) -> Op {
        let mut op = self.gradient(of, main, "InputGrad");
        let has_input =
            op.kind != Kind::Elementwise || self.settings.framework != Framework::Popart;
        if self.settings.is_popart() && has_input {
            let input = self.renamed(&self.model.ops[of], op.made_for);
            op.inputs.push(format!("{input}:0"));
        }
        op
    }

    /// Plants the gradients of an outlined operation. The body has those of the last layer, since
    /// the backward pass reaches it first.
    fn gradients_in_body(&mut self, main: usize, slot: usize, of: usize) {
        if self.layer_of(main) + 1 < self.settings.layers {
            return;
        }
        let function = self.model.functions.len() - 1;
        let weight = self.trained_weight(main, slot);
        let of_weight = weight.map(|weight| self.weight_gradient(of, main, weight));
        for op in [self.input_gradient(of, main)].into_iter().chain(of_weight) {
            let op = self.push(Op {
                function: Some(function),
                places: Places::NONE,
                ..op
            });
            self.model.functions[function].push(op);
        }
    }

    fn weight_gradient(&self, of: usize, main: usize, weight: usize) -> Op {
        let mut op = self.gradient(of, main, "WeightGrad");
        let weight = self.model.weights[weight].name.clone();
        op.outputs = vec![format!("Gradient___{weight}")];
        op.inputs.push(weight);
        op
    }

    /// Plants the sum of gradients of a residual connection. Its inputs come from two layers, so it
    /// has no layer by its names. The layer in which it runs is planted.
    fn residual_gradient(&mut self, main: usize, by: usize) -> Option<usize> {
        let layer = self.layer_of(main);
        let slots = &self.model.forward[layer as usize];
        let before = self.model.ops[main].reads.first()?.from;
        let is_summed = self.settings.is_popart() && layer + 1 < self.settings.layers;
        if slots[0] != main || !is_summed || !self.gradients.needed[before] {
            return None;
        }
        // Of what adds the input of the layer to what it made of it.
        let addition = self.templates.addition().map(|slot| slots[slot]);
        let mut order = self.model.order.iter().copied();
        let of_addition = order.find(|&op| {
            let op = &self.model.ops[op];
            op.phase == Phase::Backward && op.partner.is_some() && op.partner == addition
        });
        let path = &self.templates.layer[0].path;
        let names = [layer, layer + 1].map(|of| self.templates.name(of, path));
        let summed = [Some(by), of_addition].into_iter().flatten();
        let op = Op {
            op_type: "Sum".into(),
            made_for: Some(layer),
            places: Places::layer(layer),
            reads: summed.map(Read::next).collect(),
            inputs: names.map(|name| format!("{name}:0")).to_vec(),
            outputs: vec![format!("Gradient___sum_{layer}")],
            ..self.outside(Phase::Backward, "", Kind::Elementwise, 4)
        };
        Some(self.run(op))
    }
}
