//! Contexts of weights, optimiser state and constants: PopART has a context for
//! each tensor, the others name the variable.

use super::contexts::{Builder, NONE, TensorContexts};
use super::templates;
use super::tensors::{SEED, State, TensorOf};

impl Builder<'_> {
    pub(super) fn plant_tensors(&mut self) {
        let framework = self.settings.framework;
        for (index, weight) in self.model.weights.iter().enumerate() {
            for state in State::of(self.settings, weight) {
                let name = state.name(framework, &weight.name);
                self.plant_tensor(TensorOf::Weight(index, state), &name);
            }
        }
        for (index, constant) in self.model.constants.iter().enumerate() {
            self.plant_tensor(TensorOf::Constant(index), &constant.name);
        }
        if self.settings.training() {
            let name = &templates::of(framework).names["learning_rate"];
            self.plant_tensor(TensorOf::LearningRate, name);
        }
        if self.model.advances_seed.is_some() {
            self.plant_tensor(TensorOf::Seed, SEED);
        }
    }

    fn plant_tensor(&mut self, of: TensorOf, name: &str) {
        let tensor = match self.settings.is_popart() {
            true => self.push(0, "", "Tensor", NONE),
            false => 0,
        };
        let body = match of {
            TensorOf::Weight(_, State::First | State::Second) | TensorOf::LearningRate => "Float",
            _ => "Half",
        };
        let contexts = TensorContexts {
            name: name.to_owned(),
            tensor,
            variable: match of {
                // Some variables have the tensor's own context, others one below.
                TensorOf::Weight(index, _) if index % 2 == 1 && tensor > 0 => tensor,
                _ => self.push(tensor, name, body, NONE),
            },
            upload: self.push(tensor, "weights", "StreamCopy", NONE),
        };
        self.contexts.of_tensor.insert(of, contexts);
    }

    /// Plants the contexts of what the host sends and gets beside weights.
    pub(super) fn plant_streams(&mut self) {
        let first = self.model.inputs.first().map(|input| input.users[0]);
        let first = first.map_or(0, |first| self.contexts.ops[first].poplibs);
        let input = self.push(first, "input", "StreamCopy", NONE);
        let loss = self.push(0, "loss", "StreamCopy", NONE);
        self.contexts.ends = [input, loss];
        self.contexts.download = self.push(0, "weights_to_host", "StreamCopy", NONE);
    }
}
