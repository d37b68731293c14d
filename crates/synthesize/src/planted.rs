//! Computes the pass of each operation and the cycles of each place, from the plan and not from the
//! rows: the analysis has to find the same.

use std::collections::HashMap;

use super::cycles;
use super::model::Phase;
use super::places::Places;
use super::plan::Plan;

/// The cycles of compute sets and exchanges.
#[derive(Debug)]
pub struct Cycles {
    /// Number of runs of the execution; 1 for estimates, which are for one run of each branch.
    pub runs: u64,
    /// Cycles over all runs by position (In, the layers, Out). Cycles of several places count in
    /// equal parts.
    pub positions: Vec<u64>,
    /// Cycles of programs that the compiler made for no operation or for every IPU.
    pub nowhere: u64,
}

impl Cycles {
    /// Sums up the cycles by following the programs as they are executed; `None` if the profile has
    /// no cycles.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let is_executed = plan.settings.execution;
        let branches = match is_executed {
            true => cycles::RUNS.map(Some).to_vec(),
            false if plan.settings.no_cycle_estimates => return None,
            false => vec![None],
        };
        let mut sums = Self {
            runs: branches.len() as u64,
            positions: vec![0; plan.settings.layers as usize + 2],
            nowhere: 0,
        };
        for branch in branches {
            cycles::by_owner(plan, branch, is_executed, &mut |owner, cycles| {
                let places = owner.map(|(_, places)| places);
                let places = places.filter(|&places| places != Places::EVERY);
                sums.add(places.unwrap_or(Places::NONE), plan.settings.layers, cycles);
            });
        }
        Some(sums)
    }

    fn add(&mut self, places: Places, layers: u32, cycles: u64) {
        let positions = places.in_order(layers);
        let part = cycles.checked_div(positions.len() as u64).unwrap_or(0);
        self.nowhere += cycles - part * positions.len() as u64;
        for position in positions {
            self.positions[position as usize] += part;
        }
    }
}

/// Returns the pass of each operation that the framework made, by the id of its context: `forward`,
/// `backward` or `update`.
pub(crate) fn passes(plan: &Plan) -> HashMap<u64, &'static str> {
    let ops = plan.model.ops.iter().zip(&plan.contexts.ops);
    let passes = ops.filter_map(|(op, contexts)| {
        let pass = match op.phase {
            Phase::Embedding | Phase::Forward | Phase::Head => "forward",
            Phase::Backward => "backward",
            Phase::Optimiser => "update",
            Phase::Compiler => return None,
        };
        Some((contexts.op.into(), pass))
    });
    passes.collect()
}
