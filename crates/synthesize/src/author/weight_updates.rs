//! Operations on all weights after the backward pass: a norm over the gradients, and the
//! optimiser.

use super::Builder;
use crate::features::{Names, Optimiser};
use crate::model::Shape;
use crate::model::{Op, Phase};
use crate::templates::{Kind, named};

/// What adds up the norms of all gradients and gives the sum to all tiles.
const GATHER: [Shape; 2] = [Shape::Exchanged, Shape::Copy];

impl Builder<'_> {
    /// All that stands between the backward pass and the next step.
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
            Optimiser::AdamSets => self.fused_update(false),
            Optimiser::AdamFused => self.fused_update(true),
        }
    }

    /// By stage: the weights that its compute set works on.
    fn sets_over_weights(&self, whole: bool) -> Vec<Vec<usize>> {
        let all = self.model.trained();
        if whole {
            vec![all]
        } else {
            all.into_iter().map(|weight| vec![weight]).collect()
        }
    }

    /// A global operation: PopART names the tensors that it uses among its
    /// inputs.
    fn reaching(
        &self,
        name: &str,
        (kind, op_type): (Kind, &'static str),
        works_on: Vec<Vec<usize>>,
    ) -> Op {
        let name = if self.nameless_gradients() { "" } else { name };
        let op = self.outside(Phase::Optimiser, name, kind, 0);
        let weights = self.model.weights.iter().filter(|weight| weight.is_trained);
        Op {
            op_type: op_type.to_owned(),
            inputs: weights
                .map(|weight| format!("Gradient___{}", weight.name))
                .collect(),
            outputs: vec![format!("{op_type}___updated")],
            shapes: vec![Shape::Compute; works_on.len()],
            stages: works_on.len() as u32,
            works_on,
            ..op
        }
    }

    /// The sum of squares of each gradient, which one tile adds up; then each gradient is scaled
    /// by what comes of it. In PopART (`ClipWeightGradientsByNorm`) and TensorFlow
    /// (`clip_by_global_norm`) each gradient has operations of its own for that.
    fn gradient_norm(&mut self) {
        let all = self.model.trained();
        let name = &self.templates.names.norm;
        if !self.settings.norms_each_gradient() {
            let sets = self.sets_over_weights(false);
            let works_on = [&sets[..], &[all.clone(), all], &sets].concat();
            let mut op = self.reaching(name, (Kind::Norm, "ReduceSumSquare"), works_on);
            op.shapes[sets.len()..][..2].copy_from_slice(&GATHER);
            self.run(op);
            return;
        }
        for (number, &weight) in all.iter().enumerate() {
            let named = (format!("{name}/L2Loss_{number}"), "clipping");
            let op = self.of_gradient(weight, named, "ReduceSumSquare");
            self.run(op);
        }
        let sum = (Kind::Norm, "Sum");
        let mut op = self.reaching(&format!("{name}/Sum"), sum, vec![all.clone(); 2]);
        op.shapes = GATHER.to_vec();
        self.run(op);
        for (number, &weight) in all.iter().enumerate() {
            let named = (format!("{name}/mul_{number}"), "clipped");
            let op = self.of_gradient(weight, named, "Mul");
            self.run(op);
        }
    }

    /// An operation on the gradient of one weight alone, or on what sums it up. PopART names
    /// what it makes after that.
    fn of_gradient(
        &self,
        weight: usize,
        (name, made): (String, &str),
        op_type: &'static str,
    ) -> Op {
        let name = if self.nameless_gradients() { "" } else { &name };
        let planted = &self.model.weights[weight];
        let gradient = match self.settings.features.accumulation {
            true => format!("Accum___{}", planted.name),
            false => format!("Gradient___{}", planted.name),
        };
        Op {
            op_type: op_type.to_owned(),
            outputs: vec![format!("{gradient}_{made}__t{weight}")],
            inputs: vec![gradient],
            places: planted.places,
            stages: 1,
            shapes: vec![Shape::Compute],
            works_on: vec![vec![weight]],
            ..self.outside(Phase::Optimiser, name, Kind::Norm, 0)
        }
    }

    /// The step of one weight.
    fn update_of(&mut self, weight: usize) {
        let planted = &self.model.weights[weight];
        let path = match self.settings.features.names {
            Names::Operation => planted.name.clone(),
            _ => weight.to_string(),
        };
        let name = named(&self.templates.names.update, path);
        let inputs = match self.settings.features.names {
            Names::Variable => vec![format!("t{weight}"), format!("t{weight}_grad")],
            _ => vec![planted.name.clone(), format!("Gradient___{}", planted.name)],
        };
        let op = self.outside(Phase::Optimiser, &name, Kind::Update, 0);
        let op = Op {
            op_type: self.update_type().into(),
            inputs,
            outputs: vec![format!("{}___updated", planted.name)],
            places: planted.places,
            shapes: vec![Shape::Compute],
            works_on: vec![vec![weight]],
            ..op
        };
        self.run(op);
    }

    fn fused_update(&mut self, whole: bool) {
        let name = &self.templates.names.update_of_all;
        let sets = self.sets_over_weights(whole);
        let op = self.reaching(name, (Kind::Update, self.update_type()), sets);
        self.run(op);
    }

    fn update_type(&self) -> &'static str {
        match self.settings.features.optimiser {
            Optimiser::Sgd => "SGD0VarUpdate",
            _ => "AdamVarUpdate",
        }
    }
}
