//! What some layers have beside the operations of all: experts, a second kind of layer, a
//! weight of In.

use super::{Block, Builder};
use crate::features::Form;
use crate::model::{Op, Phase, Read};
use crate::templates::{self, Kind};
use crate::tensors::Part;

/// Numbers of the weights of these operations, after those of the templates.
mod slot {
    pub const SCAN: usize = 500;
    pub const TABLE: usize = 510;
    pub const EXPERTS: usize = 520;
}

/// Experts of a layer.
const EXPERTS: usize = 3;

impl Builder<'_> {
    /// What stands after the operations of its templates.
    pub(super) fn layer_kind(&mut self, layer: u32, input: Option<usize>) {
        if self.has(Form::Hybrid) && layer % 2 == 1 {
            self.scan(layer, input);
        }
        if self.has(Form::EntryWeights) && layer == self.settings.layers / 2 {
            self.use_of_table(layer);
        }
        if self.has(Form::Experts) {
            self.experts(layer);
        }
    }

    /// An operation of a layer by its path, with a weight where it has a share of one.
    fn further(
        &mut self,
        layer: u32,
        path: &str,
        (kind, shares): (Kind, [u32; 2]),
        (slot, reads): (usize, Vec<Read>),
    ) -> usize {
        let name = templates::name(self.framework(), layer, path);
        let op = Op {
            inputs: self.names_of(&reads),
            reads,
            ..self.of_layer(layer, &name, kind, shares)
        };
        let op = self.run(op);
        if shares[0] > 0 {
            let weight = templates::weight_name(self.framework(), layer, path);
            self.further_weight(op, layer, slot, &weight);
        }
        self.blocks[layer as usize].push(Block::Other(op));
        op
    }

    /// The output that the next operation of a layer takes.
    fn last_of_layer(&self) -> Read {
        Read::next(self.tail.expect("a layer has operations"))
    }

    /// A convolution and a scan, gated by what the layer starts from.
    fn scan(&mut self, layer: u32, input: Option<usize>) {
        let before = self.last_of_layer();
        let conv = (Kind::Conv, [12, 10]);
        let conv = self.further(layer, "Scan/Conv1D", conv, (slot::SCAN, vec![before]));
        let scan = (Kind::Norm, [3, 14]);
        let from = vec![Read::saved(conv)];
        let scan = self.further(layer, "Scan/Cumulative", scan, (slot::SCAN + 1, from));
        let gate = input.map(Read::saved).into_iter();
        let reads = [Read::next(scan)].into_iter().chain(gate).collect();
        let gate = (Kind::Elementwise, [0, 8]);
        self.tail = Some(self.further(layer, "Scan/Gate", gate, (0, reads)));
    }

    /// A layer in the middle looks up what In has a table for.
    fn use_of_table(&mut self, layer: u32) {
        let before = self.last_of_layer();
        let look_up = (Kind::MatMul, [0, 6]);
        let op = self.further(layer, "Retrieve/MatMul", look_up, (0, vec![before]));
        self.use_weight(0, op, Part::Layer(layer), slot::TABLE);
        let table = self.model.weights[0].name.clone();
        self.model.ops[op].inputs.push(table);
        self.tail = Some(op);
    }

    /// A router, experts that it chooses from, and what joins their outputs.
    fn experts(&mut self, layer: u32) {
        let before = self.last_of_layer();
        let router = (Kind::Softmax, [1, 3]);
        let router = self.further(
            layer,
            "Experts/Router/Softmax",
            router,
            (slot::EXPERTS, vec![before]),
        );
        let mut outputs = Vec::new();
        for number in 0..EXPERTS {
            let path = format!("Experts/Expert{number}/MatMul");
            let reads = vec![before, Read::saved(router)];
            let expert = (Kind::MatMul, [9, 7]);
            let slot = slot::EXPERTS + 1 + number;
            outputs.push(Read::next(self.further(
                layer,
                &path,
                expert,
                (slot, reads),
            )));
        }
        let join = (Kind::Elementwise, [0, 6]);
        self.tail = Some(self.further(layer, "Experts/Combine/Add", join, (0, outputs)));
        self.planted.routers.push(router);
    }

    /// The loss of the routers, which balances the experts of all layers.
    pub(super) fn router_loss(&mut self) -> Option<usize> {
        let reads: Vec<Read> = self
            .planted
            .routers
            .iter()
            .copied()
            .map(Read::next)
            .collect();
        if reads.is_empty() {
            return None;
        }
        let name = self.plain_name("Experts/Balance/Mean");
        let op = Op {
            inputs: self.names_of(&reads),
            reads,
            ..self.outside(Phase::Head, &name, Kind::Elementwise, [0, 2])
        };
        Some(self.run(op))
    }
}
