//! An execution of a pipelined profile: two runs, in each of which every compute set runs once, and
//! then everything is exchanged between neighbours.

use rusqlite::Connection;

use super::programs::Programs;
use crate::cycles::{Step, write_runs};
use crate::random::topic;

const RUNS: usize = 2;

/// Cycles of an exchange on each of its IPUs.
const EXCHANGE: u64 = 700;

/// Writes an execution, which takes the same cycles in all replicas. Returns the cycles of each
/// IPU of a replica.
pub(super) fn write(programs: &Programs, connection: &Connection) -> rusqlite::Result<Vec<u64>> {
    let sets = programs.sets.iter();
    let sets = sets.map(|&(set, ipu)| ([ipu; 2], cycles_of_set(programs, set, ipu)));
    let exchanges = programs.exchanges.iter().map(|&ipus| (ipus, EXCHANGE));
    let steps = sets.chain(exchanges).zip(programs.first..);
    let steps = steps.map(|((ipus, cycles), program)| {
        let is_active = |ipu: usize| ipus.contains(&(ipu % programs.ipus.len()));
        let by_ipu = (0..programs.listed_ipus()).map(|ipu| u64::from(is_active(ipu)) * cycles);
        (Some(program), by_ipu.collect())
    });
    let steps: Vec<Step> = steps.collect();
    let of_ipu =
        |ipu: usize| RUNS as u64 * steps.iter().map(|(_, by_ipu)| by_ipu[ipu]).sum::<u64>();
    let cycles = (0..programs.ipus.len()).map(of_ipu).collect();
    write_runs(&[(); RUNS].map(|()| steps.clone()), connection)?;
    Ok(cycles)
}

fn cycles_of_set(programs: &Programs, set: usize, ipu: usize) -> u64 {
    let vertices = programs.vertices(set, ipu);
    let tiles = 0..programs.plan.settings.tiles as usize;
    let active = tiles.filter(|&tile| vertices.iter().any(|(_, by_tile)| by_tile[tile] > 0));
    let cycles = active.map(|tile| {
        let about = [topic::CYCLES, set as u64, tile as u64 / 128, 7];
        60 + programs.plan.settings.random.below(4000, about)
    });
    cycles.max().unwrap_or(0)
}
