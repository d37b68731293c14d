//! Contexts of weights, optimiser state and constants: PopART has a context for
//! each tensor, the others name the variable.

use super::contexts::{Body, Contexts, NONE, Tensor, TensorContexts, is_popart};
use super::model::Model;
use super::settings::Settings;
use super::templates;
use super::tensors::{SEED, State, TensorOf};

impl Contexts {
    /// Plants the contexts of all tensors of `model`.
    pub(super) fn plant_tensors(&mut self, settings: &Settings, model: &Model) {
        let framework = settings.framework;
        for (index, weight) in model.weights.iter().enumerate() {
            for state in State::of(settings, weight) {
                let tensor = Tensor {
                    id: state.name(framework, &weight.name),
                    kind: "Variable",
                    element: match state {
                        State::Value | State::Accumulator => "FLOAT16",
                        State::First | State::Second => "FLOAT",
                    },
                };
                self.plant_tensor(settings, TensorOf::Weight(index, state), tensor);
            }
        }
        for (index, constant) in model.constants.iter().enumerate() {
            let tensor = Tensor {
                id: constant.name.clone(),
                kind: "Const",
                element: "FLOAT16",
            };
            self.plant_tensor(settings, TensorOf::Constant(index), tensor);
        }
        if settings.training() {
            let tensor = Tensor {
                id: templates::of(framework).names.learning_rate.clone(),
                kind: "Stream",
                element: "FLOAT",
            };
            self.plant_tensor(settings, TensorOf::LearningRate, tensor);
        }
        if model.advances_seed.is_some() {
            let tensor = Tensor {
                id: SEED.to_owned(),
                kind: "Stream",
                element: "UINT32",
            };
            self.plant_tensor(settings, TensorOf::Seed, tensor);
        }
    }

    fn plant_tensor(&mut self, settings: &Settings, of: TensorOf, tensor: Tensor) {
        let parent = if is_popart(settings) {
            self.push(0, "", Body::Tensor, NONE)
        } else {
            0
        };
        let variable = match (of, is_popart(settings)) {
            // Some variables have the tensor's own context, others one below.
            (TensorOf::Weight(index, _), true) if index % 2 == 1 => parent,
            _ => self.push(parent, &tensor.id, Body::Var, NONE),
        };
        if tensor.element == "FLOAT" {
            self.floats.insert(variable);
        }
        let upload = self.push(parent, "weights", Body::Program("StreamCopy"), NONE);
        let contexts = TensorContexts {
            name: tensor.id.clone(),
            variable,
            upload,
        };
        self.of_tensor.insert(of, contexts);
        if parent > 0 {
            self.tensors.insert(parent, tensor);
        }
    }

    /// Plants the contexts of what the host sends and gets beside weights.
    pub(super) fn plant_streams(&mut self, model: &Model) {
        let first = model.inputs.first().map(|input| input.users[0]);
        let first = first.map_or(0, |first| self.ops[first].poplibs);
        let stream = Body::Program("StreamCopy");
        let input = self.push(first, "input", stream, NONE);
        let loss = self.push(0, "loss", stream, NONE);
        self.ends = [input, loss];
        self.download = self.push(0, "weights_to_host", stream, NONE);
    }
}
