//! The author of a model: which operations it has, in which order, what each
//! takes of others, and where it is at home.
//!
//! The forward pass is written down layer by layer, or as a graph has it ([`graph`]);
//! gradients, sums and updates follow from it ([`flow`], [`backward`], [`weight_updates`]).

mod backward;
mod flow;
mod graph;
mod outlining;
mod parts;
mod weight_updates;
mod weights;

use std::collections::HashMap;

use super::model::{Input, Model, Op, Phase, Read};
use super::places::Places;
use super::settings::{Framework, Outlined, Settings};
use super::sizes;
use super::templates::{self, Kind, Template};
use super::tensors::Part;

/// Plants the model that `settings` describe.
pub fn build(settings: &Settings) -> Model {
    let mut builder = Builder {
        settings,
        model: Model::default(),
        weight_of: HashMap::new(),
        calls_of_layers: Vec::new(),
        backward_function: None,
        tail: None,
        gradients: Gradients::default(),
    };
    builder.compiler_made("start-up");
    builder.forward_pass();
    if settings.training() {
        builder.find_gradients();
        builder.backward_pass();
        builder.optimiser();
    }
    builder.compiler_made("instrumentation");
    builder.constants();
    builder.places_of_bodies();
    builder.model
}

pub(super) struct Builder<'a> {
    pub(super) settings: &'a Settings,
    pub(super) model: Model,
    /// The weight of a part of the model that has a number in it: that of the
    /// template in a layer, that of the operation elsewhere.
    pub(super) weight_of: HashMap<(Part, usize), usize>,
    /// By layer: its call in the forward pass.
    pub(super) calls_of_layers: Vec<usize>,
    /// The function that the backward pass calls.
    pub(super) backward_function: Option<usize>,
    /// The operation whose output comes next in the forward pass.
    pub(super) tail: Option<usize>,
    /// The gradients so far.
    pub(super) gradients: Gradients,
}

/// The gradients of a model while they are planted.
#[derive(Debug, Clone, Default)]
pub(super) struct Gradients {
    /// By forward operation: whether a gradient of its output or weight is needed.
    pub needed: Vec<bool>,
    /// By forward operation: how many gradients its output gets.
    pub expected: Vec<usize>,
    /// By forward operation: those that there are already.
    pub made: Vec<Vec<Read>>,
}

impl Builder<'_> {
    fn forward_pass(&mut self) {
        if let Some(graph) = &self.settings.graph {
            return self.graph(graph);
        }
        self.embedding();
        for layer in 0..self.settings.layers {
            self.forward(layer);
        }
        self.head();
    }

    fn backward_pass(&mut self) {
        if self.settings.graph.is_some() {
            return self.gradients_of_graph();
        }
        self.outside_gradients(Phase::Head);
        for layer in (0..self.settings.layers).rev() {
            self.backward(layer);
        }
        self.outside_gradients(Phase::Embedding);
    }

    pub(super) fn framework(&self) -> Framework {
        self.settings.framework
    }

    /// Whether the framework's own compiler makes gradients without names.
    pub(super) fn nameless_gradients(&self) -> bool {
        matches!(self.framework(), Framework::Popart | Framework::Poptorch)
    }

    pub(super) fn push(&mut self, op: Op) -> usize {
        self.model.ops.push(op);
        self.model.ops.len() - 1
    }

    pub(super) fn run(&mut self, op: Op) -> usize {
        let index = self.push(op);
        self.model.order.push(index);
        index
    }

    /// Runs an operation of the forward pass that takes the output of the one
    /// before it.
    pub(super) fn run_next(&mut self, op: Op) -> usize {
        let next = self.tail.map(Read::next);
        let op = Op {
            reads: next.into_iter().chain(op.reads.iter().copied()).collect(),
            ..op
        };
        let index = self.run(op);
        self.tail = Some(index);
        index
    }

    pub(super) fn last_output(&self) -> String {
        let last = self.model.ops.last().and_then(|op| op.outputs.first());
        last.cloned().unwrap_or_else(|| "input_ids".to_owned())
    }

    /// An operation outside the layers.
    pub(super) fn outside(
        &self,
        phase: Phase,
        name: &str,
        kind: Kind,
        [weight, activation]: [u32; 2],
    ) -> Op {
        Op {
            name: name.to_owned(),
            op_type: outside_type(kind).into(),
            kind,
            phase,
            made_for: None,
            inputs: vec![self.last_output()],
            outputs: vec![format!("{name}:0")],
            weight,
            activation,
            function: None,
            call: None,
            partner: None,
            stages: kind.stages(),
            shapes: Vec::new(),
            places: match phase {
                Phase::Embedding => Places::IN,
                Phase::Head => Places::OUT,
                Phase::Compiler => Places::EVERY,
                _ => Places::NONE,
            },
            works_on: Vec::new(),
            reads: Vec::new(),
            parts: 1,
            hands_on: true,
            rewrites: None,
            sizes: Vec::new(),
            tensors: Vec::new(),
            in_graph: None,
        }
    }

    fn embedding(&mut self) {
        use Kind::{Conv, Elementwise, Gather, Norm};
        let [words, positions, norm] = match self.settings.features.bert_large {
            true => sizes::TABLES_OF_BERT,
            false => [90, 20, 2],
        };
        let parts: &[(&str, Kind, [u32; 2])] = match self.framework() {
            Framework::Popart => &[
                ("Embedding/Gather", Gather, [words, 20]),
                ("Embedding/Position/Gather", Gather, [positions, 10]),
                ("Embedding/Norm", Norm, [norm, 10]),
            ],
            Framework::Poptorch => &[
                (
                    "bert/embeddings/word_embeddings/Gather",
                    Gather,
                    [words, 20],
                ),
                (
                    "bert/embeddings/position_embeddings/Gather",
                    Gather,
                    [positions, 10],
                ),
                ("bert/embeddings/LayerNorm/Norm", Norm, [norm, 10]),
            ],
            Framework::Tensorflow => &[
                ("model/stem/conv/Conv2D", Conv, [10, 50]),
                ("model/stem/bn/FusedBatchNormV3", Norm, [1, 20]),
                ("model/stem/pool/MaxPool", Elementwise, [0, 20]),
            ],
            Framework::Poplar => &[("embed/lookup", Gather, [60, 20])],
        };
        self.model.inputs.push(Input {
            name: "input".to_owned(),
            users: vec![self.model.ops.len()],
            bytes: None,
        });
        for &(name, kind, shares) in parts {
            let mut op = self.outside(Phase::Embedding, name, kind, shares);
            self.embedding_inputs(&mut op);
            let op = self.run_next(op);
            self.weight_outside(op, Part::In);
        }
        self.random_state();
        self.plant_mask();
    }

    /// The look-up in the word table is one of the operations that the layer-0
    /// inputs regex is there for.
    fn embedding_inputs(&self, op: &mut Op) {
        let table = match op.name.as_str() {
            "Embedding/Gather" => "Embedding_Dict",
            "bert/embeddings/word_embeddings/Gather" => "bert.embeddings.word_embeddings.weight",
            "bert/embeddings/position_embeddings/Gather" => {
                "bert.embeddings.position_embeddings.weight"
            }
            _ => return,
        };
        op.inputs = vec![table.to_owned(), "input_ids".to_owned()];
    }

    fn head(&mut self) {
        use Kind::{MatMul, Softmax};
        let [dense, loss] = match self.framework() {
            Framework::Popart => ["CLS/MatMul", "CLS/Softmax"],
            Framework::Poptorch => [
                "cls/predictions/decoder/MatMul",
                "loss/NegativeLogLikelihood",
            ],
            Framework::Tensorflow => ["model/head/dense/MatMul", "model/head/softmax/Softmax"],
            Framework::Poplar => ["head/matmul", "loss/softmax"],
        };
        self.pooler();
        let mut op = self.outside(Phase::Head, dense, MatMul, [60, 30]);
        op.inputs = vec!["sequence_output".to_owned(), "head_weight".to_owned()];
        let op = self.run_next(op);
        self.weight_outside(op, Part::Out);
        let op = self.outside(Phase::Head, loss, Softmax, [0, 40]);
        self.run_next(op);
    }

    pub(super) fn layer_op(&self, layer: u32, template: &Template) -> Op {
        let framework = self.framework();
        let name = templates::name(framework, layer, template.path);
        Op {
            outputs: vec![format!("{name}:0")],
            op_type: template.op_type.into(),
            made_for: Some(layer),
            places: Places::layer(layer),
            weight: template.weight,
            activation: template.activation,
            ..self.outside(Phase::Forward, &name, template.kind, [0, 0])
        }
    }

    fn forward(&mut self, layer: u32) {
        let outlining = self.settings.outlined != Outlined::None;
        let mut indices = Vec::new();
        let mut called = false;
        let input = self.tail;
        for (slot, template) in templates::of(self.framework()).iter().enumerate() {
            let op = if !(template.outlined && outlining) {
                self.next_in_layer(layer, slot, template, input)
            } else {
                if !called {
                    self.call(layer);
                    called = true;
                }
                self.outlined_op(layer, slot, template)
            };
            indices.push(op);
        }
        self.model.forward.push(indices);
    }

    /// An operation of a layer that is not outlined.
    fn next_in_layer(
        &mut self,
        layer: u32,
        slot: usize,
        template: &Template,
        input: Option<usize>,
    ) -> usize {
        let mut op = self.layer_op(layer, template);
        let mask = self
            .model
            .mask
            .filter(|_| slot == templates::shared_slot(self.framework()));
        op.reads.extend(mask.map(Read::saved));
        let residual = input.filter(|_| Some(slot) == templates::addition(self.framework()));
        op.reads.extend(residual.map(Read::residual));
        let op = self.run_next(op);
        self.weight_of_layer(op, layer, slot, template);
        op
    }

    /// What is read, by the first outputs of the operations that made it.
    fn names_of(&self, reads: &[Read]) -> Vec<String> {
        let name = |read: &Read| {
            let outputs = &self.model.ops[read.from].outputs;
            outputs.get(read.part).unwrap_or(&outputs[0]).clone()
        };
        reads.iter().map(name).collect()
    }
}

fn outside_type(kind: Kind) -> &'static str {
    match kind {
        Kind::MatMul => "MatMul",
        Kind::Conv => "Conv2D",
        Kind::Norm => "GroupNormalization",
        Kind::Softmax => "Softmax",
        Kind::Elementwise => "Add",
        Kind::Gather => "Gather",
        Kind::Update => "AdamVarUpdate",
        Kind::Call => "Call",
    }
}
