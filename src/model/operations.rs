//! Groups the programs of a profile into operations (docs/model.md, "Contexts and names" and
//! "Operations"), and lists the programs that have vertex state or exchange code.

use super::walk::{Path, Walk, walk};
use crate::{
    debug_info::{DebugInfo, Position, SoftwareLayer},
    message::FileError,
    profile::{Program, ProgramKind, Programs},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One operation of the model, such as a matrix multiplication, at one place in the program. If a
/// function is called twice, each operation in its body counts as two operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The operation's group (all operations with the same debug context), as an index into
    /// [`Model::operation_groups`](super::Model::operation_groups).
    pub group: u32,
    /// Full name of the operation from its debug contexts, such as `encoder/layer/0/MatMul`
    /// (docs/model.md, "Contexts and names").
    pub name: Box<str>,
    /// Names of the input tensors that the debug context records, joined by `/`, with each `.`
    /// replaced by `/`; empty if the context records none.
    pub inputs: Box<str>,
    /// Whether the operation only creates a tensor, such as a weight, and computes nothing. Such an
    /// operation never has a layer.
    pub is_tensor: bool,
    /// Whether the compiler created the operation, so that no context gives its name or purpose
    /// (docs/model.md, "Contexts and names").
    pub is_anonymous: bool,
    /// Whether the debug context or the name marks the operation as part of the backward pass
    /// (docs/model.md, "Passes").
    pub is_backward: bool,
    /// Whether the operation updates weights, judging by its name or debug context. If no operation
    /// of the model is marked as an update, the variables that operations use show the updates.
    pub is_update: bool,
    /// The pass of the training step in which the operation runs.
    pub pass: Pass,
    /// Whether the operation is in the body of a function, that is, below a Call in the program
    /// tree.
    pub is_nested: bool,
    /// The first and the last liveness step of the operation, both inclusive; `None` if it has no
    /// step. If the profile lists the steps of a function body separately for each call, only the
    /// steps of the call that this operation is part of are included.
    pub window: Option<(u32, u32)>,
    /// The function call that the operation is part of, as an index into
    /// [`Model::calls`](super::Model::calls); [`NO_CALL`](super::NO_CALL) if there is none.
    pub call: u32,
}

impl Operation {
    /// Returns whether the operation computes something and was named by the framework.
    pub(crate) fn is_named(&self) -> bool {
        !self.is_tensor && !self.is_anonymous
    }
}

/// The pass of a training step in which an operation runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pass {
    /// Forward pass: the operation ends before the start of the backward pass. In inference, all
    /// operations are in the forward pass.
    #[default]
    Forward,
    /// Backward pass: the operation begins at or after the start of the backward pass.
    Backward,
    /// Weight update: the operation belongs to the update of weights from gradients.
    Update,
    /// Forward and backward pass: the operation has steps before the start of the backward pass and
    /// steps after it. This happens if calls in both passes share the steps of one function body,
    /// or if the operation is recomputed for the backward pass.
    Both,
}

impl Pass {
    /// Returns whether operations of this pass run in the forward pass; those of
    /// [`Both`](Self::Both) do.
    pub(crate) fn is_forward(self) -> bool {
        matches!(self, Self::Forward | Self::Both)
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
            Pass::Update => "update",
            Pass::Both => "both",
        })
    }
}

/// Returns the software layer whose debug contexts define the operations: the first of PopART, XLA
/// and HLO that occurs in any context. Returns `None` for plain Poplar, where none of the three
/// occurs.
pub fn operation_layer(debug_info: &DebugInfo) -> Option<SoftwareLayer> {
    [
        SoftwareLayer::Popart,
        SoftwareLayer::XlaOp,
        SoftwareLayer::HloInstruction,
    ]
    .into_iter()
    .find(|&layer| debug_info.has_layer(layer))
}

/// Returns the debug context of the operation that a program belongs to (docs/model.md, "Contexts
/// and names"), and whether the compiler made the operation. The result is `None` if the program's
/// `debug_id` is 0 (no context) or missing in `debug.cbor`. `layer` is the software whose contexts
/// stand for operations, such as PopART; `None` if the model was written in plain Poplar.
fn operation_context(
    debug_info: &DebugInfo,
    layer: Option<SoftwareLayer>,
    debug_id: u64,
) -> Option<(Position, bool)> {
    let chain = || debug_info.chain(debug_id);
    let of_layer = |wanted| move |&p: &Position| debug_info.layer(p) == wanted;
    let named = match layer {
        Some(layer) => chain().find(of_layer(layer)),
        None => chain()
            .filter(of_layer(SoftwareLayer::Poplibs))
            .last()
            .or_else(|| chain().next()),
    };
    Some((named.or_else(|| chain().last())?, named.is_none()))
}

/// All operations before they get names, and the walk over the program tree that found them.
pub struct UnnamedOperations {
    pub walk: Walk,
    /// One entry per visit in the walk over the program tree: the operation of the visited program,
    /// as an index into `operations`; `None` if it belongs to no operation. A program is visited
    /// once for each sequence of Calls that leads to it.
    pub operation_of: Vec<Option<u32>>,
    pub operations: Vec<UnnamedOperation>,
    pub groups: Vec<UnnamedGroup>,
}

/// An operation that has no name yet. It is identified by the Calls that lead to its programs, and
/// by their debug context.
pub struct UnnamedOperation {
    pub path: Path,
    /// Position of the operation's debug context in [`DebugInfo`]. The id of the context identifies
    /// the operation.
    pub context: Position,
    /// Whether the compiler made the operation, so that no debug context of the framework gives it
    /// a name.
    pub is_anonymous: bool,
    pub group: u32,
    /// The distinct programs of the operation, as indices into `Programs::all`, in the order of the
    /// walk over the program tree.
    pub programs: Vec<u32>,
}

/// All operations with the same debug context (id `uid`), such as one operation in every call of a
/// function, before they get names. `first` is the index of the operation that the walk over the
/// program tree reaches first. `programs` has only the programs of that operation, since the others
/// run the same code and use the same variables.
pub struct UnnamedGroup {
    pub uid: u64,
    pub first: u32,
    pub programs: Vec<u32>,
}

/// Walks the program tree and assigns each program, separately for each sequence of Calls that
/// leads to it, to an operation by its debug context. Operations are in the order of their first
/// programs.
///
/// # Errors
/// If the program tree is cyclic, or has too many programs when all Calls are expanded.
pub fn find(programs: &Programs, debug_info: &DebugInfo) -> Result<UnnamedOperations, FileError> {
    let layer = operation_layer(debug_info);
    let walk = walk(programs)?;
    let mut operations: Vec<UnnamedOperation> = Vec::new();
    let mut groups: Vec<UnnamedGroup> = Vec::new();
    // Many programs may have the same debug id, so the operation context (the debug context of a
    // program's operation) is found only once for each id.
    let mut contexts = FxHashMap::default();
    let (mut by_key, mut by_context) = (FxHashMap::default(), FxHashMap::default());
    let operation_of = |&(path, program): &(Path, u32)| {
        let debug_id = programs.all[program as usize].debug_id;
        let found = *contexts
            .entry(debug_id)
            .or_insert_with(|| operation_context(debug_info, layer, debug_id));
        let (context, is_anonymous) = found?;
        let index = *by_key.entry((path, context)).or_insert_with(|| {
            let index = operations.len() as u32;
            operations.push(UnnamedOperation {
                path,
                context,
                is_anonymous,
                group: *by_context.entry(context).or_insert_with(|| {
                    groups.push(UnnamedGroup {
                        uid: debug_info.id(context),
                        first: index,
                        programs: Vec::new(),
                    });
                    groups.len() as u32 - 1
                }),
                programs: Vec::new(),
            });
            index
        });
        operations[index as usize].programs.push(program);
        Some(index)
    };
    let operation_of = walk.visits.iter().map(operation_of).collect();
    for group in &mut groups {
        group.programs = operations[group.first as usize].programs.clone();
    }
    Ok(UnnamedOperations {
        walk,
        operation_of,
        operations,
        groups,
    })
}

/// A program with memory besides control code (vertex state or exchange code), and the operation
/// group that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedProgram {
    /// The program's `id` in the table `programs` of the profile.
    pub id: u64,
    /// Whether the program runs a compute set or an exchange.
    pub kind: OwnedKind,
    /// The name of the compute set that the program runs; if the program is an exchange, its own
    /// name.
    pub name: Box<str>,
    /// Bytes over all tiles: of vertex state if the program runs a compute set, or of code if the
    /// program is an exchange.
    pub bytes: u64,
    /// The operation group of the program, as an index into
    /// [`Model::operation_groups`](super::Model); `None` if the program belongs to no operation.
    pub group: Option<u32>,
}

/// The two kinds of programs that have memory besides control code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnedKind {
    /// The program runs a compute set. Its memory is the state of the compute set's vertices.
    OnTileExecute,
    /// The program moves data between tiles, and its memory is the code of the exchange.
    DoExchange,
}

/// Lists all programs with vertex state or exchange code, in the order of the profile.
pub fn owned_programs(programs: &Programs, groups: &[UnnamedGroup]) -> Vec<OwnedProgram> {
    let mut group_of = vec![None; programs.all.len()];
    for (number, group) in (0u32..).zip(groups) {
        for &program in &group.programs {
            group_of[program as usize] = Some(number);
        }
    }
    programs
        .all
        .iter()
        .zip(group_of)
        .filter_map(|(program, group)| {
            let (kind, bytes) = match &program.kind {
                ProgramKind::OnTileExecute(set) => {
                    let state = programs
                        .states(&programs.compute_sets[*set as usize])
                        .map(|(instances, size)| instances.total().saturating_mul(size));
                    (OwnedKind::OnTileExecute, state.fold(0, u64::saturating_add))
                }
                ProgramKind::DoExchange(code) => (OwnedKind::DoExchange, code.total()),
                _ => return None,
            };
            Some(OwnedProgram {
                id: program.id,
                kind,
                name: name_of(programs, program).into(),
                bytes,
                group,
            })
        })
        .collect()
}

pub fn name_of<'p>(programs: &'p Programs, program: &'p Program) -> &'p str {
    let set = programs.set_of(program);
    set.map_or(&program.name, |set| &set.name)
}
