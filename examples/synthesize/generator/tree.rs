//! The program tree, compute sets, exchanges and liveness steps.

use std::collections::HashSet;

use super::contexts::Contexts;
use super::model::{Model, Op};
use super::options::{Outlined, Settings};
use super::random::topic;
use super::templates::Kind;

/// The program types in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Type {
    Sequence,
    OnTileExecute,
    Repeat,
    Call,
    OnEveryTileSwitch,
    DoExchange,
    CodeCopy,
    StreamCopyBegin,
    StreamCopyMid,
    StreamCopyEnd,
    WriteUndef,
    Sync,
    Sans,
    SyncAns,
}

/// Tiles from `first`, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Lowest tile.
    pub first: u32,
    /// Number of tiles.
    pub count: u32,
}

impl Window {
    /// Whether `tile` is inside.
    #[inline]
    pub fn holds(self, tile: u32) -> bool {
        tile.wrapping_sub(self.first) < self.count
    }

    /// What both hold.
    pub fn intersect(self, other: Window) -> Window {
        let first = self.first.max(other.first);
        let end = (self.first + self.count).min(other.first + other.count);
        Window {
            first,
            count: end.saturating_sub(first),
        }
    }
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its type.
    pub kind: Type,
    /// Its row in the table of its type.
    pub index: Option<usize>,
    /// Ids of its children, in order.
    pub children: Vec<u32>,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its debug context.
    pub debug_id: u32,
    /// Its own control code: bytes on each tile of the window.
    pub code: (u64, Window),
    /// The operation that it belongs to; none for what the compiler makes.
    pub op: Option<usize>,
}

/// A step of an operation: an exchange, a compute set, or both.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The operation.
    pub op: usize,
    /// Its exchange.
    pub exchange: Option<usize>,
    /// Its compute set.
    pub compute_set: Option<usize>,
    /// First and last of its programs.
    pub programs: (u32, u32),
}

/// A compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// Its name.
    pub name: String,
    /// The operation that runs it.
    pub op: usize,
    /// Tiles with vertices.
    pub window: Window,
    /// Its own context.
    pub debug_id: u32,
}

/// An exchange between tiles.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The operation; none for the broadcast of control ids.
    pub op: Option<usize>,
    /// Tiles that take part.
    pub window: Window,
    /// `exchange_target` ids of what is sent and what is received.
    pub targets: (u32, u32),
    /// An earlier exchange whose code it uses.
    pub shares: Option<usize>,
}

/// A copy from or to the host.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Name of the stream.
    pub name: String,
    /// Whether the host sends.
    pub from_host: bool,
    /// The operation whose variables are copied.
    pub op: Option<usize>,
    /// `exchange_target` id of the variables.
    pub target: u32,
}

/// Programs and what they refer to.
#[derive(Debug, Default)]
pub struct Tree {
    /// Ids are positions.
    pub programs: Vec<Program>,
    /// Root of each control program.
    pub roots: Vec<u32>,
    /// Root of each function.
    pub functions: Vec<u32>,
    /// All stages.
    pub stages: Vec<Stage>,
    /// Per operation: its stages.
    pub op_stages: Vec<Vec<usize>>,
    /// All compute sets.
    pub compute_sets: Vec<ComputeSet>,
    /// All exchanges between tiles.
    pub exchanges: Vec<Exchange>,
    /// All copies from and to the host.
    pub streams: Vec<Stream>,
    /// Repeat counts, by row of their table.
    pub repeats: Vec<u64>,
    /// Number of rows of `program_type_sans`, `_sync_ans` and `_sync`.
    pub syncs: [usize; 3],
    /// `exchange_target` ids of the destinations of code copies.
    pub code_copies: Vec<u32>,
    /// Functions called, by row of `program_type_call`.
    pub calls: Vec<usize>,
    /// Number of `exchange_target` rows.
    pub targets: u32,
    /// Liveness steps: program and parent step.
    pub steps: Vec<(u32, Option<u32>)>,
    /// Per program: its step indices.
    pub listings: Vec<Vec<u32>>,
}

/// What a stage consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Compute,
    Exchanged,
    Copy,
}

impl Shape {
    fn programs(self) -> usize {
        match self {
            Shape::Compute | Shape::Copy => 1,
            Shape::Exchanged => 3,
        }
    }
}

fn shape(settings: &Settings, op: &Op, index: usize, stage: u32) -> Shape {
    let about = [topic::STAGE, index as u64, stage.into(), 0];
    match (stage, op.kind, settings.random.below(100, about)) {
        (0, Kind::Elementwise | Kind::Update, _) => Shape::Compute,
        (0, ..) | (_, _, 0..32) => Shape::Exchanged,
        (_, _, 32..44) => Shape::Copy,
        _ => Shape::Compute,
    }
}

/// Gives the operations more stages until there are about `wanted` steps.
pub fn stretch(settings: &Settings, model: &mut Model, wanted: usize) {
    let calls = match settings.outlined {
        Outlined::PerCall => model.calls.len(),
        _ => 1,
    };
    let times = |op: &Op| if op.function.is_some() { calls } else { 1 };
    let mut steps = 40;
    for (index, op) in model.ops.iter().enumerate() {
        let stages = 0..op.stages;
        let own: usize = stages
            .map(|s| shape(settings, op, index, s).programs())
            .sum();
        let upload = if op.weight > 0 { 3 } else { 0 };
        steps += (own + 1) * times(op) + upload;
    }
    while steps < wanted {
        for (index, op) in model.ops.iter_mut().enumerate() {
            let more = op.kind.stages().min(3);
            for _ in 0..more {
                steps += shape(settings, op, index, op.stages).programs() * times(op);
                op.stages += 1;
            }
            if steps >= wanted {
                return;
            }
        }
    }
}

/// Builds the tree of `model`.
pub fn build(settings: &Settings, model: &Model, contexts: &Contexts) -> Tree {
    let mut builder = Builder {
        settings,
        model,
        contexts,
        tree: Tree::default(),
        op: None,
    };
    builder.tree.op_stages = vec![Vec::new(); model.ops.len()];
    builder.control_program();
    for function in &model.functions {
        let root = builder.begin(Type::Sequence, contexts.compilation);
        builder.tree.functions.push(root);
        for &op in &function.ops {
            builder.op(root, op);
        }
    }
    let mut tree = builder.tree;
    list_steps(settings, &mut tree);
    tree
}

struct Builder<'a> {
    settings: &'a Settings,
    model: &'a Model,
    contexts: &'a Contexts,
    tree: Tree,
    /// The operation whose programs are being added.
    op: Option<usize>,
}

impl Builder<'_> {
    fn everywhere(&self) -> Window {
        Window {
            first: 0,
            count: self.settings.tiles,
        }
    }

    /// Adds a program that is nobody's child yet.
    fn begin(&mut self, kind: Type, debug_id: u32) -> u32 {
        let id = self.tree.programs.len() as u32;
        let bytes = match kind {
            Type::WriteUndef => 0,
            Type::OnTileExecute => 8 + 4 * (u64::from(id) % 4),
            Type::Repeat => 24,
            Type::OnEveryTileSwitch => 40,
            Type::Sequence => 0,
            _ => 4,
        };
        let code = (bytes, self.everywhere());
        self.tree.programs.push(Program {
            kind,
            index: None,
            children: Vec::new(),
            name: None,
            debug_id,
            code,
            op: self.op,
        });
        id
    }

    fn add(&mut self, parent: u32, kind: Type, debug_id: u32) -> u32 {
        let id = self.begin(kind, debug_id);
        self.tree.programs[parent as usize].children.push(id);
        id
    }

    fn add_row(&mut self, parent: u32, kind: Type, debug_id: u32, row: usize) -> u32 {
        let id = self.add(parent, kind, debug_id);
        self.tree.programs[id as usize].index = Some(row);
        id
    }

    /// A synchronisation.
    fn sync(&mut self, parent: u32, kind: Type) -> u32 {
        let slot = match kind {
            Type::Sans => 0,
            Type::SyncAns => 1,
            _ => 2,
        };
        let row = self.tree.syncs[slot];
        self.tree.syncs[slot] += 1;
        self.add_row(parent, kind, self.contexts.compilation, row)
    }

    fn target(&mut self) -> u32 {
        self.tree.targets += 1;
        self.tree.targets - 1
    }

    fn repeat(&mut self, parent: u32, debug_id: u32, count: u64) -> u32 {
        let row = self.tree.repeats.len();
        self.tree.repeats.push(count);
        let repeat = self.add_row(parent, Type::Repeat, debug_id, row);
        self.add(repeat, Type::Sequence, debug_id)
    }

    fn stream(
        &mut self,
        parent: u32,
        debug_id: u32,
        name: &str,
        from_host: bool,
        op: Option<usize>,
    ) {
        let row = self.tree.streams.len();
        let target = self.target();
        self.tree.streams.push(Stream {
            name: name.to_owned(),
            from_host,
            op,
            target,
        });
        self.add(parent, Type::StreamCopyBegin, debug_id);
        self.add_row(parent, Type::StreamCopyMid, debug_id, row);
        self.add(parent, Type::StreamCopyEnd, debug_id);
    }

    fn exchange(&mut self, parent: u32, debug_id: u32, op: Option<usize>, name: String) -> usize {
        let row = self.tree.exchanges.len();
        let targets = (self.target(), self.target());
        let (window, shares) = self.exchange_place(row, op);
        self.tree.exchanges.push(Exchange {
            op,
            window,
            targets,
            shares,
        });
        let id = self.add_row(parent, Type::DoExchange, debug_id, row);
        self.tree.programs[id as usize].code.1 = window;
        self.tree.programs[id as usize].name = Some(name);
        row
    }

    /// Tiles of an exchange, and the earlier one whose code it can use: one in
    /// eight is equal to an earlier one.
    fn exchange_place(&self, row: usize, op: Option<usize>) -> (Window, Option<usize>) {
        let random = self.settings.random;
        let about = |what| [topic::EXCHANGE, row as u64, what, 0];
        if op.is_none() {
            return (self.everywhere(), None);
        }
        if row > 8 && random.chance(125, about(0)) {
            let other = row - 1 - random.below(row as u64 / 2, about(1)) as usize;
            let original = self.tree.exchanges[other].shares.unwrap_or(other);
            if original > 0 {
                return (self.tree.exchanges[original].window, Some(original));
            }
        }
        (self.part_of_the_tiles(random.hash(about(2))), None)
    }

    /// A run of tiles: some 300 of a large device, a third of a small one.
    fn part_of_the_tiles(&self, hash: u64) -> Window {
        let tiles = u64::from(self.settings.tiles);
        let count = match tiles {
            1000.. => 100 + hash % 400,
            _ => 1 + tiles / 8 + hash % (tiles / 3),
        };
        let first = (hash >> 20) % (tiles - count + 1);
        Window {
            first: first as u32,
            count: count as u32,
        }
    }

    fn control_program(&mut self) {
        let own = self.contexts.compilation;
        let root = self.begin(Type::Sequence, own);
        self.tree.roots.push(root);
        self.sync(root, Type::Sans);
        self.stream(root, own, "programId0", true, None);
        self.sync(root, Type::SyncAns);
        self.exchange(
            root,
            own,
            None,
            "copy0_switchControlBroadcast/ExchangePre".to_owned(),
        );
        self.sync(root, Type::Sync);
        let switch = self.add(root, Type::OnEveryTileSwitch, own);
        self.uploads(switch);
        self.main(switch);
        let download = self.add(switch, Type::Sequence, own);
        let first = self.model.order[0];
        self.stream(download, own, "weights_to_host", false, Some(first));
    }

    fn uploads(&mut self, parent: u32) {
        let upload = self.add(parent, Type::Sequence, self.contexts.compilation);
        self.sync(upload, Type::Sans);
        for (index, op) in self.model.ops.iter().enumerate() {
            if op.weight > 0 {
                let debug_id = self.contexts.uploads[index];
                let name = op.inputs.last().map_or("weight", String::as_str);
                self.stream(upload, debug_id, name, true, Some(index));
            }
        }
        let target = self.target();
        let row = self.tree.code_copies.len();
        self.tree.code_copies.push(target);
        self.add_row(upload, Type::CodeCopy, self.contexts.compilation, row);
        self.sync(upload, Type::SyncAns);
    }

    fn main(&mut self, parent: u32) {
        let own = self.contexts.compilation;
        let main = self.add(parent, Type::Sequence, own);
        self.sync(main, Type::Sync);
        let body = self.repeat(main, own, 16);
        let order = &self.model.order;
        self.stream(body, own, "input", true, Some(order[0]));
        for &op in order {
            self.op(body, op);
        }
        self.stream(body, own, "loss", false, Some(order[order.len() - 1]));
    }

    /// The programs of one operation; some stand in a sequence or loop of
    /// their own.
    fn op(&mut self, parent: u32, index: usize) {
        let model = self.model;
        let op = &model.ops[index];
        self.op = Some(index);
        let poplibs = self.contexts.ops[index].poplibs;
        let parent = match self
            .settings
            .random
            .below(8, [topic::STAGE, index as u64, 0, 1])
        {
            0 if op.stages > 2 => self.repeat(parent, poplibs, 4),
            1 | 2 if op.stages > 1 => self.add(parent, Type::Sequence, poplibs),
            _ => parent,
        };
        for stage in 0..op.stages {
            self.stage(parent, index, stage);
        }
        if let Some(site) = op.call {
            let row = self.tree.calls.len();
            self.tree.calls.push(model.calls[site].function);
            let debug_id = match op.name.is_empty() {
                true => self.contexts.ops[index].op,
                false => poplibs,
            };
            self.add_row(parent, Type::Call, debug_id, row);
        }
        self.op = None;
    }

    fn stage(&mut self, parent: u32, index: usize, stage: u32) {
        let op = &self.model.ops[index];
        let shape = shape(self.settings, op, index, stage);
        let (set_context, debug_id) = self.contexts.ops[index].stages[stage as usize];
        let base = format!("{}/{}", op.name, stage);
        let first = self.tree.programs.len() as u32;
        let exchange = (shape != Shape::Compute).then(|| {
            let what = if shape == Shape::Copy { "copy" } else { "cs" };
            let name = format!("{what}{}_{base}/ExchangePre", self.tree.stages.len());
            self.exchange(parent, debug_id, Some(index), name)
        });
        if shape == Shape::Exchanged {
            self.add(parent, Type::WriteUndef, debug_id);
        }
        let compute_set = (shape != Shape::Copy).then(|| {
            let row = self.tree.compute_sets.len();
            let window = self.compute_window(index, stage);
            self.tree.compute_sets.push(ComputeSet {
                name: base,
                op: index,
                window,
                debug_id: set_context,
            });
            let id = self.add_row(parent, Type::OnTileExecute, debug_id, row);
            self.tree.programs[id as usize].code.1 = window;
            row
        });
        let last = self.tree.programs.len() as u32 - 1;
        self.tree.op_stages[index].push(self.tree.stages.len());
        self.tree.stages.push(Stage {
            op: index,
            exchange,
            compute_set,
            programs: (first, last),
        });
    }

    /// Main stages run everywhere, later ones on a part of the tiles.
    fn compute_window(&self, index: usize, stage: u32) -> Window {
        let about = [topic::STAGE, index as u64, stage.into(), 2];
        match (stage, self.settings.random.hash(about)) {
            (0 | 1, _) => self.everywhere(),
            (_, hash) => self.part_of_the_tiles(hash),
        }
    }
}

/// Lists the steps depth first, with the bodies of functions under their calls.
fn list_steps(settings: &Settings, tree: &mut Tree) {
    let mut steps = Vec::new();
    let mut listings = vec![Vec::new(); tree.programs.len()];
    let mut listed = HashSet::new();
    let mut stack: Vec<(u32, Option<u32>)> = tree.roots.iter().rev().map(|&r| (r, None)).collect();
    while let Some((id, parent)) = stack.pop() {
        let step = steps.len() as u32;
        steps.push((id, parent));
        listings[id as usize].push(step);
        let program = &tree.programs[id as usize];
        stack.extend(program.children.iter().rev().map(|&c| (c, Some(step))));
        if let (Type::Call, Some(row)) = (program.kind, program.index) {
            let function = tree.calls[row];
            if listed.insert(function) || settings.outlined == Outlined::PerCall {
                stack.push((tree.functions[function], Some(step)));
            }
        }
    }
    tree.steps = steps;
    tree.listings = listings;
}
