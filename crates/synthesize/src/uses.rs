//! Which program stages use a variable.

use super::groups::{Access, Role};
use super::model::Phase;
use super::planter::Planter;
use super::random::topic;
use super::sections::Section;

impl Planter<'_> {
    /// A use by a compute set of `op`: the `number`-th, counted round.
    pub(super) fn compute(&self, op: usize, number: usize) -> Vec<(usize, Access)> {
        let with_set = |stage: &&usize| self.tree.stages[**stage].compute_set.is_some();
        let stages: Vec<usize> = self.tree.op_stages[op]
            .iter()
            .filter(with_set)
            .copied()
            .collect();
        match stages.len() {
            0 => Vec::new(),
            count => vec![(stages[number % count], Access::Compute)],
        }
    }

    /// The stages that use a variable of `section` made for `op`.
    pub(super) fn users(
        &self,
        section: &Section,
        role: Role,
        op: usize,
        number: usize,
    ) -> Vec<(usize, Access)> {
        let mut uses = self.compute(op, number);
        let partners = |op: usize| {
            let same = move |&&grad: &&usize| self.model.ops[grad].partner == Some(op);
            section.backward.iter().filter(same).copied()
        };
        match role {
            Role::Weight => {
                partners(op).for_each(|grad| uses.extend(self.compute(grad, number)));
                uses.extend(self.update(section, number));
            }
            Role::Activation => {
                let next = self.following(op);
                uses.extend(next.iter().flat_map(|&next| self.compute(next, 0)));
                uses.extend(partners(op).flat_map(|grad| self.compute(grad, 0)));
            }
            Role::Gradient => uses.extend(self.update(section, number)),
            Role::Work => uses.extend(self.compute(op, number + 1)),
            Role::Message | Role::Rearrangement | Role::OutputEdge | Role::Constant => {}
        }
        uses
    }

    fn update(&self, section: &Section, number: usize) -> Vec<(usize, Access)> {
        section
            .update
            .map_or(Vec::new(), |update| self.compute(update, number))
    }

    /// The operation executed after `op`.
    fn following(&self, op: usize) -> Option<usize> {
        let at = self.model.order.iter().position(|&other| other == op)?;
        self.model.order.get(at + 1).copied()
    }

    /// Adds uses by one to three other layers: tied weights, activations
    /// handed on or skipping layers, gradients handed back, shared buffers.
    pub(super) fn share(
        &self,
        section: &Section,
        role: Role,
        index: usize,
        uses: &mut Vec<(usize, Access)>,
    ) {
        let random = self.settings.random;
        let hash = random.hash([topic::SHARED, index as u64, 1, 0]);
        let layers = self.settings.layers;
        let own = section.layer.unwrap_or(0);
        let others: Vec<u32> = match role {
            Role::Weight => vec![(own + 1 + hash as u32 % layers) % layers],
            Role::Constant => (1..4).map(|step| (own + step * 7) % layers).collect(),
            Role::Gradient => own.checked_sub(1).into_iter().collect(),
            _ if hash % 10 < 7 => vec![own + 1],
            _ => vec![own + 2 + (hash >> 8) as u32 % 3],
        };
        for other in others.into_iter().filter(|&layer| layer < layers) {
            let ops: Vec<usize> = self.ops_of(other, role);
            if let Some(&op) = ops.get((hash >> 16) as usize % ops.len().max(1)) {
                uses.extend(self.compute(op, hash as usize >> 24));
            }
        }
    }

    fn ops_of(&self, layer: u32, role: Role) -> Vec<usize> {
        let phase = match role {
            Role::Gradient => Phase::Backward,
            _ => Phase::Forward,
        };
        let wanted = |op: &&usize| {
            let op = &self.model.ops[**op];
            op.layer == Some(layer) && op.phase == phase && op.function.is_none()
        };
        self.model.order.iter().filter(wanted).copied().collect()
    }
}
