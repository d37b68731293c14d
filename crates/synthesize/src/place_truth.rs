//! The true memory of any set of places, from the plan and not from the rows.
//!
//! The rules, for a set of places on an IPU of their own:
//! * a variable is there if one of its places is; of those that are not always
//!   live, the most that live at any step together count;
//! * code of a vertex type counts once where any vertex of it works for one of
//!   the places, code of an exchange once even under several names, vertex state
//!   and control code by compute set and program; of a global operation
//!   the part that works on variables of these places;
//! * what no operation explains, and what the compiler makes for every IPU, is
//!   everywhere;
//! * the gap of a tile counts in proportion to all of that, rounded up; so all
//!   places need what is recorded, and in a pipeline less than alone where less is live.

use std::collections::{BTreeMap, HashMap};

use super::liveness::{Changes, Ranges, Variable};
use super::overhead::{Kind, categories, kind_of, kind_of_type};
use super::places::Places;
use super::plan::Plan;
use super::planted::{Home, OperationTruth, operations};

/// The true memory of any set of places, tile by tile. A place is what runs before the layers (In),
/// a layer, or what runs after them (Out).
#[derive(Debug, Clone)]
pub struct PlaceTruth {
    /// The number of layers of the model, which has two places more.
    pub layers: u32,
    ranges: Vec<Ranges>,
    tiles: Vec<Tile>,
    /// The names of the weights that several places share, each with these places.
    pub ties: Vec<(String, Places)>,
    /// All operations that have programs, with the places for which they work.
    pub operations: Vec<OperationTruth>,
    /// The names of the blocks of a model with a graph, from position 1 on.
    pub blocks: Vec<String>,
}

/// The bytes of a tile, by the places that need them: a stage with any of these places has the
/// bytes.
#[derive(Debug, Clone, Default)]
struct Tile {
    /// Bytes of code and of variables that are always live, by places and kind; names are numbers
    /// as in [`Plan::names`].
    always: BTreeMap<(Places, Kind), u64>,
    /// Bytes of all other variables, by places and equivalence class.
    not_always_live: BTreeMap<(Places, u32), u64>,
    gap: u64,
    /// Bytes of all places together, without the gap.
    all: u64,
}

impl PlaceTruth {
    pub(crate) fn new(plan: &Plan) -> Self {
        let graph = plan.settings.graph.as_ref();
        let weights = plan.model.weights.iter();
        let tied = weights.filter(|weight| weight.places.count() > 1);
        let ties = tied.map(|weight| (weight.name.clone(), weight.places));
        let tiles = 0..plan.settings.tiles;
        let mut truth = Self {
            layers: plan.settings.layers,
            ranges: plan.classes.ranges.clone(),
            tiles: tiles.map(|tile| Tile::new(plan, tile)).collect(),
            ties: ties.collect(),
            operations: operations(plan),
            blocks: graph.map_or(Vec::new(), |graph| graph.positions().0),
        };
        for tile in 0..truth.tiles.len() {
            let all = truth.explained(tile, Places::EVERY);
            truth.tiles[tile].all = all;
            truth.tiles[tile].gap = plan.gap(tile as u32, all);
        }
        truth
    }

    /// Returns the first position of an operation: 0 for In, then the layers, then Out.
    pub fn position(&self, operation: &OperationTruth) -> u32 {
        let positions = match operation.home {
            Home::Places(places) | Home::Global(places) => places.in_order(self.layers),
            Home::EveryIpu => Vec::new(),
        };
        positions.first().copied().unwrap_or(0)
    }

    /// Returns, for each tile, the bytes that these places need on an IPU of their own.
    pub fn bytes(&self, places: Places) -> Vec<u64> {
        let of_tile = |tile| {
            let explained = self.explained(tile, places);
            explained + self.gap(tile, explained)
        };
        (0..self.tiles.len()).map(of_tile).collect()
    }

    /// Returns the part of a tile's gap that belongs to this number of bytes of variables and code.
    pub(crate) fn gap(&self, tile: usize, bytes: u64) -> u64 {
        let tile = &self.tiles[tile];
        (tile.gap * bytes).div_ceil(tile.all.max(1))
    }

    /// Returns the always-live bytes of these places on a tile.
    pub(crate) fn fixed(&self, tile: usize, places: Places) -> u64 {
        self.kinds(tile, places).map(|(_, bytes)| bytes).sum()
    }

    /// Returns the always-live bytes of these places on a tile, by their kind.
    pub(crate) fn kinds(&self, tile: usize, places: Places) -> impl Iterator<Item = (Kind, u64)> {
        let all = self.tiles[tile].always.iter();
        let here = all.filter(move |((users, _), _)| users.meets(places));
        here.map(|(&(_, kind), &bytes)| (kind, bytes))
    }

    /// Returns the bytes of these places on a tile without the gap.
    pub(crate) fn explained(&self, tile: usize, places: Places) -> u64 {
        let mut changes = Changes::default();
        let others = self.tiles[tile].not_always_live.iter();
        for (&(_, class), &bytes) in others.filter(|((users, _), _)| users.meets(places)) {
            changes.add(self.ranges[class as usize].iter().copied(), bytes);
        }
        self.fixed(tile, places) + changes.peak()
    }
}

impl Tile {
    fn new(plan: &Plan, tile: u32) -> Self {
        let mut sums = Self::default();
        sums.vertices(plan, tile);
        sums.exchanges(plan, tile);
        let control = kind_of(".text.poplar_start");
        for program in &plan.tree.programs {
            if let (Some(places), true) = (program.places, program.code.1.holds(tile)) {
                sums.code(plan, places, control, program.code.0);
            }
        }
        sums.unexplained(plan, tile);
        for group in plan.groups_on(tile) {
            let places = plan.groups[group].places;
            sums.add(plan, places, group, plan.variable(group, tile));
        }
        sums
    }

    /// Adds a variable; `name` is the number of its name.
    fn add(&mut self, plan: &Plan, places: Places, name: usize, variable: Variable) {
        let Variable {
            category, class, ..
        } = variable;
        let bytes = variable.bytes;
        if !plan.classes.always[class as usize] {
            *self.not_always_live.entry((places, class)).or_default() += bytes;
        } else if bytes > 0 {
            let kind = Kind { category, name };
            *self.always.entry((places, kind)).or_default() += bytes;
        }
    }

    /// Adds a part of a variable that is in no group.
    fn code(&mut self, plan: &Plan, places: Places, kind: Kind, bytes: u64) {
        let variable = Variable::always(kind.category, bytes);
        self.add(plan, places, plan.groups.len() + kind.name, variable);
    }

    /// Adds the vertices of compute sets. The descriptors and field data of a compute set belong to
    /// all of its places.
    fn vertices(&mut self, plan: &Plan, tile: u32) {
        let [field, descriptor, state] =
            ["_vertexField_", "copyDesc_", "__vertexState"].map(kind_of);
        let mut types: HashMap<usize, Places> = HashMap::new();
        for (set, compute_set) in plan.tree.compute_sets.iter().enumerate() {
            let Some(places) = compute_set.places_on(tile) else {
                continue;
            };
            for &kind in &plan.code.sets[set] {
                let all = types.entry(kind).or_default();
                *all = *all | places;
            }
            let bytes = plan.code.set_bytes(set, tile);
            self.code(plan, places, field, bytes.field);
            self.code(plan, places, descriptor, bytes.descriptor);
            for (places, bytes) in plan.code.state_shares(set, tile, places) {
                self.code(plan, places, state, bytes);
            }
        }
        for (number, places) in types {
            let bytes = plan.code.types[number].code;
            self.code(plan, places, kind_of_type(number), bytes);
        }
    }

    /// Adds the exchanges that have code of their own, even if other exchanges use it under another
    /// name.
    fn exchanges(&mut self, plan: &Plan, tile: u32) {
        let mut originals: BTreeMap<usize, Places> = BTreeMap::new();
        for (index, exchange) in plan.tree.exchanges.iter().enumerate() {
            if exchange.op.is_some() {
                let original = exchange.shares.unwrap_or(index);
                let all = originals.entry(original).or_default();
                *all = *all | exchange.share.places;
            }
        }
        let kind = kind_of(".text.supervisor.internal_exchange_");
        for (exchange, places) in originals {
            for (places, bytes) in plan.code.exchange_shares(exchange, tile, places) {
                self.code(plan, places, kind, bytes);
            }
        }
    }

    /// Adds the code and vertex state of a tile that belong to no operation: in the variables of
    /// each category, from the last one back, the bytes that remain after those of operations.
    fn unexplained(&mut self, plan: &Plan, tile: u32) {
        let mut explained = vec![0; categories().len()];
        for ((_, kind), bytes) in &self.always {
            explained[kind.category] += bytes;
        }
        for extra in plan.extras_on(tile).into_iter().rev() {
            let mut variable = extra.variable;
            if plan.classes.always[variable.class as usize] {
                let of_operations = &mut explained[variable.category];
                let here = variable.bytes.min(*of_operations);
                *of_operations -= here;
                variable.bytes -= here;
            }
            let name = plan.groups.len() + extra.name;
            self.add(plan, Places::EVERY, name, variable);
        }
        assert!(explained.iter().all(|&bytes| bytes == 0), "{explained:?}");
    }
}
