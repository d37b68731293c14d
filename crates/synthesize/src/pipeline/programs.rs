//! The programs of a pipelined profile: one for each step of liveness, then each
//! operation on each of its IPUs, with the contexts that it has in the `debug.cbor` of the
//! compilation for one IPU, then exchanges between neighbours; and their execution.

use rusqlite::Connection;

use crate::code::Vertices;
use crate::cycles::{Step, write_runs};
use crate::places::Places;
use crate::plan::Plan;
use crate::program_tables;
use crate::random::topic;
use crate::recompiled;
use crate::tree::{Program, Tree, Type, Window};
use crate::vertex_tables::{compute_set, vertex_types};

const RUNS: usize = 2;

/// Cycles of an exchange on each of its IPUs.
const EXCHANGE: u64 = 700;

pub(super) struct Programs<'a> {
    pub plan: &'a Plan,
    /// The places of each IPU of a replica.
    pub ipus: Vec<Places>,
    /// Replicas whose tiles are listed: all IPUs of a replica, one replica after the other.
    pub replicas: usize,
    /// The first program of a compute set. Those before it only bear steps of liveness.
    pub first: u32,
    /// Compute sets, each with an IPU that executes it.
    pub sets: Vec<(usize, usize)>,
    /// The IPUs from and to which everything is exchanged.
    pub exchanges: Vec<[usize; 2]>,
}

impl<'a> Programs<'a> {
    /// Lists the programs on these IPUs, after `first` programs that only bear steps of liveness.
    pub fn new(plan: &'a Plan, ipus: Vec<Places>, replicas: usize, first: u32) -> Self {
        // As they come in the compilation for one IPU.
        let sets = plan.tree.compute_sets.iter().enumerate();
        let sets = sets.flat_map(|(number, set)| {
            let here = ipus.iter().enumerate();
            let here = here.filter(|(_, places)| set.share.places.meets(**places));
            here.map(move |(ipu, _)| (number, ipu))
        });
        let exchanges = (1..ipus.len()).flat_map(|ipu| {
            let back = plan.settings.training().then_some([ipu, ipu - 1]);
            [[ipu - 1, ipu]].into_iter().chain(back)
        });
        Self {
            sets: sets.collect(),
            exchanges: exchanges.collect(),
            plan,
            ipus,
            replicas,
            first,
        }
    }

    pub fn listed_ipus(&self) -> usize {
        self.ipus.len() * self.replicas
    }

    /// Returns the vertices of a compute set on an IPU.
    pub fn vertices(&self, set: usize, ipu: usize) -> Vec<Vertices> {
        let tiles = self.plan.settings.tiles;
        self.plan.code.vertices(set, tiles, self.ipus[ipu])
    }

    /// Returns all programs, each with a step. The first is the sequence of all others.
    pub fn tree(&self) -> Tree {
        let executes = self.plan.tree.programs.iter();
        let executes = executes.filter(|program| program.kind == Type::OnTileExecute);
        let contexts: Vec<u32> = executes.map(|program| program.debug_id).collect();
        let of_steps = (1..self.first).map(|_| (Type::WriteUndef, None, 0));
        let sets = self.sets.iter().enumerate();
        let sets = sets.map(|(row, set)| (Type::OnTileExecute, Some(row), contexts[set.0]));
        let exchanges = (0..self.exchanges.len()).map(|row| (Type::GlobalExchange, Some(row), 0));
        let root = [(Type::Sequence, None, 0)].into_iter();
        let programs = root.chain(of_steps).chain(sets).chain(exchanges);
        let programs = programs.map(|(kind, index, debug_id)| Program {
            kind,
            index,
            children: Vec::new(),
            name: None,
            debug_id,
            code: (0, Window::all(0)),
            op: None,
            places: None,
        });
        let mut programs: Vec<Program> = programs.collect();
        let ids = 0..programs.len() as u32;
        programs[0].children = ids.clone().skip(1).collect();
        let sets = self.sets.iter();
        let sets = sets.map(|set| self.plan.tree.compute_sets[set.0].clone());
        Tree {
            programs,
            compute_sets: sets.collect(),
            steps: ids.map(|id| (id, (id > 0).then_some(0))).collect(),
            ..Tree::default()
        }
    }

    /// Writes a tree of these programs. The vertices of a compute set are on tiles of its IPU alone.
    pub fn write(&self, tree: &Tree, connection: &Connection) -> rusqlite::Result<()> {
        let listed = self.listed_ipus();
        let tiles = self.plan.settings.tiles as usize;
        program_tables::tree(self.plan, tree, (tiles * listed) as u32, connection)?;
        vertex_types(&self.plan.code.types, connection)?;
        for (row, &(set, ipu)) in self.sets.iter().enumerate() {
            let mut vertices = self.vertices(set, ipu);
            for (_, by_tile) in &mut vertices {
                let on_ipu = std::mem::take(by_tile);
                let number = |tile: usize| match tile / tiles % self.ipus.len() == ipu {
                    true => on_ipu[tile % tiles],
                    false => 0,
                };
                *by_tile = (0..tiles * listed).map(number).collect();
            }
            let set = (row, &tree.compute_sets[row]);
            compute_set(set, &vertices, (None, None), connection)?;
        }
        Ok(())
    }

    /// Writes an execution of two runs. In a run, every compute set runs once; then neighbouring
    /// IPUs exchange all tensors. All replicas take the same cycles. Returns the cycles of each IPU
    /// of a replica.
    pub fn execute(&self, connection: &Connection) -> rusqlite::Result<Vec<u64>> {
        let sets = self.sets.iter();
        let sets = sets.map(|&(set, ipu)| ([ipu; 2], self.cycles_of_set(set, ipu)));
        let exchanges = self.exchanges.iter().map(|&ipus| (ipus, EXCHANGE));
        let steps = sets.chain(exchanges).zip(self.first..);
        let steps = steps.map(|((ipus, cycles), program)| {
            let is_active = |ipu: usize| ipus.contains(&(ipu % self.ipus.len()));
            let by_ipu = (0..self.listed_ipus()).map(|ipu| u64::from(is_active(ipu)) * cycles);
            (Some(program), by_ipu.collect())
        });
        let steps: Vec<Step> = steps.collect();
        let of_ipu =
            |ipu: usize| RUNS as u64 * steps.iter().map(|(_, by_ipu)| by_ipu[ipu]).sum::<u64>();
        let cycles = (0..self.ipus.len()).map(of_ipu).collect();
        write_runs(&[(); RUNS].map(|()| steps.clone()), connection)?;
        Ok(cycles)
    }

    fn cycles_of_set(&self, set: usize, ipu: usize) -> u64 {
        let vertices = self.vertices(set, ipu);
        let tiles = 0..self.plan.settings.tiles as usize;
        let active = tiles.filter(|&tile| vertices.iter().any(|(_, by_tile)| by_tile[tile] > 0));
        let op = self.plan.tree.compute_sets[set].op;
        let cycles = active.map(|tile| {
            let about = [topic::CYCLES, set as u64, tile as u64 / 128, 7];
            let sample = self.plan.settings.random.below(4000, about);
            60 + recompiled::cycles((&self.plan.settings, &self.plan.model), Some(op), sample)
        });
        cycles.max().unwrap_or(0)
    }
}
