//! Forms of real models beside a plain chain of layers, and where each of their
//! operations is at home. The author of a model decides that, as a user who
//! writes a pipeline does: nothing here looks at what an operation touches.

use super::{Block, Builder};
use crate::features::{Form, Names};
use crate::model::{Op, Phase, Read};
use crate::places::Places;
use crate::random::topic;
use crate::settings::Framework;
use crate::templates::{self, Kind, shared_slot};
use crate::tensors::{Part, SEED};

/// Numbers of the weights of a layer's further operations, after its templates'.
mod slot {
    pub const ADAPTER: usize = 1000;
    pub const HEAD: usize = 1010;
}

impl Builder<'_> {
    pub(super) fn has(&self, form: Form) -> bool {
        self.settings.features.forms.contains(&form)
    }

    fn choice(&self, form: Form, bound: u32) -> u32 {
        let about = [topic::SHARED, form as u64, 0, 7];
        self.settings.random.below(u64::from(bound.max(1)), about) as u32
    }

    /// A name without a layer, in the framework's way.
    pub(super) fn plain_name(&self, path: &str) -> String {
        match self.framework() {
            Framework::Popart => path.to_owned(),
            Framework::Poptorch => format!("bert/{path}"),
            Framework::Tensorflow => format!("model/{path}"),
            Framework::Poplar => path.to_lowercase(),
        }
    }

    /// Adds the operations before the layers, beside the embedding.
    pub(super) fn before_layers(&mut self) {
        if self.has(Form::Stem) {
            self.chain_of(
                Part::In,
                &[
                    ("Stem/Patch/Conv2D", Kind::Conv, [30, 60]),
                    ("Stem/Norm/BatchNorm", Kind::Norm, [1, 60]),
                    ("Stem/Activation/Relu", Kind::Elementwise, [0, 60]),
                    ("Stem/Project/MatMul", Kind::MatMul, [20, 40]),
                ],
            );
        }
        self.planted.entry = self.tail;
        if self.has(Form::Towers) {
            self.tail = None;
            let second = self.model.ops.len();
            self.model.inputs[0].users.push(second);
            self.chain_of(
                Part::In,
                &[
                    ("SecondTower/Lookup/Gather", Kind::Gather, [40, 20]),
                    ("SecondTower/Scale/Norm", Kind::Norm, [1, 10]),
                ],
            );
            self.planted.second_entry = self.tail;
            self.tail = self.planted.entry;
        }
        if self.has(Form::Bias) {
            let name = self.plain_name("PositionBias/Gather");
            let op = self.outside(Phase::Embedding, &name, Kind::Gather, [10, 10]);
            let op = self.run(op);
            self.weight_outside(op, Part::In);
            self.planted.bias = Some(op);
        }
        if self.has(Form::RandomState) {
            self.random_state();
        }
    }

    fn chain_of(&mut self, part: Part, ops: &[(&str, Kind, [u32; 2])]) {
        for &(path, kind, shares) in ops {
            let name = self.plain_name(path);
            let op = self.outside(Phase::Embedding, &name, kind, shares);
            let op = self.run_next(op);
            self.weight_outside(op, part);
        }
    }

    /// Every IPU has a random state of its own, and advances it.
    fn random_state(&mut self) {
        let name = match self.nameless_gradients() {
            true => String::new(),
            false => self.plain_name("RandomSeed/Advance"),
        };
        let op = self.outside(Phase::Embedding, &name, Kind::Elementwise, [0, 2]);
        let op = self.run(Op {
            op_type: "ModifyRandomSeed".into(),
            inputs: vec![SEED.to_owned()],
            outputs: vec!["randomSeed___updated".to_owned()],
            places: Places::EVERY,
            hands_on: false,
            ..op
        });
        self.model.advances_seed = Some(op);
    }

    /// Adds the input of a layer.
    pub(super) fn layer_input(&mut self, layer: u32) {
        if self.has(Form::Towers) && layer == self.second_tower() {
            self.tail = self.planted.second_entry;
        }
        if self.has(Form::Repeat) && layer == self.choice(Form::Repeat, self.settings.layers) {
            let path = "Carried/Copy";
            let name = templates::name(self.framework(), layer, path);
            let op = Op {
                op_type: "Identity".into(),
                ..self.of_layer(layer, &name, Kind::Elementwise, [0, 4])
            };
            let op = self.run_next(op);
            self.blocks[layer as usize].push(Block::Other(op));
            self.in_loop = Some(layer);
        }
    }

    /// Adds the end of a layer; the chain goes on with its output.
    pub(super) fn layer_end(&mut self, layer: u32) {
        if self.has(Form::Adapters) {
            self.adapter(layer);
        }
        let last = self.tail.expect("a layer has operations");
        if self.in_loop.take().is_some() {
            let Some(Block::Other(carried)) = self.blocks[layer as usize].first() else {
                unreachable!("the loop starts with a copy");
            };
            self.model.ops[last].rewrites = Some(*carried);
        }
        self.planted.lasts.push(last);
        if self.has(Form::AuxHeads) && self.has_head(layer) {
            self.head_between(layer);
        }
    }

    /// The first layer of the second tower.
    fn second_tower(&self) -> u32 {
        self.settings.layers.div_ceil(2)
    }

    /// One layer has a head, and every third one after it.
    fn has_head(&self, layer: u32) -> bool {
        let first = self.choice(Form::AuxHeads, self.settings.layers - 1);
        let is_third = layer >= first && (layer - first).is_multiple_of(3);
        is_third && layer + 1 < self.settings.layers
    }

    /// An operation that a layer has beside its templates.
    pub(super) fn of_layer(&self, layer: u32, name: &str, kind: Kind, shares: [u32; 2]) -> Op {
        Op {
            made_for: Some(layer),
            places: Places::layer(layer),
            ..self.outside(Phase::Forward, name, kind, shares)
        }
    }

    fn adapter(&mut self, layer: u32) {
        for (number, path) in ["Adapter/Down/MatMul", "Adapter/Up/MatMul"]
            .into_iter()
            .enumerate()
        {
            let name = templates::name(self.framework(), layer, path);
            let op = self.run_next(self.of_layer(layer, &name, Kind::MatMul, [2, 4]));
            let weight = templates::weight_name(self.framework(), layer, path);
            self.further_weight(op, layer, slot::ADAPTER + number, &weight);
            self.blocks[layer as usize].push(Block::Other(op));
        }
    }

    /// A head with a loss of its own: what comes next does not use it.
    fn head_between(&mut self, layer: u32) {
        let after = self.tail;
        let parts = [
            ("AuxHead/Dense/MatMul", Kind::MatMul, [6, 10]),
            ("AuxHead/Loss/Softmax", Kind::Softmax, [0, 10]),
        ];
        for (path, kind, shares) in parts {
            let name = self.plain_name(path);
            let op = self.of_layer(layer, &name, kind, shares);
            let op = self.run_next(op);
            if shares[0] > 0 {
                let weight = format!("aux_head_{layer}/weight");
                self.further_weight(op, layer, slot::HEAD, &weight);
            }
            self.blocks[layer as usize].push(Block::Other(op));
        }
        self.tail = after;
    }

    pub(super) fn further_weight(&mut self, op: usize, layer: u32, slot: usize, name: &str) {
        let share = self.model.ops[op].weight;
        let weight = self.plant_weight(op, Part::Layer(layer), slot, share, name);
        let name = self.model.weights[weight].name.clone();
        self.model.ops[op].inputs.push(name);
    }

    /// The cast of the first weight of a layer, which has that weight then.
    pub(super) fn cast(&mut self, layer: u32) -> Option<usize> {
        if !self.has(Form::Casts) {
            return None;
        }
        let name = match self.nameless_gradients() {
            true => String::new(),
            false => self.plain_name("Cast"),
        };
        let op = Op {
            op_type: "Cast".into(),
            inputs: Vec::new(),
            outputs: vec![format!("cast_of_weight_{layer}")],
            ..self.of_layer(layer, &name, Kind::Elementwise, [0, 6])
        };
        let op = self.run(op);
        let template = &templates::of(self.framework())[0];
        self.weight_of_layer(op, layer, 0, template);
        self.blocks[layer as usize].push(Block::Other(op));
        Some(op)
    }

    /// The reads of a layer's operation beside the output before it.
    pub(super) fn further_reads(&self, layer: u32, slot: usize) -> Vec<Read> {
        let mut reads = Vec::new();
        let layers = self.settings.layers;
        let mut read = |is_read: bool, form: Form, from: Option<usize>| {
            if let (true, true, Some(from)) = (is_read, slot == self.user_slot(form), from) {
                reads.push(Read::saved(from));
            }
        };
        let lasts = &self.planted.lasts;
        let late = layers - 1 - self.choice(Form::SkipIn, layers / 3);
        let entry = self.planted.entry;
        read(self.has(Form::SkipIn) && layer == late, Form::SkipIn, entry);
        read(self.has(Form::SkipInAll), Form::SkipInAll, entry);
        let mirrored = layers - 1 - layer;
        read(
            self.has(Form::Unet) && mirrored + 1 < layer,
            Form::Unet,
            lasts.get(mirrored as usize).copied(),
        );
        let memory = (layers / 2).saturating_sub(1);
        read(
            self.has(Form::EncoderMemory) && layer > memory + 1,
            Form::EncoderMemory,
            lasts.get(memory as usize).copied(),
        );
        if let (Some(bias), true) = (self.planted.bias, slot == self.user_slot(Form::Bias)) {
            reads.push(Read::next(bias));
        }
        reads
    }

    /// Which operation of a layer takes what a form hands to it: not one of the
    /// outlined ones.
    fn user_slot(&self, form: Form) -> usize {
        let templates = templates::of(self.framework()).iter().enumerate();
        let slots = templates.filter(|(_, template)| !template.outlined);
        let slots: Vec<usize> = slots.map(|(slot, _)| slot).collect();
        match form {
            Form::Bias => shared_slot(self.framework()),
            _ => slots[self.choice(form, slots.len() as u32) as usize],
        }
    }

    /// The first operation after the layers, where it takes outputs of several;
    /// they are called what the layers call them.
    pub(super) fn pyramid(&mut self) {
        if !self.has(Form::Pyramid) {
            return;
        }
        let name = self.plain_name("Pyramid/Concat");
        let op = self.outside(Phase::Head, &name, Kind::Elementwise, [0, 20]);
        let op = self.run_next(op);
        let last = self.planted.lasts.len() - 1;
        for layer in 0..last {
            self.also_reads(op, self.planted.lasts[layer]);
        }
    }

    /// The towers meet in the first operation after the layers.
    pub(super) fn meet(&mut self, op: usize) {
        if !self.has(Form::Towers) || self.has(Form::Pyramid) || self.settings.layers < 2 {
            return;
        }
        let other = self.planted.lasts[self.second_tower() as usize - 1];
        let chain = self.model.ops[op].reads[0].from;
        self.model.ops[op].inputs[0] = self.model.ops[chain].outputs[0].clone();
        self.also_reads(op, other);
    }

    pub(super) fn also_reads(&mut self, op: usize, from: usize) {
        let name = self.model.ops[from].outputs[0].clone();
        let op = &mut self.model.ops[op];
        op.inputs.push(name);
        op.reads.push(Read::next(from));
    }

    /// Whether the weight of a part of the model is trained.
    pub(super) fn is_trained(&self, part: Part, number: usize) -> bool {
        let half = self.settings.layers / 2;
        let is_frozen = match part {
            Part::In => self.has(Form::Frozen) || self.has(Form::Adapters),
            Part::Layer(layer) if self.has(Form::Frozen) && layer < half => true,
            Part::Layer(_) => self.has(Form::Adapters) && number < slot::ADAPTER,
            Part::Out => false,
        };
        self.settings.training() && !is_frozen
    }

    /// The layer whose weights another one has.
    pub(super) fn lender(&self, layer: u32) -> u32 {
        if self.has(Form::SharedAll) {
            0
        } else if self.has(Form::SharedPairs) {
            layer - layer % 2
        } else {
            layer
        }
    }

    /// How an update is called where it says nothing that is known.
    pub(super) fn other_update(&self, weight: usize) -> String {
        let planted = &self.model.weights[weight];
        match self.settings.features.names {
            Names::Operation => format!("training/Lion/{}/AssignSubVariableOp", planted.name),
            _ => format!("training/Lion/AssignSubVariableOp_{weight}"),
        }
    }
}
