//! Plants the forward pass of a real model, operation by operation, and the gradient of each
//! operation.

use std::collections::{HashMap, HashSet};

use super::Builder;
use crate::graph_file::{ForwardPass, Operation};
use crate::model::{Op, Phase, Read};
use crate::places::Places;
use crate::sizes;
use crate::templates::Kind;
use crate::tensors::Given;

/// The state while a graph is planted.
struct Planted<'a> {
    graph: &'a ForwardPass,
    /// By tensor: the operation that wrote it last.
    writers: HashMap<usize, usize>,
    /// Number of tensors so far with each name.
    names: HashMap<String, usize>,
    weights: HashMap<String, usize>,
}

impl Planted<'_> {
    /// Returns the name of a tensor in PopART: a tensor whose name another one has gets a number.
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
    /// Plants the forward pass, and a loss if there is a backward pass.
    pub(super) fn graph(&mut self, graph: &ForwardPass) {
        let (_, positions) = graph.positions();
        let mut planted = Planted {
            graph,
            writers: HashMap::new(),
            names: HashMap::new(),
            weights: HashMap::new(),
        };
        for (number, (operation, &position)) in graph.ops.iter().zip(&positions).enumerate() {
            let op = self.operation(operation, position, &mut planted);
            let op = self.run(Op {
                in_graph: Some(number),
                ..op
            });
            self.parameters(operation, op, &mut planted);
            self.read_from_outside(operation, op, &mut planted);
            self.hand_on(operation, op, &mut planted);
        }
        if self.settings.training() {
            self.loss();
        }
    }

    fn operation(&self, operation: &Operation, position: u32, planted: &mut Planted) -> Op {
        let layers = self.settings.layers;
        let phase = match position {
            0 => Phase::Embedding,
            _ if position > layers => Phase::Head,
            _ => Phase::Forward,
        };
        let read = |tensor: &usize| {
            let from = planted.writers[tensor];
            let mut made = self.model.ops[from].tensors.iter();
            Read {
                part: made.position(|made| made == tensor).unwrap_or(0),
                ..Read::saved(from)
            }
        };
        let reads: Vec<Read> = operation.reads().iter().map(read).collect();
        let name = operation.name();
        let outputs = operation.5.iter().enumerate();
        let graph = planted.graph;
        let elements = |tensor: &usize| graph.tensors[*tensor];
        Op {
            op_type: operation.1.clone(),
            inputs: self.names_of(&reads),
            outputs: outputs.map(|(at, _)| planted.name(&name, at)).collect(),
            made_for: position.checked_sub(1).filter(|&layer| layer < layers),
            places: Places::positions(layers, position..=position),
            parts: operation.5.len(),
            elements: operation.5.iter().map(elements).collect(),
            tensors: operation.5.clone(),
            reads,
            ..self.outside(phase, &name, kind_of(&operation.1), 0)
        }
    }

    fn parameters(&mut self, operation: &Operation, op: usize, planted: &mut Planted) {
        let graph = planted.graph;
        let part = self.model.part(op);
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

    /// Plants the inputs of an operation that are no activations: an only input comes from the
    /// host, an input beside others is a constant.
    fn read_from_outside(&mut self, operation: &Operation, op: usize, planted: &mut Planted) {
        if !operation.4.contains(&-1) {
            return;
        }
        let is_input = operation.reads().is_empty();
        let this = &self.model.ops[op];
        let name = match (is_input, self.model.inputs.len()) {
            (true, 0) => "input".to_owned(),
            (true, number) => format!("input/{number}"),
            (false, _) => {
                let scope = this.name.rsplit_once('/');
                let scope = scope.map_or(String::new(), |(scope, _)| format!("{scope}/"));
                planted.name(&format!("{scope}Constant"), 0)
            }
        };
        let of_input = || sizes::of_elements(self.settings.batch * this.elements[0]) / 64;
        let given = Given {
            name: name.clone(),
            users: vec![op],
            bytes: Some(if is_input { of_input() } else { 4 }),
        };
        match is_input {
            true => self.model.inputs.push(given),
            false => self.model.constants.push(given),
        }
        self.model.ops[op].inputs.push(name);
    }

    /// Records the outputs of an operation. A tensor that it writes in place is not a new tensor.
    fn hand_on(&mut self, operation: &Operation, op: usize, planted: &mut Planted) {
        for &tensor in &operation.5 {
            if let Some(writer) = planted.writers.insert(tensor, op) {
                let maker = self.model.ops[writer].rewrites.unwrap_or(writer);
                self.model.ops[op].rewrites = Some(maker);
                self.model.ops[op].hands_on = false;
            }
        }
    }

    /// Plants the loss, which reads all outputs that need a gradient and that no operation reads.
    fn loss(&mut self) {
        self.find_gradients();
        let ops = &self.model.ops;
        let read = ops.iter().flat_map(|op| &op.reads);
        let read: HashSet<usize> = read.map(|read| read.from).collect();
        let ends = (0..ops.len()).filter(|&op| self.gradients.needed[op] && !read.contains(&op));
        let reads: Vec<Read> = ends.map(Read::saved).collect();
        let name = &self.templates.names["loss"];
        let op = Op {
            inputs: self.names_of(&reads),
            elements: vec![1],
            reads,
            ..self.outside(Phase::Head, name, Kind::Softmax, 0)
        };
        self.run(op);
    }

    /// Creates the operation that makes the gradients of all inputs and weights of an operation.
    pub(super) fn gradient_in_graph(&self, of: usize) -> Op {
        let forward = self.model.ops[of].clone();
        let passed_back: Vec<Read> = self.passed_back(of).collect();
        let name = match self.settings.is_popart() {
            true => String::new(),
            false => self.templates.named("gradient", &forward.name) + "/Grad",
        };
        let edges = passed_back.iter().enumerate();
        let edges = edges.map(|(number, read)| self.edge(number, read));
        let weights = self.model.weights.iter();
        let weights = weights.filter(|weight| weight.is_trained_for(of));
        let outputs = edges.chain(weights.map(|weight| weight.name.clone()));
        let outputs = outputs.map(|name| format!("Gradient___{name}")).collect();
        let into = &self.gradients.made[of];
        let reads = passed_back.iter();
        let elements = reads.map(|read| self.model.ops[read.from].elements[read.part]);
        let elements: Vec<u64> = elements.collect();
        Op {
            inputs: [self.names_of(into), forward.inputs].concat(),
            outputs,
            op_type: format!("{}Grad", forward.op_type),
            made_for: forward.made_for,
            places: forward.places,
            partner: Some(of),
            in_graph: forward.in_graph,
            hands_on: !elements.is_empty(),
            elements: match elements.is_empty() {
                true => forward.elements,
                false => elements,
            },
            ..self.outside(Phase::Backward, &name, forward.kind, 0)
        }
    }

    /// Returns PopART's name for the gradient that flows back along an edge: it contains the name
    /// of the tensor, or that of the operation if the tensor has several gradients, since their sum
    /// has the name of the tensor.
    fn edge(&self, number: usize, read: &Read) -> String {
        match self.gradients.expected[read.from] {
            0 | 1 => self.model.ops[read.from].outputs[read.part].clone(),
            _ => format!("{}_{number}", self.model.ops.len()),
        }
    }
}

fn kind_of(op_type: &str) -> Kind {
    let kinds: [(Kind, &[&str]); 5] = [
        (Kind::MatMul, &["matmul", "gemm", "einsum"]),
        (Kind::Conv, &["conv", "depthwise"]),
        (Kind::Norm, &["norm", "mean", "variance", "reduce"]),
        (Kind::Softmax, &["softmax"]),
        (Kind::Gather, &["gather"]),
    ];
    let op_type = op_type.to_lowercase();
    let is_it = |(_, parts): &(Kind, &[&str])| parts.iter().any(|part| op_type.contains(part));
    let kind = kinds.into_iter().find(is_it);
    kind.map_or(Kind::Elementwise, |(kind, _)| kind)
}
