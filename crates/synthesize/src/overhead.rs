//! Variables that no program stage uses: code, vertex state, stacks, host
//! exchange, instrumentation. Sizes and counts on a tile follow a real profile.

use super::code::Code;
use super::liveness::{Fixed, UNALLOCATED, Variable};
use super::random::topic;
use super::settings::Settings;
use super::tree::Tree;

/// Names and descriptions of the categories, by the id that the real file has.
pub const CATEGORIES: [&str; 27] = [
    "variable",
    "multiple",
    "controlId",
    "message",
    "hostMessage",
    "globalMessage",
    "rearrangement",
    "outputEdge",
    "constant",
    "hostExchangePacketHeader",
    "globalExchangePacketHeader",
    "stack",
    "vertexInstanceState",
    "copyDescriptor",
    "vectorListDescriptor",
    "vertexFieldData",
    "controlTable",
    "controlCode",
    "vertexCode",
    "internalExchangeCode",
    "hostExchangeCode",
    "globalExchangeCode",
    "instrumentationResults",
    "dwarf",
    "sharedCodeStorage",
    "sharedDataStorage",
    "sharedStructureState",
];

/// Positions in [`CATEGORIES`].
#[allow(missing_docs)]
pub mod category {
    pub const VARIABLE: usize = 0;
    pub const CONTROL_ID: usize = 2;
    pub const MESSAGE: usize = 3;
    pub const HOST_MESSAGE: usize = 4;
    pub const REARRANGEMENT: usize = 6;
    pub const OUTPUT_EDGE: usize = 7;
    pub const CONSTANT: usize = 8;
    pub const HOST_HEADER: usize = 9;
    pub const STACK: usize = 11;
    pub const VERTEX_STATE: usize = 12;
    pub const COPY_DESCRIPTOR: usize = 13;
    pub const FIELD_DATA: usize = 15;
    pub const CONTROL_CODE: usize = 17;
    pub const VERTEX_CODE: usize = 18;
    pub const INTERNAL_EXCHANGE_CODE: usize = 19;
    pub const HOST_EXCHANGE_CODE: usize = 20;
    pub const GLOBAL_EXCHANGE_CODE: usize = 21;
    pub const INSTRUMENTATION: usize = 22;
}

/// Positions in [`names`] of what operations account for.
#[allow(missing_docs)]
pub mod name {
    pub const START: usize = 9;
    pub const INTERNAL_EXCHANGE: usize = 14;
    pub const VERTEX_STATE: usize = 15;
    pub const COPY_DESCRIPTOR: usize = 16;
    pub const VERTEX_FIELD: usize = 17;
}

/// The name of the code of a vertex type.
pub fn name_of_type(kind: usize) -> usize {
    NAMES.len() + RUNTIME.len() + kind
}

/// A lowered variable outside the groups.
#[derive(Debug, Clone, Copy)]
pub struct Extra {
    /// Position in [`names`].
    pub name: usize,
    /// Number at the end of the name.
    pub suffix: Option<u32>,
    pub variable: Variable,
}

const RUNTIME: [(&str, u64); 8] = [
    (".text._doSyscall", 8),
    (".text._sExitWorker", 12),
    (".text._exit", 16),
    (".text._stackoverflow", 12),
    (".text.memcpy", 116),
    (".text.__memcpy_up_misaligned", 112),
    (".text.AlignWorkers", 36),
    (".data_on_every_tile_switch__0_switchTable", 14),
];

const NAMES: [&str; 20] = [
    "programId0#0#",
    "_commandPacketPayload",
    "_zbrDest",
    "multiple_headers_",
    "_commandPacketHeader",
    "__stack",
    "profileInfo",
    "_instrumentCounterL",
    "_instrumentCounterU",
    ".text.poplar_start",
    ".text.supervisor.control_initPrngSeed",
    ".text.supervisor.instrumentation_cycleCount",
    ".text.supervisor.function_",
    ".text.supervisor.host_exchange_",
    ".text.supervisor.internal_exchange_",
    "__vertexState",
    "copyDesc_",
    "_vertexField_",
    "unallocated#",
    "_hostIo",
];

/// Names of the extras: fixed ones, the run-time's code, then the vertex types'.
pub fn names(code: &Code) -> Vec<String> {
    let fixed = NAMES.iter().map(|name| (*name).to_owned());
    let runtime = RUNTIME.iter().map(|(name, _)| (*name).to_owned());
    let types = code
        .types
        .iter()
        .map(|kind| format!(".text.__runCodelet_{}", kind.name.replace("::", "__")));
    fixed.chain(runtime).chain(types).collect()
}

/// All extras of one tile, in the order of their var ids. The first is the
/// tile's control id.
pub fn on_tile(settings: &Settings, tree: &Tree, code: &Code, tile: u32) -> Vec<Extra> {
    let mut list = List {
        extras: Vec::new(),
        tile,
        blocks: (settings.variables_per_tile() / 20).clamp(8, 300) as usize,
    };
    list.host_and_stack(settings, tree);
    list.instrumentation(tree);
    list.control_code(code);
    list.vertices(tree, code);
    list.vertex_code(code);
    list.exchange_code(tree, code);
    list.extras
}

struct List {
    extras: Vec<Extra>,
    tile: u32,
    /// Variables that vertex state and exchange code are packed into.
    blocks: usize,
}

impl List {
    fn push(&mut self, category: usize, name: usize, suffix: Option<u32>, bytes: u64) {
        self.with_class(category, name, suffix, bytes, Fixed::Code as u32);
    }

    fn with_class(
        &mut self,
        category: usize,
        name: usize,
        suffix: Option<u32>,
        bytes: u64,
        class: u32,
    ) {
        self.extras.push(Extra {
            name,
            suffix,
            variable: Variable {
                category,
                class,
                bytes,
            },
        });
    }

    fn host_and_stack(&mut self, settings: &Settings, tree: &Tree) {
        let class = Fixed::Control as u32;
        self.with_class(category::CONTROL_ID, 0, Some(self.tile), 4, class);
        if self.tile > 0 {
            self.with_class(category::CONSTANT, 18, None, 0, UNALLOCATED);
        }
        self.host(tree);
        let about = [topic::TILE, self.tile.into(), 0, 5];
        let stack = 328 + 8 * settings.random.below(24, about);
        self.push(category::STACK, 5, None, stack);
    }

    /// Every tile talks to the host a little, every 64th a lot.
    fn host(&mut self, tree: &Tree) {
        self.push(category::HOST_MESSAGE, 1, None, 64);
        self.push(category::HOST_HEADER, 4, None, 8);
        self.push(category::HOST_HEADER, 3, Some(1), 8);
        self.push(category::HOST_HEADER, 3, Some(3), 16);
        if self.tile % 64 == 5 {
            let class = Fixed::Host as u32;
            self.push(category::HOST_MESSAGE, 2, None, 4);
            self.with_class(category::HOST_MESSAGE, 19, Some(0), 1024, class);
            for stream in 0..tree.streams.len().min(24) as u32 {
                self.push(category::HOST_HEADER, 3, Some(4 + stream), 16);
                self.push(category::HOST_EXCHANGE_CODE, 13, Some(4 + stream), 128);
            }
        }
        for (suffix, bytes) in [(0, 112), (1, 16), (2, 16)] {
            self.push(category::HOST_EXCHANGE_CODE, 13, Some(suffix), bytes);
        }
    }

    fn instrumentation(&mut self, tree: &Tree) {
        let measured = 20 + 8 * (tree.compute_sets.len() as u64 / 8);
        self.push(category::INSTRUMENTATION, 6, Some(self.tile), measured);
        self.push(category::INSTRUMENTATION, 7, None, 4);
        self.push(category::INSTRUMENTATION, 8, None, 4);
    }

    /// Start-up code comes on top of what programs account for.
    fn control_code(&mut self, code: &Code) {
        let tile = self.tile as usize;
        let start = code.control[0][tile] + if tile == 0 { 172 } else { 108 };
        self.push(category::CONTROL_CODE, 10, None, 32);
        self.push(category::CONTROL_CODE, name::START, None, start);
        self.push(category::CONTROL_CODE, 11, None, 160);
        for (function, bytes) in (0..).zip(&code.control[1..]) {
            self.push(category::CONTROL_CODE, 12, Some(function), bytes[tile]);
        }
    }

    /// State of the vertices of neighbouring compute sets stands together, so
    /// that large models do not get more of it than real ones.
    fn vertices(&mut self, tree: &Tree, code: &Code) {
        let together = tree.compute_sets.len().div_ceil(self.blocks).max(1);
        let mut number = 0;
        for first in (0..tree.compute_sets.len()).step_by(together) {
            let sets = first..(first + together).min(tree.compute_sets.len());
            let (mut state, mut field, mut descriptor) = (0, 0, 0);
            for bytes in sets.map(|set| code.set_bytes(set, self.tile)) {
                state += bytes.state();
                field += bytes.field;
                descriptor += bytes.descriptor;
            }
            number += 1;
            for (category, name, bytes) in [
                (category::VERTEX_STATE, name::VERTEX_STATE, state),
                (category::FIELD_DATA, name::VERTEX_FIELD, field),
                (category::COPY_DESCRIPTOR, name::COPY_DESCRIPTOR, descriptor),
            ] {
                if bytes > 0 {
                    self.push(category, name, Some(number), bytes);
                }
            }
        }
    }

    fn vertex_code(&mut self, code: &Code) {
        for (index, (_, bytes)) in RUNTIME.iter().enumerate() {
            self.push(category::VERTEX_CODE, NAMES.len() + index, None, *bytes);
        }
        let present = code.types_on(self.tile);
        for (kind, _) in present.iter().enumerate().filter(|(_, present)| **present) {
            let bytes = code.types[kind].code;
            self.push(category::VERTEX_CODE, name_of_type(kind), None, bytes);
        }
    }

    /// Exchanges that use the code of another one add nothing; copies to the
    /// host add a little that no exchange accounts for.
    fn exchange_code(&mut self, tree: &Tree, code: &Code) {
        let together = tree.exchanges.len().div_ceil(self.blocks).max(1);
        let mut number = 0;
        for first in (0..tree.exchanges.len()).step_by(together) {
            let end = (first + together).min(tree.exchanges.len());
            let bytes: u64 = (first..end)
                .filter(|&exchange| tree.exchanges[exchange].shares.is_none())
                .map(|exchange| code.exchange_bytes(exchange, self.tile))
                .sum();
            if bytes > 0 {
                let name = name::INTERNAL_EXCHANGE;
                self.push(category::INTERNAL_EXCHANGE_CODE, name, Some(number), bytes);
            }
            number += 1;
        }
        let name = name::INTERNAL_EXCHANGE;
        self.push(category::INTERNAL_EXCHANGE_CODE, name, Some(number), 8);
    }
}
