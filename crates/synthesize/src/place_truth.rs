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
use super::operation_truth::{Home, OperationTruth, operations};
use super::overhead::{self, CATEGORIES, category};
use super::places::Places;
use super::plan::Plan;

/// The memory of places, tile by tile.
#[derive(Debug, Clone)]
pub struct PlaceTruth {
    layers: u32,
    ranges: Vec<Ranges>,
    tiles: Vec<Tile>,
    ties: Vec<(String, Places)>,
    operations: Vec<OperationTruth>,
    blocks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub category: usize,
    /// Number of its name; see [`Plan::names`].
    pub name: usize,
}

#[derive(Debug, Clone, Default)]
struct Tile {
    /// Bytes of code and of variables that are always live, by their kind and by the places that
    /// need them: a stage with any of these places has them.
    always: BTreeMap<(Places, Kind), u64>,
    not_always_live: BTreeMap<(Places, u32), u64>,
    gap: u64,
    /// Bytes of all places, without the gap.
    all: u64,
}

impl PlaceTruth {
    pub(crate) fn new(plan: &Plan) -> Self {
        let graph = plan.settings.graph.as_ref();
        let weights = plan.model.weights.iter();
        let tied = weights.filter(|weight| weight.places.count() > 1);
        let mut truth = Self {
            layers: plan.settings.layers,
            ranges: plan.classes.ranges.clone(),
            tiles: Vec::new(),
            ties: tied
                .map(|weight| (weight.name.clone(), weight.places))
                .collect(),
            operations: operations(plan),
            blocks: graph.map_or(Vec::new(), |graph| graph.positions().0),
        };
        for tile in 0..plan.settings.tiles {
            let mut sums = Tile::default();
            sums.code(plan, tile);
            sums.unexplained(plan, tile);
            sums.groups(plan, tile);
            sums.all = truth.explained(&sums, Places::EVERY);
            sums.gap = plan.gap(tile, sums.all);
            truth.tiles.push(sums);
        }
        truth
    }

    /// Layers of the model: it has two places more.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Names of the weights that several places share, and these places.
    pub fn ties(&self) -> &[(String, Places)] {
        &self.ties
    }

    /// All operations that have programs, with the places that they work for.
    pub fn operations(&self) -> &[OperationTruth] {
        &self.operations
    }

    /// Of a model with a graph: the names of its blocks, from position 1 on.
    pub fn blocks(&self) -> &[String] {
        &self.blocks
    }

    /// The first position of an operation.
    pub fn position(&self, operation: &OperationTruth) -> u32 {
        let positions = match operation.home {
            Home::Places(places) | Home::Global(places) => places.in_order(self.layers),
            Home::EveryIpu => Vec::new(),
        };
        positions.first().copied().unwrap_or(0)
    }

    /// By tile: the bytes that these places need on an IPU of their own.
    pub fn bytes(&self, places: Places) -> Vec<u64> {
        let of_tile = |tile| {
            let explained = self.explained_on(tile, places);
            explained + self.gap(tile, explained)
        };
        (0..self.tiles.len()).map(of_tile).collect()
    }

    pub(crate) fn explained_on(&self, tile: usize, places: Places) -> u64 {
        self.explained(&self.tiles[tile], places)
    }

    /// The part of a tile's gap that comes with so many bytes of variables and code.
    pub(crate) fn gap(&self, tile: usize, bytes: u64) -> u64 {
        let tile = &self.tiles[tile];
        (tile.gap * bytes).div_ceil(tile.all.max(1))
    }

    pub(crate) fn fixed(&self, tile: usize, places: Places) -> u64 {
        self.tiles[tile].fixed(places)
    }

    pub(crate) fn kinds(&self, tile: usize, places: Places) -> BTreeMap<Kind, u64> {
        let mut kinds = BTreeMap::new();
        for (kind, bytes) in self.tiles[tile].always_of(places) {
            *kinds.entry(kind).or_default() += bytes;
        }
        kinds
    }

    fn explained(&self, tile: &Tile, places: Places) -> u64 {
        let mut changes = Changes::default();
        let not_always_live = tile.not_always_live.iter();
        for (&(_, class), &bytes) in not_always_live.filter(|((users, _), _)| users.meets(places)) {
            changes.add(self.ranges[class as usize].iter().copied(), bytes);
        }
        tile.fixed(places) + changes.peak()
    }
}

impl Tile {
    fn always_of(&self, places: Places) -> impl Iterator<Item = (Kind, u64)> {
        let all = self.always.iter();
        let here = all.filter(move |((users, _), _)| users.meets(places));
        here.map(|(&(_, kind), &bytes)| (kind, bytes))
    }

    fn fixed(&self, places: Places) -> u64 {
        self.always_of(places).map(|(_, bytes)| bytes).sum()
    }

    fn groups(&mut self, plan: &Plan, tile: u32) {
        for name in plan.groups_on(tile) {
            let Variable {
                category,
                class,
                bytes,
            } = plan.variable(name, tile);
            let places = plan.groups[name].places;
            match plan.classes.always[class as usize] {
                true => self.always(places, Kind { category, name }, bytes),
                false => self.not_always_live(places, class, bytes),
            }
        }
    }

    fn not_always_live(&mut self, places: Places, class: u32, bytes: u64) {
        *self.not_always_live.entry((places, class)).or_default() += bytes
    }

    fn always(&mut self, places: Places, kind: Kind, bytes: u64) {
        if bytes > 0 {
            *self.always.entry((places, kind)).or_default() += bytes;
        }
    }

    /// Adds a part of a variable outside the groups.
    fn extra(&mut self, plan: &Plan, places: Places, kind: (usize, usize), bytes: u64) {
        let (category, name) = (kind.0, plan.groups.len() + kind.1);
        self.always(places, Kind { category, name }, bytes);
    }

    fn code(&mut self, plan: &Plan, tile: u32) {
        self.vertices(plan, tile);
        self.exchanges(plan, tile);
        for program in &plan.tree.programs {
            if let (Some(places), true) = (program.places, program.code.1.holds(tile)) {
                let kind = (category::CONTROL_CODE, overhead::name::START);
                self.extra(plan, places, kind, program.code.0);
            }
        }
    }

    /// The vertices of compute sets. The descriptors and field data of a compute set are those of
    /// all of its places.
    fn vertices(&mut self, plan: &Plan, tile: u32) {
        use overhead::name;
        let mut types: HashMap<usize, Places> = HashMap::new();
        for (set, compute_set) in plan.tree.compute_sets.iter().enumerate() {
            let Some(places) = compute_set.places_on(tile) else {
                continue;
            };
            for &kind in &plan.code.sets[set] {
                *types.entry(kind).or_default() |= places;
            }
            let bytes = plan.code.set_bytes(set, tile);
            let field = (category::FIELD_DATA, name::VERTEX_FIELD);
            self.extra(plan, places, field, bytes.field);
            let descriptor = (category::COPY_DESCRIPTOR, name::COPY_DESCRIPTOR);
            self.extra(plan, places, descriptor, bytes.descriptor);
            for (places, bytes) in plan.code.state_shares(set, tile, places) {
                let state = (category::VERTEX_STATE, name::VERTEX_STATE);
                self.extra(plan, places, state, bytes);
            }
        }
        for (kind, places) in types {
            let name = overhead::name_of_type(kind);
            let bytes = plan.code.types[kind].code;
            self.extra(plan, places, (category::VERTEX_CODE, name), bytes);
        }
    }

    /// Exchanges with code of their own, be it used under the name of another.
    fn exchanges(&mut self, plan: &Plan, tile: u32) {
        let mut originals: BTreeMap<usize, Places> = BTreeMap::new();
        for (index, exchange) in plan.tree.exchanges.iter().enumerate() {
            if exchange.op.is_some() {
                let original = exchange.shares.unwrap_or(index);
                *originals.entry(original).or_default() |= exchange.share.places;
            }
        }
        let name = overhead::name::INTERNAL_EXCHANGE;
        for (exchange, places) in originals {
            for (places, bytes) in plan.code.exchange_shares(exchange, tile, places) {
                let kind = (category::INTERNAL_EXCHANGE_CODE, name);
                self.extra(plan, places, kind, bytes);
            }
        }
    }

    /// Adds the code and vertex state of a tile that belong to no operation: of each category's
    /// variables, from the last one back, what remains after the bytes of operations.
    fn unexplained(&mut self, plan: &Plan, tile: u32) {
        let mut explained = [0; CATEGORIES.len()];
        for ((_, kind), bytes) in &self.always {
            explained[kind.category] += bytes;
        }
        for extra in plan.extras_on(tile).into_iter().rev() {
            let Variable {
                category,
                class,
                bytes,
            } = extra.variable;
            if !plan.classes.always[class as usize] {
                self.not_always_live(Places::EVERY, class, bytes);
                continue;
            }
            let here = bytes.min(explained[category]);
            explained[category] -= here;
            let kind = (category, extra.name);
            self.extra(plan, Places::EVERY, kind, bytes - here);
        }
        assert!(explained.iter().all(|&bytes| bytes == 0), "{explained:?}");
    }
}
