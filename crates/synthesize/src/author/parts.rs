//! Parts of a model beside its templates: masks, constants, a random state, operations of the
//! compiler; and which layers a body works for.

use super::Builder;
use crate::features::Names;
use crate::model::{Model, Op, Phase, Shape};
use crate::places::Places;
use crate::templates::Kind;
use crate::tensors::{Constant, SEED};

impl Builder<'_> {
    /// Start-up or instrumentation, at one end of the program.
    pub(super) fn compiler_made(&mut self, name: &str) {
        if self.settings.features.compiler_made == 0 {
            return;
        }
        let mut op = self.outside(Phase::Compiler, name, Kind::Elementwise, 10);
        op.shapes = vec![Shape::Compute, Shape::Exchanged];
        op.stages = 2;
        self.run(op);
    }

    /// The mask, that every layer uses.
    pub(super) fn mask(&mut self) {
        if !self.settings.features.masks {
            return;
        }
        let name = &self.templates.names.mask;
        let mut op = self.outside(Phase::Embedding, name, Kind::Elementwise, 10);
        op.inputs = vec!["input_mask".to_owned()];
        self.model.mask = Some(self.run(op));
    }

    /// Every IPU has a random state of its own, and advances it.
    pub(super) fn random_state(&mut self) {
        if !self.settings.features.random_state {
            return;
        }
        let name = &self.templates.names.random_state;
        let op = self.outside(Phase::Embedding, name, Kind::Elementwise, 2);
        let op = self.run(Op {
            op_type: "ModifyRandomSeed".into(),
            inputs: vec![SEED.to_owned()],
            outputs: vec!["randomSeed___updated".to_owned()],
            places: Places::EVERY,
            hands_on: false,
            ..op
        });
        self.model.advances_seed = Some(op);
    }

    /// Constants of all layers, of every other one, and of three in a row.
    pub(super) fn constants(&mut self) {
        if !self.settings.features.constants {
            return;
        }
        let slot = self.templates.shared_slot();
        let layers = self.settings.layers;
        let users = |wanted: &dyn Fn(u32) -> bool| -> Vec<usize> {
            let layers = (0..layers).filter(|&layer| wanted(layer));
            layers
                .map(|layer| self.model.forward[layer as usize][slot])
                .collect()
        };
        let sets = [
            users(&|_| true),
            users(&|layer| layer % 2 == 0),
            users(&|layer| (1..4).contains(&layer)),
        ];
        for (number, users) in sets.into_iter().enumerate() {
            let name = match self.settings.features.names {
                Names::None => format!("onnx::Add_{}", 400 + number),
                _ => format!("constant_{number}"),
            };
            self.model.constants.push(Constant {
                name,
                users,
                bytes: None,
            });
        }
    }

    /// The operations of a body work for each layer that calls it.
    pub(super) fn places_of_bodies(&mut self) {
        let calls = self.model.calls.clone();
        for op in 0..self.model.ops.len() {
            let op = &self.model.ops[op];
            if let (Some(site), None) = (op.call, op.function) {
                let call = &calls[site];
                add_places(&mut self.model, call.function, Places::layer(call.layer));
            }
        }
    }
}

fn add_places(model: &mut Model, function: usize, places: Places) {
    for op in model.functions[function].ops.clone() {
        model.ops[op].places |= places;
        if let Some(site) = model.ops[op].call {
            let inner = model.calls[site].function;
            add_places(model, inner, places);
        }
    }
}
