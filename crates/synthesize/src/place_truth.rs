//! What any set of places needs in truth, from the plan and not from the rows.
//!
//! The rules, for a set of places on an IPU of their own:
//! * a variable is there if one of its places is; of those that are not always
//!   live, the most that live at any step together count;
//! * code of a vertex type counts once where any vertex of it works for one of
//!   the places, code of an exchange once even under several names, vertex state
//!   and control code by compute set and program; of what reaches over the model
//!   the part that works on variables of these places;
//! * what no operation explains, and what the compiler makes for every IPU, is
//!   everywhere;
//! * the gap of a tile counts in proportion to all of that, rounded up; so all
//!   places need what is recorded.

use std::collections::{BTreeMap, HashMap};

use super::liveness::Ranges;
use super::overhead;
use super::places::Places;
use super::plan::Plan;

/// What places need, tile by tile.
#[derive(Debug, Clone)]
pub struct PlaceTruth {
    layers: u32,
    ranges: Vec<Ranges>,
    tiles: Vec<Tile>,
    ties: Vec<(String, Places)>,
}

/// One tile.
#[derive(Debug, Clone, Default)]
struct Tile {
    /// Bytes that are always live, code among them, by the places of which any
    /// needs them.
    always: BTreeMap<Places, u64>,
    /// The rest: places, equivalence class, bytes.
    passing: BTreeMap<(Places, u32), u64>,
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
        };
        for tile in 0..plan.settings.tiles {
            let mut own = Tile::default();
            own.groups(plan, tile);
            own.code(plan, tile);
            own.unexplained(plan, tile);
            own.all = truth.explained(&own, Places::EVERY);
            own.gap = plan.gap(tile, own.all);
            truth.tiles.push(own);
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

    /// By tile: the bytes that these places need on an IPU of their own.
    pub fn bytes(&self, places: Places) -> Vec<u64> {
        let tiles = 0..self.tiles.len();
        tiles
            .map(|tile| self.explained(&self.tiles[tile], places) + self.gap(tile, places))
            .collect()
    }

    /// The part of a tile's gap that counts for these places.
    pub(crate) fn gap(&self, tile: usize, places: Places) -> u64 {
        let tile = &self.tiles[tile];
        (tile.gap * self.explained(tile, places)).div_ceil(tile.all.max(1))
    }

    /// What these places have on a tile at all times, code among it.
    pub(crate) fn fixed(&self, tile: usize, places: Places) -> u64 {
        self.tiles[tile].fixed(places)
    }

    fn explained(&self, tile: &Tile, places: Places) -> u64 {
        let mut changes: BTreeMap<u32, i64> = BTreeMap::new();
        let passing = tile.passing.iter();
        for (&(_, class), &bytes) in passing.filter(|((own, _), _)| own.meets(places)) {
            for &(from, to) in &self.ranges[class as usize] {
                *changes.entry(from).or_default() += bytes as i64;
                *changes.entry(to).or_default() -= bytes as i64;
            }
        }
        let live = changes.values().scan(0, |live, change| {
            *live += change;
            Some(*live)
        });
        tile.fixed(places) + live.max().unwrap_or(0) as u64
    }
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
        let always = self.always.iter().filter(|(own, _)| own.meets(places));
        always.map(|(_, bytes)| bytes).sum()
    }

    fn groups(&mut self, plan: &Plan, tile: u32) {
        for index in plan.groups_on(tile) {
            let places = plan.groups[index].places;
            let class = plan.classes.on_tile(&plan.settings, index, tile);
            self.variable(plan, places, class, plan.bytes(index, tile));
        }
    }

    fn variable(&mut self, plan: &Plan, places: Places, class: u32, bytes: u64) {
        if plan.classes.always[class as usize] {
            *self.always.entry(places).or_default() += bytes
        } else {
            *self.passing.entry((places, class)).or_default() += bytes
        }
    }

    fn always(&mut self, places: Places, bytes: u64) {
        if bytes > 0 {
            *self.always.entry(places).or_default() += bytes;
        }
    }

    /// Code and vertex state of all operations.
    fn code(&mut self, plan: &Plan, tile: u32) {
        self.vertices(plan, tile);
        self.exchanges(plan, tile);
        for program in &plan.tree.programs {
            if let (Some(places), true) = (program.places, program.code.1.holds(tile)) {
                self.always(places, program.code.0);
            }
        }
    }

    fn vertices(&mut self, plan: &Plan, tile: u32) {
        let mut types: HashMap<usize, Places> = HashMap::new();
        for (set, own) in plan.tree.compute_sets.iter().enumerate() {
            if !plan.code.set_runs(set, tile) {
                continue;
            }
            let share = &own.share;
            let parts = share.parts.iter().filter(|part| part.1.holds(tile));
            let places = if share.parts.is_empty() {
                share.places
            } else {
                parts.fold(Places::NONE, |all, part| all | part.0)
            };
            for &kind in &plan.code.sets[set] {
                *types.entry(kind).or_default() |= places;
            }
            for (places, bytes) in plan.code.set_shares(set, tile, places) {
                self.always(places, bytes);
            }
        }
        for (kind, places) in types {
            self.always(places, plan.code.types[kind].code);
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
        for (exchange, places) in originals {
            for (places, bytes) in plan.code.exchange_shares(exchange, tile, places) {
                self.always(places, bytes);
            }
        }
    }

    /// What the variables of a tile hold beyond what operations explain.
    fn unexplained(&mut self, plan: &Plan, tile: u32) {
        let code: u64 = self.code_alone(plan, tile);
        let mut rest = 0;
        for extra in overhead::on_tile(&plan.settings, &plan.tree, &plan.code, tile) {
            if plan.classes.always[extra.class as usize] {
                rest += extra.bytes
            } else {
                self.variable(plan, Places::EVERY, extra.class, extra.bytes)
            }
        }
        self.always(Places::EVERY, rest - code);
    }

    /// Bytes of code and vertex state of all operations.
    fn code_alone(&self, plan: &Plan, tile: u32) -> u64 {
        let mut own = Self::default();
        own.code(plan, tile);
        own.always.values().sum()
    }
}
