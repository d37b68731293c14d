//! Maps the ids of contexts to their positions.

use rayon::prelude::*;

use super::context::ContextRecord;

/// Stands for the position of an id that no context has.
const NOWHERE: u32 = u32::MAX;

/// Index from ids to positions in the order of the file.
#[derive(Debug)]
pub(super) enum IdIndex {
    /// Position by id: most files number their contexts from 1 without gaps.
    Dense(Vec<u32>),
    /// (id, position) sorted by id, for ids with wide gaps.
    Sorted(Vec<(u64, u32)>),
}

impl Default for IdIndex {
    fn default() -> Self {
        IdIndex::Dense(Vec::new())
    }
}

impl IdIndex {
    /// Indexes `records` and removes all but the first record of each id. Returns the index and the
    /// number of removed records.
    ///
    /// `records` must have fewer than 2^32 - 1 entries.
    pub fn build(records: &mut Vec<ContextRecord>) -> (IdIndex, usize) {
        let ids = records.par_iter().map(|record| record.id);
        let highest = ids.max().unwrap_or(0);
        // An entry of `Dense` takes a quarter of the bytes of an entry of `Sorted`.
        let room = 4 * records.len() as u64;
        if highest <= room {
            Self::dense(records, highest as usize)
        } else {
            Self::sorted(records)
        }
    }

    fn dense(records: &mut Vec<ContextRecord>, highest: usize) -> (IdIndex, usize) {
        let before = records.len();
        let mut places = vec![NOWHERE; highest + 1];
        let mut next = 0;
        records.retain(|record| {
            let place = &mut places[record.id as usize];
            let first = *place == NOWHERE;
            if first {
                *place = next;
                next += 1;
            }
            first
        });
        let removed = before - records.len();
        (IdIndex::Dense(places), removed)
    }

    fn sorted(records: &mut Vec<ContextRecord>) -> (IdIndex, usize) {
        let before = records.len();
        let entries = Self::sort(records);
        let mut first = vec![true; before];
        for pair in entries.windows(2) {
            if pair[0].0 == pair[1].0 {
                first[pair[1].1 as usize] = false;
            }
        }
        let mut flags = first.iter();
        records.retain(|_| flags.next().copied().unwrap_or(true));
        let removed = before - records.len();
        let entries = if removed == 0 {
            entries
        } else {
            Self::sort(records)
        };
        (IdIndex::Sorted(entries), removed)
    }

    fn sort(records: &[ContextRecord]) -> Vec<(u64, u32)> {
        let mut entries: Vec<(u64, u32)> = (0..)
            .zip(records)
            .map(|(place, record)| (record.id, place))
            .collect();
        entries.sort_unstable();
        entries
    }

    /// Position of the context with this id; `None` if there is none, as for id 0.
    #[inline]
    pub fn find(&self, id: u64) -> Option<u32> {
        match self {
            IdIndex::Dense(places) => {
                let place = *places.get(usize::try_from(id).ok()?)?;
                (place != NOWHERE).then_some(place)
            }
            IdIndex::Sorted(entries) => {
                let at = entries.binary_search_by_key(&id, |entry| entry.0).ok()?;
                Some(entries[at].1)
            }
        }
    }
}

/// Marks the records on cycles of parents. Returns the id of the first context with more than
/// `max_parents` ancestors.
///
/// On a cycle, the length of every chain is the length of the cycle.
pub(super) fn check_chains(
    records: &mut [ContextRecord],
    index: &IdIndex,
    max_parents: usize,
) -> Option<u64> {
    let find = |record: &ContextRecord| index.find(record.parent).unwrap_or(NOWHERE);
    let parents: Vec<u32> = records.par_iter().map(find).collect();
    let mut lengths = vec![UNKNOWN; records.len()];
    let mut way = Vec::new();
    // Parents come after their children in the file, so backwards most lengths are computed.
    for start in (0..records.len() as u32).rev() {
        let mut here = start;
        while here != NOWHERE && lengths[here as usize] == UNKNOWN {
            lengths[here as usize] = ON_THE_WAY;
            way.push(here);
            here = parents[here as usize];
        }
        let mut length = lengths.get(here as usize).copied().unwrap_or(0);
        if length == ON_THE_WAY {
            length = close_cycle(records, &mut way, here, &mut lengths);
        }
        for place in way.drain(..).rev() {
            length += 1;
            lengths[place as usize] = length;
        }
    }
    let deep = lengths
        .iter()
        .position(|&length| length as usize > max_parents + 1);
    deep.map(|place| records[place].id)
}

/// Marks the chain of a context as not visited yet.
const UNKNOWN: u32 = 0;
/// Marks a context on the way that is being followed.
const ON_THE_WAY: u32 = u32::MAX;

/// Splits the cycle that begins at `here` off the end of `way`, and returns its length.
fn close_cycle(
    records: &mut [ContextRecord],
    way: &mut Vec<u32>,
    here: u32,
    lengths: &mut [u32],
) -> u32 {
    let begin = way.iter().rposition(|&place| place == here).unwrap_or(0);
    let cycle = way.split_off(begin);
    let length = cycle.len() as u32;
    for place in cycle {
        records[place as usize].on_cycle = true;
        lengths[place as usize] = length;
    }
    length
}
