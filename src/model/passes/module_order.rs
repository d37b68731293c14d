//! Finds the backward pass by the order in which modules run, which is the reverse of their order
//! in the forward pass (docs/model.md, "Passes"). Names need not mark any operation as backward.

use crate::{
    model::names::unwrapped,
    model::{Operation, crossing},
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;

/// A place in the program may be the start of the backward pass only if the number of modules that
/// run both before and after it is at least this percentage of the largest such number.
const NEARLY_MOST: i64 = 97;
/// Minimum percentage of all named operations that belong to modules that run both before and after
/// the supposed start of the backward pass. If fewer do, the program has no backward pass.
const SHARED: usize = 20;
/// Minimum percentage of pairs of neighbouring modules that run in the opposite order in the
/// backward pass. A program with a lower percentage has no backward pass.
const REVERSED: usize = 90;

/// Returns the range of liveness steps of the backward pass, which ends with the last module that
/// also runs in the forward pass. Returns `None` if the order of modules shows no backward pass.
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
    let (windows, modules): (Vec<(u32, u32)>, Vec<usize>) = order.into_iter().unzip();
    let backward = &windows[backward_pass(&modules, numbers.len())?];
    let last = backward.iter().map(|&(_, last)| last).max()?;
    Some(backward[0].0..=last)
}

/// Returns the module path of an operation: its name without the last part. If the result is itself
/// the name of an operation (one of `names`), its last part is removed too, and so on, because the
/// name of a gradient may begin with the name of its operation (`dense/MatMul/Grad`).
fn module<'a>(name: &'a str, names: &FxHashSet<&str>) -> Option<&'a str> {
    let (path, _) = name.rsplit_once('/')?;
    if names.contains(path) {
        module(path, names)
    } else {
        Some(path)
    }
}

/// Returns the operations of the backward pass as a range in program order; `None` if there is
/// none. `modules` has the module of each operation in program order, as a number below `count`.
fn backward_pass(modules: &[usize], count: usize) -> Option<std::ops::Range<usize>> {
    let start = start(modules, count)?;
    let mut last_before = vec![None; count];
    for (at, &module) in modules[..start].iter().enumerate() {
        last_before[module] = Some(at);
    }
    // One entry per module: where its first run (consecutive operations) after the start of the
    // backward pass begins and ends (exclusive); `None` if the module has no run there.
    let mut after = vec![None; count];
    let mut begin = start;
    for run in modules[start..].chunk_by(|a, b| a == b) {
        after[run[0]].get_or_insert((begin, begin + run.len()));
        begin += run.len();
    }
    let both = |module: usize| Some((last_before[module]?, after[module]?));
    let operations = modules.iter().filter_map(|&module| both(module)).count();
    let mut shared: Vec<_> = (0..count).filter_map(both).collect();
    shared.sort_unstable();
    let reversed = shared.windows(2).filter(|pair| pair[0].1 > pair[1].1);
    let is_backward = operations * 100 >= modules.len() * SHARED
        && reversed.count() * 100 >= shared.len().saturating_sub(1) * REVERSED
        && shared.len() > 1;
    let end = shared.iter().map(|&(_, (_, end))| end).max()?;
    is_backward.then_some(start..end)
}

/// Returns the index of the operation at which the backward pass would start; `None` if there is
/// none. It is found in three steps:
/// 1. For each operation, the modules that run both before and after it are counted. Candidates are
///    the operations with nearly the largest count ([`NEARLY_MOST`]).
/// 2. Of these, the one is taken before and after which the modules run the most equally often
///    ([`unevenness`]).
/// 3. Of several such operations, the middle one is taken.
fn start(modules: &[usize], count: usize) -> Option<usize> {
    let mut ends = vec![None; count];
    for (at, &module) in modules.iter().enumerate() {
        ends[module].get_or_insert((at, at, 1)).1 = at;
    }
    // One entry per operation: the number of modules that run both before this operation and at or
    // after it.
    let crossing = crossing(modules.len(), ends.into_iter().flatten());
    let most = crossing.iter().max().copied().filter(|&most| most > 0)?;
    // One entry per module: its numbers of runs (series of consecutive operations) before and after
    // the point in the program that the loop below has reached.
    let mut sides = vec![[0u64; 2]; count];
    for run in modules.chunk_by(|a, b| a == b) {
        sides[run[0]][1] += 1;
    }
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
        // Runs (series of consecutive operations of one module) are counted before and after a
        // point in the program, which now moves past the operation `place`. A run that begins there
        // is then before the point too. A run that ends there is no longer after it.
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
/// Returns how uneven the numbers of runs of a module before and after a point in the program are:
/// their difference in thousandths of their sum. Without the division by the sum, a module that has
/// many runs in the backward pass only, such as sums of gradients, would outweigh the others and
/// shift the start of the backward pass.
fn unevenness(&[before, after]: &[u64; 2]) -> u64 {
    before.abs_diff(after) * 1000 / (before + after).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the part of `modules` that is the backward pass. Each letter of `modules` is the
    /// module of one operation, in program order.
    fn backward(modules: &str) -> Option<&str> {
        let letters = modules.bytes().map(usize::from);
        backward_pass(&letters.collect::<Vec<_>>(), 256).map(|range| &modules[range])
    }

    #[test]
    fn a_backward_pass_runs_modules_in_the_opposite_order() {
        assert_eq!(backward("abcddcba"), Some("dcba"));
        // Each letter is the module of one operation. After the backward pass (`dcba`), weights are
        // updated by operations in further modules (`u` to `x`) or again in those of the forward
        // pass (`a` to `d`). These updates are not part of the backward pass.
        assert_eq!(backward("abcddcbauvwx"), Some("dcba"));
        assert_eq!(backward("abcdlldcbaxabcd"), Some("ldcba"));
        // The module `s` sums gradients, so it runs only in the backward pass. The modules `u` and
        // `v` run three times in each pass.
        assert_eq!(backward("abcddcsbsas"), Some("dcsbsa"));
        assert_eq!(backward("euvuvuvllvuvuvue"), Some("lvuvuvue"));
        // Only the second half of the model is trained, so the modules `a` to `c` have no backward
        // pass.
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
