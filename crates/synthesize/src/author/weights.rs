//! Plants weights, and the operations on all weights after the backward pass: a norm over the
//! gradients, and the optimiser.

use super::Builder;
use crate::model::{Op, Phase, Shape};
use crate::places::Places;
use crate::settings::{Framework, Names, Optimiser, Tied};
use crate::templates::{Kind, Template};
use crate::tensors::{Part, Weight};

/// The shapes of the stages that add up the norms of all gradients and send the sum to all tiles.
const GATHER: [Shape; 2] = [Shape::Exchanged, Shape::Copy];

/// An operation that computes with a weight, its part of the model, and the number of the weight in
/// this part.
pub(super) type User = (usize, Part, usize);

impl Builder<'_> {
    pub(super) fn weight_of_template(&mut self, user: User, template: &Template) {
        let (_, part, slot) = user;
        if template.weight == 0 {
            return;
        }
        let lender = match (self.settings.features.tied, part) {
            // The third layer shares the first weight of the first layer.
            (Some(Tied::Layers), Part::Layer(2)) if slot == 0 => {
                let mut weights = self.model.weights.iter();
                weights.position(|weight| weight.part == Part::Layer(0))
            }
            (Some(Tied::Ends), Part::In | Part::Out) => template.may_be_tied.then_some(0),
            _ => None,
        };
        let name = self.weight_name(part, template);
        self.give_weight(user, (&name, template.weight), lender);
    }

    pub(super) fn weight_name(&self, part: Part, template: &Template) -> String {
        if let Some(name) = &template.weight_name {
            return name.clone();
        }
        let path = template.path.as_str();
        let owner = path.rsplit_once('/').map_or(path, |(owner, _)| owner);
        let owner = self.name_in(part, owner);
        match self.settings.framework {
            Framework::Poptorch => format!("{}.weight", owner.replace('/', ".")),
            _ => format!("{owner}/weight"),
        }
    }

    /// Makes an operation compute with a weight, and adds the name of the weight to its inputs: the
    /// weight of the lending operation, or a new one, which is called `name` if names are to
    /// identify weights. Returns the number of the weight.
    pub(super) fn give_weight(
        &mut self,
        (op, part, slot): User,
        (name, share): (&str, u32),
        lender: Option<usize>,
    ) -> usize {
        let index = lender.unwrap_or(self.model.weights.len());
        if lender.is_none() {
            self.model.weights.push(Weight {
                name: self.tensor_name(index, name),
                part,
                slot,
                share,
                places: Places::NONE,
                users: Vec::new(),
                gradients: Vec::new(),
                is_trained: false,
                bytes: None,
            });
        }
        let is_trained = self.is_trained(part);
        let weight = &mut self.model.weights[index];
        if !weight.users.contains(&op) {
            weight.is_trained |= is_trained;
            weight.users.push(op);
            weight.places = weight.places | part.places();
        }
        self.model.ops[op].inputs.push(weight.name.clone());
        index
    }

    fn is_trained(&self, part: Part) -> bool {
        let is_frozen = match part {
            Part::In => true,
            Part::Layer(layer) => layer < self.settings.layers / 2,
            Part::Out => false,
        };
        self.settings.training() && !(is_frozen && self.settings.features.frozen)
    }

    /// Returns the name of the tensor of a weight. Exporters number weights that have no name.
    fn tensor_name(&self, index: usize, name: &str) -> String {
        match (self.settings.features.names, self.settings.framework) {
            (Names::Operation | Names::Variable, _) => name.to_owned(),
            (_, Framework::Tensorflow) => format!("Variable_{index}"),
            (_, Framework::Poplar) => format!("weights_{index}"),
            _ => format!("onnx::MatMul_{}", 1000 + 7 * index),
        }
    }

    /// Adds all operations between the backward pass and the next step.
    pub(super) fn optimiser(&mut self) {
        if self.settings.features.gradient_norm {
            self.gradient_norm();
        }
        match self.settings.features.optimiser {
            Optimiser::Sgd | Optimiser::AdamEach => {
                for weight in self.model.trained() {
                    self.update_of(weight);
                }
            }
            Optimiser::AdamSets => self.update_of_all(self.sets_over_weights()),
            Optimiser::AdamFused => self.update_of_all(vec![self.model.trained()]),
        }
    }

    fn sets_over_weights(&self) -> Vec<Vec<usize>> {
        let all = self.model.trained().into_iter();
        all.map(|weight| vec![weight]).collect()
    }

    /// Creates an operation with a compute set for each list of weights in `works_on`. The compute
    /// set works on these weights or on their gradients.
    fn over_weights(
        &self,
        name: &str,
        (kind, op_type): (Kind, &str),
        works_on: Vec<Vec<usize>>,
    ) -> Op {
        let name = if self.settings.is_popart() { "" } else { name };
        Op {
            op_type: op_type.to_owned(),
            shapes: vec![Shape::Compute; works_on.len()],
            stages: works_on.len() as u32,
            works_on,
            ..self.outside(Phase::Optimiser, name, kind, 0)
        }
    }

    /// Creates a global operation. In PopART, the tensors that it uses are among its inputs.
    fn reaching(&self, name: &str, kind: (Kind, &str), works_on: Vec<Vec<usize>>) -> Op {
        let weights = self.model.weights.iter().filter(|weight| weight.is_trained);
        let inputs = weights.map(|weight| format!("Gradient___{}", weight.name));
        Op {
            inputs: inputs.collect(),
            outputs: vec![format!("{}___updated", kind.1)],
            ..self.over_weights(name, kind, works_on)
        }
    }

    /// Adds the norm: the sum of squares of each gradient, their sum on one tile, and the scaling
    /// of each gradient by the result. In PopART (`ClipWeightGradientsByNorm`) and TensorFlow
    /// (`clip_by_global_norm`) each gradient has operations of its own for that.
    fn gradient_norm(&mut self) {
        let all = self.model.trained();
        let name = &self.templates.names["norm"];
        if self.settings.framework == Framework::Poplar {
            let sets = self.sets_over_weights();
            let works_on = [&sets[..], &[all.clone(), all], &sets].concat();
            let mut op = self.reaching(name, (Kind::Norm, "ReduceSumSquare"), works_on);
            op.shapes[sets.len()..][..2].copy_from_slice(&GATHER);
            self.run(op);
            return;
        }
        for (number, &weight) in all.iter().enumerate() {
            let name = format!("{name}/L2Loss_{number}");
            self.run(self.of_gradient(weight, &name, "ReduceSumSquare", "clipping"));
        }
        let sum = (Kind::Norm, "Sum");
        self.run(Op {
            shapes: GATHER.to_vec(),
            ..self.reaching(&format!("{name}/Sum"), sum, vec![all.clone(); 2])
        });
        for (number, &weight) in all.iter().enumerate() {
            let name = format!("{name}/mul_{number}");
            self.run(self.of_gradient(weight, &name, "Mul", "clipped"));
        }
    }

    /// Creates an operation on the gradient of one weight only, or on its accumulator. PopART names
    /// its output after that tensor.
    fn of_gradient(&self, weight: usize, name: &str, op_type: &str, made: &str) -> Op {
        let planted = &self.model.weights[weight];
        let gradient = match self.settings.features.accumulation {
            true => format!("Accum___{}", planted.name),
            false => format!("Gradient___{}", planted.name),
        };
        Op {
            outputs: vec![format!("{gradient}_{made}__t{weight}")],
            inputs: vec![gradient],
            places: planted.places,
            ..self.over_weights(name, (Kind::Norm, op_type), vec![vec![weight]])
        }
    }

    fn update_of(&mut self, weight: usize) {
        let Weight { name, places, .. } = &self.model.weights[weight];
        let names = self.settings.features.names;
        let path = match names {
            Names::Operation => name.clone(),
            _ => weight.to_string(),
        };
        let path = self.templates.named("update", path);
        let kind = (Kind::Update, self.update_type());
        self.run(Op {
            inputs: match names {
                Names::Variable => vec![format!("t{weight}"), format!("t{weight}_grad")],
                _ => vec![name.clone(), format!("Gradient___{name}")],
            },
            outputs: vec![format!("{name}___updated")],
            places: *places,
            ..self.over_weights(&path, kind, vec![vec![weight]])
        });
    }

    fn update_of_all(&mut self, sets: Vec<Vec<usize>>) {
        let name = &self.templates.names["update_of_all"];
        let kind = (Kind::Update, self.update_type());
        self.run(self.reaching(name, kind, sets));
    }

    fn update_type(&self) -> &'static str {
        match self.settings.features.optimiser {
            Optimiser::Sgd => "SGD0VarUpdate",
            _ => "AdamVarUpdate",
        }
    }
}
