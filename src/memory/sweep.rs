//! The peak of every range of layers that can fit.
//!
//! Rebuilding each range from its operations is hundreds of times too slow.
//! Instead, tile by tile:
//!
//! * A variable that the layers l1 < l2 < ... use enters a growing range once.
//!   For the consecutive uses (p, n) it enters at layer n of every range that
//!   starts behind p, so uses are sorted by n, and by p the starts from which
//!   they count.
//! * A peak can lie only on few steps of a tile: where something ends to be
//!   live after something began, and at the ends of layers' windows.
//!   All ranges are kept as places in the list of these steps.
//! * For each layer one dense vector over these steps holds what enters there.
//!   From each start, the vectors of the following layers are added up, and
//!   the highest sum within the window so far is kept: sums and windows only
//!   grow.
//! * What every stage needs is where the sums begin: by the full rules, the
//!   variables that no operation uses and the code that none explains. Code of
//!   each kind is bounded by what the profile has of it on the tile.
//! * The first layer at which any tile passes the limit ends the range for all
//!   tiles. The heaviest tiles go first, so that this happens early.

use super::code::CodeItem;
use super::{MemoryModel, RangeCosts, Rules};
use crate::model::NO_BODY;
use crate::progress::{Progress, Task, Unit};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};

impl MemoryModel<'_> {
    /// The bytes on the fullest tile of every contiguous range of layers that
    /// needs at most `limit` bytes on each tile; exact.
    pub fn range_costs(&self, limit: u64) -> RangeCosts {
        self.range_costs_with(limit, &Progress::new())
    }

    /// The same, counting tiles.
    pub fn range_costs_with(&self, limit: u64, progress: &Progress) -> RangeCosts {
        let layers = self.layers();
        let tiles = u64::from(self.model.variables.tiles());
        let task = progress.begin("weighing ranges of layers", Unit::Tiles, tiles);
        let shared = Shared {
            model: self,
            limit,
            code_by_tile: self.code_by_tile(),
            order: self.heaviest_first(),
            next: AtomicUsize::new(0),
            ends: (0..layers).map(|_| AtomicUsize::new(layers)).collect(),
        };
        let by_thread = rayon::broadcast(|_| shared.work(&task));
        let mut peaks = vec![0u64; layers * layers];
        for own in by_thread {
            for (peak, own) in peaks.iter_mut().zip(own) {
                *peak = own.max(*peak);
            }
        }
        let row = |from: usize| {
            let end = shared.ends[from].load(Ordering::Relaxed);
            peaks[from * layers + from..from * layers + end.max(from)].to_vec()
        };
        RangeCosts::new((0..layers).map(row).collect())
    }

    /// By tile: (code item, bytes there).
    fn code_by_tile(&self) -> Vec<Vec<(u32, u64)>> {
        let mut by_tile = vec![Vec::new(); self.model.target.num_tiles as usize];
        for (number, CodeItem { bytes, .. }) in (0u32..).zip(&self.code) {
            for sum in bytes {
                for tile in &mut by_tile[sum.from as usize..sum.to as usize] {
                    tile.push((number, sum.bytes));
                }
            }
        }
        by_tile
    }

    /// All tiles by the bytes of their variables.
    fn heaviest_first(&self) -> Vec<u32> {
        let variables = &self.model.variables;
        let mut order: Vec<u32> = (0..variables.tiles()).collect();
        let bytes = |tile| -> u64 {
            let items = variables.on_tile(tile).iter();
            items.map(|item| u64::from(item.bytes)).sum()
        };
        order.sort_by_cached_key(|&tile| std::cmp::Reverse(bytes(tile)));
        order
    }
}

/// What all threads share.
struct Shared<'a> {
    model: &'a MemoryModel<'a>,
    limit: u64,
    code_by_tile: Vec<Vec<(u32, u64)>>,
    order: Vec<u32>,
    /// How many tiles of `order` are taken.
    next: AtomicUsize,
    /// By start: the end (exclusive) of the longest range that fits, as far as
    /// is known.
    ends: Vec<AtomicUsize>,
}

impl Shared<'_> {
    /// Takes tiles until none is left; the peaks of all ranges on these tiles,
    /// as a matrix of first and last layer.
    fn work(&self, task: &Task) -> Vec<u64> {
        let layers = self.model.layers();
        let mut peaks = vec![0; layers * layers];
        let mut tile = Tile::default();
        while let Some(&number) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            tile.load(self, number);
            // 32 bits hold what a tile has, but not what a file may claim.
            match tile.variable_bytes <= u64::from(u32::MAX) {
                true => Sweep::<u32>::new(&tile, layers).run(self, &tile, &mut peaks),
                false => Sweep::<u64>::new(&tile, layers).run(self, &tile, &mut peaks),
            }
            task.add(1);
        }
        peaks
    }
}

/// Bytes that enter ranges at `layer`, if they start behind `previous` - 1.
#[derive(Debug, Clone, Copy)]
struct Entry<What> {
    /// One more than the last layer before `layer` that has it already; 0 for none.
    after: u32,
    layer: u32,
    what: What,
}

/// A stretch of the list of steps, and the bytes live there.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: u32,
    to: u32,
    bytes: u32,
}

/// One tile, in the form that the sweep needs.
#[derive(Debug, Default)]
struct Tile {
    /// All bytes of variables that layers use.
    variable_bytes: u64,
    /// How many steps can hold a peak.
    places: usize,
    /// By step, how many of these steps lie before it.
    rank: Vec<u32>,
    /// Variables that are not live on all steps.
    moving: Vec<Entry<Stretch>>,
    /// Variables that are.
    always: Vec<Entry<u64>>,
    code: Vec<Entry<(usize, u64)>>,
    /// Variables that no operation uses, which every stage has: live on some
    /// steps, and on all.
    everywhere: Vec<Stretch>,
    always_everywhere: u64,
    number: usize,
    marks: Vec<u8>,
}

/// Something begins to be live at this step.
const BEGIN: u8 = 1;
/// Something is live up to the step before this one.
const END: u8 = 2;
/// A window begins or ends here: the step is kept.
const EDGE: u8 = 4;

impl Tile {
    fn load(&mut self, shared: &Shared<'_>, tile: u32) {
        self.number = tile as usize;
        self.variable_bytes = 0;
        self.always_everywhere = 0;
        self.everywhere.clear();
        self.moving.clear();
        self.always.clear();
        self.code.clear();
        self.find_places(shared.model, tile);
        self.load_variables(shared.model, tile);
        for &(number, bytes) in &shared.code_by_tile[tile as usize] {
            let item = &shared.model.code[number as usize];
            let layers = shared.model.users.sets.layers(item.set);
            enter(layers, |after, layer| {
                let what = (item.kind as usize, bytes);
                self.code.push(Entry { after, layer, what });
            });
        }
        self.always.sort_unstable_by_key(|entry| entry.after);
        self.code.sort_unstable_by_key(|entry| entry.after);
        self.moving.sort_unstable_by_key(|entry| entry.after);
    }

    /// Finds the steps that can hold a peak: the last before an end, if
    /// anything began since the step found before, and both ends of each
    /// layer's window.
    fn find_places(&mut self, model: &MemoryModel<'_>, tile: u32) {
        let classes = &model.model.classes;
        let steps = classes.steps() as usize;
        self.marks.clear();
        self.marks.resize(steps + 1, 0);
        for (first, last) in (0..model.layers()).filter_map(|layer| model.layer_window(layer)) {
            self.marks[first as usize] |= EDGE;
            self.marks[last as usize] |= EDGE;
        }
        let mut class = u32::MAX;
        for item in model.items(tile) {
            let is_used = model.users.counted[item.set as usize] != 0;
            if item.class == class || !(is_used || is_everywhere(model, item.set)) {
                continue;
            }
            class = item.class;
            for &(from, to) in classes.ranges(class) {
                self.marks[from as usize] |= BEGIN;
                self.marks[to as usize] |= END;
            }
        }
        self.rank.clear();
        let mut places = 0u32;
        let mut began = false;
        for step in 0..steps {
            self.rank.push(places);
            began |= self.marks[step] & BEGIN != 0;
            let ends = self.marks[step + 1] & END != 0;
            if self.marks[step] & EDGE != 0 || (began && ends) {
                places += 1;
                began = false;
            }
        }
        self.rank.push(places);
        self.places = places as usize;
    }

    fn load_variables(&mut self, model: &MemoryModel<'_>, tile: u32) {
        let classes = &model.model.classes;
        for item in model.items(tile) {
            let set = model.users.counted[item.set as usize];
            let layers = model.users.sets.layers(set);
            let everywhere = is_everywhere(model, item.set);
            if layers.is_empty() && !everywhere {
                continue;
            }
            self.variable_bytes += u64::from(item.bytes);
            if classes.is_always_live(item.class) {
                let what = u64::from(item.bytes);
                self.always_everywhere += if everywhere { what } else { 0 };
                enter(layers, |after, layer| {
                    self.always.push(Entry { after, layer, what });
                });
                continue;
            }
            for &(from, to) in classes.ranges(item.class) {
                let what = Stretch {
                    from: self.rank[from as usize],
                    to: self.rank[to as usize],
                    bytes: item.bytes,
                };
                if what.from == what.to {
                    continue;
                }
                if everywhere {
                    self.everywhere.push(what);
                }
                enter(layers, |after, layer| {
                    self.moving.push(Entry { after, layer, what });
                });
            }
        }
    }
}

/// Does every stage have what these bodies use, because there are none?
fn is_everywhere(model: &MemoryModel<'_>, set: u32) -> bool {
    model.rules == Rules::Full && set == NO_BODY
}

/// Calls `entry` with each of `layers` and one more than the layer before it.
fn enter(layers: &[u32], mut entry: impl FnMut(u32, u32)) {
    let mut after = 0;
    for &layer in layers {
        entry(after, layer);
        after = layer + 1;
    }
}

/// A sum of bytes: 32 bits where they hold all of a tile.
trait Bytes: Copy + Default + Ord + AddAssign + From<u32> + Into<u64> {}
impl Bytes for u32 {}
impl Bytes for u64 {}

/// The vectors of one tile.
struct Sweep<B> {
    places: usize,
    /// By layer, then by place: bytes that enter a range there.
    entering: Vec<B>,
    /// By layer: the places where `entering` is not 0.
    support: Vec<(usize, usize)>,
    always: Vec<u64>,
    code: Vec<[u64; 4]>,
    /// By place: what is live there in every stage.
    everywhere: Vec<B>,
    live: Vec<B>,
}

impl<B: Bytes> Sweep<B> {
    fn new(tile: &Tile, layers: usize) -> Self {
        let places = tile.places;
        let mut everywhere = vec![B::default(); places];
        for &Stretch { from, to, bytes } in &tile.everywhere {
            for sum in &mut everywhere[from as usize..to as usize] {
                *sum += bytes.into();
            }
        }
        Self {
            places,
            entering: vec![B::default(); places * layers],
            support: vec![(places, 0); layers],
            always: vec![0; layers],
            code: vec![[0; 4]; layers],
            live: everywhere.clone(),
            everywhere,
        }
    }

    /// Goes through all starts, and from each as far as the range fits.
    fn run(mut self, shared: &Shared<'_>, tile: &Tile, peaks: &mut [u64]) {
        let layers = shared.model.layers();
        let (mut moving, mut always, mut code) =
            (&tile.moving[..], &tile.always[..], &tile.code[..]);
        for start in 0..layers {
            for entry in take(&mut moving, start) {
                self.enter(entry.layer as usize, entry.what);
            }
            for entry in take(&mut always, start) {
                self.always[entry.layer as usize] += entry.what;
            }
            for entry in take(&mut code, start) {
                let (kind, bytes) = entry.what;
                self.code[entry.layer as usize][kind] += bytes;
            }
            self.from(start, shared, tile, &mut peaks[start * layers..][..layers]);
        }
    }

    fn enter(&mut self, layer: usize, what: Stretch) {
        let (from, to) = (what.from as usize, what.to as usize);
        let support = &mut self.support[layer];
        *support = (support.0.min(from), support.1.max(to));
        for bytes in &mut self.entering[layer * self.places..][from..to] {
            *bytes += what.bytes.into();
        }
    }

    /// All ranges from `start`; `peaks` by last layer.
    fn from(&mut self, start: usize, shared: &Shared<'_>, tile: &Tile, peaks: &mut [u64]) {
        self.live.copy_from_slice(&self.everywhere);
        let overhead = &shared.model.overhead;
        let mut window: Option<(usize, usize)> = None;
        let (mut code, mut always) = ([0; 4], tile.always_everywhere);
        let mut highest = B::default();
        for (last, peak) in peaks.iter_mut().enumerate().skip(start) {
            if last >= shared.ends[start].load(Ordering::Relaxed) {
                break;
            }
            for (sum, own) in code.iter_mut().zip(self.code[last]) {
                *sum += own;
            }
            always += self.always[last];
            let before = window;
            if let Some((first, end)) = shared.model.layer_window(last) {
                let own = (
                    tile.rank[first as usize] as usize,
                    tile.rank[end as usize] as usize + 1,
                );
                let (from, to) = window.unwrap_or(own);
                window = Some((from.min(own.0), to.max(own.1)));
            }
            highest = highest.max(self.add(last, window));
            highest = highest.max(self.newly_seen(before, window));
            let variables = match window {
                Some(_) => always + highest.into(),
                None => 0,
            };
            let code: u64 = overhead.capped(tile.number, code).iter().sum();
            let total = overhead.fixed(tile.number) + code + variables;
            *peak = total.max(*peak);
            if total > shared.limit {
                shared.ends[start].fetch_min(last, Ordering::Relaxed);
                break;
            }
        }
    }

    /// Adds what enters at `layer`; the highest sum among the places that it
    /// changed and that lie in the window.
    fn add(&mut self, layer: usize, window: Option<(usize, usize)>) -> B {
        let (from, to) = self.support[layer];
        if from >= to {
            return B::default();
        }
        let entering = &self.entering[layer * self.places..][..self.places];
        let (first, end) = window.unwrap_or((to, to));
        let (first, end) = (first.clamp(from, to), end.clamp(from, to));
        add_all(&mut self.live[from..first], &entering[from..first]);
        let highest = add_all(&mut self.live[first..end], &entering[first..end]);
        add_all(&mut self.live[end..to], &entering[end..to]);
        highest
    }

    /// The highest sum among the places that were not in the window before.
    fn newly_seen(&self, before: Option<(usize, usize)>, now: Option<(usize, usize)>) -> B {
        let Some((from, to)) = now else {
            return B::default();
        };
        let (seen_from, seen_to) = before.unwrap_or((from, from));
        let new = self.live[from..seen_from]
            .iter()
            .chain(&self.live[seen_to..to]);
        new.copied().max().unwrap_or_default()
    }
}

/// Adds `entering` to `live`; the highest sum.
fn add_all<B: Bytes>(live: &mut [B], entering: &[B]) -> B {
    let mut highest = B::default();
    for (live, &entering) in live.iter_mut().zip(entering) {
        *live += entering;
        highest = highest.max(*live);
    }
    highest
}

/// Takes the entries that count from `start` on off the front.
fn take<'a, What>(entries: &mut &'a [Entry<What>], start: usize) -> &'a [Entry<What>] {
    let count = entries.partition_point(|entry| entry.after as usize <= start);
    let (taken, rest) = entries.split_at(count);
    *entries = rest;
    taken
}
