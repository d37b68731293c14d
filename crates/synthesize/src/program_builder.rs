//! Builds the program tree: control program, host copies, main program, functions.

use std::collections::HashSet;

use super::contexts::Contexts;
use super::model::Model;
use super::places::Places;
use super::settings::{Outlined, Settings};
use super::tensors::TensorOf;
use super::tree::{Content, Exchange, Program, Share, Stream, Tree, Type, Window};

pub fn build(settings: &Settings, model: &Model, contexts: &Contexts) -> Tree {
    let mut builder = Builder {
        settings,
        model,
        contexts,
        tree: Tree {
            op_stages: vec![Vec::new(); model.ops.len()],
            ..Tree::default()
        },
        op: None,
        begun: Vec::new(),
    };
    builder.control_program();
    for function in &model.functions {
        let root = builder.begin(Type::Sequence, contexts.compilation);
        builder.tree.functions.push(root);
        for &op in function {
            builder.op(root, op);
        }
    }
    builder.begin_in_parts();
    let mut tree = builder.tree;
    list_steps(settings, &mut tree);
    tree
}

pub(super) struct Builder<'a> {
    pub(super) settings: &'a Settings,
    pub(super) model: &'a Model,
    pub(super) contexts: &'a Contexts,
    pub(super) tree: Tree,
    pub(super) op: Option<usize>,
    /// Operations whose output is written in other parts than by default: each the parent of its
    /// programs, and the position of the first of them.
    pub(super) begun: Vec<(usize, u32, usize)>,
}

impl Builder<'_> {
    pub(super) fn everywhere(&self) -> Window {
        Window::all(self.settings.tiles)
    }

    /// Adds a program that is not yet a child of any program.
    pub(super) fn begin(&mut self, kind: Type, debug_id: u32) -> u32 {
        let id = self.tree.programs.len() as u32;
        let bytes = match kind {
            Type::WriteUndef => 0,
            Type::OnTileExecute => 8 + 4 * (u64::from(id) % 4),
            Type::Repeat => 24,
            Type::OnEveryTileSwitch => 40,
            Type::Sequence => 0,
            _ => 4,
        };
        let places = self.op.map(|op| self.model.ops[op].places);
        self.tree.programs.push(Program {
            kind,
            index: None,
            children: Vec::new(),
            name: None,
            debug_id,
            code: (bytes, self.everywhere()),
            op: self.op,
            places: places.filter(|places| !places.is_empty()),
        });
        id
    }

    pub(super) fn add(&mut self, parent: u32, kind: Type, debug_id: u32) -> u32 {
        let id = self.begin(kind, debug_id);
        self.tree.programs[parent as usize].children.push(id);
        id
    }

    pub(super) fn add_row(&mut self, parent: u32, kind: Type, debug_id: u32, row: usize) -> u32 {
        let id = self.add(parent, kind, debug_id);
        self.tree.programs[id as usize].index = Some(row);
        id
    }

    /// Undefines the outputs that are written in parts. These programs come last, so that others
    /// have the ids that they have without them, but are listed where they run.
    fn begin_in_parts(&mut self) {
        for (op, parent, position) in self.begun.split_off(0).into_iter().rev() {
            self.op = Some(op);
            let id = self.begin(Type::WriteUndef, self.contexts.ops[op].stages[0].1);
            let children = &mut self.tree.programs[parent as usize].children;
            children.insert(position, id);
        }
    }

    fn target(&mut self) -> u32 {
        self.tree.targets += 1;
        self.tree.targets - 1
    }

    pub(super) fn repeat(&mut self, parent: u32, debug_id: u32, count: u64) -> u32 {
        let row = self.tree.repeats.len();
        self.tree.repeats.push(count);
        let repeat = self.add_row(parent, Type::Repeat, debug_id, row);
        self.add(repeat, Type::Sequence, debug_id)
    }

    fn stream(&mut self, (parent, debug_id): (u32, u32), content: Content) {
        let row = self.tree.streams.len();
        let target = self.target();
        self.tree.streams.push(Stream { content, target });
        let begin = self.add(parent, Type::StreamCopyBegin, debug_id);
        self.add_row(parent, Type::StreamCopyMid, debug_id, row);
        self.add(parent, Type::StreamCopyEnd, debug_id);
        for program in &mut self.tree.programs[begin as usize..] {
            program.places = places_of(self.model, content);
        }
    }

    pub(super) fn exchange(
        &mut self,
        (parent, debug_id): (u32, u32),
        op: Option<usize>,
        name: String,
        share: Share,
    ) -> usize {
        let row = self.tree.exchanges.len();
        let targets = (self.target(), self.target());
        let (window, shares) = self.exchange_place(row, op);
        self.tree.exchanges.push(Exchange {
            op,
            window,
            targets,
            shares,
            share,
        });
        let id = self.add_row(parent, Type::DoExchange, debug_id, row);
        self.tree.programs[id as usize].code.1 = window;
        self.tree.programs[id as usize].name = Some(name);
        row
    }

    fn control_program(&mut self) {
        let context = self.contexts.compilation;
        let root = self.begin(Type::Sequence, context);
        self.tree.root = root;
        self.add(root, Type::Sans, context);
        self.stream((root, context), Content::Control);
        self.add(root, Type::SyncAns, context);
        let name = "copy0_switchControlBroadcast/ExchangePre".to_owned();
        let share = Share::of(Places::EVERY);
        self.exchange((root, context), None, name, share);
        self.add(root, Type::Sync, context);
        let switch = self.add(root, Type::OnEveryTileSwitch, context);
        self.uploads(switch);
        self.main(switch);
        let download = self.add(switch, Type::Sequence, context);
        let download = (download, self.contexts.download);
        self.stream(download, Content::AllTensors);
    }

    fn uploads(&mut self, parent: u32) {
        let context = self.contexts.compilation;
        let upload = self.add(parent, Type::Sequence, context);
        self.add(upload, Type::Sans, context);
        let tensors = self.contexts.of_tensor.iter();
        for (&of, contexts) in tensors.filter(|(of, _)| of.is_uploaded()) {
            let at = (upload, contexts.upload);
            self.stream(at, Content::Tensor(of));
        }
        let target = self.target();
        let row = self.tree.code_copies.len();
        self.tree.code_copies.push(target);
        self.add_row(upload, Type::CodeCopy, context, row);
        self.add(upload, Type::SyncAns, context);
    }

    fn main(&mut self, parent: u32) {
        let context = self.contexts.compilation;
        let main = self.add(parent, Type::Sequence, context);
        self.add(main, Type::Sync, context);
        let turns = if self.settings.execution { 2 } else { 16 };
        let body = self.repeat(main, context, turns);
        let [input, loss] = self.contexts.ends;
        self.stream((body, input), Content::Tensor(TensorOf::Input));
        for &op in &self.model.order {
            self.op(body, op);
        }
        self.stream((body, loss), Content::Tensor(TensorOf::Loss));
    }
}

/// Returns the places for which a copy from or to the host works; `None` for all places.
fn places_of(model: &Model, content: Content) -> Option<Places> {
    match content {
        Content::Tensor(TensorOf::Input) => Some(Places::IN),
        Content::Tensor(TensorOf::Loss) => Some(Places::OUT),
        Content::Tensor(TensorOf::Weight(weight, _)) => Some(model.weights[weight].places),
        _ => None,
    }
}

/// Lists the steps depth first, with the bodies of functions below their calls.
fn list_steps(settings: &Settings, tree: &mut Tree) {
    let mut steps = Vec::new();
    let mut listings = vec![Vec::new(); tree.programs.len()];
    let mut listed = HashSet::new();
    let mut stack: Vec<(u32, Option<u32>)> = vec![(tree.root, None)];
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
