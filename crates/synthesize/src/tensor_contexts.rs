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
                let element = match state {
                    State::Value | State::Accumulator => "FLOAT16",
                    State::First | State::Second => "FLOAT",
                };
                let name = state.name(framework, &weight.name);
                let of = TensorOf::Weight(index, state);
                self.plant_tensor(settings, of, (&name, "Variable", element));
            }
        }
        for (index, constant) in model.constants.iter().enumerate() {
            let tensor = (constant.name.as_str(), "Const", "FLOAT16");
            self.plant_tensor(settings, TensorOf::Constant(index), tensor);
        }
        if settings.training() {
            let name = templates::of(framework).names.learning_rate.as_str();
            self.plant_tensor(settings, TensorOf::LearningRate, (name, "Stream", "FLOAT"));
        }
        if model.advances_seed.is_some() {
            self.plant_tensor(settings, TensorOf::Seed, (SEED, "Stream", "UINT32"));
        }
    }

    /// Plants a tensor: its name, type and type of elements.
    fn plant_tensor(
        &mut self,
        settings: &Settings,
        of: TensorOf,
        (name, kind, element): (&str, &'static str, &'static str),
    ) {
        let parent = if is_popart(settings) {
            self.push(0, "", Body::Tensor, NONE)
        } else {
            0
        };
        let variable = match (of, is_popart(settings)) {
            // Some variables have the tensor's own context, others one below.
            (TensorOf::Weight(index, _), true) if index % 2 == 1 => parent,
            _ => self.push(parent, name, Body::Var, NONE),
        };
        if element == "FLOAT" {
            self.floats.insert(variable);
        }
        let upload = self.push(parent, "weights", Body::Program("StreamCopy"), NONE);
        let contexts = TensorContexts {
            name: name.to_owned(),
            variable,
            upload,
        };
        self.of_tensor.insert(of, contexts);
        if parent > 0 {
            let id = name.to_owned();
            self.tensors.insert(parent, Tensor { id, kind, element });
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
