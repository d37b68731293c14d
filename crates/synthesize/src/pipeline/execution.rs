//! An execution of a pipelined profile: each IPU counts its own cycles.

use crate::encoding::encode_rle;

use super::programs::{Program, Programs};
use crate::execution::{Execution, Step};
use crate::random::topic;
use crate::schema::insert;

const RUNS: usize = 2;

const EXCHANGE: u64 = 700;

/// Writes an execution, which all replicas go through in the same cycles. Gives
/// the cycles by IPU of a replica.
pub(super) fn write(programs: &Programs) -> rusqlite::Result<Vec<u64>> {
    let listing = programs.listing;
    let list = programs.list.iter().enumerate();
    let mut cycles = vec![0; listing.ipus as usize];
    let mut steps = Vec::new();
    let rows = list.map(|(position, program)| {
        let (name, ipus, by_tile) = match *program {
            Program::Execute { set, ipu } => {
                let cycles = cycles_of_set(programs, set, ipu);
                ("OnTileExecute", vec![ipu], cycles)
            }
            Program::Exchange { from, to } => {
                let cycles = vec![EXCHANGE; listing.tiles as usize];
                ("GlobalExchange", vec![from, to], cycles)
            }
        };
        let mut listed = vec![0; (listing.tiles * listing.all_ipus()) as usize];
        let step = Step::new(name.to_owned(), programs.id(position), ipus, &by_tile);
        for &ipu in &step.ipus {
            cycles[ipu as usize] += RUNS as u64 * step.cycles;
            for (sum, cycles) in listed.iter_mut().zip(listing.by_tile(ipu, &by_tile)) {
                *sum += cycles;
            }
        }
        steps.push(step);
        (programs.id(position), encode_rle(&listed))
    });
    insert(programs.connection, "cycles_by_tile", rows)?;
    let mut execution = Execution::new(listing.ipus, listing.all_ipus(), programs.connection);
    for run in 0..RUNS {
        execution.run(run, "main", &steps)?;
    }
    Ok(cycles)
}

fn cycles_of_set(programs: &Programs, set: usize, ipu: u32) -> Vec<u64> {
    let instances = programs.instances(set, ipu);
    let cycles = |tile: usize| {
        let is_active = instances.iter().any(|(_, by_tile)| by_tile[tile] > 0);
        let about = [topic::CYCLES, set as u64, tile as u64 / 128, 7];
        match is_active {
            true => 60 + programs.plan.settings.random.below(4000, about),
            false => 0,
        }
    };
    (0..programs.listing.tiles as usize).map(cycles).collect()
}
