//! Bytes, on each tile, of the code and vertex state of operation groups and of clusters. A cluster
//! has the programs of a group that use the same variables (docs/model.md, "Code").

use super::operations::UnnamedGroup;
use super::use_sets::UseSetIndex;
use crate::limits;
use crate::message::{FileError, OVER_BOUND, PROFILE_AGAIN};
use crate::profile::{ComputeSet, Profile, Program, ProgramKind, Programs, Target, TileBytes};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of code and vertex state of the programs of an operation group or cluster, on each tile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCode {
    /// The vertex types that the compute sets of the programs instantiate, as ascending indices
    /// into [`Model::vertex_code`](super::Model::vertex_code). Each index comes with 1 on the tiles
    /// that have an instance and 0 on all other tiles, since a pipeline stage has the code of a
    /// vertex type only once.
    pub vertex_types: Vec<(u32, TileBytes)>,
    /// Bytes of vertex state: for each vertex type, the number of its instances times its state
    /// size, over all compute sets of the programs.
    pub vertex_state: TileBytes,
    /// Bytes of vertex state that the compiler recorded, summed over all distinct compute sets of
    /// the programs. Equal to `vertex_state` if the profile does not record these bytes for one of
    /// the compute sets.
    pub vertex_memory: TileBytes,
    /// Bytes of code of exchanges between the tiles of an IPU, over all `DoExchange` programs.
    pub exchange_code: TileBytes,
    /// Bytes of control code, over all programs that have no children in the program tree.
    pub control_code: TileBytes,
    /// Bytes of control code, summed over all programs, where the code of a program does not
    /// include that of its children. The sum includes the code of loops, such as 24 bytes for a
    /// `Repeat`, which the original tool does not count.
    pub own_control_code: TileBytes,
}

impl GroupCode {
    /// Sums up the code of one operation group or cluster. `group` has the distinct indices of its
    /// programs. `uid` is the id of the group's debug context, for error messages.
    ///
    /// # Errors
    /// If a sum exceeds 4 GiB on a tile.
    fn new<'p>(
        programs: &'p Programs,
        group: &[u32],
        uid: u64,
        target: &Target,
    ) -> Result<Self, FileError> {
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
        let states = compute_sets().flat_map(|set| states(programs, set));
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
            Some(sets) => sum(
                "vertex state",
                sets.into_iter().map(|set| (set, 1)).collect(),
            )?,
            None => vertex_state.clone(),
        };
        Ok(Self {
            vertex_types: instantiated(compute_sets(), target.num_tiles),
            vertex_state,
            vertex_memory,
            exchange_code: sum("exchange code", exchanges.collect())?,
            control_code: sum("control code", without_children.map(control).collect())?,
            own_control_code: sum("control code", group.map(control).collect())?,
        })
    }

    /// Iterates over the lists of bytes on each tile in all fields.
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

/// All operations with one debug context, with their code and vertex state. The operations share
/// this code: the programs of the group are those of its first operation in the walk over the
/// program tree (docs/model.md, "Operations").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationGroup {
    /// The id of the debug context that all operations of the group have.
    pub uid: u64,
    /// The first and the last step of the first operation of the group, both inclusive; `None` if
    /// this operation has no step.
    pub window: Option<(u32, u32)>,
    /// Bytes of code and vertex state of the group's programs, on each tile.
    pub code: GroupCode,
    /// The liveness steps at which programs of the group copy from or to the host, ascending.
    pub host_copies: Vec<u32>,
    /// The programs of the group, divided into clusters of programs that use variables of the same
    /// use sets. Empty if there would be only one cluster.
    pub clusters: Vec<ProgramCluster>,
}

impl OperationGroup {
    /// Returns whether the operation group copies from or to the host and computes nothing.
    pub fn only_streams(&self) -> bool {
        !self.host_copies.is_empty() && !self.computes()
    }

    /// Returns whether the operation group runs vertices; otherwise it only moves data.
    pub fn computes(&self) -> bool {
        !self.code.vertex_types.is_empty()
    }
}

/// Number of operation groups whose code is summed up in parallel between two checks of the
/// [`Budget`]. With a larger number, the code could exceed the budget by far before it is checked.
const AT_ONCE: usize = 16;

/// Computes the code of operation groups or clusters. Each entry of `groups` has the id of a debug
/// context and distinct indices of programs. Returns one entry per entry of `groups`, in the same
/// order, and subtracts the size of these results from `budget`.
///
/// # Errors
/// If a sum exceeds 4 GiB on a tile, or all code together exceeds `budget`.
pub fn of_all(
    programs: &Programs,
    groups: &[(u64, &[u32])],
    target: &Target,
    budget: &mut Budget,
) -> Result<Vec<GroupCode>, FileError> {
    let mut codes = Vec::with_capacity(groups.len());
    for groups in groups.chunks(AT_ONCE) {
        let code = |&(uid, group): &(u64, &[u32])| GroupCode::new(programs, group, uid, target);
        let found: Vec<Result<_, _>> = groups.par_iter().map(code).collect();
        for code in found {
            let code = code?;
            budget.take(&code)?;
            codes.push(code);
        }
    }
    Ok(codes)
}

/// A cluster: the programs of one operation group that use variables of the same use sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCluster {
    /// The use sets of the variables that the programs of the cluster use, ascending.
    pub sets: Box<[u32]>,
    /// Bytes of code and vertex state of the cluster's programs, on each tile.
    pub code: GroupCode,
}

/// Used in place of the index of a cluster for a program that is in no cluster.
pub const NO_CLUSTER: u32 = u32::MAX;

/// Divides the programs of each operation group into clusters of programs that use variables of the
/// same use sets. Returns two lists: one entry per group, with its clusters (none if all its
/// programs use the same use sets), and one entry per program of the profile, with the index of its
/// cluster in its group, or [`NO_CLUSTER`]. Subtracts the size of the clusters' code from `budget`.
///
/// # Errors
/// If all clusters together have more use sets than [`limits::SETS_OF_CLUSTERS`], or if [`of_all`]
/// fails.
pub fn clusters(
    profile: &Profile,
    groups: &[UnnamedGroup],
    use_set_index: &UseSetIndex,
    budget: &mut Budget,
) -> Result<(Vec<Vec<ProgramCluster>>, Vec<u32>), FileError> {
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
        return Err(FileError::new(format!(
            "table `compute_sets` or `exchange_regions`: programs use more than {max} different \
             groups of variables together, more than in any real model; {OVER_BOUND}"
        )));
    }
    let mut cluster_of = vec![NO_CLUSTER; programs.all.len()];
    for (number, programs) in split.iter().flat_map(|split| (0..).zip(split.values())) {
        for &program in programs {
            cluster_of[program as usize] = number;
        }
    }
    let clusters: Vec<(u64, &[u32])> = groups
        .iter()
        .zip(&split)
        .flat_map(|(group, split)| split.values().map(|all| (group.uid, &all[..])))
        .collect();
    let mut codes = of_all(programs, &clusters, &profile.target, budget)?.into_iter();
    let cluster = |(sets, code)| ProgramCluster { sets, code };
    let found = split
        .into_iter()
        .map(|split| split.into_keys().zip(&mut codes).map(cluster).collect());
    Ok((found.collect(), cluster_of))
}

/// The programs of one operation group. A key is the use sets (ascending) of the variables that a
/// program uses, and the value has the indices of the programs that use them.
type ProgramsBySets = BTreeMap<Box<[u32]>, Vec<u32>>;

/// A bound on the size of the code of all operation groups and clusters, counted in runs. A run is
/// a series of consecutive tiles with equally many bytes. `left` is the number of runs that may
/// still be added.
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

/// Iterates over the vertex types of `set`. Each item has the number of instances of a vertex type
/// on each tile, and the bytes of state of one instance.
pub fn states<'a>(
    programs: &'a Programs,
    set: &'a ComputeSet,
) -> impl Iterator<Item = (&'a TileBytes, u64)> {
    set.vertices.iter().map(|(kind, instances)| {
        let size = programs.vertex_types[*kind as usize].state_bytes;
        (instances, u64::from(size))
    })
}

fn runs<'a>(all: impl Iterator<Item = &'a TileBytes>) -> usize {
    all.map(|bytes| bytes.runs().len()).sum()
}

/// Returns one entry per distinct compute set in `compute_sets`: the bytes of its vertex state on
/// each tile, as the profile records them. Returns `None` if the profile does not record these
/// bytes for one of the compute sets.
fn exact<'a>(compute_sets: impl Iterator<Item = &'a ComputeSet>) -> Option<Vec<&'a TileBytes>> {
    let mut sets: Vec<&ComputeSet> = compute_sets.collect();
    sets.sort_unstable_by_key(|set| set.id);
    sets.dedup_by_key(|set| set.id);
    sets.into_iter().map(|set| set.memory.as_ref()).collect()
}

/// Returns the vertex types (ascending) that have an instance in any of `compute_sets`. Each type
/// comes with 1 on the tiles that have an instance, and 0 on all other tiles.
fn instantiated<'a>(
    compute_sets: impl Iterator<Item = &'a ComputeSet>,
    tiles: u32,
) -> Vec<(u32, TileBytes)> {
    let mut by_type: BTreeMap<u32, Vec<&TileBytes>> = BTreeMap::new();
    for (vertex_type, instances) in compute_sets.flat_map(|set| &set.vertices) {
        by_type.entry(*vertex_type).or_default().push(instances);
    }
    // Only one list by tile exists at a time.
    let on_any = |instances: Vec<&TileBytes>| {
        let mut any = vec![0; tiles as usize];
        for run in instances.iter().flat_map(|own| own.runs()) {
            any[run.from as usize..run.to as usize].fill(1);
        }
        any.into_iter().collect::<TileBytes>()
    };
    by_type
        .into_iter()
        .map(|(kind, instances)| (kind, on_any(instances)))
        .filter(|(_, tiles)| !tiles.runs().is_empty())
        .collect()
}
