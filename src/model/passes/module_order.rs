//! Finds the backward pass by the order in which modules run, which is the reverse of their order
//! in the forward pass (docs/model.md, "Passes"). This works even if no name marks an operation as
//! backward.

use crate::model::names::unwrapped;
use crate::model::{Operation, crossing};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;

/// The start of the backward pass is only searched at places in the program where the number of
/// modules that run both before and after the place is at least this percentage of its maximum.
const NEARLY_MOST: i64 = 97;
/// Minimum percentage of operations that are in modules which run in both passes. With fewer, the
/// program has no backward pass.
const SHARED: usize = 20;
/// Minimum percentage of pairs of neighbouring modules that run in the opposite order in the
/// backward pass. With fewer, the program has no backward pass.
const REVERSED: usize = 90;

/// Returns the range of steps of the backward pass: from the first step of its first operation to
/// the last step of the last module that runs in it. Returns `None` if the order of modules shows
/// no backward pass.
pub fn backward_steps(operations: &[&Operation]) -> Option<RangeInclusive<u32>> {
    let names: Vec<_> = operations
        .iter()
        .filter(|operation| operation.is_named())
        .filter_map(|operation| Some((operation.window?, unwrapped(&operation.name))))
        .collect();
    let all: FxHashSet<&str> = names.iter().map(|(_, name)| &**name).collect();
    let mut numbers = FxHashMap::default();
    let mut order: Vec<_> = names
        .iter()
        .filter_map(|(window, name)| {
            let next = numbers.len();
            let number = numbers.entry(module(name, &all)?).or_insert(next);
            Some((*window, *number))
        })
        .collect();
    order.sort_by_key(|&(window, _)| window);
    let modules: Vec<usize> = order.iter().map(|&(_, module)| module).collect();
    let backward = backward_pass(&modules, numbers.len())?;
    let steps = order[backward].iter().map(|&(window, _)| window);
    let first = steps.clone().next()?.0;
    Some(first..=steps.map(|(_, last)| last).max()?)
}

/// Returns the path of the module of the operation `name`: the name without its last part. While
/// the result is also one of `names`, its last part is removed too, since the name of a gradient
/// may begin with the name of its operation (`dense/MatMul/Grad`).
fn module<'a>(name: &'a str, names: &FxHashSet<&str>) -> Option<&'a str> {
    let (path, _) = name.rsplit_once('/')?;
    if names.contains(path) {
        module(path, names)
    } else {
        Some(path)
    }
}

/// Returns the operations of the backward pass, as a range of indices into `modules`; `None` if
/// there is no backward pass. `modules` has one entry per operation, in program order: its module,
/// as an index below `count`.
fn backward_pass(modules: &[usize], count: usize) -> Option<std::ops::Range<usize>> {
    let start = start(modules, count)?;
    let mut last_before = vec![None; count];
    for (at, &module) in modules[..start].iter().enumerate() {
        last_before[module] = Some(at);
    }
    // One entry per module: begin and end (exclusive) of its first run after the start of the
    // backward pass; `None` if it has no run there.
    let mut after = vec![None; count];
    let mut begin = start;
    for run in modules[start..].chunk_by(|a, b| a == b) {
        after[run[0]].get_or_insert((begin, begin + run.len()));
        begin += run.len();
    }
    let is_shared = |&module: &usize| last_before[module].is_some() && after[module].is_some();
    let operations = modules.iter().filter(|module| is_shared(module)).count();
    let mut shared: Vec<usize> = (0..count).filter(is_shared).collect();
    shared.sort_by_key(|&module| last_before[module]);
    let reversed = shared
        .windows(2)
        .filter(|pair| after[pair[0]] > after[pair[1]]);
    let is_backward = operations * 100 >= modules.len() * SHARED
        && reversed.count() * 100 >= shared.len().saturating_sub(1) * REVERSED
        && shared.len() > 1;
    let ends = shared.iter().filter_map(|&module| Some(after[module]?.1));
    Some(start..ends.max()?).filter(|_| is_backward)
}

/// Returns the place in the program, as an index into `modules`, at which the backward pass would
/// start. Candidates are the places where nearly the most modules run both before and after the
/// place ([`NEARLY_MOST`]). The candidate with the lowest sum of [`unevenness`] over all modules is
/// taken; if several have the lowest sum, the middle one is taken.
fn start(modules: &[usize], count: usize) -> Option<usize> {
    let mut ends = vec![None; count];
    for (at, &module) in modules.iter().enumerate() {
        ends[module].get_or_insert((at, at, 1)).1 = at;
    }
    // One entry per place in the program: the number of modules that run both before and after the
    // place.
    let crossing = crossing(modules.len(), ends.into_iter().flatten());
    let most = crossing.iter().max().copied().filter(|&most| most > 0)?;
    // One entry per module: its number of runs before, and its number of runs after, the current
    // place in the program.
    let mut sides = vec![[0u64; 2]; count];
    let runs = modules.chunk_by(|a, b| a == b);
    runs.for_each(|run| sides[run[0]][1] += 1);
    let mut sum: u64 = sides.iter().map(unevenness).sum();
    let (mut least, mut best) = (u64::MAX, Vec::new());
    for (place, &module) in modules.iter().enumerate() {
        if crossing[place] * 100 >= most * NEARLY_MOST && sum <= least {
            if sum < least {
                best.clear();
            }
            least = sum;
            best.push(place);
        }
        // At a place inside a run of a module, this run counts both as before and as after the
        // place.
        let begins = place == 0 || modules[place - 1] != module;
        let ends = modules.get(place + 1) != Some(&module);
        let sides = &mut sides[module];
        sum -= unevenness(sides);
        sides[0] += u64::from(begins);
        sides[1] -= u64::from(ends);
        sum += unevenness(sides);
    }
    best.get(best.len() / 2).copied()
}
/// Returns the difference between the numbers of runs of a module before and after a place in the
/// program, in thousandths of the sum of both numbers. Without the division by the sum, a module
/// that has many runs only in the backward pass, such as sums of gradients, would shift the start
/// of the backward pass.
fn unevenness(&[before, after]: &[u64; 2]) -> u64 {
    before.abs_diff(after) * 1000 / (before + after).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the operations of the backward pass, where each letter is the module of one.
    fn backward(modules: &str) -> Option<&str> {
        let letters = modules.bytes().map(usize::from);
        backward_pass(&letters.collect::<Vec<_>>(), 256).map(|range| &modules[range])
    }

    #[test]
    fn a_backward_pass_runs_modules_in_the_opposite_order() {
        assert_eq!(backward("abcddcba"), Some("dcba"));
        // Updates follow, with names of their own or of the modules.
        assert_eq!(backward("abcddcbauvwx"), Some("dcba"));
        assert_eq!(backward("abcdlldcbaxabcd"), Some("ldcba"));
        // Sums of gradients, and a module that runs three times.
        assert_eq!(backward("abcddcsbsas"), Some("dcsbsa"));
        assert_eq!(backward("euvuvuvllvuvuvue"), Some("lvuvuvue"));
        // Only the second half is trained.
        assert_eq!(backward("abcdeffed"), Some("fed"));
    }

    #[test]
    fn repetitions_and_single_passes_are_forward() {
        for modules in [
            "abcdabcd",
            "abcabcabcabc",
            "abcdefgh",
            "eabeabeab",
            "abcdefghijbk",
            "",
        ] {
            assert_eq!(backward(modules), None, "{modules}");
        }
    }

    #[test]
    fn gradients_below_their_operation_are_of_its_module() {
        let names = FxHashSet::from_iter(["a/b/MatMul", "a/b/MatMul/Grad"]);
        assert_eq!(module("a/b/MatMul", &names), Some("a/b"));
        assert_eq!(module("a/b/MatMul/Grad", &names), Some("a/b"));
        assert_eq!(module("MatMul", &names), None);
    }
}
