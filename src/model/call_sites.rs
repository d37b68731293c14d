//! Calls of functions that have several call sites.

use super::Operation;
use super::operations::UnnamedOperations;
use super::walk::Path;
use crate::profile::{Profile, ProgramKind};
use rustc_hash::FxHashMap;

/// Marks an operation that is part of no call.
pub const NO_CALL: u32 = u32::MAX;

/// All call paths, with the function that each calls if it has several call sites.
pub(super) struct CallSites {
    /// The path, the path without its innermost Call, and the body of the function if it has
    /// several call sites.
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

    /// By call path: the outermost path on the way to it that ends with a call of a function with
    /// several call sites.
    pub(super) fn outermost(&self) -> Vec<Option<Path>> {
        let mut sites = vec![None];
        for &(path, outer, function) in &self.all {
            let called = function.map(|_| path);
            sites.push(sites[outer as usize].or(called));
        }
        sites
    }

    /// Gives each operation the innermost call that it is part of, where contexts do not say which
    /// operation the call replaced; `has_pairs` says of a call path whether they do. Returns the
    /// function by call: a number that all calls of it share.
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
