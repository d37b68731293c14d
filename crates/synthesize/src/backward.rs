//! The backward pass and the optimiser of the planted model.

use super::model::{Builder, Op, Phase};
use super::options::Framework;
use super::places::Places;
use super::templates::{self, Kind};
use super::tensors::Part;

impl Builder<'_> {
    fn gradient(&self, of: usize, suffix: &str, layer: Option<u32>) -> Op {
        let forward = &self.model.ops[of];
        let base = match layer {
            Some(layer) => self.renamed(forward, layer),
            None => forward.name.clone(),
        };
        let name = match self.framework() {
            Framework::Tensorflow => format!("gradient_tape/{base}/{suffix}"),
            _ => format!("{base}/{suffix}"),
        };
        let mut op = self.outside(
            Phase::Backward,
            &name,
            forward.kind,
            [0, forward.activation],
        );
        op.inputs = vec![format!("Gradient___{base}:0")];
        op.outputs = vec![format!("Gradient___{base}/{suffix}:0")];
        op.layer = layer;
        op.made_for = layer;
        op.places = match layer {
            Some(layer) => Places::layer(layer),
            None => forward.places,
        };
        op.partner = Some(of);
        op
    }

    /// Notes that an operation writes the gradient of a weight.
    pub(super) fn gradient_of(&mut self, op: usize, part: Part, slot: usize) {
        if let Some(&weight) = self.weight_of.get(&(part, slot)) {
            self.model.weights[weight].gradients.push(op);
        }
    }

    /// The name that a forward operation has in `layer` (an outlined one
    /// stands there under the name of the first layer).
    pub(super) fn renamed(&self, forward: &Op, layer: u32) -> String {
        let own = templates::name(self.framework(), forward.made_for.unwrap_or(0), "");
        match forward.name.strip_prefix(&own) {
            Some(path) => templates::name(self.framework(), layer, path),
            None => forward.name.clone(),
        }
    }

    pub(super) fn backward(&mut self, layer: u32) {
        let forward = self.model.forward[layer as usize].clone();
        let paths = templates::of(self.framework());
        let mut called = false;
        for (slot, &of) in forward.iter().enumerate().rev() {
            if paths[slot].outlined && self.settings.outlines_backward() {
                if !called {
                    self.call_backward(layer);
                }
                called = true;
                self.gradients_in_body(layer, slot, of);
                continue;
            }
            let op = self.input_gradient(layer, of);
            self.run(op);
            if paths[slot].weight > 0 {
                let op = self.weight_gradient(layer, of, slot);
                let op = self.run(op);
                self.gradient_of(op, Part::Layer(layer), slot);
            }
        }
        if self.nameless_gradients() && layer + 1 < self.settings.layers {
            self.residual_gradient(layer);
        }
    }

    /// PopART's gradients have no names. Those of element-wise operations take
    /// only a gradient, whose name `Gradient___Layer3/..` gives no layer away
    /// (PopTorch's `Gradient___bert/encoder/layer/3/..` does).
    fn input_gradient(&self, layer: u32, of: usize) -> Op {
        let mut op = self.gradient(of, "InputGrad", Some(layer));
        if self.nameless_gradients() {
            op.name.clear();
            match op.kind {
                Kind::Elementwise if self.framework() == Framework::Popart => op.layer = None,
                _ => op
                    .inputs
                    .push(format!("{}:0", self.renamed(&self.model.ops[of], layer))),
            }
        }
        self.with_saved(op, layer, of)
    }

    /// The body's own activations are gone: its gradients start from what the
    /// call of the layer has kept.
    fn with_saved(&self, op: Op, layer: u32, of: usize) -> Op {
        let is_outlined = self.model.ops[of].function.is_some();
        let saved = self.calls_of_layers.get(layer as usize);
        Op {
            partner: match self.settings.has_places() && is_outlined {
                true => saved.copied(),
                false => op.partner,
            },
            ..op
        }
    }

    /// The gradients of an outlined operation; the last layer's stand in the
    /// body, as the backward pass comes there first.
    fn gradients_in_body(&mut self, layer: u32, slot: usize, of: usize) {
        if layer + 1 < self.settings.layers {
            return;
        }
        let function = self.backward_function.expect("it was called");
        let mut ops = vec![self.input_gradient(layer, of)];
        if templates::of(self.framework())[slot].weight > 0 {
            ops.push(self.weight_gradient(layer, of, slot));
        }
        for op in ops {
            let op = self.push(Op {
                function: Some(function),
                places: Places::NONE,
                ..op
            });
            self.model.functions[function].ops.push(op);
        }
    }

    fn weight_gradient(&self, layer: u32, of: usize, slot: usize) -> Op {
        let mut op = self.gradient(of, "WeightGrad", Some(layer));
        let weight = match self.weight_of.get(&(Part::Layer(layer), slot)) {
            Some(&weight) => self.model.weights[weight].name.clone(),
            None => {
                let path = templates::of(self.framework())[slot].path;
                templates::weight_name(self.framework(), layer, path)
            }
        };
        op.outputs = vec![format!("Gradient___{weight}")];
        if self.nameless_gradients() {
            op.name.clear();
        }
        op.inputs.push(weight);
        self.with_saved(op, layer, of)
    }

    /// The residual connection sums gradients of two layers: inputs from both,
    /// so no layer.
    fn residual_gradient(&mut self, layer: u32) {
        let path = templates::of(self.framework())[0].path;
        let mut op = self.outside(Phase::Backward, "", Kind::Elementwise, [0, 4]);
        op.op_type = "Sum";
        op.made_for = Some(layer);
        op.places = Places::layer(layer);
        op.inputs = [layer, layer + 1]
            .map(|of| format!("{}:0", templates::name(self.framework(), of, path)))
            .to_vec();
        op.outputs = vec![format!("Gradient___sum_{layer}")];
        self.run(op);
    }

    fn outside_gradients(&mut self, phase: Phase) {
        for of in (0..self.model.ops.len()).rev() {
            if self.model.ops[of].phase != phase || self.model.mask == Some(of) {
                continue;
            }
            let mut op = self.gradient(of, "Grad", None);
            if self.nameless_gradients() {
                op.name.clear();
                op.inputs.extend(self.model.ops[of].inputs.clone());
                op.layer = self.model.ops[of].layer;
            }
            let op = self.run(op);
            self.gradient_of(op, Part::In, of);
            self.gradient_of(op, Part::Out, of);
        }
    }

    pub(super) fn head_gradient(&mut self) {
        self.outside_gradients(Phase::Head);
    }

    pub(super) fn embedding_gradient(&mut self) {
        self.outside_gradients(Phase::Embedding);
    }

    pub(super) fn optimiser(&mut self) {
        for layer in 0..self.settings.layers {
            self.layer_update(layer);
        }
        self.global_update();
    }

    /// PopART names the weights it updates among the inputs: one update in
    /// three is fused with the next layer's and so has none.
    fn layer_update(&mut self, layer: u32) {
        let framework = self.framework();
        let path = templates::of(framework)[0].path;
        let weight = |layer| templates::weight_name(framework, layer, path);
        let name = match framework {
            Framework::Tensorflow => format!("Adam/Adam/update_{layer}/ResourceApplyAdam"),
            Framework::Poplar => format!("optimiser/update/{layer}"),
            _ => String::new(),
        };
        let mut op = self.outside(Phase::Optimiser, &name, Kind::Update, [60, 10]);
        op.inputs = vec![weight(layer), format!("Gradient___{}", weight(layer))];
        op.made_for = Some(layer);
        op.places = Places::layer(layer);
        op.partner = Some(self.model.forward[layer as usize][0]);
        if self.nameless_gradients() {
            op.layer = Some(layer);
            if layer % 3 == 2 {
                op.inputs.push(weight((layer + 1) % self.settings.layers));
                op.layer = None;
            }
        }
        self.run(op);
    }

    fn global_update(&mut self) {
        let name = match self.framework() {
            Framework::Tensorflow => "Adam/Adam/AssignAddVariableOp",
            Framework::Poplar => "optimiser/step",
            _ => "",
        };
        let mut op = self.outside(Phase::Optimiser, name, Kind::Update, [30, 5]);
        op.inputs = vec!["Embedding_state".to_owned(), "learning_rate".to_owned()];
        op.places = Places::IN | Places::OUT;
        self.run(op);
    }
}
