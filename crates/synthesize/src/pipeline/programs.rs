//! The programs of a pipelined profile: one for each step of liveness, then each
//! operation on each of its IPUs, with the contexts that it has in the `debug.cbor` of the
//! compilation for one IPU, then exchanges between neighbours.

use crate::encoding::{encode_list, encode_rle};
use rusqlite::Connection;

use super::variables::{ALWAYS, Variables};
use crate::plan::Plan;
use crate::schema::insert;
use crate::tree::Type;
use crate::vertex_tables::{compute_set, vertex_types};

/// The tiles that a profile lists: all IPUs of a replica, one replica after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listing {
    pub tiles: u32,
    pub ipus: u32,
    /// Replicas whose tiles are listed.
    pub replicas: u32,
}

impl Listing {
    pub fn all_ipus(&self) -> u32 {
        self.ipus * self.replicas
    }

    /// By tile: what an IPU has, on its tiles in each replica.
    pub fn by_tile(&self, ipu: u32, numbers: &[u64]) -> Vec<u64> {
        let tiles = self.tiles as usize;
        let mut all = vec![0; tiles * self.all_ipus() as usize];
        for replica in 0..self.replicas {
            let first = tiles * (replica * self.ipus + ipu) as usize;
            all[first..first + tiles].copy_from_slice(numbers);
        }
        all
    }
}

const PROGRAMS: &str =
    "programs (id, variant, variant_index, children, debug_id, control_code_bytes_by_tile)";

#[derive(Debug, Clone, Copy)]
pub(super) enum Program {
    Execute { set: usize, ipu: u32 },
    Exchange { from: u32, to: u32 },
}

/// All of them, after so many that only bear steps of liveness.
pub(super) struct Programs<'a> {
    pub plan: &'a Plan,
    pub variables: Variables,
    pub listing: Listing,
    pub list: Vec<Program>,
    pub connection: &'a Connection,
}

impl<'a> Programs<'a> {
    pub fn new(
        plan: &'a Plan,
        mut variables: Variables,
        listing: Listing,
        connection: &'a Connection,
    ) -> Self {
        let mut list = Vec::new();
        // As they come in the compilation for one IPU.
        for (set, compute_set) in plan.tree.compute_sets.iter().enumerate() {
            let ipus = variables.ipus.iter().zip(0..);
            let ipus = ipus.filter(|(ipu, _)| compute_set.share.places.meets(ipu.places));
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
            connection,
        }
    }

    pub fn id(&self, position: usize) -> u64 {
        u64::from(self.variables.steps) + position as u64
    }

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
            let by_tile = tiles.map(|tile| code.instances(set, slot, tile, places));
            (vertex_type, by_tile.collect())
        });
        instances.collect()
    }

    pub fn write(&self) -> rusqlite::Result<()> {
        let types = [
            Type::Sequence,
            Type::OnTileExecute,
            Type::GlobalExchange,
            Type::WriteUndef,
        ];
        let types = types.map(|kind| (kind as u32, format!("{kind:?}")));
        insert(self.connection, "program_types (id, name)", types)?;
        for id in 0..u64::from(self.variables.steps) {
            let kind = if id == 0 {
                Type::Sequence
            } else {
                Type::WriteUndef
            };
            self.program(id, (kind, None, 0))?;
        }
        insert(self.connection, "control_programs (id, program)", [(0, 0)])?;
        vertex_types(&self.plan.code.types, self.connection)?;
        let contexts = self.program_contexts();
        let (mut sets, mut exchanges) = (0, 0);
        for (position, program) in self.list.iter().enumerate() {
            let id = self.id(position);
            match *program {
                Program::Execute { set, ipu } => {
                    let row = (Type::OnTileExecute, Some(sets), contexts[set]);
                    self.program(id, row)?;
                    self.compute_set(sets, (set, ipu))?;
                    sets += 1;
                }
                Program::Exchange { .. } => {
                    let row = (Type::GlobalExchange, Some(exchanges), 0);
                    self.program(id, row)?;
                    let table = "program_type_global_exchange (id)";
                    insert(self.connection, table, [[exchanges]])?;
                    exchanges += 1;
                }
            }
        }
        Ok(())
    }

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
        (kind, row, context): (Type, Option<usize>, u32),
    ) -> rusqlite::Result<()> {
        let end = if id == 0 { self.steps() } else { 1 };
        let children: Vec<u64> = (1..end.into()).collect();
        let tiles = self.listing.tiles * self.listing.all_ipus();
        let no_code = encode_rle(&vec![0; tiles as usize]);
        let kind = kind as u32;
        let row = (id, kind, row, encode_list(&children), context, no_code);
        insert(self.connection, PROGRAMS, [row])?;
        let step = (id, id, (id > 0).then_some(0));
        insert(self.connection, "depth_first_steps", [step])
    }

    /// A compute set on an IPU: its vertices are on tiles of that one alone.
    fn compute_set(&self, row: usize, (set, ipu): (usize, u32)) -> rusqlite::Result<()> {
        let instances = self.instances(set, ipu);
        let replicas = u64::from(self.listing.replicas);
        let counts = instances.iter();
        let counts = counts.map(|(_, by_tile)| replicas * by_tile.iter().sum::<u64>());
        let set = &self.plan.tree.compute_sets[set];
        let named = (row, set.name.as_str(), set.debug_id);
        compute_set(
            named,
            &counts.collect::<Vec<_>>(),
            (None, None),
            self.connection,
        )?;
        insert(
            self.connection,
            "program_type_on_tile_execute",
            [(row, row)],
        )?;
        let rows = instances.iter().map(|(kind, by_tile)| {
            let by_tile = self.listing.by_tile(ipu, by_tile);
            (row, kind, encode_rle(&by_tile))
        });
        insert(self.connection, "vertex_instances", rows)
    }
}
