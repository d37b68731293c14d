//! Does a `debug.cbor` belong to a profile?

use crate::debug_info::DebugInfo;
use crate::profile::Programs;
use rustc_hash::FxHashSet;

/// How well the contexts fit the programs that refer to them.
///
/// Programs refer to contexts by numbers that every compilation counts from 1, so
/// those of another compilation are there too, but are about something else. On the
/// real files all 35 ids lead to a context that Poplar wrote for a program or for the
/// compilation, and with contexts of other compilations at most 4 in 10 do. In
/// generated files at least 85 % do, and of others at most 57 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belonging {
    /// How many ids of contexts the programs have.
    pub ids: usize,
    /// How many of them the file has.
    pub found: usize,
    /// How many of those are of programs.
    pub of_programs: usize,
}

/// So many contexts tell enough.
const ENOUGH: usize = 8;

impl Belonging {
    /// Looks up all ids that programs have.
    pub fn new(programs: &Programs, debug_info: &DebugInfo) -> Self {
        let ids = programs.all.iter().map(|program| program.debug_id);
        let ids: FxHashSet<u64> = ids.filter(|&id| id != 0).collect();
        let found = || ids.iter().filter_map(|&id| debug_info.position(id));
        Self {
            ids: ids.len(),
            found: found().count(),
            of_programs: found()
                .filter(|&own| debug_info.is_of_programs(own))
                .count(),
        }
    }

    /// Are the contexts those of another compilation? Fewer than three of four that
    /// are there are of programs. A few of many tell nothing: a damaged file may have
    /// lost the others.
    pub fn is_foreign(&self) -> bool {
        let tells = self.found >= ENOUGH.min(self.ids);
        tells && self.of_programs * 4 < self.found * 3
    }

    /// Does a whole file lack some of the ids?
    pub fn is_partial(&self, is_whole: bool) -> bool {
        is_whole && self.found < self.ids
    }
}
