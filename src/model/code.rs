//! Sums up the code and vertex state of operations on each tile, from which the memory for the code
//! of a pipeline stage is computed (docs/model.md, "Code").

use super::{operations::UnnamedGroup, use_sets::UseSetIndex};
use crate::{
    limits,
    message::{FileError, OVER_BOUND, PROFILE_AGAIN, unusable},
    profile::{ComputeSet, Profile, Program, ProgramKind, Programs, TileBytes},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of code and vertex state on each tile, for the programs of one operation group or of one
/// cluster (the programs of a group that use the same variables).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCode {
    /// The vertex types in the compute sets of the programs, as ascending indices into
    /// [`Model::vertex_code`](super::Model::vertex_code). Each type comes with a number per tile: 1
    /// if the tile has a vertex of this type, otherwise 0. How many vertices a tile has does not
    /// matter: it has the code of a vertex type only once.
    pub vertex_types: Vec<(u32, TileBytes)>,
    /// Bytes of vertex state, computed from the number of vertices and the state size of each
    /// vertex type, over all compute sets of the programs.
    pub vertex_state: TileBytes,
    /// Bytes of vertex state as the compiler recorded them, over all distinct compute sets of the
    /// programs. If the profile lacks them for any compute set, this field is a copy of
    /// `vertex_state`.
    pub vertex_memory: TileBytes,
    /// Bytes of code of exchanges between the tiles of an IPU, over all `DoExchange` programs.
    pub exchange_code: TileBytes,
    /// Bytes of control code of the programs that have no children in the program tree. The
    /// original tool counts control code in this way.
    pub control_code: TileBytes,
    /// Bytes of control code of all programs, where the code of a program does not include that of
    /// its children. The sum includes the code of loops, such as 24 bytes for a `Repeat`, which the
    /// original tool does not count.
    pub own_control_code: TileBytes,
}

impl GroupCode {
    pub(super) fn computes(&self) -> bool {
        !self.vertex_types.is_empty()
    }

    /// Sums up the bytes of code and vertex state of the distinct programs in `group`: all programs
    /// of one operation group (operations with one debug context), or those of one of its clusters
    /// (programs that use the same variables). `uid`, the id of the debug context, only appears in
    /// error messages.
    fn new<'p>(programs: &'p Programs, group: &[u32], uid: u64) -> Result<Self, FileError> {
        let compute_sets = || {
            group
                .iter()
                .filter_map(|&program| programs.compute_set(program))
        };
        let group = group.iter().map(|&program| &programs.all[program as usize]);
        let exchanges = group.clone().filter_map(|program| match &program.kind {
            ProgramKind::DoExchange(code) => Some((code, 1)),
            _ => None,
        });
        let control = |program: &'p Program| (&program.control_code, 1);
        let without_children = group.clone().filter(|program| program.children.is_empty());
        let states = compute_sets().flat_map(|set| programs.states(set));
        let sum = |what, parts: Vec<(&TileBytes, u64)>| {
            TileBytes::sum(parts).map_err(|tile| {
                FileError::new(format!(
                    "the {what} of one operation (debug context {uid}) adds up to more than 4 GiB \
                     on tile {tile}; {PROFILE_AGAIN}"
                ))
            })
        };
        let vertex_state = sum("vertex state", states.collect())?;
        let vertex_memory = match exact(compute_sets()) {
            Some(sets) => sum("vertex state", sets)?,
            None => vertex_state.clone(),
        };
        Ok(Self {
            vertex_types: instantiated(compute_sets()),
            vertex_state,
            vertex_memory,
            exchange_code: sum("exchange code", exchanges.collect())?,
            control_code: sum("control code", without_children.map(control).collect())?,
            own_control_code: sum("control code", group.map(control).collect())?,
        })
    }

    pub(crate) fn all_bytes(&self) -> impl Iterator<Item = &TileBytes> {
        self.vertex_types.iter().map(|(_, tiles)| tiles).chain([
            &self.vertex_state,
            &self.vertex_memory,
            &self.exchange_code,
            &self.control_code,
            &self.own_control_code,
        ])
    }
}

/// An operation group: all operations with the same debug context, such as one operation in a
/// function that is called several times. All operations of a group share the code of the first one
/// (docs/model.md, "Operations").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationGroup {
    /// The id of the debug context that all operations of the group have.
    pub uid: u64,
    /// The first and the last liveness step (both inclusive) of the first operation of this
    /// operation group; `None` if that operation has no step.
    pub window: Option<(u32, u32)>,
    /// Bytes of code and vertex state, on each tile, of the first operation of the group. All
    /// operations of the group (operations with one debug context) run this code.
    pub code: GroupCode,
    /// The liveness steps at which programs of the operation group copy from or to the host,
    /// ascending.
    pub host_copies: Vec<u32>,
    /// The clusters of the group's programs. Programs form a cluster if they use variables with the
    /// same users (operation groups). Empty if all programs would form a single cluster.
    pub clusters: Vec<ProgramCluster>,
}

impl OperationGroup {
    /// Returns whether the operation group only copies from or to the host and computes nothing.
    pub fn only_streams(&self) -> bool {
        !self.host_copies.is_empty() && !self.computes()
    }

    /// Returns whether the operation group runs vertices; otherwise it only moves data.
    pub fn computes(&self) -> bool {
        self.code.computes()
    }
}

/// Number of operation groups whose code is summed up in parallel before its size is checked
/// against the [`Budget`]. The larger this number, the more the size may exceed the budget.
const AT_ONCE: usize = 16;

/// Sums up the code of each operation group, or of each cluster (the programs of a group that use
/// the same variables). Each item of `groups` has the id of the group's debug context and the
/// distinct indices of the programs. The memory of all results counts against `budget`, so that a
/// damaged profile cannot exhaust memory.
pub fn of_all<'p>(
    programs: &Programs,
    groups: impl Iterator<Item = (u64, &'p Vec<u32>)>,
    budget: &mut Budget,
) -> Result<Vec<GroupCode>, FileError> {
    let groups: Vec<_> = groups.collect();
    let mut codes = Vec::with_capacity(groups.len());
    for groups in groups.chunks(AT_ONCE) {
        let code = |&(uid, group): &(u64, &Vec<u32>)| GroupCode::new(programs, group, uid);
        for code in groups.par_iter().map(code).collect::<Vec<_>>() {
            let code = code?;
            budget.take(&code)?;
            codes.push(code);
        }
    }
    Ok(codes)
}

/// A cluster: programs of one operation group that use variables of the same use sets. A use set is
/// the set of operation groups that use a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCluster {
    /// The use sets of the variables that each program of the cluster uses, ascending. A use set is
    /// the set of operation groups that use a variable.
    pub sets: Box<[u32]>,
    /// Bytes of code and vertex state, on each tile, of the programs of the cluster (the programs
    /// of an operation group that use the same variables).
    pub code: GroupCode,
}

/// One entry per program of the profile: the cluster of the program (the programs of an operation
/// group that use the same variables), as an index within its group; `None` if the group has no
/// clusters.
pub type ClusterOf = Vec<Option<u32>>;

/// Divides the programs of each operation group into clusters. Programs are in the same cluster if
/// their variables have the same use sets (the operation groups that use a variable). Returns the
/// clusters of each group (none if there would be only one), and the cluster of each program of the
/// profile.
pub fn clusters(
    profile: &Profile,
    groups: &[UnnamedGroup],
    use_set_index: &UseSetIndex,
    budget: &mut Budget,
) -> Result<(Vec<Vec<ProgramCluster>>, ClusterOf), FileError> {
    let programs = &profile.programs;
    let split = |group: &UnnamedGroup| {
        let mut split = ProgramsBySets::new();
        for &program in &group.programs {
            let sets = use_set_index.of_program(profile, program);
            split.entry(sets.into()).or_default().push(program);
        }
        if split.len() < 2 {
            split.clear();
        }
        split
    };
    let split: Vec<ProgramsBySets> = groups.par_iter().map(split).collect();
    let max = limits::SETS_OF_CLUSTERS.of(programs.all.len());
    let sets = split.iter().flat_map(ProgramsBySets::keys);
    if sets.map(|sets| sets.len()).sum::<usize>() > max {
        return unusable(format!(
            "table `compute_sets` or `exchange_regions`: programs use more than {max} different \
             groups of variables together, more than in any real model; {OVER_BOUND}"
        ));
    }
    let mut cluster_of = vec![None; programs.all.len()];
    for (number, programs) in split.iter().flat_map(|split| (0..).zip(split.values())) {
        for &program in programs {
            cluster_of[program as usize] = Some(number);
        }
    }
    let clusters = groups
        .iter()
        .zip(&split)
        .flat_map(|(group, split)| split.values().map(|all| (group.uid, all)));
    let mut codes = of_all(programs, clusters, budget)?.into_iter();
    let cluster = |(sets, code)| ProgramCluster { sets, code };
    let found = split
        .into_iter()
        .map(|split| split.into_keys().zip(&mut codes).map(cluster).collect());
    Ok((found.collect(), cluster_of))
}

/// Map from a list of use sets (ascending) to the programs of one operation group whose variables
/// have exactly these use sets. A use set is the set of operation groups that use a variable.
type ProgramsBySets = BTreeMap<Box<[u32]>, Vec<u32>>;

/// A limit on the memory that PopLiner takes to store the code of all operation groups and clusters
/// (programs that use the same variables), so that a damaged profile cannot exhaust memory. It is a
/// number of runs, that is, of series of consecutive tiles with equally many bytes.
pub struct Budget {
    max: usize,
    left: usize,
}

impl Budget {
    pub fn new(programs: &Programs) -> Self {
        let control = programs.all.iter().map(|program| &program.control_code);
        let sets = programs.compute_sets.iter();
        let vertices = sets.clone().flat_map(|set| &set.vertices).map(|(_, n)| n);
        let exact = sets.filter_map(|set| set.memory.as_ref());
        let max = limits::CODE_RUNS.of(runs(control.chain(vertices).chain(exact)));
        Self { max, left: max }
    }

    fn take(&mut self, code: &GroupCode) -> Result<(), FileError> {
        self.left = self
            .left
            .checked_sub(runs(code.all_bytes()))
            .ok_or_else(|| {
                FileError::new(format!(
                    "table `programs`, column `variant_index`: the code of operations changes from \
                 tile to tile more than {} times, which takes more rows than the profile has; \
                 {OVER_BOUND}",
                    self.max
                ))
            })?;
        Ok(())
    }
}

fn runs<'a>(all: impl Iterator<Item = &'a TileBytes>) -> usize {
    all.map(|bytes| bytes.runs().len()).sum()
}

/// Returns the bytes of vertex state that the compiler recorded for each distinct compute set;
/// `None` if the profile lacks them for any of these sets. Each item is paired with 1, because
/// [`TileBytes::sum`] takes pairs of bytes and a factor.
fn exact<'a>(
    compute_sets: impl Iterator<Item = &'a ComputeSet>,
) -> Option<Vec<(&'a TileBytes, u64)>> {
    let by_id: BTreeMap<u64, &ComputeSet> = compute_sets.map(|set| (set.id, set)).collect();
    let memory = |set: &'a ComputeSet| Some((set.memory.as_ref()?, 1));
    by_id.into_values().map(memory).collect()
}

/// Returns the vertex types of `compute_sets`, ascending. Each type comes with a number per tile: 1
/// if the tile has a vertex of this type, otherwise 0. How many vertices a tile has does not
/// matter: it has the code of a vertex type only once.
fn instantiated<'a>(compute_sets: impl Iterator<Item = &'a ComputeSet>) -> Vec<(u32, TileBytes)> {
    let mut by_type: BTreeMap<u32, Vec<&TileBytes>> = BTreeMap::new();
    for (vertex_type, instances) in compute_sets.flat_map(|set| &set.vertices) {
        by_type.entry(*vertex_type).or_default().push(instances);
    }
    by_type
        .into_iter()
        .map(|(kind, instances)| (kind, TileBytes::where_any(instances)))
        .filter(|(_, tiles)| !tiles.runs().is_empty())
        .collect()
}
