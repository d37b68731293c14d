//! Debug contexts of the planted model: ids, parents and names, in the chains
//! that each framework makes.

use std::collections::{BTreeMap, HashMap};

use super::model::{Model, Op, Phase};
use super::random::topic;
use super::settings::{Framework, Settings};
use super::tensors::TensorOf;

/// One context; its id is its position in [`Contexts::list`] plus 1.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Id of the parent, 0 for a root.
    pub parent: u32,
    pub name: u32,
    /// The part of the framework that wrote the context; `contexts.json` has the fields of each.
    pub body: &'static str,
    /// The operation to which the context belongs, or [`NONE`].
    pub op: u32,
    /// The layer whose name the context has, or [`NONE`] for the layer of its operation. Contexts
    /// that an outlined body replaced have another layer than their operation.
    pub layer: u32,
}

const STAGES: [&str; 5] = ["OnTileCopyPre", "Conv", "Reduce", "Transpose", "OnTileCopy"];

/// Stands for no operation, and for no layer.
pub const NONE: u32 = u32::MAX;

/// The contexts that the programs of one operation refer to.
#[derive(Debug, Clone, Default)]
pub struct OpContexts {
    /// The operation context of the analysis.
    pub op: u32,
    /// The library call that is the parent of the contexts of stages.
    pub poplibs: u32,
    pub stages: Vec<(u32, u32)>,
    pub vars: Vec<u32>,
    /// The context of 32-bit variables of a global operation.
    pub float_var: Option<u32>,
}

/// The contexts of a tensor: its own (0 for none), that of its variable, and that of the program
/// that copies it from the host.
#[derive(Debug, Clone)]
pub struct TensorContexts {
    pub name: String,
    pub tensor: u32,
    pub variable: u32,
    pub upload: u32,
}

#[derive(Debug, Default)]
pub struct Contexts {
    pub list: Vec<Context>,
    pub strings: Vec<String>,
    pub ops: Vec<OpContexts>,
    /// By context of a call: the contexts of the operations of the function, and those of the
    /// operations that it replaced.
    pub pairs: HashMap<u32, (Vec<u32>, Vec<u32>)>,
    pub of_tensor: BTreeMap<TensorOf, TensorContexts>,
    /// The contexts of the programs that copy the input from the host, and the loss to the host.
    pub ends: [u32; 2],
    pub download: u32,
    /// The root of the contexts that the compiler makes.
    pub compilation: u32,
    /// The context without attributes above the contexts that PopART makes by itself.
    pub(super) bare: u32,
    index: HashMap<String, u32>,
}

impl Contexts {
    fn intern(&mut self, text: &str) -> u32 {
        if let Some(&index) = self.index.get(text) {
            return index;
        }
        let index = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.index.insert(text.to_owned(), index);
        index
    }

    pub fn name(&self, id: u32) -> &str {
        &self.strings[self.list[id as usize - 1].name as usize]
    }
}

/// Plants the contexts of `model`, and more contexts of the same kind until there are about as many
/// as `settings` request.
pub fn build(settings: &Settings, model: &Model) -> Contexts {
    let needed = build_padded(settings, model, 0);
    let missing = settings.contexts.saturating_sub(needed.list.len());
    match missing / model.ops.len() {
        0 => needed,
        padding => build_padded(settings, model, padding),
    }
}

fn build_padded(settings: &Settings, model: &Model, padding: usize) -> Contexts {
    let mut builder = Builder {
        settings,
        model,
        contexts: Contexts::default(),
    };
    builder.contexts.intern("");
    builder.contexts.compilation = builder.push(0, "", "Compilation", NONE);
    if settings.is_popart() {
        builder.contexts.bare = builder.push(0, "", "BareBuilder", NONE);
    }
    for (index, op) in model.ops.iter().enumerate() {
        builder.op(op, index as u32, padding);
    }
    builder.replaced();
    builder.plant_tensors();
    builder.plant_streams();
    builder.contexts
}

pub(super) struct Builder<'a> {
    pub settings: &'a Settings,
    pub model: &'a Model,
    pub contexts: Contexts,
}

impl Builder<'_> {
    pub(super) fn push(&mut self, parent: u32, name: &str, body: &'static str, op: u32) -> u32 {
        let name = self.contexts.intern(name);
        self.contexts.list.push(Context {
            parent,
            name,
            body,
            op,
            layer: NONE,
        });
        self.contexts.list.len() as u32
    }

    fn op(&mut self, op: &Op, index: u32, padding: usize) {
        let top = self.framework_chain(op, index);
        let poplibs = match op.phase {
            Phase::Compiler => top,
            _ => self.push(top, &op.name, "Poplibs", index),
        };
        let mut result = OpContexts {
            op: match self.settings.framework {
                _ if op.phase == Phase::Compiler => top,
                Framework::Poplar => poplibs,
                Framework::Tensorflow => top - 2,
                _ => top,
            },
            poplibs,
            ..OpContexts::default()
        };
        let convolve = format!("{}/Convolve", op.name);
        let inner = match op.stages {
            0..=2 => poplibs,
            _ => self.push(poplibs, &convolve, "Poplibs", index),
        };
        self.stages(op, index, inner, &mut result);
        self.pad(index, inner, padding, &mut result);
        self.contexts.ops.push(result);
    }

    fn stages(&mut self, op: &Op, index: u32, inner: u32, result: &mut OpContexts) {
        for stage in 0..op.stages {
            let parent = if stage % 3 == 2 {
                result.poplibs
            } else {
                inner
            };
            let name = format!("{}/{}", op.name, STAGES[stage as usize % STAGES.len()]);
            let set = self.push(parent, &name, "ComputeSet", index);
            let program = self.push(parent, "", "Execute", index);
            result.stages.push((set, program));
            let name = format!("{name}/out");
            result.vars.push(self.push(parent, &name, "Half", index));
        }
        if !op.works_on.is_empty() {
            let var = self.push(result.poplibs, "cast", "Float", index);
            result.float_var = Some(var);
        }
    }

    /// Plants the framework's contexts of one operation; returns the lowest of them (0 for plain
    /// Poplar).
    fn framework_chain(&mut self, op: &Op, index: u32) -> u32 {
        match self.settings.framework {
            _ if op.phase == Phase::Compiler => self.push(0, &op.name, "Compilation", NONE),
            Framework::Poplar => 0,
            Framework::Tensorflow => {
                let xla = self.push(0, &op.name, "Xla", index);
                let hlo = self.push(xla, &op.name, "Hlo", index);
                self.push(hlo, &op.name, "Driver", index)
            }
            _ => {
                let parent = match op.name.is_empty() {
                    false => self.onnx_chain(index, NONE),
                    true if index.is_multiple_of(2) => self.contexts.bare,
                    true => 0,
                };
                self.push(parent, &op.name, "Popart", index)
            }
        }
    }

    pub(super) fn onnx_chain(&mut self, index: u32, layer: u32) -> u32 {
        let mut parent = 0;
        let mut bodies = vec!["Builder", "Onnx"];
        if self.settings.framework == Framework::Poptorch {
            bodies.insert(0, "Poptorch");
        }
        for body in bodies {
            parent = self.push(parent, "", body, index);
            self.contexts.list[parent as usize - 1].layer = layer;
        }
        parent
    }

    /// Plants more library calls and variables below an operation, as real files have them by the
    /// hundred.
    fn pad(&mut self, index: u32, inner: u32, padding: usize, result: &mut OpContexts) {
        const NAMES: [&str; 6] = ["partials", "reduce", "rearrange", "cast", "slice", "in"];
        let mut parent = inner;
        for number in 0..padding as u64 {
            let about = [topic::CONTEXT, index.into(), number, 0];
            let name = NAMES[(number % 6) as usize];
            match self.settings.random.below(10, about) {
                0..4 => {
                    let level = if number % 3 == 0 { inner } else { parent };
                    parent = self.push(level, name, "PoplibsCall", index);
                }
                4..7 => result.vars.push(self.push(parent, name, "Half", index)),
                7 => drop(self.push(parent, name, "Constant", index)),
                8 => drop(self.push(parent, name, "ComputeSet", index)),
                _ => drop(self.push(parent, "", "Copy", index)),
            }
        }
    }
}
