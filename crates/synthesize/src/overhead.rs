//! Makes the variables that no program stage uses: code, vertex state, stacks, host exchange,
//! instrumentation. Their sizes and numbers on a tile follow a real profile.

use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;

use super::code::Code;
use super::liveness::{Fixed, UNALLOCATED, Variable};
use super::random::topic;
use super::settings::Settings;
use super::tree::Tree;

/// The lists of `overhead.json`.
#[derive(Deserialize)]
struct Lists {
    /// The names of the categories, at the ids of the real file.
    categories: Vec<String>,
    /// The names of variables, each with its category and, for code of the run-time, its bytes.
    names: Vec<(String, String, u64)>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    serde_json::from_str(include_str!("overhead.json")).expect("the file has both lists")
});

/// Returns the names of all categories.
pub fn categories() -> &'static [String] {
    &LISTS.categories
}

/// Positions of categories in [`categories`].
pub mod category {
    pub const VARIABLE: usize = 0;
    pub const MESSAGE: usize = 3;
    pub const REARRANGEMENT: usize = 6;
    pub const OUTPUT_EDGE: usize = 7;
    pub const CONSTANT: usize = 8;
    pub const INTERNAL_EXCHANGE_CODE: usize = 19;
    pub const HOST_EXCHANGE_CODE: usize = 20;
    pub const GLOBAL_EXCHANGE_CODE: usize = 21;
}

/// The category of a variable, and the number of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub category: usize,
    pub name: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct Extra {
    /// The number of its name in [`names`].
    pub name: usize,
    pub suffix: Option<u32>,
    pub variable: Variable,
}

/// Returns the names of the extra variables: first those of `overhead.json`, then those of the code
/// of vertex types.
pub fn names(code: &Code) -> Vec<String> {
    let fixed = LISTS.names.iter().map(|(name, ..)| name.clone());
    let types = code.types.iter().map(|kind| kind.name.replace("::", "__"));
    let types = types.map(|name| format!(".text.__runCodelet_{name}"));
    fixed.chain(types).collect()
}

fn category_of(wanted: &str) -> usize {
    let mut categories = categories().iter();
    let category = categories.position(|category| category == wanted);
    category.expect("a category")
}

/// Returns the kind of the variables with this name of `overhead.json`.
pub fn kind_of(wanted: &str) -> Kind {
    let mut names = LISTS.names.iter();
    let name = names.position(|(name, ..)| name == wanted);
    let name = name.expect("a name");
    let category = category_of(&LISTS.names[name].1);
    Kind { category, name }
}

/// Returns the kind of the code of the vertex type with this number.
pub fn kind_of_type(number: usize) -> Kind {
    let name = LISTS.names.len() + number;
    let category = category_of("vertexCode");
    Kind { category, name }
}

/// Returns all extra variables of one tile, in the order of their ids. The first is the control id
/// of the tile.
pub fn on_tile(settings: &Settings, tree: &Tree, code: &Code, tile: u32) -> Vec<Extra> {
    let mut list = List {
        extras: Vec::new(),
        tile,
        blocks: (settings.variables_per_tile() / 20).clamp(8, 300) as usize,
    };
    list.data(settings, tree);
    list.control_code(code);
    list.vertices(tree, code);
    list.vertex_code(code);
    list.exchange_code(tree, code);
    list.extras
}

struct List {
    extras: Vec<Extra>,
    tile: u32,
    /// Number of variables into which vertex state and exchange code are packed.
    blocks: usize,
}

impl List {
    /// Adds an extra variable that is always live.
    fn push(&mut self, name: &str, suffix: Option<u32>, bytes: u64) {
        self.add(Fixed::Code as u32, kind_of(name), suffix, bytes);
    }

    fn add(&mut self, class: u32, kind: Kind, suffix: Option<u32>, bytes: u64) {
        self.extras.push(Extra {
            name: kind.name,
            suffix,
            variable: Variable::new(kind.category, class, bytes),
        });
    }

    /// Adds the stack and the host exchange. Every tile exchanges a little data with the host,
    /// every 64th a lot.
    fn data(&mut self, settings: &Settings, tree: &Tree) {
        let control = kind_of("programId0#0#");
        self.add(Fixed::Control as u32, control, Some(self.tile), 4);
        if self.tile > 0 {
            self.add(UNALLOCATED, kind_of("unallocated#"), None, 0);
        }
        self.push("_commandPacketPayload", None, 64);
        self.push("_commandPacketHeader", None, 8);
        self.push("multiple_headers_", Some(1), 8);
        self.push("multiple_headers_", Some(3), 16);
        if self.tile % 64 == 5 {
            self.push("_zbrDest", None, 4);
            self.add(Fixed::Host as u32, kind_of("_hostIo"), Some(0), 1024);
            for stream in 4..4 + tree.streams.len().min(24) as u32 {
                self.push("multiple_headers_", Some(stream), 16);
                self.push(".text.supervisor.host_exchange_", Some(stream), 128);
            }
        }
        for (suffix, bytes) in [(0, 112), (1, 16), (2, 16)] {
            self.push(".text.supervisor.host_exchange_", Some(suffix), bytes);
        }
        let about = [topic::TILE, self.tile.into(), 0, 5];
        let stack = 328 + 8 * settings.random.below(24, about);
        self.push("__stack", None, stack);
        let measured = 20 + 8 * (tree.compute_sets.len() as u64 / 8);
        self.push("profileInfo", Some(self.tile), measured);
        self.push("_instrumentCounterL", None, 4);
        self.push("_instrumentCounterU", None, 4);
    }

    /// Adds the control code. Start-up code is added to the code of programs.
    fn control_code(&mut self, code: &Code) {
        let tile = self.tile as usize;
        let start = code.control[0][tile] + if tile == 0 { 172 } else { 108 };
        self.push(".text.supervisor.control_initPrngSeed", None, 32);
        self.push(".text.poplar_start", None, start);
        self.push(".text.supervisor.instrumentation_cycleCount", None, 160);
        for (function, bytes) in (0..).zip(&code.control[1..]) {
            self.push(".text.supervisor.function_", Some(function), bytes[tile]);
        }
    }

    /// Groups `count` neighbours into ranges that share one variable, so that large models do not
    /// get more variables than real ones.
    fn together(&self, count: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let together = count.div_ceil(self.blocks).max(1);
        let firsts = (0..count).step_by(together);
        firsts.map(move |first| first..count.min(first + together))
    }

    fn vertices(&mut self, tree: &Tree, code: &Code) {
        for (number, sets) in (1..).zip(self.together(tree.compute_sets.len())) {
            let mut sums = [0; 3];
            for bytes in sets.map(|set| code.set_bytes(set, self.tile)) {
                sums[0] += bytes.state();
                sums[1] += bytes.field;
                sums[2] += bytes.descriptor;
            }
            let names = ["__vertexState", "_vertexField_", "copyDesc_"].into_iter();
            for (name, bytes) in names.zip(sums).filter(|&(_, bytes)| bytes > 0) {
                self.push(name, Some(number), bytes);
            }
        }
    }

    fn vertex_code(&mut self, code: &Code) {
        for (name, _, bytes) in LISTS.names.iter().filter(|(.., bytes)| *bytes > 0) {
            self.push(name, None, *bytes);
        }
        for kind in code.types_on(self.tile) {
            let bytes = code.types[kind].code;
            self.add(Fixed::Code as u32, kind_of_type(kind), None, bytes);
        }
    }

    /// Adds the exchange code. Exchanges that use the code of another exchange add nothing; copies
    /// to the host add a little that belongs to no exchange.
    fn exchange_code(&mut self, tree: &Tree, code: &Code) {
        let sums = self.together(tree.exchanges.len()).map(|exchanges| {
            let own = exchanges.filter(|&exchange| tree.exchanges[exchange].shares.is_none());
            let bytes = own.map(|exchange| code.exchange_bytes(exchange, self.tile));
            bytes.sum()
        });
        let sums: Vec<u64> = sums.chain([8]).collect();
        for (number, bytes) in (0..).zip(sums).filter(|&(_, bytes)| bytes > 0) {
            self.push(".text.supervisor.internal_exchange_", Some(number), bytes);
        }
    }
}
