//! Does a `debug.cbor` belong to a profile?

use crate::debug_info::DebugInfo;
use crate::profile::Programs;
use rustc_hash::FxHashSet;

/// How well the contexts fit the programs that refer to them.
///
/// Programs refer to contexts by numbers that every compilation counts from 1, so
/// those of another compilation are there too, but are about something else. There are
/// two witnesses:
/// * *Programs.* On the real files all 35 ids lead to a context that Poplar wrote for a
///   program or for the compilation, and with contexts of other compilations at most 4
///   in 10 do. In generated files at least 85 % do, and of others at most 57 %.
/// * *Names.* On the real files all compute sets with a name have that of their
///   context, and with contexts of other compilations none has. In generated files all
///   have it, and with others of the same framework at most half. A file that was cut
///   off has no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belonging {
    /// How many ids of contexts the programs have.
    pub ids: usize,
    /// How many of them the file has.
    pub found: usize,
    /// How many of those are of programs.
    pub of_programs: usize,
    /// How many compute sets have a name, and a context with one.
    pub named: usize,
    /// How many of these have the same name as their context.
    pub same_names: usize,
}

/// So many contexts tell enough.
const ENOUGH: usize = 8;

impl Belonging {
    /// Looks up all ids that programs and compute sets have.
    pub fn new(programs: &Programs, debug_info: &DebugInfo) -> Self {
        let ids = programs.all.iter().map(|program| program.debug_id);
        let ids: FxHashSet<u64> = ids.filter(|&id| id != 0).collect();
        let found = || ids.iter().filter_map(|&id| debug_info.position(id));
        let names = || {
            let sets = programs.compute_sets.iter();
            let both = sets.filter_map(|set| {
                let own = Some(set.debug_id).filter(|&id| id != 0)?;
                let context = debug_info.position(own)?;
                Some((&*set.name, debug_info.name(context)))
            });
            both.filter(|(own, of_context)| !own.is_empty() && !of_context.is_empty())
        };
        Self {
            ids: ids.len(),
            found: found().count(),
            of_programs: found()
                .filter(|&own| debug_info.is_of_programs(own))
                .count(),
            named: names().count(),
            same_names: names()
                .filter(|(own, of_context)| own == of_context)
                .count(),
        }
    }

    /// Are the contexts those of another compilation? Not where three of four names are
    /// the same. Else it is so where too few of the contexts that are there are of
    /// programs: fewer than three of four, or than nine of ten where names speak
    /// against it. A few of many tell nothing: a damaged file may have lost the others.
    pub fn is_foreign(&self) -> bool {
        let has_names = self.named >= ENOUGH;
        if has_names && self.same_names * 4 >= self.named * 3 {
            return false;
        }
        let (part, of) = if has_names { (9, 10) } else { (3, 4) };
        let tells = self.found >= ENOUGH.min(self.ids);
        tells && self.of_programs * of < self.found * part
    }

    /// Does a whole file lack some of the ids?
    pub fn is_partial(&self, is_whole: bool) -> bool {
        is_whole && self.found < self.ids
    }
}
