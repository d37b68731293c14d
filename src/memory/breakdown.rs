//! The memory of each operation by itself (docs/model.md, "The memory of a stage": a row of the
//! operation breakdown is a stage of that one operation).

use super::code::by_kind;
use super::step_sums::StepSums;
use super::{MemoryModel, Parts, Rules};
use crate::model::{OperationGroup, VariableGroup};
use rayon::prelude::*;

impl MemoryModel<'_> {
    /// Memory by operation group, in bytes over all tiles: that of a stage with this one operation,
    /// as if it had a layer.
    pub fn operation_groups(&self) -> Vec<Parts> {
        let model = self.model;
        let add = |(mut sums, mut scratch): (Vec<u64>, BreakdownScratch), tile| {
            self.add_tile(tile, &mut sums, &mut scratch);
            (sums, scratch)
        };
        let nothing = || vec![0u64; model.operation_groups.len()];
        let tiles = (0..model.target.num_tiles).into_par_iter();
        let variables = tiles
            .fold(|| (nothing(), BreakdownScratch::default()), add)
            .map(|(sums, _)| sums)
            .reduce(nothing, |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            });
        let groups = model.operation_groups.iter().zip(variables);
        groups
            .map(|(group, variables)| {
                let kinds = by_kind(&group.code, self.rules);
                let [vertex_state, exchange_code, control_code] =
                    kinds.map(|(_, bytes)| bytes.total());
                Parts {
                    variables,
                    vertex_code: self.vertex_code(group),
                    vertex_state,
                    exchange_code,
                    control_code,
                    ..Parts::default()
                }
            })
            .collect()
    }

    /// Adds to `sums`, by operation group, the peak of the group's variables on one tile.
    fn add_tile(&self, tile: u32, sums: &mut [u64], scratch: &mut BreakdownScratch) {
        let model = self.model;
        let BreakdownScratch { uses, liveness } = scratch;
        uses.clear();
        for item in self.uses.on_tile(tile) {
            let groups = model.use_sets.groups(item.set);
            uses.extend(groups.map(|group| (group, item)));
        }
        uses.sort_unstable_by_key(|&(group, _)| group);
        for of_group in uses.chunk_by(|a, b| a.0 == b.0) {
            let group = of_group[0].0 as usize;
            let window = match self.rules {
                Rules::Classic => model.operation_groups[group].window,
                Rules::Full => self.all_steps(),
            };
            let Some((first, last)) = window else {
                continue;
            };
            liveness.restart(first..last + 1);
            for (_, item) in of_group {
                liveness.add([item.bytes.into()], model.classes.ranges(item.class));
            }
            let [highest] = liveness.highest();
            sums[group] += highest;
        }
    }

    fn vertex_code(&self, group: &OperationGroup) -> u64 {
        let mut bytes = 0;
        for (vertex_type, present) in &group.code.vertex_types {
            let code = self.model.vertex_code[*vertex_type as usize].runs();
            for here in present.runs() {
                let overlap = code.iter().map(|run| {
                    let tiles = run.to.min(here.to).saturating_sub(run.from.max(here.from));
                    u64::from(tiles) * u64::from(run.value)
                });
                bytes += overlap.sum::<u64>();
            }
        }
        bytes
    }
}

/// Buffers of one thread, reused for each tile.
#[derive(Default)]
struct BreakdownScratch {
    uses: Vec<(u32, VariableGroup)>,
    liveness: StepSums<1>,
}
