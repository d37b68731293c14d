//! The operations of the planted model, in execution order.

use std::collections::HashMap;

use super::flow::{Gradients, Read};
use super::forms::{Block, Planted};
use super::model_parts::shared_slot;
use super::options::{Framework, Outlined, Settings};
use super::places::Places;
use super::random::topic;
use super::stages::Shape;
use super::templates::{self, Kind, Template};
use super::tensors::{Constant, Part, Weight};

/// Which part of the model an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the first layer.
    Embedding,
    /// The forward pass of a layer.
    Forward,
    /// After the last layer, with the loss.
    Head,
    /// The backward pass of a layer, or of embedding and head.
    Backward,
    /// Weight updates.
    Optimiser,
    /// What the compiler makes for every IPU.
    Compiler,
}

/// One operation of the model.
#[derive(Debug, Clone)]
pub struct Op {
    /// What the framework calls it; empty when the framework's compiler made it.
    pub name: String,
    /// The framework's operator.
    pub op_type: &'static str,
    /// What it computes.
    pub kind: Kind,
    /// Which part of the model it is.
    pub phase: Phase,
    /// The layer that the rules of the analysis will find for it.
    pub layer: Option<u32>,
    /// The layer whose memory it was made for; differs from `layer` where the
    /// rules cannot see it.
    pub made_for: Option<u32>,
    /// Names of its input tensors.
    pub inputs: Vec<String>,
    /// Names of its output tensors.
    pub outputs: Vec<String>,
    /// Share of the weights of its layer.
    pub weight: u32,
    /// Share of the activations of its layer.
    pub activation: u32,
    /// The function whose body it stands in.
    pub function: Option<usize>,
    /// The call site, for a call.
    pub call: Option<usize>,
    /// The forward operation of a backward one, the first operation of its
    /// layer that an optimiser step updates.
    pub partner: Option<usize>,
    /// Program stages; 0 for an operation that only lent its name to a call.
    pub stages: u32,
    /// The shapes of its stages, where they are not drawn.
    pub shapes: Vec<Shape>,
    /// The places that it computes for; none for what reaches over the model.
    pub places: Places,
    /// By stage of what reaches over the model: the weights that it works on.
    pub works_on: Vec<Vec<usize>>,
    /// What it takes of other operations of the main program.
    pub reads: Vec<Read>,
    /// How many outputs it has: gradients of several things, or one.
    pub parts: usize,
    /// Whether it hands its outputs on; not what makes the gradient of a weight
    /// alone.
    pub hands_on: bool,
    /// The operation whose output it writes again, in a loop.
    pub rewrites: Option<usize>,
    /// The layer whose loop it stands in.
    pub in_loop: Option<u32>,
}

/// An outlined body.
#[derive(Debug, Clone, Default)]
pub struct Function {
    /// Its operations.
    pub ops: Vec<usize>,
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function called.
    pub function: usize,
    /// The layer it stands in; the first for a call inside a body.
    pub layer: u32,
    /// For a call inside a body: the operations that stood there, in the order
    /// of the function's.
    pub stood_here: Vec<usize>,
}

/// The planted model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// All operations; those of functions after the first call.
    pub ops: Vec<Op>,
    /// Execution order of what stands in the main program.
    pub order: Vec<usize>,
    /// Outlined bodies.
    pub functions: Vec<Function>,
    /// Call sites, in execution order.
    pub calls: Vec<Call>,
    /// Forward operations by layer and template; an outlined one is the same
    /// in every layer.
    pub forward: Vec<Vec<usize>>,
    /// Weights, of a model with known places.
    pub weights: Vec<Weight>,
    /// Constants that several places use.
    pub constants: Vec<Constant>,
    /// The operation that makes the mask.
    pub mask: Option<usize>,
    /// The first operation of the second tower.
    pub second_lookup: Option<usize>,
    /// The operation that advances the random state.
    pub advances_seed: Option<usize>,
}

impl Model {
    /// The weights that an optimiser updates.
    pub fn trained(&self) -> Vec<usize> {
        let all = 0..self.weights.len();
        all.filter(|&weight| self.weights[weight].is_trained)
            .collect()
    }
}

/// Plants the model that `settings` describe.
pub fn build(settings: &Settings) -> Model {
    let mut builder = Builder {
        settings,
        model: Model::default(),
        weight_of: HashMap::new(),
        calls_of_layers: Vec::new(),
        backward_function: None,
        tail: None,
        in_loop: None,
        blocks: vec![Vec::new(); settings.layers as usize],
        planted: Planted::default(),
        gradients: Gradients::default(),
    };
    builder.compiler_made("start-up");
    builder.embedding();
    for layer in 0..settings.layers {
        builder.forward(layer);
    }
    builder.head();
    if settings.training() {
        builder.find_gradients();
        builder.head_gradient();
        for layer in (0..settings.layers).rev() {
            builder.backward(layer);
        }
        builder.embedding_gradient();
        match settings.has_places() {
            true => builder.optimiser_of_weights(),
            false => builder.optimiser(),
        }
    }
    builder.compiler_made("instrumentation");
    builder.constants();
    builder.places_of_bodies();
    builder.model
}

/// How heavy a layer is beside the average, in thousandths: (weights,
/// activations). Convolutional networks trade activations for weights on the
/// way, the others grow a little and unevenly.
pub fn layer_scale(settings: &Settings, layer: u32) -> (u64, u64) {
    let jitter = settings
        .random
        .below(360, [topic::LAYER, layer.into(), 0, 0]);
    let way = 1000 * u64::from(layer) / u64::from(settings.layers.max(2) - 1);
    match settings.framework {
        Framework::Tensorflow => (300 + way * 14 / 10 + jitter / 2, 1700 - way * 13 / 10),
        _ => (820 + jitter, 900 + jitter / 3 + way / 4),
    }
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
    /// The layer whose loop is being planted.
    pub(super) in_loop: Option<u32>,
    /// By layer: what it consists of.
    pub(super) blocks: Vec<Vec<Block>>,
    /// What the forms have planted so far.
    pub(super) planted: Planted,
    /// The gradients so far.
    pub(super) gradients: Gradients,
}

impl Builder<'_> {
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
        let in_loop = self.in_loop;
        let index = self.push(Op { in_loop, ..op });
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
        let tail = self.tail.map(|op| &self.model.ops[op]);
        tail.filter(|_| !self.settings.features.forms.is_empty())
            .or(self.model.ops.last())
            .and_then(|op| op.outputs.first().cloned())
            .unwrap_or_else(|| "input_ids".to_owned())
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
            op_type: outside_type(kind),
            kind,
            phase,
            layer: None,
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
            in_loop: None,
        }
    }

    fn embedding(&mut self) {
        use Kind::{Conv, Elementwise, Gather, Norm};
        let parts: &[(&str, Kind, [u32; 2])] = match self.framework() {
            Framework::Popart => &[
                ("Embedding/Gather", Gather, [90, 20]),
                ("Embedding/Position/Gather", Gather, [20, 10]),
                ("Embedding/Norm", Norm, [2, 10]),
            ],
            Framework::Poptorch => &[
                ("bert/embeddings/word_embeddings/Gather", Gather, [90, 20]),
                (
                    "bert/embeddings/position_embeddings/Gather",
                    Gather,
                    [20, 10],
                ),
                ("bert/embeddings/LayerNorm/Norm", Norm, [2, 10]),
            ],
            Framework::Tensorflow => &[
                ("model/stem/conv/Conv2D", Conv, [10, 50]),
                ("model/stem/bn/FusedBatchNormV3", Norm, [1, 20]),
                ("model/stem/pool/MaxPool", Elementwise, [0, 20]),
            ],
            Framework::Poplar => &[("embed/lookup", Gather, [60, 20])],
        };
        for &(name, kind, shares) in parts {
            let mut op = self.outside(Phase::Embedding, name, kind, shares);
            self.embedding_inputs(&mut op);
            let op = self.run_next(op);
            self.weight_outside(op, Part::In);
        }
        self.before_layers();
        self.plant_mask();
    }

    /// The look-up in the word table is one of the operations that the layer-0
    /// inputs regex is there for.
    fn embedding_inputs(&self, op: &mut Op) {
        let (table, layer) = match op.name.as_str() {
            "Embedding/Gather" => ("Embedding_Dict", Some(0)),
            "bert/embeddings/word_embeddings/Gather" => {
                ("bert.embeddings.word_embeddings.weight", Some(0))
            }
            "bert/embeddings/position_embeddings/Gather" => {
                ("bert.embeddings.position_embeddings.weight", None)
            }
            _ => return,
        };
        op.inputs = vec![table.to_owned(), "input_ids".to_owned()];
        op.layer = layer;
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
        self.pyramid();
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
        let mut inputs = vec![self.last_output()];
        if template.weight > 0 {
            inputs.push(templates::weight_name(framework, layer, template.path));
        }
        Op {
            outputs: vec![format!("{name}:0")],
            op_type: template.op_type,
            layer: Some(layer),
            made_for: Some(layer),
            places: Places::layer(layer),
            inputs,
            weight: template.weight,
            activation: template.activation,
            ..self.outside(Phase::Forward, &name, template.kind, [0, 0])
        }
    }

    fn forward(&mut self, layer: u32) {
        let outlining = self.settings.outlined != Outlined::None;
        let mut indices = Vec::new();
        let mut called = false;
        self.layer_input(layer);
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
            self.blocks[layer as usize].push(Block::Slot(slot, op));
        }
        self.model.forward.push(indices);
        self.layer_end(layer);
    }

    /// An operation of a layer that is not outlined.
    fn next_in_layer(
        &mut self,
        layer: u32,
        slot: usize,
        template: &Template,
        input: Option<usize>,
    ) -> usize {
        let cast = if slot == 0 { self.cast(layer) } else { None };
        let mut op = self.layer_op(layer, template);
        let mask = self
            .model
            .mask
            .filter(|_| slot == shared_slot(self.framework()));
        op.reads.extend(mask.map(Read::saved));
        let residual = input.filter(|_| Some(slot) == templates::addition(self.framework()));
        op.reads.extend(residual.map(Read::residual));
        let further = self.further_reads(layer, slot);
        op.reads.extend(&further);
        let op = self.run_next(op);
        match cast {
            None => self.weight_of_layer(op, layer, slot, template),
            Some(cast) => {
                self.model.ops[op].inputs.pop();
                self.also_reads(op, cast);
            }
        }
        let names = further
            .iter()
            .map(|read| self.model.ops[read.from].outputs[0].clone());
        let names: Vec<String> = names.collect();
        self.model.ops[op].inputs.extend(names);
        op
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
