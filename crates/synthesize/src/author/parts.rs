//! Plants parts of a model that are not in its templates: masks, constants, a random state,
//! operations of the compiler; and sets the layers for which a body works.

use super::Builder;
use crate::model::{Call, Model, Op, Phase, Shape};
use crate::places::Places;
use crate::settings::Names;
use crate::templates::Kind;
use crate::tensors::{Given, SEED};

impl Builder<'_> {
    /// Adds an operation of the compiler, for start-up or instrumentation, at one end of the
    /// program.
    pub(super) fn compiler_made(&mut self, name: &str) {
        if self.settings.features.compiler_made == 0 {
            return;
        }
        self.run(Op {
            shapes: vec![Shape::Compute, Shape::Exchanged],
            stages: 2,
            ..self.outside(Phase::Compiler, name, Kind::Elementwise, 10)
        });
    }

    pub(super) fn mask(&mut self) {
        if !self.settings.features.masks {
            return;
        }
        let name = &self.templates.names["mask"];
        let mut op = self.outside(Phase::Embedding, name, Kind::Elementwise, 10);
        op.inputs = vec!["input_mask".to_owned()];
        self.model.mask = Some(self.run(op));
    }

    /// Adds a random state. Every IPU has a state of its own, and advances it.
    pub(super) fn random_state(&mut self) {
        if !self.settings.features.random_state {
            return;
        }
        let name = &self.templates.names["random_state"];
        let op = self.run(Op {
            op_type: "ModifyRandomSeed".into(),
            inputs: vec![SEED.to_owned()],
            outputs: vec!["randomSeed___updated".to_owned()],
            places: Places::EVERY,
            hands_on: false,
            ..self.outside(Phase::Embedding, name, Kind::Elementwise, 2)
        });
        self.model.advances_seed = Some(op);
    }

    /// Adds constants that all layers use, every other layer, or three layers in a row.
    pub(super) fn constants(&mut self) {
        if !self.settings.features.constants {
            return;
        }
        let slot = self.templates.shared_slot();
        let wanted: [fn(u32) -> bool; 3] = [
            |_| true,
            |layer| layer % 2 == 0,
            |layer| (1..4).contains(&layer),
        ];
        for (number, wanted) in wanted.into_iter().enumerate() {
            let layers = (0..self.settings.layers).filter(|&layer| wanted(layer));
            let users = layers.map(|layer| self.model.forward[layer as usize][slot]);
            let users: Vec<usize> = users.collect();
            if users.is_empty() {
                continue;
            }
            self.model.constants.push(Given {
                name: match self.settings.features.names {
                    Names::None => format!("onnx::Add_{}", 400 + number),
                    _ => format!("constant_{number}"),
                },
                users,
                bytes: None,
            });
        }
    }

    /// Sets the places of the operations of bodies: every layer that calls the body.
    pub(super) fn places_of_bodies(&mut self) {
        for op in 0..self.model.ops.len() {
            let op = &self.model.ops[op];
            if let (Some(site), None) = (op.call, op.function) {
                let Call {
                    function, layer, ..
                } = self.model.calls[site];
                add_places(&mut self.model, function, Places::layer(layer));
            }
        }
    }
}

fn add_places(model: &mut Model, function: usize, places: Places) {
    for op in model.functions[function].clone() {
        model.ops[op].places = model.ops[op].places | places;
        if let Some(site) = model.ops[op].call {
            let inner = model.calls[site].function;
            add_places(model, inner, places);
        }
    }
}
