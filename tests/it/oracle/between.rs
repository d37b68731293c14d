//! docs/model.md, "What layers share": bytes that layers share and send to each other.

use std::collections::BTreeSet;

use super::Oracle;

/// The variables that a layer uses, and the steps of the layer.
struct Side {
    used: BTreeSet<i64>,
    window: Option<(usize, usize)>,
}

impl Oracle {
    /// Returns, for each pair of layers, the bytes of the variables that both use.
    pub fn affinity(&self) -> Vec<Vec<u64>> {
        let sides = self.sides();
        let cell = |a: &Side, b: &Side| self.bytes(a.used.intersection(&b.used));
        let row = |a| sides.iter().map(|b| cell(a, b)).collect();
        sides.iter().map(row).collect()
    }

    /// Returns, for each pair of layers, the bytes that the first sends to the second.
    pub fn communication(&self) -> Vec<Vec<u64>> {
        let sides = self.sides();
        let cell = |a: &Side, b: &Side| self.bytes(&self.communicated(a, b));
        let row = |a| sides.iter().map(|b| cell(a, b)).collect();
        sides.iter().map(row).collect()
    }

    /// Returns, for each boundary between neighbours in the layer order, the bytes of the distinct
    /// variables that a layer before it and a layer after it communicate, in either direction.
    pub fn cut_bytes(&self) -> Vec<u64> {
        let count = self.layer_count();
        let sides = self.sides();
        let crossing = |boundary: usize| {
            let mut variables = BTreeSet::new();
            for before in &sides[..boundary] {
                for after in &sides[boundary..] {
                    variables.extend(self.communicated(before, after));
                    variables.extend(self.communicated(after, before));
                }
            }
            self.bytes(&variables)
        };
        (1..count).map(crossing).collect()
    }

    /// Returns all layers in order.
    fn sides(&self) -> Vec<Side> {
        let members = (0..self.layer_count()).map(|layer| self.members(layer..layer + 1));
        let side = |members: Vec<usize>| Side {
            used: self.variables(&members),
            window: self.window(&members),
        };
        members.map(side).collect()
    }

    fn bytes<'a>(&self, variables: impl IntoIterator<Item = &'a i64>) -> u64 {
        let bytes = |id| self.profile.variables[id].bytes;
        variables.into_iter().map(bytes).sum()
    }

    /// Returns the variables that layer `a` sends to layer `b`.
    fn communicated(&self, a: &Side, b: &Side) -> BTreeSet<i64> {
        let (Some(from), Some(to)) = (a.window, b.window) else {
            return BTreeSet::new();
        };
        let comes = |id: &i64| {
            let class = self.profile.variables[id].class;
            let ranges = self.profile.ranges.get(&class).into_iter().flatten();
            ranges.into_iter().any(|&(start, end)| {
                let starts_in_a = from.0 <= start && start <= from.1;
                let reaches_into_b = to.0 < end && end <= to.1 + 1;
                starts_in_a && reaches_into_b
            })
        };
        let shared = &a.used & &b.used;
        shared.into_iter().filter(comes).collect()
    }
}
