//! Parts of a model beside its layers: masks, a pooler, constants, operations
//! of the compiler, and which operation uses which weight.

use super::Builder;
use crate::features::{Names, Tied};
use crate::model::{Model, Op, Phase, Shape};
use crate::places::Places;
use crate::random::topic;
use crate::settings::Framework;
use crate::templates::{self, Kind, Template, shared_slot};
use crate::tensors::{Constant, Part, SEED};

impl Builder<'_> {
    /// Start-up or instrumentation, at one end of the program.
    pub(super) fn compiler_made(&mut self, name: &str) {
        if self.settings.features.compiler_made == 0 {
            return;
        }
        let mut op = self.outside(Phase::Compiler, name, Kind::Elementwise, [0, 10]);
        op.shapes = vec![Shape::Compute, Shape::Exchanged];
        op.stages = 2;
        self.run(op);
    }

    /// The mask, that every layer uses.
    pub(super) fn plant_mask(&mut self) {
        if !self.settings.features.masks {
            return;
        }
        let name = match self.framework() {
            Framework::Popart => "Mask/Sub",
            Framework::Poptorch => "bert/Sub",
            Framework::Tensorflow => "model/mask/Sub",
            Framework::Poplar => "mask/sub",
        };
        let mut op = self.outside(Phase::Embedding, name, Kind::Elementwise, [0, 10]);
        op.inputs = vec!["input_mask".to_owned()];
        self.model.mask = Some(self.run(op));
    }

    /// Every IPU has a random state of its own, and advances it.
    pub(super) fn random_state(&mut self) {
        if !self.settings.features.random_state {
            return;
        }
        let name = match self.framework() {
            Framework::Popart | Framework::Poptorch => "",
            Framework::Tensorflow => "model/RandomSeed/Advance",
            Framework::Poplar => "randomseed/advance",
        };
        let op = self.outside(Phase::Embedding, name, Kind::Elementwise, [0, 2]);
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

    /// The pooler, first in the head.
    pub(super) fn pooler(&mut self) {
        let name = match self.framework() {
            Framework::Popart => "Pooler/MatMul",
            Framework::Poptorch => "bert/pooler/dense/MatMul",
            Framework::Tensorflow => "model/pooler/dense/MatMul",
            Framework::Poplar => "pooler/matmul",
        };
        let mut op = self.outside(Phase::Head, name, Kind::MatMul, [15, 10]);
        op.inputs = vec!["sequence_output".to_owned()];
        let op = self.run_next(op);
        self.weight_outside(op, Part::Out);
    }

    /// The weight of an operation of embedding or head. The last of the head
    /// has the embedding's where the two are tied.
    pub(super) fn weight_outside(&mut self, op: usize, part: Part) {
        let this = &self.model.ops[op];
        if this.weight == 0 {
            return;
        }
        let is_last = this.weight == 60 && part == Part::Out;
        let weight = if self.settings.features.tied == Some(Tied::Ends) && is_last {
            self.use_weight(0, op, part, op);
            0
        } else {
            let (share, name) = (this.weight, self.name_outside(this));
            self.plant_weight(op, part, op, share, &name)
        };
        let name = self.model.weights[weight].name.clone();
        let inputs = &mut self.model.ops[op].inputs;
        inputs.retain(|input| !is_table(input) && input != "head_weight");
        inputs.push(name);
    }

    fn name_outside(&self, op: &Op) -> String {
        if let Some(table) = op.inputs.iter().find(|input| is_table(input)) {
            return table.clone();
        }
        let owner = op.name.rsplit_once('/').map_or("", |(owner, _)| owner);
        match self.framework() {
            Framework::Poptorch => format!("{}.weight", owner.replace('/', ".")),
            _ => format!("{owner}/weight"),
        }
    }

    /// The weight of an operation of a layer, which another layer may share.
    pub(super) fn weight_of_layer(
        &mut self,
        op: usize,
        layer: u32,
        slot: usize,
        template: &Template,
    ) {
        if template.weight == 0 {
            return;
        }
        let part = Part::Layer(layer);
        let lender = self
            .lender()
            .filter(|lender| slot == 0 && layer == lender + 2);
        let weight = match lender {
            Some(lender) => {
                let weight = self.weight_of[&(Part::Layer(lender), slot)];
                self.use_weight(weight, op, part, slot);
                weight
            }
            None => {
                let name = templates::weight_name(self.framework(), layer, template.path);
                self.plant_weight(op, part, slot, template.weight, &name)
            }
        };
        let name = self.model.weights[weight].name.clone();
        self.model.ops[op].inputs.push(name);
    }

    /// The layer whose first weight the one after the next one has too.
    fn lender(&self) -> Option<u32> {
        let is_asked = self.settings.features.tied == Some(Tied::Layers);
        let choices = self.settings.layers.checked_sub(2).filter(|_| is_asked)?;
        let about = [topic::SHARED, 0, 0, 1];
        let lender = self.settings.random.below(choices.into(), about) as u32;
        (choices > 0).then_some(lender)
    }

    /// Constants of all layers, of every other one, and of three in a row.
    pub(super) fn constants(&mut self) {
        if !self.settings.features.constants {
            return;
        }
        let slot = shared_slot(self.framework());
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

/// The names of tables that the layer-0 inputs regex is there for.
fn is_table(input: &str) -> bool {
    input == "Embedding_Dict" || input.starts_with("bert.embeddings.")
}
