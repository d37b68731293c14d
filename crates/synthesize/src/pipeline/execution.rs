//! An execution of a pipelined profile: each IPU counts its own cycles.

use crate::encoding::encode_rle;
use rusqlite::Connection;

use super::programs::{Program, Programs};
use crate::cycles::{Run, write_step, write_step_of_ipu};
use crate::random::topic;
use crate::schema::insert;

/// How often everything runs.
const RUNS: usize = 2;

/// Cycles of an exchange between IPUs.
const EXCHANGE: u64 = 700;

/// An execution while it is written.
struct Execution<'a> {
    programs: &'a Programs<'a>,
    connection: &'a Connection,
    /// By position of the list: cycles by tile of the IPU.
    by_tile: Vec<Vec<u64>>,
    steps: usize,
    /// By IPU of a replica: since the beginning.
    clocks: Vec<u64>,
    cycles: Vec<u64>,
}

/// Writes an execution, which all replicas go through in the same cycles. Gives
/// the cycles by IPU of a replica.
pub(super) fn write(programs: &Programs, connection: &Connection) -> rusqlite::Result<Vec<u64>> {
    let ipus = programs.listing.ipus as usize;
    let cycles = |program: &Program| match *program {
        Program::Execute { set, ipu } => cycles_of_set(programs, set, ipu),
        Program::Exchange { .. } => vec![EXCHANGE; programs.listing.tiles as usize],
    };
    let mut execution = Execution {
        programs,
        connection,
        by_tile: programs.list.iter().map(cycles).collect(),
        steps: 0,
        clocks: vec![0; ipus],
        cycles: vec![0; ipus],
    };
    execution.cycles_by_tile()?;
    for run in 0..RUNS {
        execution.run(run)?;
    }
    Ok(execution.cycles)
}

/// Cycles of a compute set on an IPU, by tile.
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

impl Execution<'_> {
    fn cycles_by_tile(&self) -> rusqlite::Result<()> {
        let listing = self.programs.listing;
        let rows = self.by_tile.iter().enumerate().map(|(position, cycles)| {
            let by_tile = match self.programs.list[position] {
                Program::Execute { ipu, .. } => listing.by_tile(ipu, cycles),
                Program::Exchange { from, to } => {
                    let (from, to) = (listing.by_tile(from, cycles), listing.by_tile(to, cycles));
                    from.iter().zip(&to).map(|(from, to)| from + to).collect()
                }
            };
            (self.programs.id(position), encode_rle(&by_tile))
        });
        insert(self.connection, "cycles_by_tile", rows)
    }

    fn run(&mut self, run: usize) -> rusqlite::Result<()> {
        let (first, start) = (self.steps, self.of_all());
        for position in 0..self.programs.list.len() {
            self.step(position)?;
        }
        let run = Run {
            number: run,
            name: "main",
            programs: self.programs.list.len(),
            steps: self.steps - first,
            cycles: [start, self.of_all()],
        };
        run.write(self.connection)
    }

    /// By IPU of all replicas: its cycles so far.
    fn of_all(&self) -> Vec<u64> {
        let clocks = self.clocks.iter().cycle().copied();
        clocks
            .take(self.programs.listing.all_ipus() as usize)
            .collect()
    }

    /// A step has a row for each IPU, also for those that do nothing in it.
    fn step(&mut self, position: usize) -> rusqlite::Result<()> {
        let (programs, by_tile) = (self.programs, &self.by_tile[position]);
        let max = by_tile.iter().copied().max().unwrap_or(0);
        let active = by_tile.iter().filter(|&&cycles| cycles > 0).count();
        let (name, busy) = match programs.list[position] {
            Program::Execute { ipu, .. } => ("OnTileExecute", vec![ipu]),
            Program::Exchange { from, to } => {
                let latest = self.clocks.iter().copied().max().unwrap_or(0);
                self.clocks.fill(latest);
                ("GlobalExchange", vec![from, to])
            }
        };
        let id = programs.id(position);
        write_step(self.steps, name, (Some(id), None), self.connection)?;
        for ipu in 0..programs.listing.all_ipus() {
            let of_replica = ipu % programs.listing.ipus;
            let clock = self.clocks[of_replica as usize];
            let times = match busy.contains(&of_replica) && max > 0 {
                true => (clock, max, active, 1.0),
                false => (clock, 0, 0, 0.0),
            };
            write_step_of_ipu((self.steps, ipu, id), times, self.connection)?;
        }
        for ipu in busy {
            self.clocks[ipu as usize] += max;
            self.cycles[ipu as usize] += max;
        }
        self.steps += 1;
        Ok(())
    }
}
