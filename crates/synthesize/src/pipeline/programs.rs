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

const PROGRAMS: &str =
    "programs (id, variant, variant_index, children, debug_id, control_code_bytes_by_tile)";

/// All programs, after those that only bear steps of liveness.
pub(super) struct Programs<'a> {
    pub plan: &'a Plan,
    pub variables: Variables,
    /// Replicas whose tiles are listed: all IPUs of a replica, one replica after the other.
    pub replicas: u32,
    /// Compute sets, each with an IPU that executes it.
    pub sets: Vec<(usize, u32)>,
    /// The IPUs from and to which everything is exchanged.
    pub exchanges: Vec<(u32, u32)>,
    pub connection: &'a Connection,
}

impl<'a> Programs<'a> {
    pub fn new(
        plan: &'a Plan,
        mut variables: Variables,
        replicas: u32,
        connection: &'a Connection,
    ) -> Self {
        // As they come in the compilation for one IPU.
        let sets = plan.tree.compute_sets.iter().enumerate();
        let sets = sets.flat_map(|(number, set)| {
            let ipus = (0..).zip(&variables.ipus);
            let ipus = ipus.filter(|(_, ipu)| set.share.places.meets(ipu.places));
            ipus.map(move |(ipu, _)| (number, ipu))
        });
        let sets: Vec<(usize, u32)> = sets.collect();
        let exchanges = (1..variables.ipus.len() as u32).flat_map(|ipu| {
            let back = plan.settings.training().then_some((ipu, ipu - 1));
            [(ipu - 1, ipu)].into_iter().chain(back)
        });
        let exchanges: Vec<(u32, u32)> = exchanges.collect();
        let steps = variables.steps + (sets.len() + exchanges.len()) as u32;
        variables.classes.ranges[ALWAYS as usize] = vec![(0, steps)];
        Self {
            plan,
            variables,
            replicas,
            sets,
            exchanges,
            connection,
        }
    }

    /// IPUs of a replica.
    pub fn ipus(&self) -> u32 {
        self.variables.ipus.len() as u32
    }

    pub fn listed_ipus(&self) -> u32 {
        self.ipus() * self.replicas
    }

    /// By listed tile: the numbers of an IPU on each of these IPUs, in each replica, and 0 on all
    /// others.
    pub fn by_tile(&self, ipus: &[u32], numbers: &[u64]) -> Vec<u64> {
        let on_others = vec![0; numbers.len()];
        let listed = (0..self.listed_ipus()).map(|ipu| ipu % self.ipus());
        let listed = listed.map(|ipu| match ipus.contains(&ipu) {
            true => numbers,
            false => &on_others,
        });
        listed.collect::<Vec<_>>().concat()
    }

    /// The programs of compute sets, in their order, then those of exchanges.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.variables.steps.into()..self.steps() as u64
    }

    pub fn steps(&self) -> usize {
        self.variables.steps as usize + self.sets.len() + self.exchanges.len()
    }

    /// The vertices of a compute set on an IPU: by type, how many each tile has.
    pub fn instances(&self, (set, ipu): (usize, u32)) -> Vec<(usize, Vec<u64>)> {
        let places = self.variables.ipus[ipu as usize].places;
        let code = &self.plan.code;
        let types = code.sets[set].iter().enumerate();
        let instances = types.map(|(slot, &vertex_type)| {
            let tiles = 0..self.plan.settings.tiles;
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
        self.program(0, Type::Sequence, None, 0)?;
        for id in 1..self.variables.steps.into() {
            self.program(id, Type::WriteUndef, None, 0)?;
        }
        insert(self.connection, "control_programs (id, program)", [(0, 0)])?;
        vertex_types(&self.plan.code.types, self.connection)?;
        let executes = self.plan.tree.programs.iter();
        let executes = executes.filter(|program| program.kind == Type::OnTileExecute);
        let contexts: Vec<u32> = executes.map(|program| program.debug_id).collect();
        let mut ids = self.ids();
        for ((row, &set), id) in self.sets.iter().enumerate().zip(&mut ids) {
            self.program(id, Type::OnTileExecute, Some(row), contexts[set.0])?;
            self.compute_set(row, set)?;
        }
        for (row, id) in ids.enumerate() {
            self.program(id, Type::GlobalExchange, Some(row), 0)?;
            insert(
                self.connection,
                "program_type_global_exchange (id)",
                [[row]],
            )?;
        }
        Ok(())
    }

    /// A program with its step: its type, the row that it refers to, its context. The first is
    /// the sequence of all others.
    fn program(
        &self,
        id: u64,
        kind: Type,
        row: Option<usize>,
        context: u32,
    ) -> rusqlite::Result<()> {
        let end = if id == 0 { self.steps() as u64 } else { 1 };
        let children: Vec<u64> = (1..end).collect();
        let no_code = vec![0; self.plan.settings.tiles as usize];
        let no_code = encode_rle(&self.by_tile(&[], &no_code));
        let row = (
            id,
            kind as u32,
            row,
            encode_list(&children),
            context,
            no_code,
        );
        insert(self.connection, PROGRAMS, [row])?;
        let step = (id, id, (id > 0).then_some(0));
        insert(self.connection, "depth_first_steps", [step])
    }

    /// A compute set on an IPU: its vertices are on tiles of that one alone.
    fn compute_set(&self, row: usize, (set, ipu): (usize, u32)) -> rusqlite::Result<()> {
        let instances = self.instances((set, ipu));
        let replicas = u64::from(self.replicas);
        let counts = instances.iter();
        let counts = counts.map(|(_, by_tile)| replicas * by_tile.iter().sum::<u64>());
        let counts: Vec<u64> = counts.collect();
        let set = &self.plan.tree.compute_sets[set];
        let named = (row, set.name.as_str(), set.debug_id);
        compute_set(named, &counts, (None, None), self.connection)?;
        let table = "program_type_on_tile_execute";
        insert(self.connection, table, [(row, row)])?;
        let rows = instances.iter().map(|(kind, by_tile)| {
            let by_tile = self.by_tile(&[ipu], by_tile);
            (row, kind, encode_rle(&by_tile))
        });
        insert(self.connection, "vertex_instances", rows)
    }
}
