//! Writes down what was planted for which layer, from the plan itself and not
//! from the rows: what a model of memory has to find again.
//!
//! Every operation has a *home*: the layer that it was made for; what stands
//! before the first layer has the first as home, what stands after the last the
//! last, a gradient that of its forward operation. An outlined body is at home in
//! every layer that calls it: each needs a copy where it runs on its own. A layer
//! owns the variables, compute sets, exchanges and programs of the operations at
//! home in it. What several layers own counts for each of them, and once in a
//! range.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::cycles;
use super::groups::Group;
use super::model::{Op, Phase};
use super::operation_truth::{Home, OperationTruth};
use super::overhead::{self, CATEGORIES, category};
use super::place_truth::PlaceTruth;
use super::places::Places;
use super::plan::{Plan, category_of};

/// Bytes by category and tile.
type ByCategory = BTreeMap<&'static str, Vec<u64>>;

/// The document.
#[derive(Serialize)]
struct Planted {
    /// Tiles of the device.
    tiles: u32,
    /// Bytes by layer: of user data, all bytes whether live together or not.
    layers: Vec<ByCategory>,
    /// Bytes that belong to no layer and are always live.
    overhead: ByCategory,
    /// Bytes that belong to no layer and are live at some steps.
    passing: ByCategory,
    /// Cycles by layer, if the profile has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<PlantedCycles>,
    /// What each contiguous range of layers needs, without overhead.
    ranges: Vec<Range>,
    /// By operation context: the layers that it is at home in.
    homes: BTreeMap<u32, Vec<u32>>,
    /// By context of an operation that the framework made: `forward`, `backward`
    /// or `update`.
    passes: BTreeMap<u32, &'static str>,
    /// What ranges of places need, of a model with known places.
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<PlantedPlaces>,
}

/// Positions are the places in their order: before the layers, each layer, after
/// the layers.
#[derive(Serialize)]
struct PlantedPlaces {
    /// Each contiguous range.
    ranges: Vec<PlaceRange>,
    /// Weights that several places share, with their positions.
    ties: Vec<(String, Vec<u32>)>,
    /// All operations that have programs.
    operations: Vec<PlacedOperation>,
}

/// An operation and where it is at home.
#[derive(Serialize)]
struct PlacedOperation {
    /// The id of its context.
    context: u32,
    name: String,
    /// `places`, `global` (its parts are where the weights are), or `every_ipu`.
    home: &'static str,
    positions: Vec<u32>,
    bytes: u64,
}

/// What the positions `from..=to` need on an IPU of their own, by tile.
#[derive(Serialize)]
struct PlaceRange {
    from: u32,
    to: u32,
    bytes: Vec<u64>,
}

/// Cycles of compute sets and exchanges.
#[derive(Serialize)]
struct PlantedCycles {
    /// `executed` or `estimated`.
    source: &'static str,
    /// How many runs they are the sum of.
    runs: usize,
    /// By layer.
    layers: Vec<u64>,
    /// Those that the compiler made for no operation.
    nowhere: u64,
}

/// What the layers `from..=to` need together, by tile.
#[derive(Serialize)]
struct Range {
    from: u32,
    to: u32,
    /// Always-live bytes of user data.
    always_live: Vec<u64>,
    /// Most bytes of the other user data at any step of the whole program.
    peak: Vec<u64>,
    /// Code and vertex state.
    code: ByCategory,
}

/// Writes the planted bytes of `plan` as JSON.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let homes = Homes::new(plan);
    let layers = plan.settings.layers;
    let (overhead, passing) = unowned(plan, &homes);
    let ranges = (0..layers).flat_map(|from| (from..layers).map(move |to| (from, to)));
    let planted = Planted {
        tiles: plan.settings.tiles,
        layers: (0..layers)
            .map(|layer| one_layer(plan, &homes, layer))
            .collect(),
        overhead,
        passing,
        cycles: cycles_by_layer(plan, &homes),
        ranges: ranges
            .map(|(from, to)| range(plan, &homes, from, to))
            .collect(),
        homes: homes.by_context(plan),
        passes: passes(plan),
        places: plan.settings.has_places().then(|| places(plan)),
    };
    serde_json::to_writer(BufWriter::new(file), &planted)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn places(plan: &Plan) -> PlantedPlaces {
    let truth = PlaceTruth::new(plan);
    let layers = truth.layers();
    let last = layers + 1;
    let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
    let ties = truth.ties().iter();
    PlantedPlaces {
        ranges: ranges
            .map(|(from, to)| PlaceRange {
                from,
                to,
                bytes: truth.bytes(Places::positions(layers, from..=to)),
            })
            .collect(),
        ties: ties
            .map(|(name, tied)| (name.clone(), tied.in_order(layers)))
            .collect(),
        operations: truth
            .operations()
            .iter()
            .map(|own| placed(own, layers))
            .collect(),
    }
}

fn placed(own: &OperationTruth, layers: u32) -> PlacedOperation {
    let (home, places) = match own.home {
        Home::Places(places) => ("places", places),
        Home::Global(places) => ("global", places),
        Home::EveryIpu => ("every_ipu", Places::EVERY),
    };
    PlacedOperation {
        context: own.context,
        name: own.name.clone(),
        home,
        positions: places.in_order(layers),
        bytes: own.bytes,
    }
}

/// Follows the programs as they are executed: measured cycles of all runs, or
/// the estimates of one run of each branch.
fn cycles_by_layer(plan: &Plan, homes: &Homes) -> Option<PlantedCycles> {
    let mut sums = PlantedCycles {
        source: "estimated",
        runs: 1,
        layers: vec![0; plan.settings.layers as usize],
        nowhere: 0,
    };
    let mut add = |program, call, cycles| match home_of_program(plan, homes, program, call) {
        Some(layer) => sums.layers[layer as usize] += cycles,
        None => sums.nowhere += cycles,
    };
    if plan.settings.execution {
        for branch in cycles::RUNS {
            cycles::run(plan, Some(branch), &mut |program, call| {
                add(program, call, cycles::measured(plan, program));
            });
        }
        (sums.source, sums.runs) = ("executed", cycles::RUNS.len());
    } else if plan.settings.cycle_estimates {
        cycles::run(plan, None, &mut |program, call| {
            add(program, call, cycles::estimated(plan, program));
        });
    } else {
        return None;
    }
    Some(sums)
}

/// The layer that a program runs for: what an outlined body does is done for
/// the layer of the outermost call.
fn home_of_program(plan: &Plan, homes: &Homes, program: u32, call: Option<u32>) -> Option<u32> {
    let op_of = |program: u32| plan.tree.programs[program as usize].op;
    let site = call.and_then(op_of);
    let site = site.and_then(|op| plan.model.ops[op].call);
    match site {
        Some(site) => Some(plan.model.calls[site].layer),
        None => homes.0[op_of(program)?].first().copied(),
    }
}

fn passes(plan: &Plan) -> BTreeMap<u32, &'static str> {
    let ops = plan.model.ops.iter().zip(&plan.contexts.ops);
    let passes = ops.filter_map(|(op, contexts)| {
        let pass = match op.phase {
            Phase::Embedding | Phase::Forward | Phase::Head => "forward",
            Phase::Backward => "backward",
            Phase::Optimiser => "update",
            Phase::Compiler => return None,
        };
        Some((contexts.op, pass))
    });
    passes.filter(|&(context, _)| context > 0).collect()
}

/// The layers that each operation is at home in.
struct Homes(Vec<Vec<u32>>);

impl Homes {
    fn new(plan: &Plan) -> Self {
        let ops = plan.model.ops.iter();
        Self(ops.map(|op| homes(plan, op)).collect())
    }

    /// By the context of each operation, and of the programs that load its
    /// weights, which is that of a tensor where the framework has one.
    fn by_context(&self, plan: &Plan) -> BTreeMap<u32, Vec<u32>> {
        let contexts = &plan.contexts;
        let mut homes = BTreeMap::new();
        for (op, own) in self.0.iter().enumerate() {
            let upload = contexts.uploads[op];
            let tensor = match upload.checked_sub(1) {
                Some(index) => contexts.list[index as usize].parent,
                None => 0,
            };
            for context in [contexts.ops[op].op, upload, tensor] {
                homes.insert(context, own.clone());
            }
        }
        homes.remove(&0);
        homes
    }

    fn within(&self, op: usize, from: u32, to: u32) -> bool {
        self.0[op].iter().any(|home| (from..=to).contains(home))
    }

    fn uses(&self, plan: &Plan, group: &Group, from: u32, to: u32) -> bool {
        let mut ops = group
            .uses
            .iter()
            .map(|&(stage, _)| plan.tree.stages[stage].op);
        ops.any(|op| self.within(op, from, to))
    }
}

fn homes(plan: &Plan, op: &Op) -> Vec<u32> {
    let last = plan.settings.layers - 1;
    let phase_of = |forward: usize| plan.model.ops[forward].phase;
    match (op.made_for, op.phase, op.partner) {
        _ if op.function.is_some() => plan.model.calls.iter().map(|call| call.layer).collect(),
        (Some(layer), ..) => vec![layer],
        (None, Phase::Embedding, _) => vec![0],
        (None, Phase::Backward, Some(of)) if phase_of(of) == Phase::Embedding => vec![0],
        _ => vec![last],
    }
}

fn add(sums: &mut ByCategory, category: usize, tiles: u32, tile: u32, bytes: u64) {
    let by_tile = sums
        .entry(CATEGORIES[category])
        .or_insert_with(|| vec![0; tiles as usize]);
    by_tile[tile as usize] += bytes;
}

fn one_layer(plan: &Plan, homes: &Homes, layer: u32) -> ByCategory {
    let tiles = plan.settings.tiles;
    let mut sums = code(plan, homes, layer, layer);
    for (index, group) in plan.groups.iter().enumerate() {
        if homes.uses(plan, group, layer, layer) {
            let window = group.window;
            for tile in window.first..window.first + window.count {
                let bytes = plan.bytes(index, tile);
                add(&mut sums, category_of(group.role), tiles, tile, bytes);
            }
        }
    }
    sums
}

fn range(plan: &Plan, homes: &Homes, from: u32, to: u32) -> Range {
    let owned: Vec<bool> = plan
        .groups
        .iter()
        .map(|group| homes.uses(plan, group, from, to))
        .collect();
    let live = (0..plan.settings.tiles).map(|tile| live_bytes(plan, &owned, tile));
    let (always_live, peak) = live.unzip();
    Range {
        from,
        to,
        always_live,
        peak,
        code: code(plan, homes, from, to),
    }
}

/// Always-live bytes of the owned groups on a tile, and the most of the rest.
fn live_bytes(plan: &Plan, owned: &[bool], tile: u32) -> (u64, u64) {
    let mut always = 0;
    let mut live = vec![0u64; plan.tree.steps.len()];
    for group in plan.groups_on(tile).filter(|&group| owned[group]) {
        let bytes = plan.bytes(group, tile);
        let class = plan.classes.on_tile(&plan.settings, group, tile) as usize;
        if plan.classes.always[class] {
            always += bytes;
            continue;
        }
        for &(first, end) in &plan.classes.ranges[class] {
            let steps = &mut live[first as usize..end as usize];
            steps.iter_mut().for_each(|step| *step += bytes);
        }
    }
    (always, live.into_iter().max().unwrap_or(0))
}

/// Code and vertex state that the operations of a range own.
fn code(plan: &Plan, homes: &Homes, from: u32, to: u32) -> ByCategory {
    let mut sums = ByCategory::new();
    for tile in 0..plan.settings.tiles {
        let mut put = |category, bytes| add(&mut sums, category, plan.settings.tiles, tile, bytes);
        vertices(plan, homes, (from, to), tile, &mut put);
        let exchanges: u64 = owned_exchanges(plan, homes, from, to)
            .map(|exchange| plan.code.exchange_bytes(exchange, tile))
            .sum();
        put(category::INTERNAL_EXCHANGE_CODE, exchanges);
        let own = |op: Option<usize>| op.is_some_and(|op| homes.within(op, from, to));
        let programs = plan.tree.programs.iter().filter(|program| own(program.op));
        let control = programs
            .filter(|program| program.code.1.holds(tile))
            .map(|program| program.code.0)
            .sum();
        put(category::CONTROL_CODE, control);
    }
    sums
}

fn vertices(
    plan: &Plan,
    homes: &Homes,
    (from, to): (u32, u32),
    tile: u32,
    put: &mut impl FnMut(usize, u64),
) {
    let mut present = vec![false; plan.code.types.len()];
    for (set, owner) in plan.tree.compute_sets.iter().enumerate() {
        if !homes.within(owner.op, from, to) || !plan.code.set_runs(set, tile) {
            continue;
        }
        let bytes = plan.code.set_bytes(set, tile);
        put(category::VERTEX_STATE, bytes.state());
        put(category::FIELD_DATA, bytes.field);
        put(category::COPY_DESCRIPTOR, bytes.descriptor);
        plan.code.sets[set]
            .iter()
            .for_each(|&kind| present[kind] = true);
    }
    let types = plan.code.types.iter().zip(present);
    put(
        category::VERTEX_CODE,
        types
            .filter(|(_, present)| *present)
            .map(|(kind, _)| kind.code)
            .sum(),
    );
}

/// Exchanges with code of their own that the operations of a range run, be it
/// under the name of another exchange that has the same code.
fn owned_exchanges(plan: &Plan, homes: &Homes, from: u32, to: u32) -> impl Iterator<Item = usize> {
    let exchanges = plan.tree.exchanges.iter().enumerate();
    let own = exchanges.filter(|(_, e)| e.op.is_some_and(|op| homes.within(op, from, to)));
    let originals = own.map(|(index, exchange)| exchange.shares.unwrap_or(index));
    originals
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
}

/// What the variables of a tile hold beyond what all layers own: always live,
/// and live at some steps.
fn unowned(plan: &Plan, homes: &Homes) -> (ByCategory, ByCategory) {
    let tiles = plan.settings.tiles;
    let owned = code(plan, homes, 0, plan.settings.layers - 1);
    let (mut always, mut passing) = (ByCategory::new(), ByCategory::new());
    for tile in 0..tiles {
        for extra in overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile) {
            let sums = match plan.classes.always[extra.class as usize] {
                true => &mut always,
                false => &mut passing,
            };
            add(sums, extra.category, tiles, tile, extra.bytes);
        }
    }
    for (category, bytes) in owned {
        let rest = always.get_mut(category).into_iter().flatten();
        rest.zip(bytes).for_each(|(rest, bytes)| *rest -= bytes);
    }
    (always, passing)
}
