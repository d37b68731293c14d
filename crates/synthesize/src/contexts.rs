//! Debug contexts of the planted model: ids, parents and names, in the chains
//! that each framework makes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::model::{Model, Op, Phase};
use super::random::topic;
use super::settings::{Framework, Settings};
use super::tensors::TensorOf;

/// The object that a context describes: its layer of software and category are in
/// `context_fields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The user's operation in PopTorch.
    Poptorch,
    /// The call that made an ONNX node.
    Builder,
    /// A call of the ONNX builder without attributes, the parent of contexts that PopART adds.
    BareBuilder,
    Onnx,
    Popart,
    Tensor,
    Xla,
    Hlo,
    Driver,
    /// A library call.
    Poplibs,
    /// A library call with arguments.
    PoplibsCall,
    Var,
    VarConst,
    ComputeSet,
    /// With the type of the program.
    Program(&'static str),
    Compilation,
}

impl Body {
    /// Whether a context of this kind never has children.
    pub fn is_leaf(self) -> bool {
        matches!(
            self,
            Body::Var | Body::VarConst | Body::ComputeSet | Body::Program(_)
        )
    }
}

/// One context; its id is its position in [`Contexts::list`] plus 1.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Id of the parent, 0 for a root.
    pub parent: u32,
    /// Index into the string table.
    pub name: u32,
    pub body: Body,
    /// The operation that it belongs to; `u32::MAX` for none.
    pub op: u32,
    /// The layer whose name it has; differs from the operation's own for the
    /// contexts that an outlined body replaced.
    pub layer: u32,
}

/// No operation, no layer.
pub const NONE: u32 = u32::MAX;

/// The contexts that the programs of one operation refer to.
#[derive(Debug, Clone, Default)]
pub struct OpContexts {
    /// The operation context of the analysis.
    pub op: u32,
    /// The library call that stages hang below.
    pub poplibs: u32,
    /// Per stage: context of the compute set, context of the programs.
    pub stages: Vec<(u32, u32)>,
    /// Contexts of variables.
    pub vars: Vec<u32>,
    /// Of a global operation: context of variables of 32 bits.
    pub float_var: Option<u32>,
}

/// The content of PopART's context of a tensor.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// `tensorId`.
    pub id: String,
    /// `type`.
    pub kind: &'static str,
    /// `elementType`.
    pub element: &'static str,
}

/// The contexts of a tensor.
#[derive(Debug, Clone)]
pub struct TensorContexts {
    /// The name of its variable.
    pub name: String,
    /// Of its variable.
    pub variable: u32,
    /// Of the program that copies it from the host.
    pub upload: u32,
}

/// All contexts.
#[derive(Debug, Default)]
pub struct Contexts {
    /// In order of their ids, from 1.
    pub list: Vec<Context>,
    /// Ends of the blocks that are written one after the other: first the
    /// framework's own, then one block per operation.
    pub blocks: Vec<usize>,
    /// Strings of the string table.
    pub strings: Vec<String>,
    /// Per operation.
    pub ops: Vec<OpContexts>,
    /// Per context of a call: contexts of the operations of the function, and
    /// of those that stood there instead.
    pub pairs: HashMap<u32, (Vec<u32>, Vec<u32>)>,
    /// The tensors of the contexts of tensors.
    pub tensors: HashMap<u32, Tensor>,
    /// The contexts of these tensors.
    pub of_tensor: BTreeMap<TensorOf, TensorContexts>,
    /// Contexts of the programs that copy the input from the host, and the loss to
    /// the host.
    pub ends: [u32; 2],
    /// The context of the program that copies all weights to the host.
    pub download: u32,
    /// Contexts of variables that have elements of 32 bits.
    pub floats: HashSet<u32>,
    /// The root of what the compiler makes.
    pub compilation: u32,
    /// The bare context above what PopART makes by itself.
    pub(super) bare: u32,
    index: HashMap<String, u32>,
}

/// Plants the contexts of `model`, and more of the same until there are about
/// as many as `settings` want.
pub fn build(settings: &Settings, model: &Model) -> Contexts {
    let needed = build_padded(settings, model, 0);
    let missing = settings.contexts.saturating_sub(needed.list.len());
    match missing / model.ops.len() {
        0 => needed,
        padding => build_padded(settings, model, padding),
    }
}

fn build_padded(settings: &Settings, model: &Model, padding: usize) -> Contexts {
    let mut contexts = Contexts::default();
    contexts.intern("");
    contexts.compilation = contexts.push(0, "", Body::Compilation, NONE);
    if is_popart(settings) {
        contexts.bare = contexts.push(0, "", Body::BareBuilder, NONE);
    }
    contexts.blocks.push(contexts.list.len());
    for (index, op) in model.ops.iter().enumerate() {
        contexts.op(settings, op, index as u32, padding);
        contexts.blocks.push(contexts.list.len());
    }
    contexts.replaced(settings, model);
    contexts.blocks.push(contexts.list.len());
    contexts.plant_tensors(settings, model);
    contexts.plant_streams(model);
    contexts.blocks.push(contexts.list.len());
    contexts
}

pub(super) fn is_popart(settings: &Settings) -> bool {
    matches!(settings.framework, Framework::Popart | Framework::Poptorch)
}

impl Contexts {
    /// The index of `text` in the string table.
    pub fn intern(&mut self, text: &str) -> u32 {
        if let Some(&index) = self.index.get(text) {
            return index;
        }
        let index = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.index.insert(text.to_owned(), index);
        index
    }

    /// The name of the context with this id.
    pub fn name(&self, id: u32) -> &str {
        &self.strings[self.list[id as usize - 1].name as usize]
    }

    pub(super) fn push(&mut self, parent: u32, name: &str, body: Body, op: u32) -> u32 {
        let name = self.intern(name);
        self.list.push(Context {
            parent,
            name,
            body,
            op,
            layer: NONE,
        });
        self.list.len() as u32
    }

    fn op(&mut self, settings: &Settings, op: &Op, index: u32, padding: usize) {
        let top = self.framework_chain(settings, op, index);
        let is_compiler = op.phase == Phase::Compiler;
        let poplibs = match is_compiler {
            true => top,
            false => self.push(top, &op.name, Body::Poplibs, index),
        };
        let context = match settings.framework {
            _ if is_compiler => top,
            Framework::Poplar => poplibs,
            Framework::Tensorflow => top - 2,
            _ => top,
        };
        let mut result = OpContexts {
            op: context,
            poplibs,
            ..OpContexts::default()
        };
        let inner = match op.stages {
            0..=2 => poplibs,
            _ => self.push(
                poplibs,
                &format!("{}/Convolve", op.name),
                Body::Poplibs,
                index,
            ),
        };
        self.stages(op, index, inner, &mut result);
        self.pad(settings, index, inner, padding, &mut result);
        self.ops.push(result);
    }

    fn stages(&mut self, op: &Op, index: u32, inner: u32, result: &mut OpContexts) {
        for stage in 0..op.stages {
            let parent = match stage % 3 {
                2 => result.poplibs,
                _ => inner,
            };
            let name = format!("{}/{}", op.name, stage_name(stage));
            let set = self.push(parent, &name, Body::ComputeSet, index);
            let program = self.push(parent, "", Body::Program("Execute"), index);
            result.stages.push((set, program));
            let var = self.push(parent, &format!("{name}/out"), Body::Var, index);
            result.vars.push(var);
        }
        if !op.works_on.is_empty() {
            let var = self.push(result.poplibs, "cast", Body::Var, index);
            self.floats.insert(var);
            result.float_var = Some(var);
        }
    }

    /// The framework's contexts of one operation; gives the lowest of them
    /// (0 for plain Poplar).
    fn framework_chain(&mut self, settings: &Settings, op: &Op, index: u32) -> u32 {
        match settings.framework {
            _ if op.phase == Phase::Compiler => self.push(0, &op.name, Body::Compilation, NONE),
            Framework::Poplar => 0,
            Framework::Tensorflow => {
                let xla = self.push(0, &op.name, Body::Xla, index);
                let hlo = self.push(xla, &op.name, Body::Hlo, index);
                self.push(hlo, &op.name, Body::Driver, index)
            }
            _ => {
                let parent = match op.name.is_empty() {
                    false => self.onnx_chain(settings, index, NONE),
                    true if index.is_multiple_of(2) => self.bare,
                    true => 0,
                };
                self.push(parent, &op.name, Body::Popart, index)
            }
        }
    }

    pub(super) fn onnx_chain(&mut self, settings: &Settings, index: u32, layer: u32) -> u32 {
        let mut parent = 0;
        let mut bodies = vec![Body::Builder, Body::Onnx];
        if settings.framework == Framework::Poptorch {
            bodies.insert(0, Body::Poptorch);
        }
        for body in bodies {
            parent = self.push(parent, "", body, index);
            self.list[parent as usize - 1].layer = layer;
        }
        parent
    }

    /// More library calls and variables below an operation, as real files have
    /// them by the hundred.
    fn pad(
        &mut self,
        settings: &Settings,
        index: u32,
        inner: u32,
        padding: usize,
        result: &mut OpContexts,
    ) {
        const NAMES: [&str; 6] = ["partials", "reduce", "rearrange", "cast", "slice", "in"];
        let mut parent = inner;
        for number in 0..padding as u64 {
            let choice = settings
                .random
                .below(10, [topic::CONTEXT, index.into(), number, 0]);
            let name = NAMES[(number % 6) as usize];
            match choice {
                0..4 => {
                    let level = if number % 3 == 0 { inner } else { parent };
                    parent = self.push(level, name, Body::PoplibsCall, index);
                }
                4..7 => result.vars.push(self.push(parent, name, Body::Var, index)),
                7 => drop(self.push(parent, name, Body::VarConst, index)),
                8 => drop(self.push(parent, name, Body::ComputeSet, index)),
                _ => drop(self.push(parent, "", Body::Program("Copy"), index)),
            }
        }
    }
}

fn stage_name(stage: u32) -> &'static str {
    const NAMES: [&str; 5] = ["OnTileCopyPre", "Conv", "Reduce", "Transpose", "OnTileCopy"];
    NAMES[stage as usize % NAMES.len()]
}
