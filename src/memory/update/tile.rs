//! The bytes that weight updates take on neighbouring tiles, for pipeline stages and for ranges of
//! layers that grow layer by layer.

use super::{UpdatePhase, UpdateRole};
use crate::{
    memory::MemoryModel,
    memory::code::{TileOverhead, by_lane},
    memory::entering::GrowingSums,
    memory::lanes::{self, ByLane},
    memory::steps::StepSums,
    memory::uses::{NeighbourUses, Placing},
    model::{EVERYWHERE, PlaceSet, TooManyPlaces, VariableUse},
};
use std::{array::from_fn, collections::BTreeMap, ops::Range};

/// The bytes of weight updates on up to `N` neighbouring tiles, with one lane for each tile. The
/// buffers are reused for further tiles.
#[derive(Default)]
pub struct TileUpdates<const N: usize> {
    /// For each weight update, by its index: the bytes of its variables, by the set of positions
    /// (In, layers, Out) to which they belong. A stage that has any position of a set has the
    /// bytes.
    entries: BTreeMap<u32, Vec<(PlaceSet, Amounts<N>)>>,
    /// The bytes of one replica's shares of optimizer state that is sharded on the chip. They are
    /// on the chip during the passes too.
    shares: Vec<Placing<N>>,
    /// The bytes of parameters that stay on the chip, but are not live at some steps of the passes
    /// in the profile. The memory of the passes lacks these bytes at such steps, but the memory of
    /// a weight update always includes them.
    holes: Vec<Placing<N>>,
}

/// The bytes of the variables of one weight update on up to `N` neighbouring tiles, one lane per
/// tile, by what the update does with them, such as loading optimizer state. From these amounts
/// follow the bytes that the update takes ([`UpdatePhase::taken`]).
#[derive(Clone, Copy, Default)]
struct Amounts<const N: usize> {
    /// The bytes of optimizer state that a weight update loads from memory outside the IPUs: only
    /// this replica's share if the state is sharded.
    loaded: ByLane<u64, N>,
    /// The bytes of the largest group of variables (live at the same steps and used by the same
    /// operations) among the optimizer state that an update loads. A landing pad (a buffer into
    /// which state is loaded) of this size has room for one such group at a time.
    largest: ByLane<u64, N>,
    /// The bytes of whole weights, plus the bytes of one replica's share of each of them. An update
    /// of sharded optimizer state gathers the whole weight from the replicas, and keeps the share
    /// on the chip meanwhile.
    gathered: ByLane<u64, N>,
    /// The bytes of a replica's shares of the weights and of their gradients, which a sharded
    /// update needs.
    shares: ByLane<u64, N>,
    /// The bytes, on each tile, of the tensors that only updates make. Tensors of one set of
    /// positions have a common peak over the steps of the weight update; the peaks of several sets
    /// are added up.
    temporaries: ByLane<u64, N>,
}

impl<const N: usize> Amounts<N> {
    fn add(&mut self, other: &Self) {
        lanes::add(&mut self.loaded, &other.loaded);
        lanes::raise(&mut self.largest, &other.largest);
        lanes::add(&mut self.gathered, &other.gathered);
        lanes::add(&mut self.shares, &other.shares);
        lanes::add(&mut self.temporaries, &other.temporaries);
    }

    /// Adds the bytes of variables on each tile to those fields that the variables' `role` in a
    /// weight update determines. For example, the bytes of a weight are added to `gathered`.
    fn add_row(&mut self, phase: &UpdatePhase, role: UpdateRole, bytes: &[u64; N]) {
        let shares = bytes.map(|bytes| phase.share(bytes));
        match role {
            UpdateRole::State { is_shared_out } if phase.place.is_off_chip() => {
                let loaded = if is_shared_out { &shares } else { bytes };
                lanes::add(&mut self.loaded, loaded);
                lanes::raise(&mut self.largest, loaded);
            }
            UpdateRole::Weight => {
                lanes::add(&mut self.gathered, &lanes::plus(bytes, &shares));
                lanes::add(&mut self.shares, &shares);
                if !phase.has_gradients {
                    lanes::add(&mut self.shares, &shares);
                }
            }
            UpdateRole::Gradient => lanes::add(&mut self.shares, &shares),
            UpdateRole::State { .. } | UpdateRole::Temporary => {}
        }
    }
}

impl UpdatePhase {
    /// Returns for each lane (tile) the bytes that a weight update takes in addition to parameters
    /// that are on the chip anyway, as two numbers. The first is for landing pads (buffers into
    /// which optimizer state is loaded) that hold all state at once. The second is for one landing
    /// pad that holds only one tensor of state at a time.
    fn taken<const N: usize>(&self, update: u32, amounts: &Amounts<N>) -> [(u64, u64); N] {
        let is_shared_out = self.is_shared_out[update as usize];
        from_fn(|lane| {
            let loaded = amounts.loaded[lane];
            let made = if is_shared_out {
                let shares = self.share(amounts.temporaries[lane]) + amounts.shares[lane];
                shares.max(amounts.gathered[lane])
            } else {
                amounts.temporaries[lane]
            };
            let with = |pads: u64| loaded + pads.max(made);
            (with(loaded), with(amounts.largest[lane].min(loaded)))
        })
    }
}

impl<const N: usize> TileUpdates<N> {
    /// Collects the bytes of those variables in `uses` that take part in weight updates, by update
    /// and by layers.
    pub fn load(&mut self, memory: &MemoryModel<'_>, phase: &UpdatePhase, uses: &NeighbourUses<N>) {
        let mut found: BTreeMap<(u32, PlaceSet), (Amounts<N>, StepSums<N>)> = BTreeMap::new();
        self.entries.clear();
        self.shares.clear();
        self.holes.clear();
        for &(number, bytes) in &uses.rows {
            let in_update = phase.of(number);
            let &VariableUse { class, set, .. } = memory.uses.of(number);
            let set = memory.counted(set);
            let bytes = bytes.map(u64::from);
            if in_update.fills_holes {
                self.holes.push((set, bytes));
            }
            let Some(role) = in_update.role else {
                continue;
            };
            if role == UpdateRole::SHARED_STATE && !phase.place.is_off_chip() {
                self.shares
                    .push((set, bytes.map(|bytes| phase.share(bytes))));
            }
            for &update in &in_update.updates {
                let (amounts, live) = found.entry((update, set)).or_insert_with(|| {
                    let (first, end) = phase.steps[update as usize];
                    (Amounts::default(), StepSums::new(first..end))
                });
                amounts.add_row(phase, role, &bytes);
                if role == UpdateRole::Temporary {
                    live.add(bytes, memory.live_ranges(class).unwrap_or_default());
                }
            }
        }
        for ((update, set), (mut amounts, mut live)) in found {
            *amounts.temporaries = live.highest();
            self.entries.entry(update).or_default().push((set, amounts));
        }
    }

    /// Returns for each lane (tile) the bytes that a stage takes in the weight update. `positions`
    /// are the positions (In, layers, Out) of the stage, end exclusive.
    pub fn in_stage(
        &self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        positions: &Range<usize>,
    ) -> [Updating; N] {
        // The variables that every stage has count as overhead. A stage without positions has only
        // these variables, so they are summed up over an empty range.
        let common = memory.sum_in(&self.holes, &(0..0));
        let holes = memory.sum_in(&self.holes, positions);
        let shares = memory.sum_in(&self.shares, positions);
        let mut found: [Updating; N] = from_fn(|lane| Updating {
            variables: holes[lane] - common[lane],
            overhead: common[lane],
            shares: shares[lane],
            ..Updating::default()
        });
        for (&update, placed) in &self.entries {
            let mut amounts = Amounts::default();
            placed
                .iter()
                .filter(|(set, _)| memory.counts_in(*set, positions))
                .for_each(|(_, own)| amounts.add(own));
            let taken = phase.taken(update, &amounts);
            for (found, (most, least)) in found.iter_mut().zip(taken) {
                found.taken_at_least = found.taken_at_least.max(least);
                if most > found.taken {
                    found.taken = most;
                    found.update = Some((update, phase.steps[update as usize].0));
                }
            }
        }
        found
    }
}

/// The bytes of a stage on one tile in the weight update that takes the most bytes on this tile.
#[derive(Clone, Copy, Default)]
pub struct Updating {
    /// Bytes of parameters of the stage's layers that stay on the chip, but that the profile lists
    /// as live at only some steps of the forward and backward pass. Always-live parameters are not
    /// included; [`StagePeak`](crate::memory::stage) adds them.
    pub variables: u64,
    /// Bytes of parameters that every stage has and that are on the chip during the update, but are
    /// not live at some steps of the forward and backward pass.
    pub overhead: u64,
    /// Bytes of one replica's shares of sharded optimizer state, if they stay on the chip in the
    /// forward and backward pass too; otherwise 0.
    pub shares: u64,
    /// The highest bytes that the update of any weight takes, if landing pads (buffers into which
    /// optimizer state is loaded) hold all state of the weight at once. Parameters that are also on
    /// the chip outside of updates are not included.
    pub taken: u64,
    /// The highest bytes that the update of any weight takes if a landing pad (a buffer into which
    /// optimizer state is loaded) holds only one tensor of state at a time.
    pub taken_at_least: u64,
    /// The index and the first liveness step of the weight update that takes the most bytes; `None`
    /// if no update takes any bytes.
    pub update: Option<(u32, u32)>,
}

/// The bytes that weight updates take in a range of layers on up to `N` neighbouring tiles, one
/// lane for each tile. The range grows layer by layer. [`RangeUpdates::load`] sets the tiles.
#[derive(Default)]
pub struct RangeUpdates<const N: usize> {
    /// The bytes of two kinds of variables that the current range of layers has on the chip during
    /// each weight update. Kind 0: a replica's shares of optimizer state that is sharded on the
    /// chip. Kind 1: parameters that the profile lists as live at only some steps of the forward
    /// and backward pass, so that they are not among the always-live variables.
    lasting: GrowingSums<N, 2>,
    /// One list per position (In, a layer or Out): the bytes in weight updates that a range of
    /// layers gains when it grows to this position. An item has the lowest start of a range that
    /// gains the bytes here, the index of the update in `common`, and the bytes. A range that
    /// starts earlier has the bytes already, because an earlier position needs them too.
    gained: Vec<Vec<(u32, u32, Amounts<N>)>>,
    /// For each weight update (by its index in [`UpdatePhase`]): the bytes of those of its
    /// variables that every stage has. Every range of layers starts with these bytes.
    common: Vec<(u32, Amounts<N>)>,
    /// For each weight update (by its index in [`UpdatePhase`]): the bytes of its variables in the
    /// range of layers that is examined at the moment.
    sums: Vec<(u32, Amounts<N>)>,
    /// The highest bytes that any weight update takes in an empty range of layers, which has only
    /// the variables that every stage has.
    everywhere: ByLane<u64, N>,
    /// The highest bytes that any weight update takes on each tile, in the current range of layers.
    taken: ByLane<u64, N>,
}

impl<const N: usize> RangeUpdates<N> {
    /// Prepares to compute the bytes of weight updates on `tiles`, a few neighbouring tiles, for
    /// ranges of layers.
    ///
    /// # Errors
    /// If these tiles have more variables than tiles of any real program.
    pub fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        phase: &UpdatePhase,
        tiles: &TileUpdates<N>,
    ) -> Result<(), TooManyPlaces> {
        let positions = memory.layers();
        self.lasting.restart(positions);
        for (kind, all) in [&tiles.shares, &tiles.holes].into_iter().enumerate() {
            for &(set, bytes) in all {
                self.lasting.enter(memory, set, kind, bytes);
            }
        }
        self.gained.resize_with(positions, Vec::new);
        self.gained.iter_mut().for_each(Vec::clear);
        self.common.clear();
        self.everywhere = Default::default();
        for (&update, placed) in &tiles.entries {
            let number = self.common.len() as u32;
            let mut common = Amounts::default();
            for &(set, ref amounts) in placed {
                if set == EVERYWHERE {
                    common.add(amounts);
                }
                let mut from = 0;
                for &place in memory.sets.places(set) {
                    self.gained[place as usize].push((from, number, *amounts));
                    from = place + 1;
                }
            }
            let taken = phase.taken(update, &common);
            lanes::raise(&mut self.everywhere, &taken.map(|(most, _)| most));
            self.common.push((update, common));
        }
        self.lasting.entries.check()
    }

    /// Starts an empty range of layers at the position `start`. The method must be called with the
    /// starts 0, 1, ... in this order, since it adds to sums that earlier calls have left.
    pub fn begin(&mut self, start: usize) {
        self.lasting.begin(start);
        self.sums.clone_from(&self.common);
        self.taken = self.everywhere;
    }

    pub fn add(&mut self, phase: &UpdatePhase, range: &Range<usize>) {
        let last = range.end - 1;
        self.lasting.add(last);
        for (from, number, amounts) in &self.gained[last] {
            if *from as usize <= range.start {
                let (update, sums) = &mut self.sums[*number as usize];
                sums.add(amounts);
                let taken = phase.taken(*update, sums);
                lanes::raise(&mut self.taken, &taken.map(|(most, _)| most));
            }
        }
    }

    /// Returns one entry per lane (tile): the bytes of a replica's shares of sharded optimizer
    /// state in the current range of layers, with their fragmentation. The bytes are 0 if the
    /// shares are off the chip outside of weight updates.
    pub fn always(&self, tiles: &[TileOverhead]) -> [u64; N] {
        let shares = &self.lasting.sums[0];
        by_lane(tiles, |lane, tile| {
            shares[lane] + tile.fragmentation_of_shares(shares[lane])
        })
    }

    /// Returns one entry per lane (tile): the bytes that the current range of layers takes during
    /// weight updates, without always-live parameters. This is the sum of two numbers: the bytes of
    /// the update that takes the most, and the bytes of parameters that are live at only some steps
    /// of the passes.
    pub fn taken(&self) -> [u64; N] {
        lanes::plus(&self.taken, &self.lasting.sums[1])
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

    /// BERT-Large's embedding has two 32-bit moments (optimizer state). If they are off the chip,
    /// its update takes memory for both and as much again for landing pads (buffers into which they
    /// are loaded): twice the memory of moments that stay on the chip.
    #[test]
    fn a_large_embedding_defeats_what_state_off_chip_brings() {
        let moment = 30_522 * 1024 * 4;
        let amounts = Amounts {
            loaded: ByLane([2 * moment]),
            largest: ByLane([moment]),
            ..Amounts::default()
        };
        let [(most, least)] = phase(StatePlace::OffChip, 1).taken(0, &amounts);
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
        // With 4 replicas, a tile needs the larger of two sums: 130 bytes to update a replica's
        // part, and 125 bytes to gather the weight. The first sum is 300 / 4 bytes of temporaries,
        // a share of the weight (25 bytes), and a share of its gradients (30 bytes). The second is
        // the weight (100 bytes) and a share of it.
        assert_eq!(taken(StatePlace::Sharded, 0), [(130, 130)]);
        let off_chip = taken(StatePlace::ShardedOffChip, 50);
        assert_eq!(off_chip, [(50 + 130, 50 + 130)]);
    }
}
