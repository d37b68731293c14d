//! An execution of a pipelined profile: each IPU counts its own cycles.

use crate::encoding::encode_rle;

use super::programs::Programs;
use crate::execution::{Execution, Step};
use crate::random::topic;
use crate::schema::insert;

const RUNS: usize = 2;

/// Cycles of an exchange on each tile.
const EXCHANGE: u64 = 700;

/// Writes an execution, which all replicas go through in the same cycles. Gives
/// the cycles by IPU of a replica.
pub(super) fn write(programs: &Programs) -> rusqlite::Result<Vec<u64>> {
    let sets = programs.sets.iter().map(|&set| {
        let by_tile = cycles_of_set(programs, set);
        ("OnTileExecute", vec![set.1], by_tile)
    });
    let exchanges = programs.exchanges.iter().map(|&(from, to)| {
        let by_tile = vec![EXCHANGE; programs.plan.settings.tiles as usize];
        ("GlobalExchange", vec![from, to], by_tile)
    });
    let mut cycles = vec![0; programs.ipus() as usize];
    let mut steps = Vec::new();
    let all = sets.chain(exchanges).zip(programs.ids());
    let rows = all.map(|((name, ipus, by_tile), id)| {
        let listed = programs.by_tile(&ipus, &by_tile);
        let step = Step::new(name.to_owned(), id, ipus, &by_tile);
        for &ipu in &step.ipus {
            cycles[ipu as usize] += RUNS as u64 * step.cycles;
        }
        steps.push(step);
        (id, encode_rle(&listed))
    });
    insert(programs.connection, "cycles_by_tile", rows)?;
    let (ipus, listed) = (programs.ipus(), programs.listed_ipus());
    let mut execution = Execution::new(ipus, listed, programs.connection);
    for run in 0..RUNS {
        execution.run(run, "main", &steps)?;
    }
    Ok(cycles)
}

fn cycles_of_set(programs: &Programs, (set, ipu): (usize, u32)) -> Vec<u64> {
    let instances = programs.instances((set, ipu));
    let cycles = |tile: usize| {
        let is_active = instances.iter().any(|(_, by_tile)| by_tile[tile] > 0);
        let about = [topic::CYCLES, set as u64, tile as u64 / 128, 7];
        match is_active {
            true => 60 + programs.plan.settings.random.below(4000, about),
            false => 0,
        }
    };
    (0..programs.plan.settings.tiles as usize)
        .map(cycles)
        .collect()
}
