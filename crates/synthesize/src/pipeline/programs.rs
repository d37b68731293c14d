//! The programs of a pipelined profile: one for each step of liveness, then each
//! operation on each of its IPUs, with the contexts that it has in the `debug.cbor` of the
//! compilation for one IPU, then exchanges between neighbours.

use crate::encoding::{encode_list, encode_rle};
use rusqlite::Connection;

use super::listing::Listing;
use super::variables::{ALWAYS, Variables};
use crate::places::Places;
use crate::plan::Plan;
use crate::schema::insert;
use crate::tree::{ComputeSet, Type};
use crate::vertex_tables::{compute_set, vertex_types};

/// Types of programs, as real files number them; that of exchanges between IPUs
/// is not known.
const SEQUENCE: u32 = 1;
const ON_TILE_EXECUTE: u32 = 2;
const GLOBAL_EXCHANGE: u32 = 12;
const WRITE_UNDEF: u32 = 20;

/// The table of programs, as far as they have anything.
const PROGRAMS: &str =
    "programs (id, variant, variant_index, children, debug_id, control_code_bytes_by_tile)";

/// Bytes that each tile sends in an exchange between IPUs.
const SENT: u64 = 64;

/// A program that runs something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    /// A compute set, on the tiles of an IPU.
    Execute { set: usize, ipu: u32 },
    /// An exchange from one IPU to another.
    Exchange { from: u32, to: u32 },
}

/// All of them, after so many that only bear steps of liveness.
#[derive(Debug)]
pub(super) struct Programs<'a> {
    pub plan: &'a Plan,
    pub variables: Variables,
    pub listing: Listing,
    /// In the order of their ids and steps.
    pub list: Vec<Program>,
}

impl<'a> Programs<'a> {
    pub fn new(plan: &'a Plan, mut variables: Variables, listing: Listing) -> Self {
        let mut list = Vec::new();
        // As they come in the compilation for one IPU.
        for (set, compute_set) in plan.tree.compute_sets.iter().enumerate() {
            let ipus = variables.ipus.iter().zip(0..);
            let ipus = ipus.filter(|(ipu, _)| runs_for(compute_set, ipu.places));
            list.extend(ipus.map(|(_, ipu)| Program::Execute { set, ipu }));
        }
        for first in 1..listing.ipus {
            let (from, to) = (first - 1, first);
            list.push(Program::Exchange { from, to });
            if plan.settings.training() {
                list.push(Program::Exchange { from: to, to: from });
            }
        }
        let steps = variables.steps + list.len() as u32;
        variables.classes.ranges[ALWAYS as usize] = vec![(0, steps)];
        Self {
            plan,
            variables,
            listing,
            list,
        }
    }

    /// The id of the program at a position of the list.
    pub fn id(&self, position: usize) -> u64 {
        u64::from(self.variables.steps) + position as u64
    }

    /// Steps of all programs.
    pub fn steps(&self) -> u32 {
        self.variables.steps + self.list.len() as u32
    }

    /// The vertices of a compute set on an IPU: by type, how many each tile has.
    pub fn instances(&self, set: usize, ipu: u32) -> Vec<(usize, Vec<u64>)> {
        let places = self.variables.ipus[ipu as usize].places;
        let code = &self.plan.code;
        let types = code.sets[set].iter().enumerate();
        let instances = types.map(|(slot, &vertex_type)| {
            let tiles = 0..self.listing.tiles;
            let by_tile = tiles.map(|tile| code.instances_for(set, slot, tile, places));
            (vertex_type, by_tile.collect())
        });
        instances.collect()
    }

    /// Compute sets.
    pub fn compute_sets(&self) -> usize {
        let executes = |program: &&Program| matches!(program, Program::Execute { .. });
        self.list.iter().filter(executes).count()
    }

    /// Writes programs and what they run.
    pub fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        types(connection)?;
        for id in 0..u64::from(self.variables.steps) {
            match id {
                0 => self.program(0, (SEQUENCE, None, 0), connection)?,
                _ => self.program(id, (WRITE_UNDEF, None, 0), connection)?,
            }
        }
        insert(connection, "control_programs (id, program)", [(0, 0)])?;
        vertex_types(&self.plan.code.types, connection)?;
        let contexts = self.program_contexts();
        let (mut sets, mut exchanges) = (0, 0);
        for (position, program) in self.list.iter().enumerate() {
            let id = self.id(position);
            match *program {
                Program::Execute { set, ipu } => {
                    let row = (ON_TILE_EXECUTE, Some(sets), contexts[set]);
                    self.program(id, row, connection)?;
                    self.compute_set(sets, (set, ipu), connection)?;
                    sets += 1;
                }
                Program::Exchange { from, to } => {
                    let row = (GLOBAL_EXCHANGE, Some(exchanges), 0);
                    self.program(id, row, connection)?;
                    self.exchange(exchanges, (from, to), connection)?;
                    exchanges += 1;
                }
            }
        }
        Ok(())
    }

    /// By compute set: the context of the program that runs it.
    fn program_contexts(&self) -> Vec<u32> {
        let tree = &self.plan.tree;
        let mut contexts = vec![0; tree.compute_sets.len()];
        for program in &tree.programs {
            if let (Type::OnTileExecute, Some(set)) = (program.kind, program.index) {
                contexts[set] = program.debug_id;
            }
        }
        contexts
    }

    /// A program with its step: its type, the row that it refers to, its context. The first is
    /// the sequence of all others.
    fn program(
        &self,
        id: u64,
        (kind, row, context): (u32, Option<usize>, u32),
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let children: Vec<u64> = match id {
            0 => (1..u64::from(self.steps())).collect(),
            _ => Vec::new(),
        };
        let tiles = self.listing.tiles * self.listing.all_ipus();
        let no_code = encode_rle(&vec![0; tiles as usize]);
        let row = (id, kind, row, encode_list(&children), context, no_code);
        insert(connection, PROGRAMS, [row])?;
        let step = (id, id, (id > 0).then_some(0));
        insert(connection, "depth_first_steps", [step])
    }

    /// A compute set on an IPU: its vertices are on tiles of that one alone.
    fn compute_set(
        &self,
        row: usize,
        (set, ipu): (usize, u32),
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let instances = self.instances(set, ipu);
        let replicas = u64::from(self.listing.replicas);
        let kinds = instances.iter();
        let kinds = kinds.map(|(kind, by_tile)| (*kind, replicas * by_tile.iter().sum::<u64>()));
        let set = &self.plan.tree.compute_sets[set];
        let named = (row, set.name.as_str(), set.debug_id);
        compute_set(named, &kinds.collect::<Vec<_>>(), (None, None), connection)?;
        insert(connection, "program_type_on_tile_execute", [(row, row)])?;
        let rows = instances.iter().map(|(kind, by_tile)| {
            let by_tile = self.listing.by_tile(ipu, by_tile);
            (row, kind, encode_rle(&by_tile))
        });
        insert(connection, "vertex_instances", rows)
    }

    fn exchange(
        &self,
        row: usize,
        (from, to): (u32, u32),
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let sent = vec![SENT; self.listing.tiles as usize];
        let all = SENT * u64::from(self.listing.tiles);
        let max_by_ipu = vec![all; self.listing.all_ipus() as usize];
        let row = (
            row,
            encode_rle(&self.listing.by_tile(to, &sent)),
            encode_rle(&self.listing.by_tile(from, &sent)),
            encode_rle(&self.listing.by_ipu(to, all)),
            encode_rle(&self.listing.by_ipu(from, all)),
            encode_rle(&max_by_ipu),
            "External",
        );
        let table = "program_type_global_exchange (id, bytes_received_by_tile_rle,
                     bytes_sent_by_tile_rle, bytes_received_by_ipu_rle, bytes_sent_by_ipu_rle,
                     max_data_sent_and_received_by_ipu_rle, sync_type)";
        insert(connection, table, [row])
    }
}

/// Whether a compute set runs for any of these places.
fn runs_for(set: &ComputeSet, places: Places) -> bool {
    let mut parts = set.share.parts.iter();
    match set.share.parts.is_empty() {
        true => set.share.places.meets(places),
        false => parts.any(|part| part.0.meets(places)),
    }
}

fn types(connection: &Connection) -> rusqlite::Result<()> {
    let execute = Some("program_type_on_tile_execute");
    let exchange = Some("program_type_global_exchange");
    let types = [
        (SEQUENCE, "Sequence", None),
        (ON_TILE_EXECUTE, "OnTileExecute", execute),
        (GLOBAL_EXCHANGE, "GlobalExchange", exchange),
        (WRITE_UNDEF, "WriteUndef", None),
    ];
    insert(connection, "program_types", types)
}
