//! Plants the contexts of operations that outlined bodies replaced at their call sites. Only PopART
//! keeps these contexts, as pairs on the context of the call.

use super::contexts::Builder;
use super::model::Call;
use super::random::topic;

impl Builder<'_> {
    /// Plants the contexts of the operations that stood at the call sites before outlining. In the
    /// layer that lent its operations to the body, these are the operations of the body itself.
    pub(super) fn replaced(&mut self) {
        if !self.settings.is_popart() {
            return;
        }
        let on_clone = !self.settings.features.pairs_on_replaced;
        for (index, op) in self.model.ops.iter().enumerate() {
            let Some(call) = op.call.map(|site| &self.model.calls[site]) else {
                continue;
            };
            let body = &self.model.functions[call.function];
            let replaced = match call.stood_here.is_empty() {
                false if on_clone => self.ids(&call.stood_here),
                // A copy has no pairs: the pairs are on the calls that it replaced.
                false => continue,
                true if self.is_source(call) && (on_clone || !self.settings.nested) => {
                    self.ids(body)
                }
                true => self.replicas(body, call.layer),
            };
            let call = self.contexts.ops[index].op;
            self.pair(call, self.ids(body), replaced);
        }
    }

    fn pair(&mut self, call: u32, outlined: Vec<u32>, replaced: Vec<u32>) {
        let mut pairs: Vec<(u32, u32)> = outlined.into_iter().zip(replaced).collect();
        if self.settings.features.shuffle_pairs {
            let place = |pair: &(u32, u32)| [topic::CONTEXT, call.into(), pair.1.into(), 9];
            pairs.sort_by_key(|pair| self.settings.random.hash(place(pair)));
        }
        self.contexts.pairs.insert(call, pairs.into_iter().unzip());
    }

    fn ids(&self, ops: &[usize]) -> Vec<u32> {
        ops.iter().map(|&op| self.contexts.ops[op].op).collect()
    }

    fn replicas(&mut self, ops: &[usize], layer: u32) -> Vec<u32> {
        ops.iter().map(|&op| self.replica(op, layer)).collect()
    }

    /// Returns the context that an operation of a body had in another layer. The context of a call
    /// has pairs of its own.
    fn replica(&mut self, op: usize, layer: u32) -> u32 {
        let operation = &self.model.ops[op];
        let inner = operation.call.map(|site| {
            let call = &self.model.calls[site];
            let replaced = self.replicas(&call.stood_here, layer);
            (self.ids(&self.model.functions[call.function]), replaced)
        });
        let parent = match operation.name.is_empty() {
            true => self.contexts.bare,
            false => self.onnx_chain(op as u32, layer),
        };
        let id = self.push(parent, "", "Popart", op as u32);
        self.contexts.list[id as usize - 1].layer = layer;
        if let Some((outlined, replaced)) = inner {
            self.pair(id, outlined, replaced);
        }
        id
    }

    fn is_source(&self, call: &Call) -> bool {
        let first = self.model.functions[call.function][0];
        self.model.ops[first].made_for == Some(call.layer)
    }
}
