//! Finds the names of operations in debug contexts (docs/model.md, "Contexts and names").

use super::{
    operations::{Operation, Pass, UnnamedOperation, UnnamedOperations, operation_layer},
    recording::UPDATE_CONTEXT,
    walk::{EMPTY_PATH, NO_CALL, Path},
};
use crate::{
    debug_info::{ContextField, DebugInfo, Position, SoftwareLayer},
    limits,
    message::{FileError, OVER_BOUND},
    profile::Programs,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// Returns all operations with their names. An operation in an outlined function (code that the
/// compiler shares between places) has the name of the operation that it replaced, if the debug
/// context of a Call records that operation. Also returns the call paths (lists of Calls that lead
/// to an operation) with such records.
pub fn name_all(
    found: &UnnamedOperations,
    programs: &Programs,
    debug_info: &DebugInfo,
) -> Result<(Vec<Operation>, FxHashSet<Path>), FileError> {
    let namer = Namer::new(found, programs, debug_info);
    let mut left = limits::TEXT;
    let named = |operation| {
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
    let all = found.operations.iter();
    let mut operations = all
        .clone()
        .map(named)
        .collect::<Result<Vec<_>, FileError>>()?;
    let tensors: FxHashSet<u32> = operations
        .iter()
        .filter(|operation| operation.is_tensor)
        .map(|operation| operation.group)
        .collect();
    for operation in &mut operations {
        operation.is_tensor = tensors.contains(&operation.group);
    }
    let with_pairs = all
        .filter(|operation| !operation.is_anonymous)
        .map(|operation| operation.path)
        .filter(|&path| !namer.paired_contexts[path].is_empty());
    Ok((operations, with_pairs.collect()))
}

/// Map from an operation in the body of an outlined function to the original operation that it
/// replaced, both as ids of debug contexts. Users know the name of the original operation.
type Pairs = FxHashMap<u64, u64>;

struct Namer<'a> {
    debug_info: &'a DebugInfo,
    layer: Option<SoftwareLayer>,
    programs: &'a Programs,
    /// One entry per debug context that was looked up: the pairs of operations that the context
    /// records, each an operation in an outlined function and the original that it replaced.
    pairs: FxHashMap<Position, Pairs>,
    /// One entry per call path (the Calls that lead to an operation): the debug contexts that
    /// record which original operations were replaced by operations of the called functions. There
    /// is at most one context per Call, in the order of the path, the outermost Call first.
    paired_contexts: Vec<Vec<Position>>,
}

impl<'a> Namer<'a> {
    fn new(found: &UnnamedOperations, programs: &'a Programs, debug_info: &'a DebugInfo) -> Self {
        let mut namer = Self {
            debug_info,
            layer: operation_layer(debug_info),
            programs,
            pairs: FxHashMap::default(),
            paired_contexts: vec![Vec::new()],
        };
        for &(outer, call) in &found.walk.paths.nodes {
            let mut contexts = namer.paired_contexts[outer].clone();
            contexts.extend(namer.paired_context(&contexts, call));
            namer.paired_contexts.push(contexts);
        }
        namer
    }

    /// Returns the debug context that records which original operations the body of an outlined
    /// function replaced at the place of `call`. (The compiler outlines code: one function replaces
    /// equal operations at several places of the model.) `enclosing` has the contexts that were
    /// found in this way for the Calls around `call`.
    ///
    /// - If a context in `enclosing` records that `call` replaced an original Call, the result is
    ///   the context of the original Call.
    /// - Otherwise, it is the first context that records replaced operations, from the context of
    ///   `call` up to the root.
    ///
    /// Returns `None` if there is no such context, or if it records no replaced operations.
    fn paired_context(&mut self, enclosing: &[Position], call: u32) -> Option<Position> {
        let chain: Vec<Position> = self
            .debug_info
            .chain(self.programs.all[call as usize].debug_id)
            .collect();
        let with_pairs = chain.iter().find(|&&context| self.has_pairs(context));
        let candidates = with_pairs.map_or(&chain[..], std::slice::from_ref);
        let replaced = enclosing.iter().rev().find_map(|context| {
            candidates
                .iter()
                .find_map(|&id| self.pairs[context].get(&self.debug_info.id(id)))
        });
        let context = match replaced {
            Some(&id) => self.debug_info.position(id),
            None => with_pairs.copied(),
        };
        context.filter(|&context| self.has_pairs(context))
    }

    /// Returns whether a debug context records which original operations were replaced by
    /// operations in the body of an outlined function.
    fn has_pairs(&mut self, context: Position) -> bool {
        let pairs = || {
            self.debug_info
                .outlined_pairs(context)
                .into_iter()
                .collect()
        };
        !self.pairs.entry(context).or_insert_with(pairs).is_empty()
    }

    fn operation(&self, operation: &UnnamedOperation) -> Operation {
        let context = operation.context;
        let text = |field| self.debug_info.text(context, field);
        let (instance, tensor) = (text(ContextField::InstanceId), text(ContextField::TensorId));
        let name = if operation.is_anonymous {
            ""
        } else {
            self.context_name(operation).unwrap_or("")
        };
        let is_plain = name.is_empty() || name == "Call";
        let (is_backward, is_update) = self.is_backward_or_update(context, name);
        Operation {
            group: operation.group,
            name: if is_plain {
                plain_name(name, instance, tensor).into()
            } else {
                name.into()
            },
            inputs: text(ContextField::Inputs)
                .unwrap_or("")
                .replace('.', "/")
                .into(),
            is_tensor: is_plain && tensor.is_some(),
            is_anonymous: operation.is_anonymous,
            is_backward,
            is_update,
            pass: Pass::default(),
            is_nested: operation.path != EMPTY_PATH,
            window: None,
            call: NO_CALL,
        }
    }

    /// Returns two values: whether the debug context or the name of an operation marks it as part
    /// of the backward pass, and whether they mark it as an update of weights (docs/model.md,
    /// "Passes").
    fn is_backward_or_update(&self, context: Position, name: &str) -> (bool, bool) {
        let text = |field| self.debug_info.text(context, field);
        match self.layer {
            Some(SoftwareLayer::Popart) => {
                let kind = op_type(text(ContextField::Opid).unwrap_or(""));
                let is_update = kind.ends_with("VarUpdate")
                    || text(ContextField::ExecutionContext) == Some(UPDATE_CONTEXT);
                let makes_gradients =
                    text(ContextField::Gradients).is_some_and(|made| !is_of_clipping(kind, made));
                (makes_gradients && !is_update, is_update)
            }
            // In TensorFlow, the name of an operation in the backward pass has the part `gradients`
            // or `gradient_tape`.
            Some(_) => {
                let is_gradient = |part| matches!(part, "gradients" | "gradient_tape");
                let is_backward = name.split('/').any(is_gradient);
                (is_backward, !is_backward && update_scope(name).is_some())
            }
            None => (false, false),
        }
    }

    /// Returns the name of an operation from its debug contexts; `None` if they have none. An
    /// operation in an outlined function replaced a different original operation for each call. If
    /// debug contexts of the Calls around it record the original (the innermost Call decides), the
    /// result is the name of the original.
    fn context_name(&self, operation: &UnnamedOperation) -> Option<&'a str> {
        let uid = self.debug_info.id(operation.context);
        let named_by = *self.paired_contexts[operation.path]
            .iter()
            .rev()
            .find_map(|context| self.pairs[context].get(&uid))
            .unwrap_or(&uid);
        let debug_info = self.debug_info;
        // Returns the first non-empty name in the debug contexts of a software layer, such as
        // PopTorch, from the context with id `named_by` up to the root.
        let first = |layer: SoftwareLayer| {
            debug_info
                .chain(named_by)
                .filter(|&context| debug_info.layer(context) == layer)
                .filter_map(|context| match layer {
                    SoftwareLayer::Popxl => Some(debug_info.name(context)),
                    SoftwareLayer::HloInstruction => {
                        debug_info.text(context, ContextField::HloName)
                    }
                    _ => debug_info.text(context, ContextField::OpName),
                })
                .find(|name| !name.is_empty())
        };
        match self.layer {
            Some(SoftwareLayer::Popart) => {
                let layers = [
                    SoftwareLayer::Poptorch,
                    SoftwareLayer::Onnx,
                    SoftwareLayer::Popxl,
                ];
                layers.into_iter().find_map(first).or_else(|| {
                    let context = debug_info.position(named_by)?;
                    let opid = debug_info.text(context, ContextField::Opid)?;
                    (op_type(opid) == "Call").then_some("Call")
                })
            }
            Some(layer) => first(layer),
            None => self.poplar_name(named_by, operation),
        }
    }

    fn poplar_name(&self, named_by: u64, operation: &UnnamedOperation) -> Option<&'a str> {
        let (debug_info, programs) = (self.debug_info, self.programs);
        let position = debug_info.position(named_by);
        let name = position.map(|p| debug_info.name(p));
        let api = position.and_then(|p| debug_info.text(p, ContextField::Api));
        let compute_sets = operation
            .programs
            .iter()
            .filter_map(|&program| Some(&*programs.compute_set(program)?.name));
        name.into_iter()
            .chain(api)
            .chain(compute_sets)
            .find(|name| !name.is_empty())
    }
}

/// Returns the beginning of a TensorFlow operation's name up to the part that marks an update of
/// weights, such as `Adam/update_dense`; `None` if no part marks an update. TensorFlow does not
/// guarantee that the names of updates have such parts.
pub fn update_scope(name: &str) -> Option<&str> {
    let is_mark = |part: &str| part.starts_with("update_") || part.starts_with("ResourceApply");
    let mut end = 0;
    name.split('/').find(|part| {
        end += part.len() + 1;
        is_mark(part)
    })?;
    Some(&name[..end - 1])
}

/// Returns whether the tensor `made` is a result of PopART's gradient clipping
/// (`ClipWeightGradientsByNorm`): the norm of one gradient, or a gradient scaled by the norm of all
/// gradients. Both are computed after the backward pass.
fn is_of_clipping(op_type: &str, made: &str) -> bool {
    let (base, number) = made.rsplit_once("__t").unwrap_or((made, ""));
    let end = match op_type {
        "ReduceSumSquare" => "_clipping",
        "Mul" => "_clipped",
        _ => return false,
    };
    base.ends_with(end) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an operation's name without the functions that JAX writes around modules:
/// `transpose(jvp(Net))/a/dot` is `Net/a/dot`.
pub fn unwrapped(name: &str) -> Cow<'_, str> {
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

/// Returns the operation's type in a PopART operation id: `Add` for `ai.onnx.Add:6`.
pub fn op_type(opid: &str) -> &str {
    let (path, _version) = opid.split_once(':').unwrap_or((opid, ""));
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}

/// Builds a name, such as `Call(3)` or `Tensor(1)/w`, for an operation that is a Call or has no
/// name of its own. The name begins with `name` or, if that is empty, with `Tensor` if there is a
/// tensor id, and otherwise with `Anonymous`. `instance` follows in parentheses, and the id
/// `tensor` after a slash; each is left out if it is `None`.
fn plain_name(name: &str, instance: Option<&str>, tensor: Option<&str>) -> String {
    let kind = match tensor {
        _ if !name.is_empty() => name,
        Some(_) => "Tensor",
        None => "Anonymous",
    };
    let instance = instance.map_or_else(String::new, |instance| format!("({instance})"));
    let tensor = tensor.map_or_else(String::new, |tensor| format!("/{tensor}"));
    format!("{kind}{instance}{tensor}")
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
