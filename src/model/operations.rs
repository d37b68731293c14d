//! Sorts programs into operations (docs/model.md, "Operations"), and finds which programs that own
//! memory belong to none.

use super::ModelError;
use super::contexts::{OperationContext, OperationContexts};
use super::walk::{Path, Walk, walk};
use crate::profile::{Program, ProgramKind, Programs};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

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
) -> Result<UnnamedOperations, ModelError> {
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
