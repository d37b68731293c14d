//! Calls of functions that are called from several places.

use super::Operation;
use super::operations::UnnamedOperations;
use super::walk::Path;
use crate::profile::{Profile, ProgramKind};
use rustc_hash::FxHashMap;

/// Means no call.
pub const NO_CALL: u32 = u32::MAX;

/// All call paths, with those that end with a call of such a function.
pub(super) struct CallSites {
    /// The path, the one without its innermost Call, and the body of the function if it
    /// is called from several places.
    all: Vec<(Path, Path, Option<u32>)>,
}

impl CallSites {
    pub(super) fn new(profile: &Profile, found: &UnnamedOperations) -> Self {
        let function = |call: u32| match profile.programs.all[call as usize].kind {
            ProgramKind::Call(body) => body,
            _ => call,
        };
        let paths = || found.walk.paths.all();
        let mut callers: FxHashMap<u32, usize> = FxHashMap::default();
        for (_, _, call) in paths() {
            *callers.entry(function(call)).or_default() += 1;
        }
        let site = |(path, outer, call): (Path, Path, u32)| {
            let function = function(call);
            (path, outer, (callers[&function] > 1).then_some(function))
        };
        Self {
            all: paths().map(site).collect(),
        }
    }

    /// By call path: the outermost path on the way to it that ends with a call of such a
    /// function.
    pub(super) fn outermost(&self) -> Vec<Option<Path>> {
        let mut sites = vec![None];
        for &(path, outer, function) in &self.all {
            let called = function.map(|_| path);
            sites.push(sites[outer as usize].or(called));
        }
        sites
    }

    /// Gives each operation the innermost call that it is part of where no context says
    /// which operation stood there. `has_pairs` says of a call path whether contexts do.
    /// By call comes back the function: a number that all calls of it share.
    pub(super) fn unnamed(
        &self,
        found: &UnnamedOperations,
        has_pairs: impl Fn(Path) -> bool,
        operations: &mut [Operation],
    ) -> Vec<u32> {
        let mut calls = Vec::new();
        let mut call_of = vec![NO_CALL];
        for &(path, outer, function) in &self.all {
            call_of.push(match function {
                Some(function) if !has_pairs(path) => {
                    calls.push(function);
                    calls.len() as u32 - 1
                }
                _ => call_of[outer as usize],
            });
        }
        for (operation, unnamed) in operations.iter_mut().zip(&found.operations) {
            operation.call = call_of[unnamed.path as usize];
        }
        calls
    }
}
