//! Finds the names of operations in debug contexts (docs/model.md, "Contexts and names").

use super::operations::{Operation, Pass, UnnamedOperation, UnnamedOperations, operation_layer};
use super::walk::{EMPTY_PATH, NO_CALL, Path};
use crate::debug_info::{ContextField, DebugInfo, Position, SoftwareLayer};
use crate::limits;
use crate::message::{FileError, OVER_BOUND};
use crate::profile::Programs;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// Names all operations, in the order of `found.operations`. Also returns the call paths on which
/// outlined operations take the names of the operations that they replaced.
///
/// # Errors
/// If all names and inputs together are longer than [`limits::TEXT`].
pub(super) fn name_all(
    found: &UnnamedOperations,
    programs: &Programs,
    debug_info: &DebugInfo,
) -> Result<(Vec<Operation>, FxHashSet<Path>), FileError> {
    let mut namer = Namer {
        debug_info,
        layer: operation_layer(debug_info),
        programs,
        found,
        pairs: FxHashMap::default(),
        first_paired: FxHashMap::default(),
        paired_contexts: FxHashMap::default(),
    };
    let mut left = limits::TEXT;
    let mut named = |operation| {
        let operation = namer.operation(operation);
        let length = operation.name.len() + operation.inputs.len();
        left = left.checked_sub(length).ok_or_else(|| {
            FileError::new(format!(
                "debug.cbor or table `program_type_call`: the names and inputs of operations are \
                 longer than {} bytes together, more than in any real model; {OVER_BOUND}",
                limits::TEXT
            ))
        })?;
        Ok(operation)
    };
    let operations = found.operations.iter().map(&mut named);
    let mut operations: Vec<Operation> = operations.collect::<Result<_, FileError>>()?;
    let tensors: FxHashSet<u32> = operations
        .iter()
        .filter(|operation| operation.is_tensor)
        .map(|operation| operation.group)
        .collect();
    for operation in &mut operations {
        operation.is_tensor = tensors.contains(&operation.group);
    }
    let paired_contexts = namer.paired_contexts.into_iter();
    let with_pairs = paired_contexts.filter(|(_, paired_contexts)| !paired_contexts.is_empty());
    Ok((operations, with_pairs.map(|(path, _)| path).collect()))
}

/// By id of the debug context of an outlined operation in the body of a Call: the id of the context
/// of the operation that it replaced.
type Pairs = FxHashMap<u64, u64>;

struct Namer<'a> {
    debug_info: &'a DebugInfo,
    layer: Option<SoftwareLayer>,
    programs: &'a Programs,
    found: &'a UnnamedOperations,
    pairs: FxHashMap<Position, Pairs>,
    /// By debug id of a Call: the first context, from its own towards the root, that has pairs;
    /// `None` if none has.
    first_paired: FxHashMap<u64, Option<Position>>,
    /// By call path: the contexts whose pairs apply on it, at most one for each Call, that of the
    /// innermost Call first.
    paired_contexts: FxHashMap<Path, Vec<Position>>,
}

impl<'a> Namer<'a> {
    fn operation(&mut self, operation: &UnnamedOperation) -> Operation {
        let context = operation.context.position;
        let text = |field| self.debug_info.text(context, field);
        let inputs = text(ContextField::Inputs).unwrap_or("").replace('.', "/");
        let (instance, tensor) = (text(ContextField::InstanceId), text(ContextField::TensorId));
        let name = match operation.context.is_anonymous {
            true => "",
            false => self.context_name(operation),
        };
        let is_plain = name.is_empty() || name == "Call";
        Operation {
            group: operation.group,
            name: match is_plain {
                true => plain_name(name, instance, tensor).into(),
                false => name.into(),
            },
            inputs: inputs.into(),
            is_tensor: is_plain && tensor.is_some(),
            is_anonymous: operation.context.is_anonymous,
            is_backward: self.is_backward(context, name),
            is_update: self.is_update(context, name),
            pass: Pass::default(),
            is_nested: operation.path != EMPTY_PATH,
            window: None,
            call: NO_CALL,
        }
    }

    /// Returns whether the operation's context or its name marks it as part of the backward pass
    /// (docs/model.md, "Passes").
    fn is_backward(&self, context: Position, name: &str) -> bool {
        match self.layer {
            Some(SoftwareLayer::Popart) => {
                let gradients = self.debug_info.text(context, ContextField::Gradients);
                let opid = self
                    .debug_info
                    .text(context, ContextField::Opid)
                    .unwrap_or("");
                let makes_gradients =
                    gradients.is_some_and(|made| !is_of_clipping(op_type(opid), made));
                makes_gradients && !self.is_update(context, name)
            }
            Some(_) => components(name).any(|part| GRADIENTS.contains(&part)),
            None => false,
        }
    }

    /// Returns whether the operation's context or its name marks it as an update of weights
    /// (docs/model.md, "Passes").
    fn is_update(&self, context: Position, name: &str) -> bool {
        let text = |field| self.debug_info.text(context, field).unwrap_or("");
        match self.layer {
            Some(SoftwareLayer::Popart) => {
                text(ContextField::ExecutionContext) == "AccumulateOuterFragment"
                    || op_type(text(ContextField::Opid)).ends_with("VarUpdate")
            }
            Some(_) => components(name).any(|part| UPDATES.iter().any(|&u| part.starts_with(u))),
            None => false,
        }
    }

    /// Returns the name of the operation in its contexts or, if it is outlined and replaced another
    /// one, in that one's contexts; empty if they have none.
    fn context_name(&mut self, operation: &UnnamedOperation) -> &'a str {
        let context = operation.context.position;
        let uid = self.debug_info.id(context);
        let named_by = self.replaced(operation.path, uid).unwrap_or(uid);
        let xla = (SoftwareLayer::XlaOp, ContextField::OpName);
        let hlo = (SoftwareLayer::HloInstruction, ContextField::HloName);
        let name = match self.layer {
            Some(SoftwareLayer::Popart) => self.popart_name(named_by),
            Some(SoftwareLayer::XlaOp) => self.first_text(named_by, xla),
            Some(_) => self.first_text(named_by, hlo),
            None => self.poplar_name(named_by, operation),
        };
        name.unwrap_or("")
    }

    fn popart_name(&self, named_by: u64) -> Option<&'a str> {
        let debug_info = self.debug_info;
        let chain = || debug_info.chain(named_by);
        let of_popxl = || {
            let popxl = chain().filter(|&p| debug_info.layer(p) == SoftwareLayer::Popxl);
            popxl
                .map(|p| debug_info.name(p))
                .find(|name| !name.is_empty())
        };
        let call = || {
            let opid = debug_info.text(chain().next()?, ContextField::Opid)?;
            (op_type(opid) == "Call").then_some("Call")
        };
        self.first_text(named_by, (SoftwareLayer::Poptorch, ContextField::OpName))
            .or_else(|| self.first_text(named_by, (SoftwareLayer::Onnx, ContextField::OpName)))
            .or_else(of_popxl)
            .or_else(call)
    }

    /// Returns the first non-empty text of `field` in the context with id `named_by` and its
    /// parents, from there to the root, among contexts of the software layer `layer`.
    fn first_text(
        &self,
        named_by: u64,
        (layer, field): (SoftwareLayer, ContextField),
    ) -> Option<&'a str> {
        let debug_info = self.debug_info;
        let chain = debug_info.chain(named_by);
        let of_layer = chain.filter(|&p| debug_info.layer(p) == layer);
        let mut texts = of_layer.filter_map(|p| debug_info.text(p, field));
        texts.find(|text| !text.is_empty())
    }

    fn poplar_name(&self, named_by: u64, operation: &UnnamedOperation) -> Option<&'a str> {
        let (debug_info, programs) = (self.debug_info, self.programs);
        let position = debug_info.chain(named_by).next();
        let name = position.map(|p| debug_info.name(p));
        let api = position.and_then(|p| debug_info.text(p, ContextField::Api));
        let compute_sets = operation.programs.iter();
        let compute_sets = compute_sets.filter_map(|&program| programs.compute_set(program));
        let compute_sets = compute_sets.map(|set| &*set.name);
        let mut names = name.into_iter().chain(api).chain(compute_sets);
        names.find(|name| !name.is_empty())
    }

    /// Returns the id of the operation that the outlined operation with id `uid` replaced on this
    /// call path; `None` if no Call on it has a pair for `uid`. Of several, the innermost Call
    /// decides.
    fn replaced(&mut self, path: Path, uid: u64) -> Option<u64> {
        self.find_paired_contexts(path);
        let paired_contexts = self.paired_contexts.get(&path)?;
        paired_contexts
            .iter()
            .find_map(|context| self.pairs.get(context)?.get(&uid).copied())
    }

    /// Finds, for each Call on `path`, the context whose pairs apply, and stores them in
    /// `paired_contexts`. It is the first context from that of the Call towards the root that has
    /// pairs, or the context that this one replaced by the pairs of an enclosing Call: a Call in an
    /// outlined body may be a copy without pairs, and the replaced context has them.
    fn find_paired_contexts(&mut self, path: Path) {
        if self.paired_contexts.contains_key(&path) {
            return;
        }
        let mut outermost_first: Vec<Position> = Vec::new();
        let calls: Vec<u32> = self.found.walk.paths.innermost_first(path).collect();
        for &call in calls.iter().rev() {
            let debug_id = self.programs.all[call as usize].debug_id;
            let with_pairs = self.first_with_pairs(debug_id);
            let candidates: Vec<u64> = match with_pairs {
                Some(position) => vec![self.debug_info.id(position)],
                None => self.chain_ids(debug_id),
            };
            let enclosing = outermost_first.iter().rev();
            let mut replaced = enclosing.filter_map(|context| {
                let pairs = &self.pairs[context];
                candidates.iter().find_map(|id| pairs.get(id).copied())
            });
            let context = match replaced.next() {
                Some(id) => self.debug_info.position(id),
                None => with_pairs,
            };
            if let Some(context) = context.filter(|&context| !self.load_pairs(context).is_empty()) {
                outermost_first.push(context);
            }
        }
        outermost_first.reverse();
        self.paired_contexts.insert(path, outermost_first);
    }

    fn chain_ids(&self, id: u64) -> Vec<u64> {
        let chain = self.debug_info.chain(id);
        chain.map(|position| self.debug_info.id(position)).collect()
    }

    fn first_with_pairs(&mut self, debug_id: u64) -> Option<Position> {
        if let Some(&known) = self.first_paired.get(&debug_id) {
            return known;
        }
        let debug_info = self.debug_info;
        let found = debug_info
            .chain(debug_id)
            .find(|&position| !self.load_pairs(position).is_empty());
        self.first_paired.insert(debug_id, found);
        found
    }

    fn load_pairs(&mut self, position: Position) -> &Pairs {
        let debug_info = self.debug_info;
        self.pairs
            .entry(position)
            .or_insert_with(|| debug_info.outlined_pairs(position).into_iter().collect())
    }
}

/// Components (between slashes) of the names of TensorFlow operations in the backward pass.
const GRADIENTS: [&str; 2] = ["gradients", "gradient_tape"];
/// Beginnings of a component of the names of TensorFlow operations that update weights (assumed).
const UPDATES: [&str; 2] = ["update_", "ResourceApply"];

fn components(name: &str) -> impl Iterator<Item = &str> {
    name.split('/')
}

/// Returns whether the tensor `made` is a result of PopART's gradient clipping
/// (`ClipWeightGradientsByNorm`): the norm of one gradient, or a gradient scaled by the norm of
/// all. Both are computed after the backward pass.
fn is_of_clipping(op_type: &str, made: &str) -> bool {
    let (base, number) = made.rsplit_once("__t").unwrap_or((made, ""));
    let is_numbered = number.bytes().all(|byte| byte.is_ascii_digit());
    is_numbered
        && match op_type {
            "ReduceSumSquare" => base.ends_with("_clipping"),
            "Mul" => base.ends_with("_clipped"),
            _ => false,
        }
}

/// Returns a name without the functions that JAX writes around modules: `transpose(jvp(Net))/a/dot`
/// is `Net/a/dot`.
pub(super) fn unwrapped(name: &str) -> Cow<'_, str> {
    let (scope, kind) = name.rsplit_once('/').unwrap_or_default();
    if !scope.contains('(') {
        return name.into();
    }
    let mut plain = String::new();
    for c in scope.chars() {
        match c {
            '(' => plain.truncate(plain.rfind('/').map_or(0, |slash| slash + 1)),
            ')' => {}
            _ => plain.push(c),
        }
    }
    format!("{plain}/{kind}").into()
}

/// Returns the type in an operation id: `Add` for `ai.onnx.Add:6`.
pub(super) fn op_type(opid: &str) -> &str {
    let without_version = opid.split(':').next().unwrap_or(opid);
    without_version
        .rsplit('.')
        .next()
        .unwrap_or(without_version)
}

/// Returns the name of an operation that is a Call or a tensor, or that has no `name`: its type
/// (`Call`, `Tensor` or `Anonymous`), its `instance` number in parentheses, a slash and the id of
/// its `tensor`, as far as they are given.
fn plain_name(name: &str, instance: Option<&str>, tensor: Option<&str>) -> String {
    let mut full = match (name, tensor) {
        ("", Some(_)) => "Tensor".to_string(),
        ("", None) => "Anonymous".to_string(),
        (name, _) => name.to_string(),
    };
    if let Some(instance) = instance {
        full.push_str(&format!("({instance})"));
    }
    if let Some(tensor) = tensor {
        full.push_str(&format!("/{tensor}"));
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_around_modules_are_left_out() {
        for (name, plain) in [
            (
                "jit(f)/jit(main)/transpose(jvp(Net))/a_3/dot",
                "f/main/Net/a_3/dot",
            ),
            ("jvp(Net/a)/b/relu(x)", "Net/a/b/relu(x)"),
            ("Call(3)", "Call(3)"),
            ("a/Conv:0/1", "a/Conv:0/1"),
        ] {
            assert_eq!(unwrapped(name), plain);
        }
    }

    #[test]
    fn clipping_is_told_from_the_backward_pass() {
        let is_so = |op_type, made| is_of_clipping(op_type, made);
        assert!(is_so("ReduceSumSquare", "Gradient___w_clipping__t12"));
        assert!(is_so("Mul", "Gradient___layer1/w_clipped__t7"));
        assert!(!is_so("Mul", "Gradient___w_clipping__t12"));
        assert!(!is_so("MatMul", "Gradient___w_clipped__t12"));
        assert!(!is_so("Mul", "Gradient___x_clipped__tanh"));
        assert!(!is_so("Mul", "Gradient___w"));
    }
}
