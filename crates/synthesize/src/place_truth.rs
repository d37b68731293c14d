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

/// The kind of variable that always-live bytes are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// Position in [`CATEGORIES`].
    pub category: usize,
    /// Number of its name; see [`Plan::names`].
    pub name: usize,
}

/// One tile.
#[derive(Debug, Clone, Default)]
struct Tile {
    /// Bytes that are always live, code among them, by the places of which any
    /// needs them.
    always: BTreeMap<Places, u64>,
    /// Those bytes, each kind by itself.
    kinds: BTreeMap<(Places, Kind), u64>,
    /// The rest: places, equivalence class, bytes.
    not_always_live: BTreeMap<(Places, u32), u64>,
    /// Bytes that nothing explains.
    gap: u64,
    /// Bytes of all places, without the gap.
    all: u64,
}

impl PlaceTruth {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut truth = Self {
            layers: plan.settings.layers,
            ranges: plan.classes.ranges.clone(),
            tiles: Vec::new(),
            ties: ties(plan),
            operations: operations(plan),
            blocks: plan
                .settings
                .graph
                .as_ref()
                .map_or(Vec::new(), |graph| graph.positions().0),
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

    /// The bytes of variables and code that these places need on a tile.
    pub(crate) fn explained_on(&self, tile: usize, places: Places) -> u64 {
        self.explained(&self.tiles[tile], places)
    }

    /// The part of a tile's gap that comes with so many bytes of variables and code.
    pub(crate) fn gap(&self, tile: usize, bytes: u64) -> u64 {
        let tile = &self.tiles[tile];
        (tile.gap * bytes).div_ceil(tile.all.max(1))
    }

    /// Always-live bytes of these places on a tile, with code.
    pub(crate) fn fixed(&self, tile: usize, places: Places) -> u64 {
        self.tiles[tile].fixed(places)
    }

    /// Those bytes by kind.
    pub(crate) fn kinds(&self, tile: usize, places: Places) -> BTreeMap<Kind, u64> {
        let mut kinds = BTreeMap::new();
        let all = self.tiles[tile].kinds.iter();
        for (&(_, kind), bytes) in all.filter(|((users, _), _)| users.meets(places)) {
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

/// The kind of a variable outside the groups.
fn extra_kind(plan: &Plan, category: usize, name: usize) -> Kind {
    let name = plan.groups.len() + name;
    Kind { category, name }
}

/// Weights of several places.
fn ties(plan: &Plan) -> Vec<(String, Places)> {
    let weights = plan.model.weights.iter();
    let tied = weights.filter(|weight| weight.places.count() > 1);
    tied.map(|weight| (weight.name.clone(), weight.places))
        .collect()
}

impl Tile {
    fn fixed(&self, places: Places) -> u64 {
        let always = self.always.iter().filter(|(users, _)| users.meets(places));
        always.map(|(_, bytes)| bytes).sum()
    }

    fn groups(&mut self, plan: &Plan, tile: u32) {
        for name in plan.groups_on(tile) {
            let places = plan.groups[name].places;
            let Variable {
                category,
                class,
                bytes,
            } = plan.variable(name, tile);
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
            *self.always.entry(places).or_default() += bytes;
            *self.kinds.entry((places, kind)).or_default() += bytes;
        }
    }

    /// Code and vertex state of all operations.
    fn code(&mut self, plan: &Plan, tile: u32) {
        self.vertices(plan, tile);
        self.exchanges(plan, tile);
        let kind = extra_kind(plan, category::CONTROL_CODE, overhead::name::START);
        for program in &plan.tree.programs {
            if let (Some(places), true) = (program.places, program.code.1.holds(tile)) {
                self.always(places, kind, program.code.0);
            }
        }
    }

    fn vertices(&mut self, plan: &Plan, tile: u32) {
        let mut types: HashMap<usize, Places> = HashMap::new();
        for (set, compute_set) in plan.tree.compute_sets.iter().enumerate() {
            if !plan.code.set_runs(set, tile) {
                continue;
            }
            let share = &compute_set.share;
            let parts = share.parts.iter().filter(|part| part.1.holds(tile));
            let places = if share.parts.is_empty() {
                share.places
            } else {
                parts.fold(Places::NONE, |all, part| all | part.0)
            };
            for &kind in &plan.code.sets[set] {
                *types.entry(kind).or_default() |= places;
            }
            self.vertex_state(plan, set, tile, places);
        }
        for (kind, places) in types {
            let bytes = plan.code.types[kind].code;
            let name = overhead::name_of_type(kind);
            self.always(places, extra_kind(plan, category::VERTEX_CODE, name), bytes);
        }
    }

    /// The vertices of a compute set; its descriptors and field data are those of
    /// all of its places.
    fn vertex_state(&mut self, plan: &Plan, set: usize, tile: u32, places: Places) {
        use overhead::name;
        let bytes = plan.code.set_bytes(set, tile);
        let of_all_places = [
            (category::FIELD_DATA, name::VERTEX_FIELD, bytes.field),
            (
                category::COPY_DESCRIPTOR,
                name::COPY_DESCRIPTOR,
                bytes.descriptor,
            ),
        ];
        for (category, name, bytes) in of_all_places {
            self.always(places, extra_kind(plan, category, name), bytes);
        }
        let state = extra_kind(plan, category::VERTEX_STATE, name::VERTEX_STATE);
        let mut shares = plan.code.set_shares(set, tile, places);
        if let Some((_, common)) = shares.last_mut() {
            *common -= bytes.field + bytes.descriptor;
        }
        for (places, bytes) in shares {
            self.always(places, state, bytes);
        }
    }

    /// Exchanges with code of their own, be it used under the name of another.
    fn exchanges(&mut self, plan: &Plan, tile: u32) {
        let mut originals: BTreeMap<usize, Places> = BTreeMap::new();
        for (index, exchange) in plan.tree.exchanges.iter().enumerate() {
            if exchange.op.is_none() {
                continue;
            }
            let original = exchange.shares.unwrap_or(index);
            *originals.entry(original).or_default() |= exchange.share.places;
        }
        let name = overhead::name::INTERNAL_EXCHANGE;
        let kind = extra_kind(plan, category::INTERNAL_EXCHANGE_CODE, name);
        for (exchange, places) in originals {
            for (places, bytes) in plan.code.exchange_shares(exchange, tile, places) {
                self.always(places, kind, bytes);
            }
        }
    }

    /// Adds the code and vertex state of a tile that belong to no operation: of each category's
    /// variables, from the last one back, what remains after the bytes of operations.
    fn unexplained(&mut self, plan: &Plan, tile: u32) {
        let mut explained = [0; CATEGORIES.len()];
        for ((_, kind), bytes) in &self.kinds {
            explained[kind.category] += bytes;
        }
        let extras = overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile);
        for extra in extras.into_iter().rev() {
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
            let kind = extra_kind(plan, category, extra.name);
            self.always(Places::EVERY, kind, bytes - here);
        }
        assert!(explained.iter().all(|&bytes| bytes == 0), "{explained:?}");
    }
}
