//! Finds the modules whose calls begin or end where a position (In, a layer or Out) begins or ends.
//! They show where a split belongs in the model's code.

use super::{
    ModuleLayers,
    paths::{ModulePath, shared},
};
use crate::model::lists::counts;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, ops::Range};

/// The modules of the model's code that are called by one position (In, a layer or Out), as paths
/// such as `bert.encoder.layer.3`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModuleCalls {
    /// The module whose call begins first in the position (In, a layer or Out); `null` if no call
    /// begins there. Modules that do not run as often as the position are ignored. Of several calls
    /// that begin at the same operation, the outermost that also ends in the position is taken or,
    /// if there is none, the innermost.
    pub begin: Option<String>,
    /// The innermost module whose call begins at the same operation as the call of the module
    /// `begin`: that module itself or a module inside it; `null` if `begin` is `null`.
    pub leaf: Option<String>,
    /// Number of operations that run in the position (In, a layer or Out) before it calls the
    /// module `begin`; 0 if `begin` is `null`.
    pub operations_before: u32,
    /// The innermost module that was called before the position (In, a layer or Out) and is still
    /// running when the position starts; `null` if there is none.
    pub inside: Option<String>,
    /// The module whose output is the output of the position (In, a layer or Out); `null` if the
    /// position ends inside a module.
    pub output: Option<String>,
    /// The names of the Keras layers (the modules directly below the model) that the position (In,
    /// a layer or Out) calls, in execution order. Empty for other frameworks.
    pub top: Vec<String>,
}

/// The modules that are being called while each operation of the forward pass runs, the outermost
/// first. They show where a split belongs in the model's code.
#[derive(Debug, Default)]
pub struct Calls {
    of_operations: Vec<Vec<usize>>,
    /// One entry per module: its path in the model's code; empty if names do not show this path for
    /// certain.
    paths: Vec<String>,
    /// One entry per module: how often the module runs in the forward pass. A run is a series of
    /// consecutive operations that the module calls.
    runs: Vec<usize>,
    /// The model itself, as an index into `paths`: the outermost module of most operations.
    root: Option<usize>,
}

impl Calls {
    pub fn new(paths: &[ModulePath<'_>]) -> Self {
        let mut calls = Self::default();
        let mut numbers: FxHashMap<(&str, bool), usize> = FxHashMap::default();
        // Map from the name of a module to its path, for modules that are called from outside the
        // module that contains them, such as an embedding that encoder and decoder share. Only the
        // first operation that uses a parameter of the module reveals the path, so later calls of
        // the module find it here.
        let owners: FxHashMap<&str, &str> = paths
            .iter()
            .filter_map(|path| path.elsewhere)
            .map(|owner| (owner.rsplit('.').next().unwrap_or(owner), owner))
            .collect();
        for (operation, path) in paths.iter().enumerate() {
            let mut called = Vec::new();
            let mut begin = 0;
            for (depth, &end) in (1..).zip(&path.ends) {
                let name = path.text[begin..end].trim_start_matches(['/', '.']);
                begin = end;
                let elsewhere = owners.get(name).copied().filter(|_| depth > path.aligned);
                let own = elsewhere.unwrap_or(&path.text[..end]);
                let is_certain = elsewhere.is_some() || depth <= path.certain;
                called.push(*numbers.entry((own, is_certain)).or_insert_with(|| {
                    let known = if is_certain { own } else { "" };
                    calls.paths.push(known.replace('/', "."));
                    calls.runs.push(0);
                    calls.runs.len() - 1
                }));
            }
            for &module in &called[shared(calls.at(operation.checked_sub(1)), &called)..] {
                calls.runs[module] += 1;
            }
            calls.of_operations.push(called);
        }
        let outermost = calls
            .of_operations
            .iter()
            .filter_map(|called| called.first().copied());
        calls.root = counts(outermost)
            .into_iter()
            .max_by_key(|&(module, count)| (count, Reverse(module)))
            .map(|(module, _)| module);
        calls
    }

    /// Returns the modules that call the operation with index `operation` in the forward pass, the
    /// outermost first. The list is empty if `operation` is `None` or past the last operation.
    fn at(&self, operation: Option<usize>) -> &[usize] {
        operation
            .and_then(|operation| self.of_operations.get(operation))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the modules that are called at `operation` but not at `neighbour`, the outermost
    /// first. If `neighbour` is the operation before it (`None` at the start), the call of these
    /// modules begins at `operation`; if it is the operation after it, their call ends there.
    /// Modules are left out if names do not show their path for certain, or if they do not run
    /// exactly `runs` times in the forward pass.
    fn changed(&self, operation: usize, neighbour: Option<usize>, runs: usize) -> Vec<usize> {
        let called = self.at(Some(operation));
        called[shared(self.at(neighbour), called)..]
            .iter()
            .copied()
            .filter(|&module| self.runs[module] == runs && !self.paths[module].is_empty())
            .collect()
    }

    /// Returns the path of the outermost of `modules` whose call lies completely within the
    /// operations `run`: neither the operation just before `run` nor the one just after it is in
    /// the module. If there is no such module, returns the path of the innermost of `modules`.
    fn outermost(&self, modules: &[usize], run: &Range<usize>) -> Option<String> {
        let outside = [run.start.checked_sub(1), Some(run.end)];
        let module = modules
            .iter()
            .find(|module| !outside.iter().any(|&at| self.at(at).contains(module)))
            .or(modules.last());
        module.map(|&module| self.paths[module].clone())
    }

    /// Returns the modules that are called at the start and at the end of a position (In, a layer
    /// or Out). `run` has the operations of the position's first run in the forward pass, and
    /// `runs` says how often the position runs. Modules that run more or less often are ignored.
    fn of_run(&self, (run, runs): (Range<usize>, usize)) -> ModuleCalls {
        let Some(last) = run.clone().next_back() else {
            return ModuleCalls::default();
        };
        let (first, before) = (run.start, run.start.checked_sub(1));
        let begin = run
            .clone()
            .map(|at| (at, self.changed(at, at.checked_sub(1), runs)))
            .find(|(_, modules)| !modules.is_empty());
        let (begin, modules) = begin.unwrap_or((first, Vec::new()));
        let called = self.at(Some(first));
        let mut inside = called[..shared(self.at(before), called)]
            .iter()
            .rev()
            .map(|&module| self.paths[module].clone());
        ModuleCalls {
            begin: self.outermost(&modules, &run),
            leaf: modules.last().map(|&module| self.paths[module].clone()),
            operations_before: (begin - first) as u32,
            inside: inside.find(|path| !path.is_empty()),
            output: self.outermost(&self.changed(last, Some(last + 1), runs), &run),
            top: self.top(run),
        }
    }

    /// Returns the names of the modules directly inside the model (in Keras, its layers) that call
    /// any operation in `run`, a range of the forward pass, each once, in execution order.
    fn top(&self, run: Range<usize>) -> Vec<String> {
        let mut seen = FxHashSet::default();
        run.map(|at| self.at(Some(at)))
            .filter(|called| called.first().copied() == self.root)
            .filter_map(|called| called.get(1))
            .filter(|&module| seen.insert(module))
            .filter_map(|&module| self.paths[module].rsplit('.').next().map(str::to_string))
            .filter(|name| !name.is_empty())
            .collect()
    }
}

impl ModuleLayers {
    /// Returns whether the model's code certainly has a module, or a list of modules, at `path`.
    pub fn has_module(&self, path: &str) -> bool {
        let path = path.replace('/', ".");
        self.modules.calls.paths.iter().any(|known| {
            known
                .strip_prefix(&path)
                .is_some_and(|below| below.is_empty() || below.starts_with('.'))
        })
    }

    /// Returns the modules that each position calls. Position 0 (In) has the operations before the
    /// layers, and position `count + 1` (Out) those after the layers. `layers` has the layer of
    /// each operation: from 1 to `count`, or 0 for none.
    pub fn calls(&self, layers: &[u32], count: usize) -> Vec<ModuleCalls> {
        let forward = &self.modules.forward;
        let of_layer = |at: usize| layers[forward[at]] as usize;
        // The operations of the second and later runs of layers. They are ignored, because the
        // first run of a layer shows which modules the layer calls.
        let later: FxHashSet<usize> = self
            .layers
            .iter()
            .flat_map(|layer| &layer.runs[1..])
            .flat_map(|run| run.operations.clone())
            .collect();
        let mut runs = vec![(forward.len()..0, 1); count + 2];
        for at in 0..forward.len() {
            let (run, _) = &mut runs[of_layer(at)];
            if !later.contains(&at) {
                *run = run.start.min(at)..at + 1;
            }
        }
        for layer in &self.layers {
            let (_, count) = &mut runs[of_layer(layer.runs[0].operations.start)];
            *count = (*count).max(layer.runs.len());
        }
        let layered = runs[1..=count].iter();
        let first = layered.clone().map(|(run, _)| run.start).min();
        let last = (0..forward.len()).rfind(|&at| of_layer(at) > 0);
        let most = layered.map(|&(_, count)| count).max().unwrap_or(1);
        runs[0] = (0..first.unwrap_or(0), most);
        runs[count + 1] = (last.map_or(0, |last| last + 1)..forward.len(), most);
        runs.into_iter()
            .map(|run| self.modules.calls.of_run(run))
            .collect()
    }
}
