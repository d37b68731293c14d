//! Which contexts stood at the call sites of outlined bodies: only PopART keeps
//! them, as pairs on the context of the call.

use super::contexts::{Body, Contexts};
use super::model::{Call, Model};
use super::random::topic;
use super::settings::Settings;

impl Contexts {
    /// The operations at the call sites before outlining. In the layer that lent
    /// its operations to the body, these are the body itself.
    pub(super) fn replaced(&mut self, settings: &Settings, model: &Model) {
        if !settings.is_popart() {
            return;
        }
        let on_clone = !settings.features.pairs_on_replaced;
        for (index, op) in model.ops.iter().enumerate() {
            let Some(call) = op.call.map(|site| &model.calls[site]) else {
                continue;
            };
            let body = &model.functions[call.function];
            let replaced = match call.stood_here.is_empty() {
                false if on_clone => self.ids(&call.stood_here),
                // A copy without pairs: those are on the calls it replaced.
                false => continue,
                true if is_source(model, call) && (on_clone || !settings.nested) => self.ids(body),
                true => self.replicas(settings, model, body, call.layer),
            };
            self.pair(settings, self.ops[index].op, self.ids(body), replaced);
        }
    }

    fn pair(&mut self, settings: &Settings, call: u32, outlined: Vec<u32>, replaced: Vec<u32>) {
        let mut pairs: Vec<(u32, u32)> = outlined.into_iter().zip(replaced).collect();
        if settings.features.shuffle_pairs {
            let place = |pair: &(u32, u32)| [topic::CONTEXT, call.into(), pair.1.into(), 9];
            pairs.sort_by_key(|pair| settings.random.hash(place(pair)));
        }
        self.pairs.insert(call, pairs.into_iter().unzip());
    }

    fn ids(&self, ops: &[usize]) -> Vec<u32> {
        ops.iter().map(|&op| self.ops[op].op).collect()
    }

    fn replicas(
        &mut self,
        settings: &Settings,
        model: &Model,
        ops: &[usize],
        layer: u32,
    ) -> Vec<u32> {
        let ops = ops.iter();
        ops.map(|&op| self.replica(settings, model, op, layer))
            .collect()
    }

    /// The context that an operation of a body had in another layer. That of a
    /// call has pairs of its own.
    fn replica(&mut self, settings: &Settings, model: &Model, op: usize, layer: u32) -> u32 {
        let operation = &model.ops[op];
        let inner = operation.call.map(|site| {
            let call = &model.calls[site];
            let replaced = self.replicas(settings, model, &call.stood_here, layer);
            (self.ids(&model.functions[call.function]), replaced)
        });
        let parent = match operation.name.is_empty() {
            true => self.bare,
            false => self.onnx_chain(settings, op as u32, layer),
        };
        let id = self.push(parent, "", Body::Popart, op as u32);
        self.list[id as usize - 1].layer = layer;
        if let Some((outlined, replaced)) = inner {
            self.pair(settings, id, outlined, replaced);
        }
        id
    }
}

fn is_source(model: &Model, call: &Call) -> bool {
    let first = model.functions[call.function][0];
    model.ops[first].made_for == Some(call.layer)
}
