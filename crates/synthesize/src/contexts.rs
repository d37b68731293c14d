//! Debug contexts of the planted model: ids, parents and names, in the chains
//! that each framework makes.

use std::collections::{BTreeMap, HashMap};

use super::model::{Model, Op, Phase};
use super::random::topic;
use super::settings::{Framework, Settings};
use super::templates;
use super::tensors::{SEED, State, TensorOf};

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
    bare: u32,
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

/// Plants the contexts of `model`, and further contexts of the same kind up to about the number that
/// `settings` request.
pub fn build(settings: &Settings, model: &Model) -> Contexts {
    let needed = build_padded(settings, model, 0);
    let own = needed.list.len() - settings.compilation().count_ones() as usize;
    let missing = settings.contexts.saturating_sub(own);
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
    for _ in 0..settings.compilation().count_ones() {
        builder.push(0, "", "Compilation", NONE);
    }
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

struct Builder<'a> {
    pub settings: &'a Settings,
    pub model: &'a Model,
    pub contexts: Contexts,
}

impl Builder<'_> {
    fn push(&mut self, parent: u32, name: &str, body: &'static str, op: u32) -> u32 {
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
            let parent = [inner, inner, result.poplibs][stage as usize % 3];
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

    fn onnx_chain(&mut self, index: u32, layer: u32) -> u32 {
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

    fn plant_tensors(&mut self) {
        let framework = self.settings.framework;
        for (index, weight) in self.model.weights.iter().enumerate() {
            for state in State::of(self.settings, weight) {
                let name = state.name(framework, &weight.name);
                self.plant_tensor(TensorOf::Weight(index, state), &name);
            }
        }
        for (index, constant) in self.model.constants.iter().enumerate() {
            self.plant_tensor(TensorOf::Constant(index), &constant.name);
        }
        if self.settings.training() {
            let name = &templates::of(framework).names["learning_rate"];
            self.plant_tensor(TensorOf::LearningRate, name);
        }
        if self.model.advances_seed.is_some() {
            self.plant_tensor(TensorOf::Seed, SEED);
        }
    }

    fn plant_tensor(&mut self, of: TensorOf, name: &str) {
        let tensor = match self.settings.is_popart() {
            true => self.push(0, "", "Tensor", NONE),
            false => 0,
        };
        let body = match of {
            TensorOf::Weight(_, State::First | State::Second) | TensorOf::LearningRate => "Float",
            _ => "Half",
        };
        let contexts = TensorContexts {
            name: name.to_owned(),
            tensor,
            variable: match of {
                // Some variables have the tensor's own context, others one below.
                TensorOf::Weight(index, _) if index % 2 == 1 && tensor > 0 => tensor,
                _ => self.push(tensor, name, body, NONE),
            },
            upload: self.push(tensor, "weights", "StreamCopy", NONE),
        };
        self.contexts.of_tensor.insert(of, contexts);
    }

    /// Plants the contexts of what the host sends and gets beside weights.
    fn plant_streams(&mut self) {
        let first = self.model.inputs.first().map(|input| input.users[0]);
        let first = first.map_or(0, |first| self.contexts.ops[first].poplibs);
        let input = self.push(first, "input", "StreamCopy", NONE);
        let loss = self.push(0, "loss", "StreamCopy", NONE);
        self.contexts.ends = [input, loss];
        self.contexts.download = self.push(0, "weights_to_host", "StreamCopy", NONE);
    }

    /// Plants the contexts of the operations that stood at the call sites before outlining. In the
    /// layer that lent its operations to the body, these are the operations of the body itself.
    fn replaced(&mut self) {
        if !self.settings.is_popart() {
            return;
        }
        let on_clone = !self.settings.features.pairs_on_replaced;
        for (index, op) in self.model.ops.iter().enumerate() {
            let Some(call) = op.call.map(|site| &self.model.calls[site]) else {
                continue;
            };
            let body = &self.model.functions[call.function];
            let is_source = self.model.ops[body[0]].made_for == Some(call.layer);
            let replaced = match call.stood_here.is_empty() {
                false if on_clone => self.ids(&call.stood_here),
                // A copy has no pairs: the pairs are on the calls that it replaced.
                false => continue,
                true if is_source && (on_clone || !self.settings.nested) => self.ids(body),
                true => self.replicas(body, call.layer),
            };
            let call = self.contexts.ops[index].op;
            self.pair(call, self.ids(body), replaced);
        }
    }

    fn pair(&mut self, call: u32, outlined: Vec<u32>, replaced: Vec<u32>) {
        let mut pairs: Vec<(u32, u32)> = outlined.into_iter().zip(replaced).collect();
        if self.settings.features.shuffle_pairs {
            let place = |pair: &(u32, u32)| [topic::CONTEXT, call.into(), pair.1.into(), 9];
            pairs.sort_by_key(|pair| self.settings.random.hash(place(pair)));
        }
        self.contexts.pairs.insert(call, pairs.into_iter().unzip());
    }

    fn ids(&self, ops: &[usize]) -> Vec<u32> {
        ops.iter().map(|&op| self.contexts.ops[op].op).collect()
    }

    fn replicas(&mut self, ops: &[usize], layer: u32) -> Vec<u32> {
        ops.iter().map(|&op| self.replica(op, layer)).collect()
    }

    /// Returns the context that an operation of a body had in another layer. The context of a call
    /// has pairs of its own.
    fn replica(&mut self, op: usize, layer: u32) -> u32 {
        let operation = &self.model.ops[op];
        let inner = operation.call.map(|site| {
            let call = &self.model.calls[site];
            let replaced = self.replicas(&call.stood_here, layer);
            (self.ids(&self.model.functions[call.function]), replaced)
        });
        let parent = match operation.name.is_empty() {
            true => self.contexts.bare,
            false => self.onnx_chain(op as u32, layer),
        };
        let id = self.push(parent, "", "Popart", op as u32);
        self.contexts.list[id as usize - 1].layer = layer;
        if let Some((outlined, replaced)) = inner {
            self.pair(id, outlined, replaced);
        }
        id
    }
}
