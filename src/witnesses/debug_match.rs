//! Decides whether a `debug.cbor` belongs to a profile, and whether it has all contexts to which
//! the profile refers.

use crate::debug_info::{Damage, DebugInfo};
use crate::profile::Programs;
use rustc_hash::FxHashSet;

/// Counts that show how well the debug contexts of `debug.cbor` fit the programs of the profile
/// that refer to them.
///
/// Programs refer to contexts by ids that every compilation counts from 1, so the contexts of
/// another compilation have the same ids but describe something else. Two comparisons show it:
/// * *Programs.* In the real files all 35 ids lead to a context that Poplar wrote for a program or
///   for the compilation; with contexts of other compilations at most 4 in 10 do. In generated
///   files at least 85 % do, and with contexts of other compilations at most 57 %.
/// * *Names.* In the real files all compute sets with a name have the name of their context; with
///   contexts of other compilations no compute set has. In generated files all have it, and with
///   contexts of another compilation by the same framework at most half. A file that was cut off
///   has no names.
///
/// A whole file that belongs to the profile has all contexts to which programs and compute sets
/// refer, all their parents, and the name of each compute set: this holds for the real file and all
/// generated files. Anything else is [damage](Self::damage). Only a parent may be missing in a
/// whole file: Poplar writes a context when its C++ object is destroyed, which may be after the
/// file is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebugMatch {
    /// Number of distinct ids of contexts to which programs refer.
    pub ids: usize,
    /// Number of the ids counted in `ids` whose context is in the file.
    pub found: usize,
    /// Number of the contexts counted in `found` that Poplar wrote for a program or the
    /// compilation.
    pub of_programs: usize,
    /// Number of compute sets that have a name and whose context has a name.
    pub named: usize,
    /// Number of the compute sets counted in `named` that have the name of their context.
    pub same_names: usize,
    /// Number of distinct ids of contexts to which programs and compute sets refer.
    pub all_ids: usize,
    /// Number of the ids counted in `all_ids` whose context is in the file.
    pub all_found: usize,
    /// Number of the contexts counted in `all_found` with an ancestor that the file lacks, or with
    /// an ancestor on a cycle of parents.
    pub orphans: usize,
    /// Number of compute sets that have a name and whose context has none.
    pub nameless: usize,
}

/// Minimum number of contexts, or of compute sets with names, that can show that a file belongs to
/// another compilation.
const MIN_CONTEXTS: usize = 8;

impl DebugMatch {
    /// Looks up all ids of contexts to which programs and compute sets refer, and counts.
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

    /// Returns whether the contexts belong to another compilation: not if three of four names
    /// agree; otherwise, if too few contexts were written for programs: fewer than three of four,
    /// or than nine of ten if the names disagree. If the file has only a few of the contexts, the
    /// answer is no, since a damaged file may have lost the others.
    pub fn is_foreign(&self) -> bool {
        let has_names = self.named >= MIN_CONTEXTS;
        if has_names && self.same_names * 4 >= self.named * 3 {
            return false;
        }
        let (part, of) = if has_names { (9, 10) } else { (3, 4) };
        let has_enough = self.found >= MIN_CONTEXTS.min(self.ids);
        has_enough && self.of_programs * of < self.found * part
    }

    /// Returns which data `debug.cbor` lacks, in this order: contexts to which the profile refers,
    /// parents of contexts, and the names of compute sets.
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
