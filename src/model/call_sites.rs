//! Calls of functions that are called from several places.

use super::operations::{Found, NO_OPERATION};
use super::variables::members;
use super::walk::Path;
use super::{Operation, UserSets};
use crate::profile::{Profile, ProgramKind};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A call of a function that is called from several places, where no context
/// says which operation stood there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSite {
    /// The call that it is within, as a position in [`Model::calls`], or
    /// [`NO_CALL`].
    ///
    /// [`Model::calls`]: super::Model::calls
    pub outer: u32,
    /// The operation that the Call program belongs to.
    pub operation: Option<u32>,
    /// A number that all calls of the function share.
    pub function: u32,
    /// The user sets of the variables that the programs around the call
    /// copy into its arguments and out of its results, ascending.
    pub around: Box<[u32]>,
}

/// Means no call.
pub const NO_CALL: u32 = u32::MAX;

/// How many programs on each side of a call may belong to it.
const MAX_AROUND: usize = 16;

/// Finds the calls, and gives each operation the one that it is part of.
/// `has_pairs` says of a call path whether contexts tell what its operations
/// replace.
pub(super) fn find(
    profile: &Profile,
    found: &Found,
    (set_of, user_sets): (&[u32], &UserSets),
    has_pairs: impl FnMut(Path) -> bool,
    operations: &mut [Operation],
) -> Vec<CallSite> {
    let (sites, site_of) = sites(profile, found, has_pairs);
    let mut functions_of: FxHashMap<u32, u32> = FxHashMap::default();
    for (operation, own) in operations.iter_mut().zip(&found.operations) {
        if let Some(&site) = site_of.get(&own.path) {
            operation.call = site;
            functions_of.insert(own.group, sites[site as usize].1.function);
        }
    }
    let around = Around {
        profile,
        set_of,
        user_sets,
        functions_of,
        parents: parents(profile),
    };
    let with_around = |(call, mut site): (u32, CallSite)| {
        site.around = around.find(call, site.function);
        site
    };
    sites.into_iter().map(with_around).collect()
}

/// The calls with the Call program of each, without what is around them; and by
/// call path the innermost of them that it leads through.
fn sites(
    profile: &Profile,
    found: &Found,
    mut has_pairs: impl FnMut(Path) -> bool,
) -> (Vec<(u32, CallSite)>, FxHashMap<Path, u32>) {
    let mut callers: FxHashMap<u32, usize> = FxHashMap::default();
    for (_, _, call) in found.walk.paths.all() {
        *callers.entry(function(profile, call)).or_default() += 1;
    }
    let mut site_of: FxHashMap<Path, u32> = FxHashMap::default();
    let mut sites: Vec<(u32, CallSite)> = Vec::new();
    for (path, outer_path, call) in found.walk.paths.all() {
        let function = function(profile, call);
        let outer = site_of.get(&outer_path).copied();
        if callers[&function] < 2 || has_pairs(path) {
            site_of.extend(outer.map(|outer| (path, outer)));
            continue;
        }
        let visit = found.walk.visit(outer_path, call);
        let operation = visit.map(|visit| found.operation_of[visit as usize]);
        let site = CallSite {
            outer: outer.unwrap_or(NO_CALL),
            operation: operation.filter(|&operation| operation != NO_OPERATION),
            function,
            around: Box::default(),
        };
        site_of.insert(path, sites.len() as u32);
        sites.push((call, site));
    }
    (sites, site_of)
}

/// The body of the function that a Call runs.
fn function(profile: &Profile, call: u32) -> u32 {
    match profile.programs.all[call as usize].kind {
        ProgramKind::Call(body) => body,
        _ => call,
    }
}

/// By Call program: a program that it is a child of, and its place there.
fn parents(profile: &Profile) -> FxHashMap<u32, (u32, usize)> {
    let all = &profile.programs.all;
    let mut parents = FxHashMap::default();
    for (parent, program) in (0u32..).zip(all) {
        for (place, &child) in program.children.iter().enumerate() {
            if matches!(all[child as usize].kind, ProgramKind::Call(_)) {
                parents.entry(child).or_insert((parent, place));
            }
        }
    }
    parents
}

/// Finds what is copied in and out around a call.
struct Around<'a> {
    profile: &'a Profile,
    set_of: &'a [u32],
    user_sets: &'a UserSets,
    /// By operation group that is part of such a function: the function.
    functions_of: FxHashMap<u32, u32>,
    parents: FxHashMap<u32, (u32, usize)>,
}

impl Around<'_> {
    /// The sets of what is copied, but for the arguments and results
    /// themselves, which all calls share.
    fn find(&self, call: u32, function: u32) -> Box<[u32]> {
        let Some(&(parent, place)) = self.parents.get(&call) else {
            return Box::default();
        };
        let siblings = &self.profile.programs.all[parent as usize].children;
        let before = siblings[..place].iter().rev();
        let after = siblings[place + 1..].iter();
        let mut sets = self.copies(before, function);
        sets.extend(self.copies(after, function));
        sets.sort_unstable();
        sets.dedup();
        sets.into()
    }

    /// What the nearest programs use, as long as each uses something of the
    /// function, or nothing at all.
    fn copies<'p>(&self, programs: impl Iterator<Item = &'p u32>, function: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for &program in programs.take(MAX_AROUND) {
            let leaves = self.leaves(program);
            let kind = |&leaf: &u32| &self.profile.programs.all[leaf as usize].kind;
            let is_call = leaves
                .iter()
                .any(|leaf| matches!(kind(leaf), ProgramKind::Call(_)));
            let used = members(self.profile, &leaves).into_iter().flatten();
            let mut sets: Vec<u32> = used.map(|&v| self.set_of[v as usize]).collect();
            sets.sort_unstable();
            sets.dedup();
            let (own, others): (Vec<u32>, Vec<u32>) =
                sets.iter().partition(|&&set| self.is_of(set, function));
            if is_call || (own.is_empty() && !sets.is_empty()) {
                break;
            }
            found.extend(others);
        }
        found
    }

    /// A program, or what it consists of where that is not much.
    fn leaves(&self, program: u32) -> Vec<u32> {
        let mut leaves = Vec::new();
        let mut open = vec![program];
        while let Some(program) = open.pop() {
            let children = &self.profile.programs.all[program as usize].children;
            if children.is_empty() {
                leaves.push(program);
            }
            if open.len() + leaves.len() + children.len() > MAX_AROUND {
                return Vec::new();
            }
            open.extend(children.iter());
        }
        leaves
    }

    /// Does the function use variables of this user set?
    fn is_of(&self, set: u32, function: u32) -> bool {
        let mut groups = self.user_sets.groups(set);
        groups.any(|group| self.functions_of.get(&group) == Some(&function))
    }
}
