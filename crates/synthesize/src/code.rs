//! Vertices and code: what compute sets and exchanges put on each tile.

use super::model::Model;
use super::places::Places;
use super::random::{Random, topic};
use super::settings::Settings;
use super::templates::Kind;
use super::tree::{Share, Tree, Window};

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    pub name: String,
    /// `c++` or `asm`.
    pub source: &'static str,
    /// Bytes of its code, once on every tile that has an instance.
    pub code: u64,
    /// Bytes of state of one instance: plain data, edge pointers, copy
    /// pointers.
    pub state: [u64; 3],
}

impl VertexType {
    /// Bytes of state of one instance.
    pub fn size(&self) -> u64 {
        self.state.iter().sum()
    }

    /// Whether it copies and so has descriptors.
    pub fn copies(&self) -> bool {
        self.state[2] > 0
    }
}

/// Vertices by compute set, and code by tile.
#[derive(Debug, Clone)]
pub struct Code {
    /// All vertex types; ids are positions.
    pub types: Vec<VertexType>,
    /// Per compute set: its vertex types.
    pub sets: Vec<Vec<usize>>,
    /// Compute sets' tiles.
    pub windows: Vec<Window>,
    /// Per exchange: tiles, and the one whose code it has.
    pub exchanges: Vec<(Window, usize)>,
    /// Per compute set of a global operation: its parts.
    set_parts: Vec<Vec<(Places, Window)>>,
    /// Per exchange: the same.
    exchange_parts: Vec<Vec<(Places, Window)>>,
    /// Per tree (control program, then functions) and tile: control code.
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
    let types = vertex_types(settings, variants);
    let mut sets = Vec::new();
    for (index, set) in tree.compute_sets.iter().enumerate() {
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
        sets.push(kinds);
    }
    let exchanges = tree.exchanges.iter().enumerate();
    Code {
        types,
        sets,
        windows: tree.compute_sets.iter().map(|set| set.window).collect(),
        exchanges: exchanges
            .map(|(shares, exchange)| (exchange.window, exchange.shares.unwrap_or(shares)))
            .collect(),
        set_parts: parts(tree.compute_sets.iter().map(|set| &set.share)),
        exchange_parts: parts(tree.exchanges.iter().map(|exchange| &exchange.share)),
        control: control_code(settings, tree),
        random: settings.random,
    }
}

fn parts<'a>(shares: impl Iterator<Item = &'a Share>) -> Vec<Vec<(Places, Window)>> {
    shares.map(|share| share.parts.clone()).collect()
}

const POOLS: [(&str, &str); 7] = [
    (
        "poplin::ConvPartial1x1Out<half,half,true,false,16,4,false>",
        "asm",
    ),
    ("poplin::ConvPartialnx1<half,float,true,false,16,4>", "asm"),
    ("popnn::NonLinearityGrad<half>", "c++"),
    (
        "popops::ContinuousReduce<popops::ReduceAdd,float,float>",
        "asm",
    ),
    ("popops::map::Fused", "c++"),
    ("popops::MultiSlice<half>", "c++"),
    ("poplar_rt::StridedCopy", "asm"),
];
const COPY_POOL: usize = 6;

/// Bytes of an exchange of a global operation, for each of its parts.
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
    for (pool, (name, source)) in POOLS.into_iter().enumerate() {
        for variant in 0..variants {
            let about = [topic::VERTEX, pool as u64, variant as u64, 1];
            let hash = settings.random.hash(about);
            let [edge, copy] = match pool == COPY_POOL {
                true => [0, 8],
                false => [4 + 4 * ((hash >> 20) % 4), 0],
            };
            types.push(VertexType {
                name: format!("{name}_v{variant}"),
                source,
                code: 40 + 4 * (hash % 250),
                state: [4 + 4 * (hash >> 10) % 12, edge, copy],
            });
        }
    }
    types
}

fn control_code(settings: &Settings, tree: &Tree) -> Vec<Vec<u64>> {
    let mut trees = vec![vec![0; settings.tiles as usize]; 1 + tree.functions.len()];
    for (id, program) in tree.programs.iter().enumerate() {
        let function = tree.functions.partition_point(|&root| root as usize <= id);
        let (bytes, window) = program.code;
        let first = window.first as usize;
        for tile in &mut trees[function][first..first + window.count as usize] {
            *tile += bytes;
        }
    }
    trees
}

impl Code {
    /// Instances of the `slot`-th vertex type of a compute set on a tile.
    #[inline]
    pub fn instances(&self, set: usize, slot: usize, tile: u32) -> u64 {
        let parts = self.set_parts[set].len();
        if parts > 0 {
            let parts = 0..parts;
            return parts
                .map(|part| self.part_instances(set, slot, part, tile))
                .sum();
        }
        match self.windows[set].holds(tile) {
            true => {
                let about = [
                    topic::VERTEX,
                    set as u64,
                    slot as u64,
                    2 + u64::from(tile / 16),
                ];
                1 + self.random.below(3, about)
            }
            false => 0,
        }
    }

    /// How many instances work for these places; an operation over the whole
    /// model has some for each.
    pub fn instances_for(&self, set: usize, slot: usize, tile: u32, places: Places) -> u64 {
        let parts = self.set_parts[set].iter().enumerate();
        let of_places = parts.filter(|(_, part)| part.0.meets(places));
        match self.set_parts[set].is_empty() {
            true => self.instances(set, slot, tile),
            false => of_places
                .map(|(part, _)| self.part_instances(set, slot, part, tile))
                .sum(),
        }
    }

    /// Bytes of a compute set on a tile: vertex data, edge pointers, copy
    /// pointers, descriptors, and the part of the edge pointers that is
    /// variable-sized field data.
    pub fn set_bytes(&self, set: usize, tile: u32) -> SetBytes {
        let mut bytes = SetBytes::default();
        for (slot, &kind) in self.sets[set].iter().enumerate() {
            let count = self.instances(set, slot, tile);
            let [data, edge, copy] = self.types[kind].state.map(|state| state * count);
            bytes.data += data;
            bytes.edge += edge;
            bytes.copy += copy;
            if count > 0 && self.types[kind].copies() {
                bytes.descriptor += 7;
            }
        }
        if set % 9 == 4 && self.set_runs(set, tile) {
            bytes.field = 24;
            bytes.edge += 24;
        }
        bytes
    }

    /// Instances that work for one part of a global operation's compute set.
    fn part_instances(&self, set: usize, slot: usize, part: usize, tile: u32) -> u64 {
        let about = [topic::VERTEX, set as u64, slot as u64, 1000 + part as u64];
        match self.set_parts[set][part].1.holds(tile) {
            true => 1 + self.random.below(2, about),
            false => 0,
        }
    }

    /// The bytes of a compute set on a tile, by the places that they work for:
    /// those of `all` for what its parts have in common.
    pub fn set_shares(&self, set: usize, tile: u32, all: Places) -> Vec<(Places, u64)> {
        let bytes = self.set_bytes(set, tile);
        let mut common = bytes.data + bytes.edge + bytes.copy + bytes.descriptor;
        let mut shares = Vec::new();
        for (part, &(places, _)) in self.set_parts[set].iter().enumerate() {
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

    /// The shares of places in the code of an exchange.
    pub fn exchange_shares(&self, exchange: usize, tile: u32, all: Places) -> Vec<(Places, u64)> {
        let parts = self.exchange_parts[exchange].iter();
        let mut shares: Vec<_> = parts.map(|part| (part.0, PART_OF_EXCHANGE)).collect();
        let of_parts: u64 = shares.iter().map(|share| share.1).sum();
        shares.push((all, self.exchange_bytes(exchange, tile) - of_parts));
        shares
    }

    /// Whether a compute set has vertices on a tile.
    pub fn set_runs(&self, set: usize, tile: u32) -> bool {
        let mut parts = self.set_parts[set].iter();
        match self.set_parts[set].is_empty() {
            true => self.windows[set].holds(tile),
            false => parts.any(|part| part.1.holds(tile)),
        }
    }

    /// Bytes of an exchange's code on a tile.
    #[inline]
    pub fn exchange_bytes(&self, exchange: usize, tile: u32) -> u64 {
        let (window, original) = self.exchanges[exchange];
        let parts = self.exchange_parts[exchange].len() as u64;
        if parts > 0 {
            return 8 + PART_OF_EXCHANGE * parts;
        }
        match window.holds(tile) {
            true => {
                let about = [topic::EXCHANGE, original as u64, 3, u64::from(tile / 2)];
                8 + 4 * self.random.below(12, about)
            }
            false => 0,
        }
    }

    /// Which vertex types have code on a tile, by id.
    pub fn types_on(&self, tile: u32) -> Vec<bool> {
        let mut present = vec![false; self.types.len()];
        for (set, kinds) in self.sets.iter().enumerate() {
            if self.set_runs(set, tile) {
                kinds.iter().for_each(|&kind| present[kind] = true);
            }
        }
        present
    }
}

/// Bytes of one compute set on one tile.
#[derive(Debug, Clone, Copy, Default)]
pub struct SetBytes {
    pub data: u64,
    /// Edge pointers, field data included.
    pub edge: u64,
    pub copy: u64,
    pub descriptor: u64,
    /// Variable-sized field data.
    pub field: u64,
}

impl SetBytes {
    /// Bytes of vertex instances alone.
    pub fn state(&self) -> u64 {
        self.data + self.edge + self.copy - self.field
    }
}
