//! The memory of weight updates on neighbouring tiles.

use super::UpdatePhase;
use super::parts::UpdateRole;
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane};
use crate::memory::neighbours::NeighbourUses;
use crate::memory::steps::StepSums;
use crate::model::{EVERYWHERE, PlaceSet};
use std::ops::Range;

/// Bytes by lane (tile), with the positions whose stages count them.
pub(super) type Placing<const N: usize> = (PlaceSet, [u64; N]);

/// The bytes of weight updates on up to `N` neighbouring tiles. The buffers are reused for the next
/// tiles.
#[derive(Debug, Default)]
pub(in crate::memory) struct TileUpdates<const N: usize> {
    /// The bytes of updates, ordered by update and then by the positions that count them.
    pub(super) entries: Vec<PlacedAmounts<N>>,
    /// Optimizer state that is sharded on the chip: the share of one replica.
    pub(super) shares: Vec<Placing<N>>,
    /// Parameters that are not live at some steps.
    pub(super) holes: Vec<Placing<N>>,
    rows: Vec<UpdateRow>,
}

/// The variables of one use, as far as they take part in one update.
#[derive(Debug, Clone, Copy)]
struct UpdateRow {
    update: u32,
    set: PlaceSet,
    role: UpdateRole,
    /// The row of the use in [`NeighbourUses`].
    row: u32,
    /// The number of the use (class and use set).
    number: u32,
}

/// The bytes of one update for stages that have any position of `set`.
#[derive(Debug)]
pub(super) struct PlacedAmounts<const N: usize> {
    pub(super) update: u32,
    pub(super) set: PlaceSet,
    pub(super) amounts: Amounts<N>,
}

/// The bytes that a weight update of a stage needs, on each of `N` neighbouring tiles.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amounts<const N: usize> {
    /// Optimizer state that the update loads from memory outside the IPUs, as far as this replica
    /// loads it.
    loaded: ByLane<u64, N>,
    /// The bytes of the largest variable of the state that the update loads.
    largest: ByLane<u64, N>,
    /// The bytes of the weights, plus a replica's share of each.
    gathered: ByLane<u64, N>,
    /// The bytes of a replica's shares of the weights and of their gradients.
    shares: ByLane<u64, N>,
    /// The highest live bytes of the tensors that only updates make.
    temporaries: ByLane<u64, N>,
}

impl<const N: usize> Amounts<N> {
    /// Adds the bytes of the same update for other positions.
    pub(super) fn add(&mut self, other: &Self) {
        lanes::add(&mut self.loaded, &other.loaded);
        lanes::raise(&mut self.largest, &other.largest);
        lanes::add(&mut self.gathered, &other.gathered);
        lanes::add(&mut self.shares, &other.shares);
        lanes::add(&mut self.temporaries, &other.temporaries);
    }
}

impl UpdatePhase {
    /// Returns the bytes of an update, by lane (tile), besides always-live variables: first with
    /// landing pads (buffers into which state is loaded) for all state, then with a pad for only
    /// one tensor of state at a time.
    pub(super) fn taken<const N: usize>(
        &self,
        update: u32,
        amounts: &Amounts<N>,
    ) -> ([u64; N], [u64; N]) {
        let is_shared_out = self.is_shared_out[update as usize];
        let taken = |lane: usize| {
            let loaded = amounts.loaded[lane];
            let made = match is_shared_out {
                false => amounts.temporaries[lane],
                true => (self.share(amounts.temporaries[lane]) + amounts.shares[lane])
                    .max(amounts.gathered[lane]),
            };
            let with = |pads: u64| loaded + pads.max(made);
            (with(loaded), with(amounts.largest[lane].min(loaded)))
        };
        let both: [(u64, u64); N] = std::array::from_fn(taken);
        (both.map(|bounds| bounds.0), both.map(|bounds| bounds.1))
    }
}

impl<const N: usize> TileUpdates<N> {
    /// Loads the variables of some tiles that take part in updates.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        uses: &NeighbourUses<N>,
    ) {
        self.rows.clear();
        self.shares.clear();
        self.holes.clear();
        for (row, (number, bytes)) in (0u32..).zip(uses.with_bytes()) {
            let Some(in_update) = phase.of(number) else {
                continue;
            };
            let set = memory.uses.known(number).counted;
            let wide = bytes.map(u64::from);
            if in_update.has_holes && !in_update.is_away() {
                self.holes.push((set, wide));
            }
            let Some(role) = in_update.role else {
                continue;
            };
            if role == SHARED_STATE && !phase.is_off_chip() {
                self.shares
                    .push((set, wide.map(|bytes| phase.share(bytes))));
            }
            self.rows
                .extend(in_update.updates.iter().map(|&update| UpdateRow {
                    update,
                    set,
                    role,
                    row,
                    number,
                }));
        }
        self.make_entries(memory, phase, uses);
    }

    /// Sums up the rows into one entry for each update and each set of positions.
    fn make_entries(
        &mut self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        uses: &NeighbourUses<N>,
    ) {
        self.entries.clear();
        self.rows.sort_unstable_by_key(|row| (row.update, row.set));
        for same in self
            .rows
            .chunk_by(|a, b| (a.update, a.set) == (b.update, b.set))
        {
            let mut amounts = Amounts::default();
            for row in same {
                add_row(&mut amounts, phase, row.role, uses.bytes(row.row as usize));
            }
            let steps = phase.steps[same[0].update as usize];
            *amounts.temporaries = highest(memory, same, steps, uses);
            self.entries.push(PlacedAmounts {
                update: same[0].update,
                set: same[0].set,
                amounts,
            });
        }
    }
}

/// The role of optimizer state that is sharded among replicas.
const SHARED_STATE: UpdateRole = UpdateRole::State {
    is_shared_out: true,
};

/// Adds the bytes of one use's variables, by lane (tile), to the bytes of an update.
fn add_row<const N: usize>(
    amounts: &mut Amounts<N>,
    phase: &UpdatePhase,
    role: UpdateRole,
    bytes: &[u32; N],
) {
    let bytes = bytes.map(u64::from);
    let shares = bytes.map(|bytes| phase.share(bytes));
    match role {
        UpdateRole::State { is_shared_out } if phase.is_off_chip() => {
            let loaded = if is_shared_out { &shares } else { &bytes };
            lanes::add(&mut amounts.loaded, loaded);
            lanes::raise(&mut amounts.largest, loaded);
        }
        UpdateRole::Weight => {
            lanes::add(&mut amounts.gathered, &lanes::plus(&bytes, &shares));
            lanes::add(&mut amounts.shares, &shares);
            if !phase.has_gradients {
                lanes::add(&mut amounts.shares, &shares);
            }
        }
        UpdateRole::Gradient => lanes::add(&mut amounts.shares, &shares),
        UpdateRole::State { .. } | UpdateRole::Temporary => {}
    }
}

/// Returns for each lane (tile) the highest live bytes of tensors that an update makes at any of
/// its steps.
fn highest<const N: usize>(
    memory: &MemoryModel<'_>,
    rows: &[UpdateRow],
    (first, end): (u32, u32),
    uses: &NeighbourUses<N>,
) -> [u64; N] {
    let mut live = StepSums::new(first..end);
    for row in rows.iter().filter(|row| row.role == UpdateRole::Temporary) {
        let bytes = uses.bytes(row.row as usize).map(u64::from);
        live.add(bytes, memory.live_ranges(row.number).unwrap_or_default());
    }
    live.highest()
}

/// The bytes of a stage on one tile in the update that takes the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory) struct Updating {
    /// Bytes of the stage's own parameters that are not live at some steps; the step-by-step
    /// computation adds the variables that are live at every step.
    pub(in crate::memory) variables: u64,
    /// Bytes like `variables`, of parameters that every stage has.
    pub(in crate::memory) overhead: u64,
    /// Bytes of the replica's shares of state, which stay on the chip between updates.
    pub(in crate::memory) shares: u64,
    /// The highest bytes that an update takes besides always-live variables.
    pub(in crate::memory) taken: u64,
    /// The highest bytes of any update if only one tensor of state at a time has a landing pad.
    pub(in crate::memory) taken_at_least: u64,
    /// The number and the first step of the update that takes the most bytes; `None` if no update
    /// takes any.
    pub(in crate::memory) update: Option<(u32, u32)>,
}

impl<const N: usize> TileUpdates<N> {
    /// Computes the bytes in the update of a stage with these positions (end exclusive), by lane
    /// (tile).
    pub(in crate::memory) fn in_stage(
        &self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        positions: &Range<usize>,
    ) -> [Updating; N] {
        let meets = |set: PlaceSet| {
            let mut places = memory.sets.places(set).iter();
            set == EVERYWHERE || places.any(|&place| positions.contains(&(place as usize)))
        };
        let sum = |all: &[Placing<N>], is_wanted: &dyn Fn(PlaceSet) -> bool| {
            let wanted = all.iter().filter(|placing| is_wanted(placing.0));
            lanes::sum(wanted.map(|placing| placing.1))
        };
        let common = sum(&self.holes, &|set| set == EVERYWHERE);
        let holes = sum(&self.holes, &|set| set != EVERYWHERE && meets(set));
        let shares = sum(&self.shares, &meets);
        let mut found: [Updating; N] = std::array::from_fn(|lane| Updating {
            variables: holes[lane],
            overhead: common[lane],
            shares: shares[lane],
            ..Updating::default()
        });
        for same in self.entries.chunk_by(|a, b| a.update == b.update) {
            let mut amounts = Amounts::default();
            let entries = same.iter().filter(|entry| meets(entry.set));
            entries.for_each(|entry| amounts.add(&entry.amounts));
            let (most, least) = phase.taken(same[0].update, &amounts);
            for (lane, found) in found.iter_mut().enumerate() {
                found.taken_at_least = found.taken_at_least.max(least[lane]);
                if most[lane] > found.taken {
                    found.taken = most[lane];
                    let update = same[0].update;
                    found.update = Some((update, phase.steps[update as usize].0));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::StatePlace;

    const MIB: u64 = 1 << 20;

    fn phase(place: StatePlace, replicas: u64) -> UpdatePhase {
        UpdatePhase {
            place,
            replicas,
            has_gradients: true,
            of_uses: [].into(),
            is_shared_out: [place.is_sharded()].into(),
            steps: [(0, 1)].into(),
        }
    }

    /// The embedding of BERT-Large has two moments of 32 bits: published configurations serialise
    /// it, since both come on chip at once.
    #[test]
    fn a_large_embedding_defeats_what_state_off_chip_brings() {
        let moment = 30_522 * 1024 * 4;
        let amounts = Amounts {
            loaded: ByLane([2 * moment]),
            largest: ByLane([moment]),
            ..Amounts::default()
        };
        let ([most], [least]) = phase(StatePlace::OffChip, 1).taken(0, &amounts);
        let rounded = |bytes: u64| (bytes + MIB / 2) / MIB;
        assert_eq!([2 * moment, least, most].map(rounded), [238, 358, 477]);
    }

    #[test]
    fn replicas_gather_a_weight_and_load_their_shares() {
        let amounts = |loaded: u64| Amounts {
            loaded: ByLane([loaded]),
            largest: ByLane([25.min(loaded)]),
            gathered: ByLane([100 + 25]),
            shares: ByLane([25 + 30]),
            temporaries: ByLane([300]),
        };
        let taken = |place, loaded| phase(place, 4).taken(0, &amounts(loaded));
        // 300 / 4 + 25 + 30 is more than 100 + 25.
        assert_eq!(taken(StatePlace::Sharded, 0), ([130], [130]));
        assert_eq!(
            taken(StatePlace::ShardedOffChip, 50),
            ([50 + 130], [50 + 130])
        );
    }
}
