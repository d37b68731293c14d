//! The backward pass and the optimiser of the planted model.

use super::model::{Builder, Op, Phase};
use super::options::Framework;
use super::templates::{self, Kind};

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
        op.partner = Some(of);
        op
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
        for (slot, &of) in forward.iter().enumerate().rev() {
            self.input_gradient(layer, of);
            if paths[slot].weight > 0 {
                self.weight_gradient(layer, of, paths[slot].path);
            }
        }
        if self.nameless_gradients() && layer + 1 < self.settings.layers {
            self.residual_gradient(layer);
        }
    }

    /// PopART's gradients have no names. Those of element-wise operations take
    /// only a gradient, whose name `Gradient___Layer3/..` gives no layer away
    /// (PopTorch's `Gradient___bert/encoder/layer/3/..` does).
    fn input_gradient(&mut self, layer: u32, of: usize) {
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
        self.run(op);
    }

    fn weight_gradient(&mut self, layer: u32, of: usize, path: &str) {
        let mut op = self.gradient(of, "WeightGrad", Some(layer));
        let weight = templates::weight_name(self.framework(), layer, path);
        op.outputs = vec![format!("Gradient___{weight}")];
        if self.nameless_gradients() {
            op.name.clear();
        }
        op.inputs.push(weight);
        self.run(op);
    }

    /// The residual connection sums gradients of two layers: inputs from both,
    /// so no layer.
    fn residual_gradient(&mut self, layer: u32) {
        let path = templates::of(self.framework())[0].path;
        let mut op = self.outside(Phase::Backward, "", Kind::Elementwise, [0, 4]);
        op.op_type = "Sum";
        op.made_for = Some(layer);
        op.inputs = [layer, layer + 1]
            .map(|of| format!("{}:0", templates::name(self.framework(), of, path)))
            .to_vec();
        op.outputs = vec![format!("Gradient___sum_{layer}")];
        self.run(op);
    }

    fn outside_gradients(&mut self, phase: Phase) {
        for of in (0..self.model.ops.len()).rev() {
            if self.model.ops[of].phase != phase {
                continue;
            }
            let mut op = self.gradient(of, "Grad", None);
            if self.nameless_gradients() {
                op.name.clear();
                op.inputs.extend(self.model.ops[of].inputs.clone());
                op.layer = self.model.ops[of].layer;
            }
            self.run(op);
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
        self.run(op);
    }
}
