//! Decides which operations a model has, in which order, which outputs each of them uses, and to
//! which places it belongs.
//!
//! A template ([`templates`](super::templates)) or a graph ([`graph`]) gives the forward pass;
//! gradients, sums and updates follow from it ([`backward`], [`weights`]).

mod backward;
mod graph;
mod marks;
mod outlining;
mod parts;
mod weights;

use super::model::{Model, Op, Phase, Read};
use super::places::Places;
use super::settings::{Outlined, Settings};
use super::sizes::TABLES_OF_BERT;
use super::templates::{self, Kind, Template, Templates};
use super::tensors::{Given, Part};

pub fn build(settings: &Settings) -> Model {
    let mut builder = Builder {
        settings,
        templates: templates::of(settings.framework),
        model: Model::default(),
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
    marks::take_away(&mut builder.model, settings);
    builder.model
}

pub(super) struct Builder<'a> {
    pub(super) settings: &'a Settings,
    pub(super) templates: &'static Templates,
    pub(super) model: Model,
    /// The operation whose output comes next in the forward pass.
    pub(super) tail: Option<usize>,
    pub(super) gradients: Gradients,
}

/// The gradients of a model while they are planted.
#[derive(Debug, Clone, Default)]
pub(super) struct Gradients {
    /// By forward operation: whether a gradient of its output or weight is needed.
    pub needed: Vec<bool>,
    /// By forward operation: how many gradients its output gets.
    pub expected: Vec<usize>,
    /// By forward operation: the gradients of its output that are already made.
    pub made: Vec<Vec<Read>>,
}

impl Builder<'_> {
    fn forward_pass(&mut self) {
        if let Some(graph) = &self.settings.graph {
            return self.graph(graph);
        }
        self.embedding();
        self.random_state();
        self.mask();
        for layer in 0..self.settings.layers {
            self.forward(layer);
        }
        for template in &self.templates.head {
            self.next(Part::Out, self.model.ops.len(), template, None);
        }
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

    /// Adds an operation of the forward pass that uses the output of the operation before it.
    pub(super) fn run_next(&mut self, op: Op) -> usize {
        let next = self.tail.map(Read::next).into_iter();
        let reads = next.chain(op.reads).collect();
        let index = self.run(Op { reads, ..op });
        self.tail = Some(index);
        index
    }

    pub(super) fn last_output(&self) -> String {
        let last = self.model.ops.last().and_then(|op| op.outputs.first());
        last.cloned().unwrap_or_else(|| "input_ids".to_owned())
    }

    /// Creates an operation outside the layers, with its share of activations.
    pub(super) fn outside(&self, phase: Phase, name: &str, kind: Kind, activation: u32) -> Op {
        Op {
            name: name.to_owned(),
            op_type: outside_type(kind).to_owned(),
            kind,
            phase,
            inputs: vec![self.last_output()],
            outputs: vec![format!("{name}:0")],
            activation,
            stages: kind.stages(),
            places: match phase {
                Phase::Embedding => Places::IN,
                Phase::Head => Places::OUT,
                Phase::Compiler => Places::EVERY,
                _ => Places::NONE,
            },
            parts: 1,
            hands_on: true,
            ..Op::default()
        }
    }

    pub(super) fn op_of(&self, part: Part, template: &Template) -> Op {
        let phase = match part {
            Part::In => Phase::Embedding,
            Part::Layer(_) => Phase::Forward,
            Part::Out => Phase::Head,
        };
        let name = self.name_in(part, &template.path);
        let op = self.outside(phase, &name, template.kind, template.activation);
        Op {
            op_type: template.op_type.clone(),
            inputs: match template.inputs.is_empty() {
                true => op.inputs,
                false => template.inputs.clone(),
            },
            made_for: part.layer(),
            places: part.places(),
            ..op
        }
    }

    /// Returns the full name of the operation that a template calls `path`, in a part of the model.
    fn name_in(&self, part: Part, path: &str) -> String {
        match part {
            Part::Layer(layer) => self.templates.name(layer, path),
            Part::In | Part::Out => path.to_owned(),
        }
    }

    fn embedding(&mut self) {
        self.model.inputs.push(Given {
            name: "input".to_owned(),
            users: vec![self.model.ops.len()],
            bytes: None,
        });
        for (template, rows) in self.templates.embedding.iter().zip(TABLES_OF_BERT) {
            let mut template = template.clone();
            if self.settings.features.bert_large {
                template.weight = rows;
            }
            self.next(Part::In, self.model.ops.len(), &template, None);
        }
    }

    fn forward(&mut self, layer: u32) {
        let outlining = self.settings.outlined != Outlined::None;
        let mut indices = Vec::new();
        let input = self.tail;
        let mut is_called = false;
        for (slot, template) in self.templates.layer.iter().enumerate() {
            let is_outlined = template.outlined && outlining;
            if is_outlined && !is_called {
                self.call(layer);
                is_called = true;
            }
            indices.push(match is_outlined {
                true => self.outlined_op(layer, slot, template),
                false => self.next(Part::Layer(layer), slot, template, input),
            });
        }
        self.model.forward.push(indices);
    }

    /// Adds an operation that is not outlined. In a layer with this input, one operation uses the
    /// mask too, and one the input.
    fn next(&mut self, part: Part, slot: usize, template: &Template, from: Option<usize>) -> usize {
        let mut op = self.op_of(part, template);
        if let Part::Layer(_) = part {
            let has_mask = slot == self.templates.shared_slot();
            let mask = self.model.mask.filter(|_| has_mask);
            op.reads.extend(mask.map(Read::saved));
            let residual = from.filter(|_| Some(slot) == self.templates.addition());
            op.reads.extend(residual.map(|from| Read {
                has_gradient: false,
                ..Read::next(from)
            }));
        }
        let op = self.run_next(op);
        self.weight_of_template((op, part, slot), template);
        op
    }

    /// Returns the names of inputs: those of the first outputs of the operations that made them.
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
