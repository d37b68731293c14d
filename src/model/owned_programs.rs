//! Which programs belong to an operation, and which to none.

use super::operations::FoundGroup;
use crate::profile::{ProgramKind, Programs};
use serde::{Deserialize, Serialize};

/// A program that owns code or state, and the operation that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedProgram {
    /// `programs.id`.
    pub id: u64,
    /// What it runs.
    pub kind: OwnedKind,
    /// The name of its compute set, or its own.
    pub name: Box<str>,
    /// Bytes over all tiles: vertex state of a compute set, code of an exchange.
    pub bytes: u64,
    /// The operation group that it is part of, as a position in
    /// [`Model::operation_groups`](super::Model); `None` when no operation
    /// explains it.
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

/// All such programs, in the order of the profile.
pub(super) fn find(programs: &Programs, groups: &[FoundGroup]) -> Vec<OwnedProgram> {
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
            let (kind, name, bytes) = match &program.kind {
                ProgramKind::OnTileExecute(set) => {
                    let set = &programs.compute_sets[*set as usize];
                    let state = set.vertices.iter().map(|(kind, instances)| {
                        let size = programs.vertex_types[*kind as usize].state_bytes;
                        instances.total().saturating_mul(u64::from(size))
                    });
                    let bytes = state.fold(0, u64::saturating_add);
                    (OwnedKind::OnTileExecute, &set.name, bytes)
                }
                ProgramKind::DoExchange(code) => {
                    (OwnedKind::DoExchange, &program.name, code.total())
                }
                _ => return None,
            };
            let (id, name) = (program.id, name.clone());
            Some(OwnedProgram {
                id,
                kind,
                name,
                bytes,
                group,
            })
        });
    owned.collect()
}
