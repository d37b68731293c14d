//! Variables that no program stage uses: code, vertex state, stacks, host
//! exchange, instrumentation. Sizes and counts on a tile follow a real profile.

use std::ops::Range;

use super::code::{Code, SetBytes};
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
pub mod name {
    pub const START: usize = 9;
    pub const INTERNAL_EXCHANGE: usize = 14;
    pub const VERTEX_STATE: usize = 15;
    pub const COPY_DESCRIPTOR: usize = 16;
    pub const VERTEX_FIELD: usize = 17;
}

pub fn name_of_type(kind: usize) -> usize {
    NAMES.len() + RUNTIME.len() + kind
}

#[derive(Debug, Clone, Copy)]
pub struct Extra {
    pub name: usize,
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
    let fixed = NAMES.into_iter().chain(RUNTIME.map(|(name, _)| name));
    let types = code.types.iter().map(|kind| kind.name.replace("::", "__"));
    let types = types.map(|name| format!(".text.__runCodelet_{name}"));
    fixed.map(str::to_owned).chain(types).collect()
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
    /// Adds an extra that is always live.
    fn push(&mut self, category: usize, name: usize, suffix: Option<u32>, bytes: u64) {
        let class = Fixed::Code as u32;
        self.with_class(class, category, name, suffix, bytes);
    }

    fn with_class(
        &mut self,
        class: u32,
        category: usize,
        name: usize,
        suffix: Option<u32>,
        bytes: u64,
    ) {
        let variable = Variable {
            category,
            class,
            bytes,
        };
        self.extras.push(Extra {
            name,
            suffix,
            variable,
        });
    }

    /// Every tile talks to the host a little, every 64th a lot.
    fn host_and_stack(&mut self, settings: &Settings, tree: &Tree) {
        let class = Fixed::Control as u32;
        self.with_class(class, category::CONTROL_ID, 0, Some(self.tile), 4);
        if self.tile > 0 {
            self.with_class(UNALLOCATED, category::CONSTANT, 18, None, 0);
        }
        self.push(category::HOST_MESSAGE, 1, None, 64);
        self.push(category::HOST_HEADER, 4, None, 8);
        self.push(category::HOST_HEADER, 3, Some(1), 8);
        self.push(category::HOST_HEADER, 3, Some(3), 16);
        if self.tile % 64 == 5 {
            let class = Fixed::Host as u32;
            self.push(category::HOST_MESSAGE, 2, None, 4);
            self.with_class(class, category::HOST_MESSAGE, 19, Some(0), 1024);
            for stream in 0..tree.streams.len().min(24) as u32 {
                self.push(category::HOST_HEADER, 3, Some(4 + stream), 16);
                self.push(category::HOST_EXCHANGE_CODE, 13, Some(4 + stream), 128);
            }
        }
        for (suffix, bytes) in [(0, 112), (1, 16), (2, 16)] {
            self.push(category::HOST_EXCHANGE_CODE, 13, Some(suffix), bytes);
        }
        let about = [topic::TILE, self.tile.into(), 0, 5];
        let stack = 328 + 8 * settings.random.below(24, about);
        self.push(category::STACK, 5, None, stack);
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

    /// Neighbours that stand together in one variable, so that large models do not get more
    /// of them than real ones.
    fn together(&self, count: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let together = count.div_ceil(self.blocks).max(1);
        let firsts = (0..count).step_by(together);
        firsts.map(move |first| first..count.min(first + together))
    }

    fn vertices(&mut self, tree: &Tree, code: &Code) {
        for (number, sets) in (1..).zip(self.together(tree.compute_sets.len())) {
            let bytes: Vec<_> = sets.map(|set| code.set_bytes(set, self.tile)).collect();
            let sum = |of: fn(&SetBytes) -> u64| bytes.iter().map(of).sum();
            for (category, name, bytes) in [
                (
                    category::VERTEX_STATE,
                    name::VERTEX_STATE,
                    sum(SetBytes::state),
                ),
                (
                    category::FIELD_DATA,
                    name::VERTEX_FIELD,
                    sum(|bytes| bytes.field),
                ),
                (
                    category::COPY_DESCRIPTOR,
                    name::COPY_DESCRIPTOR,
                    sum(|bytes| bytes.descriptor),
                ),
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
        for kind in code.types_on(self.tile) {
            let bytes = code.types[kind].code;
            self.push(category::VERTEX_CODE, name_of_type(kind), None, bytes);
        }
    }

    /// Exchanges that use the code of another one add nothing; copies to the
    /// host add a little that no exchange accounts for.
    fn exchange_code(&mut self, tree: &Tree, code: &Code) {
        let own = |exchange: &usize| tree.exchanges[*exchange].shares.is_none();
        let sums = self.together(tree.exchanges.len()).map(|exchanges| {
            let exchanges = exchanges.filter(own);
            exchanges
                .map(|exchange| code.exchange_bytes(exchange, self.tile))
                .sum()
        });
        let sums: Vec<u64> = sums.chain([8]).collect();
        let sums = (0..).zip(sums).filter(|&(_, bytes)| bytes > 0);
        for (number, bytes) in sums {
            let name = name::INTERNAL_EXCHANGE;
            self.push(category::INTERNAL_EXCHANGE_CODE, name, Some(number), bytes);
        }
    }
}
