//! The bytes that layers share and pass on to each other (docs/model.md, "What layers share").

use super::{MemoryModel, steps::merged};
use crate::model::{Framework, PlaceSet, ascending, crossing};
use rustc_hash::FxHashMap;

/// Variables of one equivalence class (live at the same steps) that the same layers use: these
/// layers (ascending), the half-open live ranges of the variables, and the sum of their bytes over
/// all tiles. Operations before the first layer and after the last count as layers too.
struct LiveShare<'a> {
    layers: &'a [u32],
    ranges: &'a [(u32, u32)],
    bytes: u64,
}

/// A table of bytes with one row and one column per position (In, layers, Out). Depending on the
/// table, `matrix[a][b]` has the bytes of the variables that `a` and `b` share, or of those that
/// `a` passes on to `b`.
pub type Matrix = Vec<Vec<u64>>;

impl MemoryModel<'_> {
    /// Returns for each pair of layers the bytes, over all tiles, of the variables that both layers
    /// use. An entry on the diagonal has the bytes of all variables that the layer uses.
    pub fn affinity(&self) -> Matrix {
        self.matrix(|shared| pairs(shared.layers, shared.layers))
    }

    /// Returns a table with one row and one column per layer: the bytes, over all tiles, of the
    /// variables that the row's layer passes on to the column's layer. A variable is passed on if
    /// both layers use it, and one of its live ranges begins at a step of the row's layer and ends
    /// at a step of the column's layer.
    pub fn communication(&self) -> Matrix {
        self.matrix(|shared| {
            let ends = shared.ranges.iter().map(|&range| self.ends(shared, range));
            ascending(ends.flat_map(|(from, to)| pairs(&from, &to))).into_vec()
        })
    }

    /// Makes a table of the bytes that each layer (row) shares with, or passes on to, each layer
    /// (column). `flows` is called for each group of variables that the same layers use. It returns
    /// the pairs (row, column) of layers to whose entries the bytes of the group are added.
    fn matrix(&self, flows: impl Fn(&LiveShare<'_>) -> Vec<(u32, u32)>) -> Matrix {
        let layers = self.layers();
        let mut matrix = vec![vec![0; layers]; layers];
        for shared in self.used_by(1) {
            for (row, column) in flows(&shared) {
                matrix[row as usize][column as usize] += shared.bytes;
            }
        }
        matrix
    }

    /// Returns one entry per boundary (index n is between the positions n and n + 1): the bytes,
    /// over all tiles, of the variables that flow across the boundary in either direction. A
    /// variable flows across if one of its live ranges begins and ends in layers on different
    /// sides. The bytes of a variable are added once, however many layers on both sides use it.
    pub fn cut_bytes(&self) -> Vec<u64> {
        // Variables that only one layer uses flow across no boundary between layers. Most variables
        // are of this kind, so they are left out to save time.
        let flows = self.used_by(2).into_iter().flat_map(|shared| {
            let ranges = shared.ranges.iter();
            merged(ranges.filter_map(|&range| self.span(&shared, range)))
                .into_iter()
                .map(move |(first, last)| ([first, last], shared.bytes))
        });
        at_boundaries(self.layers(), flows)
    }

    /// Returns one entry per boundary of the layer order: the bytes, over all tiles, that a
    /// pipeline split there sends for one micro-batch. An entry has two numbers: the bytes of the
    /// forward pass, and those of the backward pass. Entry n is for the boundary after the position
    /// n. If Out (the operations after the last layer) is on the first IPU, one more entry is for
    /// the boundary between the last position and Out.
    pub fn cut_bytes_by_pass(&self) -> Vec<[u64; 2]> {
        let flows = self.flows_or_new();
        let mut sent = [Vec::new(), Vec::new()];
        for (number, variable) in (0u32..).zip(self.uses.data.uses()) {
            if let Some((pass, places)) = flows.sent(number) {
                sent[pass].push((places, variable.bytes));
            }
        }
        let [forward, backward] =
            sent.map(|sent| at_boundaries(flows.places as usize, sent.into_iter()));
        forward
            .into_iter()
            .zip(backward)
            .map(<[u64; 2]>::from)
            .collect()
    }

    /// Returns the framework that the model was written in.
    pub fn framework(&self) -> Framework {
        self.model.recording.framework
    }

    /// Returns whether the model is trained, that is, has a backward pass.
    pub fn is_training(&self) -> bool {
        self.model.backward_start.is_some()
    }

    /// Returns sets of at least two layers (positions, ascending) that share variables such as tied
    /// weights. Each set comes with the bytes, over all tiles, of the variables that exactly these
    /// layers use and that are live at every step. The set with the most bytes comes first.
    pub fn ties(&self) -> Vec<(Vec<u32>, u64)> {
        let steps = (0, self.model.steps());
        let mut ties: FxHashMap<Vec<u32>, u64> = FxHashMap::default();
        for shared in self.used_by(2) {
            if *shared.ranges == [steps] {
                *ties.entry(shared.layers.into()).or_default() += shared.bytes;
            }
        }
        let mut ties: Vec<_> = ties.into_iter().collect();
        ties.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ties
    }

    /// Collects the variables that at least `layers` layers use, grouped by equivalence class
    /// (variables that are live at the same steps) and by the layers that use them.
    fn used_by(&self, layers: usize) -> Vec<LiveShare<'_>> {
        let is_wanted: Vec<bool> = self.sets.iter().map(|set| set.len() >= layers).collect();
        let sharing = &self.placement.sharing;
        let mut sums: FxHashMap<(u32, PlaceSet), u64> = FxHashMap::default();
        for variable in self.uses.all() {
            let set = sharing[variable.set as usize];
            if is_wanted[set.index()] {
                *sums.entry((variable.class, set)).or_default() += variable.bytes;
            }
        }
        sums.into_iter()
            .map(|((class, set), bytes)| LiveShare {
                layers: self.sets.places(set),
                ranges: self.model.classes.ranges(class),
                bytes,
            })
            .collect()
    }

    /// Of the layers that use the variables of `shared`, returns those that run at the first step
    /// of one half-open live range of these variables, and those that run at its last step. The
    /// variables flow from each layer of the first list to each layer of the second.
    fn ends(&self, shared: &LiveShare<'_>, (start, end): (u32, u32)) -> (Vec<u32>, Vec<u32>) {
        let at = |step: u32| {
            let runs = |(first, last): (u32, u32)| (first..=last).contains(&step);
            let layers = shared.layers.iter().copied();
            layers
                .filter(|&layer| self.windows[layer as usize].is_some_and(runs))
                .collect()
        };
        (at(start), at(end - 1))
    }

    /// Of the layers that use the variables of `shared`, returns the lowest and the highest that
    /// run at the first or the last step of `range`, a half-open live range of these variables. The
    /// variables cross every boundary between the two layers. Returns `None` if none of the layers
    /// runs at the first step, or none at the last step.
    fn span(&self, shared: &LiveShare<'_>, range: (u32, u32)) -> Option<(u32, u32)> {
        let (from, to) = self.ends(shared, range);
        Some((
            *from.first()?.min(to.first()?),
            *from.last()?.max(to.last()?),
        ))
    }
}

/// Sums up the bytes that flow across each boundary between two of `positions` positions (In,
/// layers, Out). Each item of `flows` has the first and the last position between which bytes flow,
/// and the number of these bytes.
fn at_boundaries(positions: usize, flows: impl Iterator<Item = ([u32; 2], u64)>) -> Vec<u64> {
    let flows = flows.map(|([from, to], bytes)| (from as usize, to as usize, bytes as i64));
    let sums = crossing(positions, flows).into_iter();
    sums.take(positions).skip(1).map(|sum| sum as u64).collect()
}

fn pairs(rows: &[u32], columns: &[u32]) -> Vec<(u32, u32)> {
    rows.iter()
        .flat_map(|&row| columns.iter().map(move |&column| (row, column)))
        .collect()
}
