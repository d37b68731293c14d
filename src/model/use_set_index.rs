//! Finds the use sets of the variables of each compute set and region.

use crate::profile::{Profile, VariableLists};
use rayon::prelude::*;

/// The use sets of the variables of each compute set and each region (a part of memory that an
/// exchange or copy names). A list of variables has some thousand times fewer use sets than
/// variables, so each variable is looked up only once, here.
pub(super) struct UseSetIndex {
    /// By index in [`Profile::compute_set_variables`]: use sets, ascending.
    of_compute_sets: Vec<Box<[u32]>>,
    /// By index in [`Profile::region_variables`]: use sets, ascending.
    of_regions: Vec<Box<[u32]>>,
}

impl UseSetIndex {
    /// Builds the index. `set_of` has the use set of each variable of the profile; `sets` is the
    /// number of use sets.
    pub(super) fn new(profile: &Profile, set_of: &[u32], sets: usize) -> Self {
        let unknown = |lists: &VariableLists| vec![Box::default(); lists.len()];
        let mut index = Self {
            of_compute_sets: unknown(&profile.compute_set_variables),
            of_regions: unknown(&profile.region_variables),
        };
        index.renew(profile, set_of, sets, |_| false);
        index
    }

    /// Computes each list again that is empty or has a use set for which `is_changed` is true.
    /// `set_of` has the new use set of each variable; `sets` is the new number of use sets.
    pub(super) fn renew(
        &mut self,
        profile: &Profile,
        set_of: &[u32],
        sets: usize,
        is_changed: impl Fn(u32) -> bool + Sync,
    ) {
        let is_old = |(_, sets): &(usize, &mut Box<[u32]>)| {
            sets.is_empty() || sets.iter().any(|&set| is_changed(set))
        };
        let renew = |lists: &VariableLists, sets_of_lists: &mut [Box<[u32]>]| {
            sets_of_lists
                .par_iter_mut()
                .enumerate()
                .filter(is_old)
                .for_each_init(
                    || vec![false; sets],
                    |seen, (position, sets)| *sets = sets_of(lists, position, set_of, seen),
                );
        };
        renew(&profile.compute_set_variables, &mut self.of_compute_sets);
        renew(&profile.region_variables, &mut self.of_regions);
    }

    /// Returns the use sets of the variables that `program` (an index) uses, ascending, each with
    /// its role. A set with several roles has the first of them in the order of [`Role`].
    pub(super) fn roles(&self, profile: &Profile, program: u32) -> Box<[(u32, Role)]> {
        let (of_sets, _) = profile.lists_of(&[program]);
        let program = &profile.programs.all[program as usize];
        let mut sets: Vec<(u32, Role)> = of_sets
            .iter()
            .flat_map(|&p| &self.of_compute_sets[p as usize])
            .map(|&set| (set, Role::Computes))
            .collect();
        let regions = &program.regions;
        for (number, &id) in regions.iter().enumerate() {
            let role = match &program.kind {
                kind if kind.is_stream_copy() => Role::Host,
                kind if kind.is_exchange() && number + 1 == regions.len() => Role::Destination,
                _ => Role::Reads,
            };
            if let Some(list) = profile.region_variables.position(id) {
                let list = self.of_regions[list as usize].iter();
                sets.extend(list.map(|&set| (set, role)));
            }
        }
        sets.sort_unstable();
        sets.dedup_by_key(|set| set.0);
        sets.into()
    }

    /// Returns the use sets of the variables that `program` uses, ascending.
    pub(super) fn of_program(&self, profile: &Profile, program: u32) -> Vec<u32> {
        self.roles(profile, program)
            .into_iter()
            .map(|(set, _)| set)
            .collect()
    }
}

/// How a program uses a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Vertices of the program read or write the variable.
    Computes,
    /// An exchange writes the variable: it is in the last region of the exchange.
    Destination,
    /// An exchange reads the variable, or the program copies code to it.
    Reads,
    /// The program copies the variable from or to the host.
    Host,
}

/// Returns the use sets of the variables in the list at index `position` of `lists`, ascending,
/// each once. `set_of` has the use set of each variable; `seen` has `false` for each use set,
/// before and afterwards.
fn sets_of(
    lists: &VariableLists,
    position: usize,
    set_of: &[u32],
    seen: &mut [bool],
) -> Box<[u32]> {
    let mut sets = Vec::new();
    for &variable in lists.members(position as u32) {
        let set = set_of[variable as usize];
        if !std::mem::replace(&mut seen[set as usize], true) {
            sets.push(set);
        }
    }
    for &set in &sets {
        seen[set as usize] = false;
    }
    sets.sort_unstable();
    sets.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// By program: the sets of its variables, looked up one by one.
    fn plain(profile: &Profile, set_of: &[u32]) -> Vec<Vec<u32>> {
        let of_program = |program: u32| -> Vec<u32> {
            let used = profile.variables_of(&[program]).into_iter().flatten();
            let sets: BTreeSet<u32> = used.map(|&v| set_of[v as usize]).collect();
            sets.into_iter().collect()
        };
        let programs = 0..profile.programs.all.len() as u32;
        programs.map(of_program).collect()
    }

    fn indexed(profile: &Profile, index: &UseSetIndex) -> Vec<Vec<u32>> {
        let programs = 0..profile.programs.all.len() as u32;
        let sets = programs.map(|program| index.of_program(profile, program));
        sets.collect()
    }

    #[test]
    fn programs_have_the_sets_of_their_variables_before_and_after_a_change() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/popart-bert-inference");
        let profile = Profile::read(&folder.join("profile.pop")).unwrap();
        let count = profile.variables.len() as u32;
        let mut set_of: Vec<u32> = (0..count).map(|variable| variable / 2 % 7).collect();
        let mut index = UseSetIndex::new(&profile, &set_of, 7);
        let before = plain(&profile, &set_of);
        assert_eq!(indexed(&profile, &index), before);
        assert!(before.iter().any(Vec::is_empty) && before.iter().any(|list| list.len() == 7));
        // Half of a set becomes a new set.
        let changed = set_of.iter_mut().filter(|set| **set == 3);
        changed.step_by(2).for_each(|set| *set = 7);
        index.renew(&profile, &set_of, 8, |set| set == 3);
        let after = plain(&profile, &set_of);
        assert_ne!(after, before);
        assert_eq!(indexed(&profile, &index), after);
    }
}
