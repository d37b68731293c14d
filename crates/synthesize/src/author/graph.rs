//! The forward pass of a real model, operation by operation, and the gradient of each.

use std::collections::HashMap;

use super::Builder;
use crate::graph_file::{ForwardPass, Operation};
use crate::model::{Input, Op, Phase, Read};
use crate::places::Places;
use crate::sizes;
use crate::templates::{Kind, named};
use crate::tensors::{Constant, Part};

/// What is known of a graph while it is planted.
#[derive(Default)]
struct Planted {
    /// By tensor: the operation that wrote it last.
    writers: HashMap<usize, usize>,
    /// By tensor: the operation that wrote it first.
    makers: HashMap<usize, usize>,
    /// How often a tensor has been named so.
    names: HashMap<String, usize>,
    /// Weights by name.
    weights: HashMap<String, usize>,
    /// By operation: whether the gradient of its output is needed.
    needed: Vec<bool>,
}

impl Planted {
    /// PopART's names of tensors: what has the name of another gets a number.
    fn name(&mut self, name: &str, output: usize) -> String {
        let base = format!("{name}:{output}");
        let count = self.names.entry(base.clone()).or_default();
        *count += 1;
        match *count - 1 {
            0 => base,
            number => format!("{base}/{number}"),
        }
    }
}

impl Builder<'_> {
    /// Plants the forward pass, and a loss where there is a backward pass.
    pub(super) fn graph(&mut self, graph: &ForwardPass) {
        let (_, positions) = graph.positions();
        let mut planted = Planted::default();
        for (number, (operation, &position)) in graph.ops.iter().zip(&positions).enumerate() {
            let op = self.operation(graph, operation, position, &mut planted);
            let op = self.run(Op {
                in_graph: Some(number),
                ..op
            });
            self.parameters(graph, operation, op, &mut planted);
            self.read_from_outside(operation, op, &mut planted);
            self.hand_on(operation, op, &mut planted);
        }
        if self.settings.training() {
            self.loss(&planted);
        }
    }

    fn operation(
        &self,
        graph: &ForwardPass,
        operation: &Operation,
        position: u32,
        planted: &mut Planted,
    ) -> Op {
        let layers = self.settings.layers;
        let phase = match position {
            0 => Phase::Embedding,
            _ if position > layers => Phase::Head,
            _ => Phase::Forward,
        };
        let reads: Vec<Read> = operation
            .reads()
            .iter()
            .map(|tensor| {
                let from = planted.writers[tensor];
                let made = &self.model.ops[from].tensors;
                Read {
                    part: made.iter().position(|made| made == tensor).unwrap_or(0),
                    ..Read::saved(from)
                }
            })
            .collect();
        let name = operation.name();
        let outputs = operation.5.iter().enumerate();
        let bytes = |tensor: &usize| sizes::of_elements(graph.tensors[*tensor]);
        Op {
            op_type: operation.1.clone(),
            inputs: self.names_of(&reads),
            outputs: outputs.map(|(at, _)| planted.name(&name, at)).collect(),
            made_for: position.checked_sub(1).filter(|&layer| layer < layers),
            places: Places::positions(layers, position..=position),
            parts: operation.5.len(),
            sizes: operation.5.iter().map(bytes).collect(),
            tensors: operation.5.clone(),
            reads,
            ..self.outside(phase, &name, kind_of(&operation.1), 0)
        }
    }

    /// The weights that an operation computes with.
    fn parameters(
        &mut self,
        graph: &ForwardPass,
        operation: &Operation,
        op: usize,
        planted: &mut Planted,
    ) {
        let part = match (self.model.ops[op].phase, self.model.ops[op].made_for) {
            (_, Some(layer)) => Part::Layer(layer),
            (Phase::Head, None) => Part::Out,
            _ => Part::In,
        };
        for parameter in &operation.3 {
            let name = graph.name_of_parameter(parameter);
            let lender = planted.weights.get(name).copied();
            let slot = lender.unwrap_or(self.model.weights.len());
            self.give_weight((op, part, slot), (name, 1), lender);
            planted.weights.insert(name.to_owned(), slot);
            let weight = &mut self.model.weights[slot];
            weight.is_trained &= graph.is_trained(parameter);
            if lender.is_none() {
                let elements = graph.elements_of_parameter(operation, parameter);
                weight.bytes = Some(sizes::of_elements(elements));
            }
        }
    }

    /// What an operation reads that is no activation: alone it comes from the host,
    /// beside others it is a constant.
    fn read_from_outside(&mut self, operation: &Operation, op: usize, planted: &mut Planted) {
        if !operation.reads_from_outside() {
            return;
        }
        let name = if operation.reads().is_empty() {
            let name = match self.model.inputs.len() {
                0 => "input".to_owned(),
                number => format!("input/{number}"),
            };
            self.model.inputs.push(Input {
                name: name.clone(),
                users: vec![op],
                bytes: Some(self.model.ops[op].sizes[0] / 64),
            });
            name
        } else {
            let scope = self.model.ops[op].name.rsplit_once('/');
            let scope = scope.map_or(String::new(), |(scope, _)| format!("{scope}/"));
            let name = planted.name(&format!("{scope}Constant"), 0);
            self.model.constants.push(Constant {
                name: name.clone(),
                users: vec![op],
                bytes: Some(4),
            });
            name
        };
        self.model.ops[op].inputs.push(name);
    }

    /// Notes what an operation writes; what it writes in place is no tensor of its own.
    fn hand_on(&mut self, operation: &Operation, op: usize, planted: &mut Planted) {
        let mut weights = self.model.weights.iter();
        let mut reads = self.model.ops[op].reads.iter();
        let is_needed = weights.any(|weight| weight.is_trained_for(op))
            || reads.any(|read| planted.needed[read.from]);
        planted.needed.resize(op, false);
        planted.needed.push(is_needed);
        for &tensor in &operation.5 {
            match planted.makers.get(&tensor) {
                Some(&maker) => {
                    self.model.ops[op].rewrites = Some(maker);
                    self.model.ops[op].hands_on = false;
                }
                None => drop(planted.makers.insert(tensor, op)),
            }
            planted.writers.insert(tensor, op);
        }
    }

    /// The loss reads all that nothing else does.
    fn loss(&mut self, planted: &Planted) {
        let ops = &self.model.ops;
        let read: Vec<usize> = ops
            .iter()
            .flat_map(|op| op.reads.iter().map(|read| read.from))
            .collect();
        let ends = (0..ops.len()).filter(|&op| planted.needed.get(op) == Some(&true));
        let ends = ends.filter(|op| !read.contains(op)).map(Read::saved);
        let reads: Vec<Read> = ends.collect();
        let name = &self.templates.names.loss;
        let op = Op {
            inputs: self.names_of(&reads),
            sizes: vec![4],
            reads,
            ..self.outside(Phase::Head, name, Kind::Softmax, 0)
        };
        self.run(op);
    }

    /// One operation makes the gradients of all that an operation has read, and of its
    /// weights.
    pub(super) fn gradient_in_graph(&self, of: usize) -> Op {
        let forward = self.model.ops[of].clone();
        let passed_back: Vec<Read> = self.passed_back(of).collect();
        let name = match self.nameless_gradients() {
            true => String::new(),
            false => named(&self.templates.names.gradient, &forward.name) + "/Grad",
        };
        let op = self.model.ops.len();
        let edges = passed_back
            .iter()
            .enumerate()
            .map(|(edge, read)| self.edge(op, edge, read));
        let of_weights = self.model.weights.iter();
        let of_weights = of_weights.filter(|weight| weight.is_trained_for(of));
        let of_weights = of_weights.map(|weight| weight.name.clone());
        let outputs = edges.chain(of_weights);
        let outputs = outputs.map(|name| format!("Gradient___{name}")).collect();
        let into = self.gradient_into(of);
        let sizes = passed_back
            .iter()
            .map(|read| self.model.ops[read.from].sizes[read.part]);
        let sizes: Vec<u64> = sizes.collect();
        Op {
            inputs: [self.names_of(&into), forward.inputs].concat(),
            outputs,
            op_type: format!("{}Grad", forward.op_type),
            made_for: forward.made_for,
            places: forward.places,
            partner: Some(of),
            in_graph: forward.in_graph,
            hands_on: !sizes.is_empty(),
            sizes: if sizes.is_empty() {
                forward.sizes
            } else {
                sizes
            },
            ..self.outside(Phase::Backward, &name, forward.kind, 0)
        }
    }

    /// What PopART calls the gradient that flows back along an edge: after the tensor, or
    /// after the operation where the tensor has several and their sum is called so.
    fn edge(&self, op: usize, edge: usize, read: &Read) -> String {
        match self.gradients.expected[read.from] {
            0 | 1 => self.model.ops[read.from].outputs[read.part].clone(),
            _ => format!("{op}_{edge}"),
        }
    }
}

/// The computation of an operation by its type, to which TensorFlow adds a number.
fn kind_of(op_type: &str) -> Kind {
    let kinds: [(Kind, &[&str]); 5] = [
        (Kind::MatMul, &["matmul", "gemm", "einsum"]),
        (Kind::Conv, &["conv", "depthwise"]),
        (Kind::Norm, &["norm", "mean", "variance", "reduce"]),
        (Kind::Softmax, &["softmax"]),
        (Kind::Gather, &["gather"]),
    ];
    let op_type = op_type.to_lowercase();
    let is_it = |(_, parts): &&(Kind, &[&str])| parts.iter().any(|part| op_type.contains(part));
    kinds
        .iter()
        .find(is_it)
        .map_or(Kind::Elementwise, |kind| kind.0)
}
