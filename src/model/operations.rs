//! Sorts programs into operations (docs/model.md, "Contexts and names" and "Operations"), and finds
//! which programs that own memory belong to none.

use super::walk::{Path, Walk, walk};
use crate::debug_info::{DebugInfo, Position, SoftwareLayer};
use crate::message::FileError;
use crate::profile::{Program, ProgramKind, Programs};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An operation of the model at one place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Group of the operation, as a position in
    /// [`Model::operation_groups`](super::Model::operation_groups).
    pub group: u32,
    /// Full name of the operation (docs/model.md, "Contexts and names").
    pub name: Box<str>,
    /// The inputs of its operation context, joined by `/`, every `.` read as `/`.
    pub inputs: Box<str>,
    /// Does the operation only make a tensor? Such an operation never has a layer.
    pub is_tensor: bool,
    /// Did the compiler create the operation, so that no context says its purpose (docs/model.md,
    /// "Contexts and names")?
    pub is_anonymous: bool,
    /// Is the operation part of the backward pass (docs/model.md, "Passes")?
    pub is_backward: bool,
    /// Does the operation update weights? By its name or, if no operation has such a name, by what
    /// it does.
    pub is_update: bool,
    /// The pass of the operation.
    pub pass: Pass,
    /// Is the operation in the body of a function?
    pub is_nested: bool,
    /// Index of its first and last step, both inclusive; `None` if no step runs it. A body that is
    /// listed under another call only has the steps there.
    pub window: Option<(u32, u32)>,
    /// The call that the operation is part of, as a position in [`Model::calls`](super::Model::calls), or
    /// [`NO_CALL`](super::NO_CALL).
    pub call: u32,
}

/// The pass that an operation belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pass {
    /// Before the start of the backward pass; everything in inference.
    #[default]
    Forward,
    /// From the start of the backward pass on.
    Backward,
    /// Update of weights.
    Update,
    /// Steps before and after the start of the backward pass: a body that is listed once for calls
    /// in both passes, or an operation that is recomputed for the backward pass.
    Both,
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

/// The operation context of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationContext {
    /// The context whose id is the uid of the operation.
    pub(super) position: Position,
    /// Did the compiler make the operation? Then the chain has no context of the operation layer,
    /// and the operation has no name of its own.
    pub(super) is_anonymous: bool,
}

/// The software layer whose contexts distinguish operations; `None` for plain Poplar.
pub(super) fn operation_layer(debug_info: &DebugInfo) -> Option<SoftwareLayer> {
    [
        SoftwareLayer::Popart,
        SoftwareLayer::XlaOp,
        SoftwareLayer::HloInstruction,
    ]
    .into_iter()
    .find(|&layer| debug_info.has_layer(layer))
}

/// Finds operation contexts by debug id, once for each id: many programs share one.
pub(super) struct OperationContexts<'a> {
    debug_info: &'a DebugInfo,
    layer: Option<SoftwareLayer>,
    found: FxHashMap<u64, Option<OperationContext>>,
}

impl<'a> OperationContexts<'a> {
    pub(super) fn new(debug_info: &'a DebugInfo) -> Self {
        Self {
            debug_info,
            layer: operation_layer(debug_info),
            found: FxHashMap::default(),
        }
    }

    /// The operation context of a program with this debug id; `None` for 0 and for ids that the
    /// file lacks.
    pub(super) fn of(&mut self, debug_id: u64) -> Option<OperationContext> {
        if let Some(&known) = self.found.get(&debug_id) {
            return known;
        }
        let context = self.find(debug_id);
        self.found.insert(debug_id, context);
        context
    }

    /// The id of a context.
    pub(super) fn id(&self, context: OperationContext) -> u64 {
        self.debug_info.id(context.position)
    }

    fn find(&self, debug_id: u64) -> Option<OperationContext> {
        let chain = || self.debug_info.chain(debug_id);
        let named = |position| OperationContext {
            position,
            is_anonymous: false,
        };
        let of_layer = |wanted| move |&p: &Position| self.debug_info.layer(p) == wanted;
        let Some(layer) = self.layer else {
            let outermost = chain().filter(of_layer(SoftwareLayer::Poplibs)).last();
            return outermost.or_else(|| chain().next()).map(named);
        };
        chain().find(of_layer(layer)).map(named).or_else(|| {
            Some(OperationContext {
                position: chain().last()?,
                is_anonymous: true,
            })
        })
    }
}

/// The operations of a program tree, without names.
pub(super) struct UnnamedOperations {
    pub(super) walk: Walk,
    /// By visit of the walk: its operation, or [`NO_OPERATION`].
    pub(super) operation_of: Vec<u32>,
    pub(super) operations: Vec<UnnamedOperation>,
    pub(super) groups: Vec<UnnamedGroup>,
}

/// Marks visits of programs that belong to no operation.
pub(super) const NO_OPERATION: u32 = u32::MAX;

/// An operation is identified by call path and operation context.
pub(super) struct UnnamedOperation {
    pub(super) path: Path,
    pub(super) context: OperationContext,
    /// Position in [`UnnamedOperations::groups`].
    pub(super) group: u32,
    /// Programs of the operation in the order of the walk, each once.
    pub(super) programs: Vec<u32>,
}

/// A group of operations, defined by the first operation of its uid.
pub(super) struct UnnamedGroup {
    pub(super) uid: u64,
    /// First operation of the group, as a position in [`UnnamedOperations::operations`].
    pub(super) first: u32,
    pub(super) programs: Vec<u32>,
}

/// Walks the tree and sorts its programs into operations, in the order of their first programs.
pub(super) fn find(
    programs: &Programs,
    mut contexts: OperationContexts<'_>,
) -> Result<UnnamedOperations, FileError> {
    let mut operations: Vec<UnnamedOperation> = Vec::new();
    let mut operation_of = Vec::new();
    let mut by_key = FxHashMap::default();
    let walk = walk(programs, |path, program| {
        let debug_id = programs.all[program as usize].debug_id;
        let Some(context) = contexts.of(debug_id) else {
            operation_of.push(NO_OPERATION);
            return;
        };
        let index = *by_key.entry((path, context.position)).or_insert_with(|| {
            operations.push(UnnamedOperation {
                path,
                context,
                group: 0,
                programs: Vec::new(),
            });
            operations.len() - 1
        });
        operations[index].programs.push(program);
        operation_of.push(index as u32);
    })?;
    let groups = share_groups(&mut operations, &contexts);
    Ok(UnnamedOperations {
        walk,
        operation_of,
        operations,
        groups,
    })
}

fn share_groups(
    operations: &mut [UnnamedOperation],
    contexts: &OperationContexts<'_>,
) -> Vec<UnnamedGroup> {
    let mut groups: Vec<UnnamedGroup> = Vec::new();
    let mut by_context = FxHashMap::default();
    for (number, operation) in operations.iter_mut().enumerate() {
        let group = by_context
            .entry(operation.context.position)
            .or_insert_with(|| {
                groups.push(UnnamedGroup {
                    uid: contexts.id(operation.context),
                    first: number as u32,
                    programs: operation.programs.clone(),
                });
                groups.len() as u32 - 1
            });
        operation.group = *group;
    }
    groups
}

/// A variable with fewer bytes on each tile is a number that several operations share, such as the
/// scale of all gradients.
pub(super) const NUMBER_BYTES: u64 = 16;

/// A program that owns code or state, and the operation that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedProgram {
    /// `programs.id`.
    pub id: u64,
    /// Kind of the program.
    pub kind: OwnedKind,
    /// The name of its compute set, or else of the program.
    pub name: Box<str>,
    /// Bytes over all tiles: vertex state of a compute set, code of an exchange.
    pub bytes: u64,
    /// Operation group of the program, as a position in
    /// [`Model::operation_groups`](super::Model); `None` if it belongs to no operation.
    pub group: Option<u32>,
}

/// The two kinds of programs that own memory besides control code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnedKind {
    /// Runs a compute set.
    OnTileExecute,
    /// Moves data between tiles.
    DoExchange,
}

/// All programs that own code or state, in the order of the profile.
pub(super) fn owned_programs(programs: &Programs, groups: &[UnnamedGroup]) -> Vec<OwnedProgram> {
    let mut group_of = vec![None; programs.all.len()];
    for (number, group) in (0u32..).zip(groups) {
        for &program in &group.programs {
            group_of[program as usize] = Some(number);
        }
    }
    let owned = programs
        .all
        .iter()
        .zip(group_of)
        .filter_map(|(program, group)| {
            let (kind, bytes) = match &program.kind {
                ProgramKind::OnTileExecute(set) => {
                    let set = &programs.compute_sets[*set as usize];
                    let state = set.vertices.iter().map(|(kind, instances)| {
                        let size = programs.vertex_types[*kind as usize].state_bytes;
                        instances.total().saturating_mul(u64::from(size))
                    });
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
        });
    owned.collect()
}

/// The name of a program's compute set, or else of the program.
pub(super) fn name_of<'p>(programs: &'p Programs, program: &'p Program) -> &'p str {
    match program.kind {
        ProgramKind::OnTileExecute(set) => &programs.compute_sets[set as usize].name,
        _ => &program.name,
    }
}
