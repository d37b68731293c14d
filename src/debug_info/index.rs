//! From ids to contexts.

use super::context::ContextRecord;

/// No context has this id.
const NOWHERE: u32 = u32::MAX;

/// Finds the place of an id in the file's order.
#[derive(Debug)]
pub(super) enum IdIndex {
    /// Indexed by id; most files number their contexts from 1 without gaps.
    Dense(Vec<u32>),
    /// Sorted by id, for ids with wide gaps.
    Sorted(Vec<(u64, u32)>),
}

impl Default for IdIndex {
    fn default() -> Self {
        IdIndex::Dense(Vec::new())
    }
}

impl IdIndex {
    /// Indexes `records` and removes from them all but the first of each id.
    /// Gives the index and how many records were removed.
    ///
    /// `records` must have fewer than 2^32 - 1 entries.
    pub fn build(records: &mut Vec<ContextRecord>) -> (IdIndex, usize) {
        let highest = records.iter().map(|record| record.id).max().unwrap_or(0);
        // A dense entry takes a quarter of a sorted one.
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

    /// The position of the context with this id. No context has the id 0.
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

/// Marks the records that lie on a cycle of parents, each visited once.
pub(super) fn mark_cycles(records: &mut [ContextRecord], index: &IdIndex) {
    // The number of the walk that first came by, 0 for none yet.
    let mut walks = vec![0u32; records.len()];
    for (walk, start) in (1..).zip(0..records.len()) {
        let mut here = start;
        while walks[here] == 0 {
            walks[here] = walk;
            match index.find(records[here].parent) {
                Some(parent) => here = parent as usize,
                None => break,
            }
        }
        // Back on this walk's own track: that place lies on a new cycle.
        if walks[here] == walk && index.find(records[here].parent).is_some() {
            mark_cycle(records, index, here);
        }
    }
}

/// The id of a context whose chain has more than `most` contexts above it.
///
/// Each context is visited once. On a cycle every chain is as long as the cycle.
pub(super) fn too_deep(records: &[ContextRecord], index: &IdIndex, most: usize) -> Option<u64> {
    // One more than the contexts above; 0 for those not known yet.
    let mut depths = vec![0usize; records.len()];
    let mut way = Vec::new();
    for start in 0..records.len() {
        let mut here = Some(start);
        while let Some(place) = here.filter(|&place| depths[place] == 0) {
            if records[place].on_cycle {
                measure_cycle(records, index, place, &mut depths);
                break;
            }
            way.push(place);
            here = index
                .find(records[place].parent)
                .map(|parent| parent as usize);
        }
        while let Some(place) = way.pop() {
            let parent = index.find(records[place].parent);
            depths[place] = 1 + parent.map_or(0, |parent| depths[parent as usize]);
        }
    }
    let deepest = depths
        .into_iter()
        .zip(records)
        .find(|&(depth, _)| depth > most + 1);
    deepest.map(|(_, record)| record.id)
}

/// Gives all contexts of a cycle its length.
fn measure_cycle(records: &[ContextRecord], index: &IdIndex, start: usize, depths: &mut [usize]) {
    let mut cycle = vec![start];
    let mut here = start;
    while let Some(parent) = index.find(records[here].parent) {
        here = parent as usize;
        if here == start {
            break;
        }
        cycle.push(here);
    }
    let length = cycle.len();
    cycle.into_iter().for_each(|place| depths[place] = length);
}

fn mark_cycle(records: &mut [ContextRecord], index: &IdIndex, start: usize) {
    let mut here = start;
    while !records[here].on_cycle {
        records[here].on_cycle = true;
        match index.find(records[here].parent) {
            Some(parent) => here = parent as usize,
            None => break,
        }
    }
}
