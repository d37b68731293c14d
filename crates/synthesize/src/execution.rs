//! Writes an execution, run by run and step by step. Each IPU counts its own cycles.

use crate::encoding::encode_rle;
use rusqlite::Connection;

use super::schema::insert;

pub struct Step {
    pub name: String,
    pub program: u64,
    /// Whether it is a sync, which `steps` lists without its program, as the schema allows.
    pub is_sync: bool,
    /// The IPUs of a replica that work. Several wait for each other and for all others first.
    pub ipus: Vec<u32>,
    pub cycles: u64,
    pub active: usize,
}

impl Step {
    /// A step that takes these cycles on the tiles of each of its IPUs.
    pub fn new(name: String, program: u64, ipus: Vec<u32>, by_tile: &[u64]) -> Self {
        Self {
            name,
            program,
            is_sync: false,
            ipus,
            cycles: by_tile.iter().copied().max().unwrap_or(0),
            active: by_tile.iter().filter(|&&cycles| cycles > 0).count(),
        }
    }
}

pub struct Execution<'a> {
    connection: &'a Connection,
    ipus: u32,
    clocks: Vec<u64>,
    steps: usize,
}

impl<'a> Execution<'a> {
    /// Nothing has run yet. All replicas do the same.
    pub fn new(ipus: u32, all_ipus: u32, connection: &'a Connection) -> Self {
        Self {
            connection,
            ipus,
            clocks: vec![0; all_ipus as usize],
            steps: 0,
        }
    }

    pub fn run(&mut self, number: usize, name: &str, steps: &[Step]) -> rusqlite::Result<()> {
        let start = encode_rle(&self.clocks);
        for step in steps {
            self.step(step)?;
        }
        let began = 1_688_472_000_000_000u64 + 1000 * number as u64;
        let end = encode_rle(&self.clocks);
        let programs = steps.iter().filter(|step| !step.is_sync).count();
        let row = (number, began, 1000, name, programs, steps.len(), start, end);
        let table = "runs (id, start_epoch_time_microseconds, elapsed_microseconds, name,
                     num_programs, num_steps, start_cycles_by_ipu, end_cycles_by_ipu)";
        insert(self.connection, table, [row])
    }

    /// A step has a row for each IPU, also for those that do nothing in it.
    fn step(&mut self, step: &Step) -> rusqlite::Result<()> {
        if step.ipus.len() > 1 {
            let latest = self.clocks.iter().copied().max().unwrap_or(0);
            self.clocks.fill(latest);
        }
        let program = (!step.is_sync).then_some(step.program);
        let row = (
            self.steps,
            &step.name,
            program,
            step.is_sync.then_some("Internal"),
        );
        let table = "steps (id, type, program, sync_type)";
        insert(self.connection, table, [row])?;
        let mut row = self.connection.prepare_cached(
            "INSERT INTO steps_by_ipu VALUES (?1, ?2, ?3, 0, 0, 0, ?4, ?4, ?4, ?4, ?4, ?4, ?4,
             ?5, ?6, NULL, ?6, ?7)",
        )?;
        for (clock, ipu) in self.clocks.iter_mut().zip(0..) {
            let (cycles, active, balance) = match step.ipus.contains(&(ipu % self.ipus)) {
                true if step.cycles > 0 => (step.cycles, step.active, 1.0),
                _ => (0, 0, 0.0),
            };
            let program = step.program;
            row.execute((self.steps, ipu, *clock, cycles, active, balance, program))?;
            *clock += cycles;
        }
        self.steps += 1;
        Ok(())
    }
}
