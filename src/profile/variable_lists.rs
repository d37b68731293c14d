//! Lists of variables by id: the variables of a compute set, or of a region set.

use super::ids::Ids;
use crate::parallel::concatenated;

/// Lists of lowered variables, one for each compute set or each region set, as positions in
/// [`Variables`](super::Variables).
///
/// Members lie in one array in the order of the file. A list is usually one run of that array; it
/// has several if the rows of the table are not ordered by id.
#[derive(Debug, Clone)]
pub struct VariableLists {
    ids: Ids,
    members: Vec<u32>,
    /// By list: start of its runs in `runs`; with one more entry at the end.
    starts: Vec<u32>,
    runs: Vec<(u32, u32)>,
}

impl Default for VariableLists {
    /// Without any list.
    fn default() -> Self {
        ListsBuilder::default().finish()
    }
}

impl VariableLists {
    /// Number of lists with a member.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Does no list have a member?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Members of all lists, including repetitions.
    pub fn all_members(&self) -> &[u32] {
        &self.members
    }

    /// Position of the list with this id; `None` if it has no member.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }

    /// Members of the list at `position`, in runs. A member may occur more than once.
    pub fn members(&self, position: u32) -> impl Iterator<Item = &[u32]> + '_ {
        let list = position as usize;
        let runs = self.starts[list] as usize..self.starts[list + 1] as usize;
        self.runs[runs]
            .iter()
            .map(|&(from, to)| &self.members[from as usize..to as usize])
    }
}

/// Collects members in the order of the rows.
#[derive(Debug, Default)]
pub(super) struct ListsBuilder {
    members: Vec<u32>,
    /// By run: id of the list, and position of the first member.
    runs: Vec<(u64, u32)>,
}

impl ListsBuilder {
    /// Adds a variable to the list `id`.
    #[inline]
    pub(super) fn push(&mut self, id: u64, member: u32) {
        if self.runs.last().is_none_or(|&(last, _)| last != id) {
            self.runs.push((id, self.members.len() as u32));
        }
        self.members.push(member);
    }

    /// Number of members so far.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Concatenates the members of several builders.
    pub(super) fn join(parts: Vec<Self>) -> Self {
        let mut runs = Vec::with_capacity(parts.iter().map(|part| part.runs.len()).sum());
        let mut members = Vec::with_capacity(parts.len());
        let mut before = 0;
        for part in parts {
            let starts = part.runs.into_iter();
            runs.extend(starts.map(|(id, start)| (id, start + before)));
            before += part.members.len() as u32;
            members.push(part.members);
        }
        Self {
            members: concatenated(members),
            runs,
        }
    }

    pub(super) fn finish(mut self) -> VariableLists {
        self.members.shrink_to_fit();
        let ends = self.runs.iter().skip(1).map(|&(_, start)| start);
        let ends = ends.chain([self.members.len() as u32]);
        let mut runs: Vec<(u64, u32, u32)> = self
            .runs
            .iter()
            .zip(ends)
            .map(|(&(id, from), to)| (id, from, to))
            .collect();
        runs.sort_by_key(|&(id, from, _)| (id, from));
        let mut ids = Vec::new();
        let mut starts = Vec::new();
        for (n, &(id, ..)) in runs.iter().enumerate() {
            if ids.last() != Some(&id) {
                ids.push(id);
                starts.push(n as u32);
            }
        }
        starts.push(runs.len() as u32);
        VariableLists {
            ids: Ids::new(&ids).expect("ids that ascend stand once"),
            members: self.members,
            starts,
            runs: runs.into_iter().map(|(_, a, b)| (a, b)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_one_run_and_in_several() {
        let mut builder = ListsBuilder::default();
        for (id, member) in [(5, 1), (5, 2), (3, 9), (5, 4), (3, 8)] {
            builder.push(id, member);
        }
        let lists = builder.finish();
        let of = |id| -> Vec<u32> {
            let position = lists.position(id).unwrap();
            lists.members(position).flatten().copied().collect()
        };
        assert_eq!((of(5), of(3)), (vec![1, 2, 4], vec![9, 8]));
        assert_eq!(lists.position(4), None);
    }

    #[test]
    fn what_two_builders_took_is_one() {
        let (mut first, mut second) = (ListsBuilder::default(), ListsBuilder::default());
        first.push(1, 10);
        second.push(1, 11);
        second.push(2, 12);
        let lists = ListsBuilder::join(vec![first, second]).finish();
        let all = |id| -> Vec<u32> {
            let position = lists.position(id).unwrap();
            lists.members(position).flatten().copied().collect()
        };
        assert_eq!((all(1), all(2)), (vec![10, 11], vec![12]));
    }
}
