//! Checks that a `debug.cbor` belongs to a profile, and has all contexts that the profile refers
//! to.

use crate::debug_info::{Damage, DebugInfo};
use crate::profile::Programs;
use rustc_hash::FxHashSet;

/// How many of the context ids and names in a profile match the contexts of a `debug.cbor`.
///
/// Programs refer to contexts by ids that every compilation counts from 1, so the contexts of
/// another compilation have the same ids but describe something else. Two comparisons show it:
/// * *Programs.* In the real files, all 35 ids lead to a context that Poplar wrote for a program or
///   for the compilation; with contexts of another compilation at most 4 in 10 do. In generated
///   files at least 85 % do, and with contexts of another compilation at most 57 %.
/// * *Names.* In the real files, all compute sets with a name have the name of their context; with
///   contexts of another compilation none has. In generated files all have it, and with contexts of
///   another compilation of the same framework at most half. A file that was cut off has no names.
///
/// A whole file that belongs to the profile has all contexts that programs and compute sets refer
/// to, all their parents, and the name of each compute set: the real file and all generated files
/// do. Anything else is [damage](Self::damage). Only a parent may be missing in a whole file:
/// Poplar writes a context when its C++ object is destroyed, which may be after the file is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebugMatch {
    /// Number of distinct context ids that programs refer to.
    pub ids: usize,
    /// Number of the `ids` that `debug.cbor` has.
    pub found: usize,
    /// Number of the `found` contexts that Poplar wrote for a program or the compilation.
    pub of_programs: usize,
    /// Number of compute sets that have a name and whose context has a name.
    pub named: usize,
    /// Number of the `named` compute sets whose name is the name of their context.
    pub same_names: usize,
    /// Number of distinct context ids that programs and compute sets refer to.
    pub all_ids: usize,
    /// Number of the `all_ids` that `debug.cbor` has.
    pub all_found: usize,
    /// Number of the `all_found` contexts with an ancestor that `debug.cbor` lacks, or with a
    /// circle among their ancestors.
    pub orphans: usize,
    /// Number of compute sets that have a name and whose context has none.
    pub nameless: usize,
}

/// Number of contexts, or of compute sets with names, from which on they decide whether a file is
/// foreign.
const MIN_CONTEXTS: usize = 8;

impl DebugMatch {
    /// Looks up the context ids of all programs and compute sets in `debug_info`.
    pub fn new(programs: &Programs, debug_info: &DebugInfo) -> Self {
        let is_id = |id: &u64| *id != 0;
        let ids = programs.all.iter().map(|program| program.debug_id);
        let ids: FxHashSet<u64> = ids.filter(is_id).collect();
        let of_sets = programs.compute_sets.iter().map(|set| set.debug_id);
        let of_sets: FxHashSet<u64> = of_sets.filter(is_id).collect();
        let place = |id: &u64| debug_info.position(*id);
        let found = || ids.iter().filter_map(place);
        let all = || ids.union(&of_sets);
        let names = || {
            let sets = programs.compute_sets.iter();
            let named = sets.filter(|set| !set.name.is_empty());
            named.filter_map(|set| Some((&*set.name, debug_info.name(place(&set.debug_id)?))))
        };
        let both = || names().filter(|(_, of_context)| !of_context.is_empty());
        Self {
            ids: ids.len(),
            found: found().count(),
            of_programs: found()
                .filter(|&position| debug_info.is_of_programs(position))
                .count(),
            named: both().count(),
            same_names: both().filter(|(a, b)| a == b).count(),
            all_ids: all().count(),
            all_found: all().filter_map(place).count(),
            orphans: all()
                .filter_map(place)
                .filter(|&position| debug_info.is_orphan(position))
                .count(),
            nameless: names().count() - both().count(),
        }
    }

    /// Returns whether the contexts are of another compilation. They are not if three of four names
    /// agree. Otherwise they are if fewer than three of four of the contexts found were written for
    /// programs; nine of ten where names disagree. A file with few of the contexts is not foreign,
    /// since a damaged file may have lost the others.
    pub fn is_foreign(&self) -> bool {
        let has_names = self.named >= MIN_CONTEXTS;
        if has_names && self.same_names * 4 >= self.named * 3 {
            return false;
        }
        let (part, of) = if has_names { (9, 10) } else { (3, 4) };
        let has_enough = self.found >= MIN_CONTEXTS.min(self.ids);
        has_enough && self.of_programs * of < self.found * part
    }

    /// Returns which data are missing from `debug.cbor`, in this order: contexts that the profile
    /// refers to, parents of contexts, and the names of compute sets. Empty if it is whole.
    pub fn damage(&self) -> Vec<Damage> {
        let named = self.named + self.nameless;
        let missing = self.all_ids - self.all_found;
        let renamed = named - self.same_names;
        let all = [
            (missing, Damage::Missing(missing, self.all_ids)),
            (self.orphans, Damage::Orphans(self.orphans, self.all_found)),
            (renamed, Damage::Renamed(renamed, named)),
        ];
        let all = all.into_iter().filter(|(count, _)| *count > 0);
        all.map(|(_, damage)| damage).collect()
    }
}
