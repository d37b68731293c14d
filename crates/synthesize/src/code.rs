//! Plants vertices and code: the vertices and bytes that compute sets and exchanges have on each
//! tile.

use std::collections::BTreeSet;

use super::model::Model;
use super::places::Places;
use super::random::{Random, topic};
use super::settings::Settings;
use super::templates::Kind;
use super::tree::{ComputeSet, Exchange, Program, Tree};

#[derive(Debug, Clone)]
pub struct VertexType {
    pub name: String,
    /// Bytes of the code of the vertex type, once on every tile that has an instance.
    pub code: u64,
    /// Bytes of state of one instance: plain data, edge pointers, copy
    /// pointers.
    pub state: [u64; 3],
}

impl VertexType {
    pub fn size(&self) -> u64 {
        self.state.iter().sum()
    }

    pub fn copies(&self) -> bool {
        self.state[2] > 0
    }
}

/// A vertex type, and its number of vertices by tile.
pub type Vertices = (usize, Vec<u64>);

/// Vertices by compute set, and code by tile.
#[derive(Debug, Clone)]
pub struct Code {
    pub types: Vec<VertexType>,
    pub sets: Vec<Vec<usize>>,
    compute_sets: Vec<ComputeSet>,
    exchanges: Vec<Exchange>,
    /// By tree (control program, then functions) and tile: bytes of control code.
    pub control: Vec<Vec<u64>>,
    random: Random,
}

/// Plants vertex types and gives each compute set one to three of them.
pub fn build(settings: &Settings, model: &Model, tree: &Tree) -> Code {
    // The same vertices run in the layers of BERT.
    let times = match settings.features.bert_large {
        true => settings.layers as usize,
        false => 1,
    };
    let variants = (tree.compute_sets.len() / times / 60).clamp(2, 24);
    let kinds = |(index, set): (usize, &ComputeSet)| {
        let pool = pool_of(model.ops[set.op].kind) * variants;
        let hash = settings.random.hash([topic::VERTEX, index as u64, 0, 0]);
        let mut kinds = vec![pool + hash as usize % variants];
        if hash >> 20 & 3 == 0 {
            kinds.push(COPY_POOL * variants + (hash >> 24) as usize % variants);
        }
        if hash >> 32 & 7 == 0 {
            kinds.push(pool + (hash >> 36) as usize % variants);
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    let mut control = control_code(&tree.programs, settings.tiles);
    let roots = tree.functions.iter().copied();
    let roots = [tree.root].into_iter().chain(roots);
    let of_root = |root: u32| control[root as usize].take().expect("it has children");
    Code {
        types: vertex_types(settings, variants),
        sets: tree.compute_sets.iter().enumerate().map(kinds).collect(),
        compute_sets: tree.compute_sets.clone(),
        exchanges: tree.exchanges.clone(),
        control: roots.map(of_root).collect(),
        random: settings.random,
    }
}

const POOLS: [&str; 7] = [
    "poplin::ConvPartial1x1Out<half,half,true,false,16,4,false>",
    "poplin::ConvPartialnx1<half,float,true,false,16,4>",
    "popnn::NonLinearityGrad<half>",
    "popops::ContinuousReduce<popops::ReduceAdd,float,float>",
    "popops::map::Fused",
    "popops::MultiSlice<half>",
    "poplar_rt::StridedCopy",
];
const COPY_POOL: usize = 6;

/// Bytes of the code of an exchange of a global operation, for each of its parts.
const PART_OF_EXCHANGE: u64 = 4;

fn pool_of(kind: Kind) -> usize {
    match kind {
        Kind::MatMul => 0,
        Kind::Conv => 1,
        Kind::Norm => 3,
        Kind::Softmax => 2,
        Kind::Elementwise | Kind::Update => 4,
        Kind::Gather => 5,
        Kind::Call => COPY_POOL,
    }
}

fn vertex_types(settings: &Settings, variants: usize) -> Vec<VertexType> {
    let mut types = Vec::new();
    for (pool, name) in POOLS.into_iter().enumerate() {
        for variant in 0..variants {
            let about = [topic::VERTEX, pool as u64, variant as u64, 1];
            let hash = settings.random.hash(about);
            let [edge, copy] = match pool == COPY_POOL {
                true => [0, 8],
                false => [4 + 4 * ((hash >> 20) % 4), 0],
            };
            types.push(VertexType {
                name: format!("{name}_v{variant}"),
                code: 40 + 4 * (hash % 250),
                state: [4 + 4 * (hash >> 10) % 12, edge, copy],
            });
        }
    }
    types
}

/// Returns the control code of each program on each of this number of tiles, children included;
/// `None` for a program without children. Children have higher ids than their parents.
pub fn control_code(programs: &[Program], tiles: u32) -> Vec<Option<Vec<u64>>> {
    let mut sums: Vec<Option<Vec<u64>>> = vec![None; programs.len()];
    for (id, program) in programs.iter().enumerate().rev() {
        if program.children.is_empty() {
            continue;
        }
        let (bytes, window) = program.code;
        let mut sum = window.with(bytes, tiles);
        for &child in &program.children {
            let (bytes, window) = programs[child as usize].code;
            match &sums[child as usize] {
                Some(more) => sum.iter_mut().zip(more).for_each(|(a, b)| *a += b),
                None => window.tiles().for_each(|tile| sum[tile as usize] += bytes),
            }
        }
        sums[id] = Some(sum);
    }
    sums
}

impl Code {
    /// Returns the number of vertices on a tile, of the type in `slot` of a compute set, that work
    /// for any of these places; an operation on the whole model has some vertices for each place.
    pub fn instances(&self, set: usize, slot: usize, tile: u32, places: Places) -> u64 {
        let ComputeSet { window, share, .. } = &self.compute_sets[set];
        let slots = [topic::VERTEX, set as u64, slot as u64];
        match share.parts.is_empty() {
            true if window.holds(tile) => {
                let [a, b, c] = slots;
                1 + self.random.below(3, [a, b, c, 2 + u64::from(tile / 16)])
            }
            true => 0,
            false => {
                let parts =
                    (0..share.parts.len()).filter(|&part| share.parts[part].0.meets(places));
                let instances = parts.map(|part| self.part_instances(set, slot, part, tile));
                instances.sum()
            }
        }
    }

    /// Returns the vertices of a compute set for these places: by type, the number on each tile.
    pub fn vertices(&self, set: usize, tiles: u32, places: Places) -> Vec<Vertices> {
        let types = self.sets[set].iter().enumerate();
        let vertices = types.map(|(slot, &vertex_type)| {
            let instances = |tile| self.instances(set, slot, tile, places);
            (vertex_type, (0..tiles).map(instances).collect())
        });
        vertices.collect()
    }

    fn part_instances(&self, set: usize, slot: usize, part: usize, tile: u32) -> u64 {
        let about = [topic::VERTEX, set as u64, slot as u64, 1000 + part as u64];
        match self.compute_sets[set].share.parts[part].1.holds(tile) {
            true => 1 + self.random.below(2, about),
            false => 0,
        }
    }

    pub fn set_bytes(&self, set: usize, tile: u32) -> SetBytes {
        let mut bytes = SetBytes::default();
        for (slot, &kind) in self.sets[set].iter().enumerate() {
            let count = self.instances(set, slot, tile, Places::EVERY);
            let [data, edge, copy] = self.types[kind].state.map(|state| state * count);
            bytes.data += data;
            bytes.edge += edge;
            bytes.copy += copy;
            if count > 0 && self.types[kind].copies() {
                bytes.descriptor += 7;
            }
        }
        if set % 9 == 4 && self.compute_sets[set].runs_on(tile) {
            bytes.field = 24;
            bytes.edge += 24;
        }
        bytes
    }

    /// Returns the bytes of the vertices of a compute set on a tile, by the places for which they
    /// work; bytes that its parts have in common count for `all`.
    pub fn state_shares(&self, set: usize, tile: u32, all: Places) -> Vec<(Places, u64)> {
        let mut common = self.set_bytes(set, tile).state();
        let mut shares = Vec::new();
        for (part, &(places, _)) in self.compute_sets[set].share.parts.iter().enumerate() {
            let state = self.sets[set].iter().enumerate().map(|(slot, &kind)| {
                self.types[kind].size() * self.part_instances(set, slot, part, tile)
            });
            let state: u64 = state.sum();
            common -= state;
            shares.push((places, state));
        }
        shares.push((all, common));
        shares
    }

    /// Returns the bytes of the code of an exchange on a tile, by the places for which it works.
    pub fn exchange_shares(&self, exchange: usize, tile: u32, all: Places) -> Vec<(Places, u64)> {
        let parts = self.exchanges[exchange].share.parts.iter();
        let mut shares: Vec<_> = parts.map(|part| (part.0, PART_OF_EXCHANGE)).collect();
        let of_parts: u64 = shares.iter().map(|share| share.1).sum();
        shares.push((all, self.exchange_bytes(exchange, tile) - of_parts));
        shares
    }

    pub fn exchange_bytes(&self, number: usize, tile: u32) -> u64 {
        let exchange = &self.exchanges[number];
        let original = exchange.shares.unwrap_or(number) as u64;
        let about = [topic::EXCHANGE, original, 3, u64::from(tile / 2)];
        match exchange.share.parts.len() as u64 {
            0 if exchange.window.holds(tile) => 8 + 4 * self.random.below(12, about),
            0 => 0,
            parts => 8 + PART_OF_EXCHANGE * parts,
        }
    }

    /// Returns the vertex types that have code on a tile, ascending.
    pub fn types_on(&self, tile: u32) -> BTreeSet<usize> {
        let sets = self.compute_sets.iter().zip(&self.sets);
        let here = sets.filter(|(set, _)| set.runs_on(tile));
        here.flat_map(|(_, kinds)| kinds).copied().collect()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SetBytes {
    pub data: u64,
    /// Bytes of edge pointers, including field data.
    pub edge: u64,
    pub copy: u64,
    pub descriptor: u64,
    pub field: u64,
}

impl SetBytes {
    pub fn state(&self) -> u64 {
        self.data + self.edge + self.copy - self.field
    }
}
