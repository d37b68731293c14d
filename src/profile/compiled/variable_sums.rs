//! Sums up the bytes of lowered variables in one pass over their table, and keeps in memory only
//! the variables of the fullest tile of each IPU. The names of variables show which ones a pipeline
//! created, such as stashes (docs/model.md, "A compiled pipeline").

use super::{
    super::variables::{CATEGORIES, STRING_COLUMNS, STRINGS, TABLE, read_categories},
    super::{Database, LiveClasses, RecordedTile},
    Ipus,
};
use crate::message::Result;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The purpose of a variable in a pipeline, as the name of the variable shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PipelineName {
    /// The variable is a stash: it holds copies of a tensor for the micro-batches in flight. In
    /// PopART, its name contains `Stashed___`; in TensorFlow, its name contains `fifo` and has a
    /// component `buffer`, as in `stage_1/fifo.12/buffer/0`.
    Stashed,
    /// The variable holds a tensor that was taken out of a stash. In PopART, its name contains
    /// `Restored___`; in TensorFlow, its name contains `fifo` and has a component `out`, `pop` or
    /// `push`, as in `stage_1/fifo.12/push`.
    Restored,
    /// The variable sums up gradients. In PopART, its name contains `Accum___`; in TensorFlow, its
    /// name has a component `Accumulator`, as in `dense/kernel/Accumulator`.
    Accumulator,
    /// The variable was received from another IPU. Its name contains `ipucopy`, `ipu_copy` or
    /// `inter-ipu-copy`.
    Received,
}

impl PipelineName {
    /// Every purpose of a variable in a pipeline. The index of a purpose in this list is its
    /// discriminant (`purpose as usize`).
    pub const ALL: [Self; 4] = [
        Self::Stashed,
        Self::Restored,
        Self::Accumulator,
        Self::Received,
    ];

    /// Returns the purpose in a pipeline, such as a stash, of a variable with the base name `name`
    /// (its name without prefix and suffix); `None` if the name shows no such purpose.
    pub fn of(name: &str) -> Option<Self> {
        if name.contains("Stashed___") {
            return Some(Self::Stashed);
        }
        if name.contains("Restored___") {
            return Some(Self::Restored);
        }
        let lower = name.to_ascii_lowercase();
        if lower.contains("fifo") {
            let parts = || lower.split(['/', '#', '.']);
            if parts().any(|part| part == "buffer") {
                return Some(Self::Stashed);
            }
            if parts().any(|part| ["out", "pop", "push"].contains(&part)) {
                return Some(Self::Restored);
            }
        }
        if lower.split(['/', '#']).any(|part| part == "accumulator") || name.contains("Accum___") {
            return Some(Self::Accumulator);
        }
        ["ipucopy", "ipu_copy", "inter-ipu-copy"]
            .iter()
            .any(|word| lower.contains(word))
            .then_some(Self::Received)
    }
}

/// Bytes of variables, one sum for each purpose that a variable may have in a pipeline. The index
/// of a sum is the discriminant of the purpose ([`PipelineName`]).
pub type BytesByName = [u64; PipelineName::ALL.len()];

/// The number of lowered variables of a compilation, their bytes by IPU and by tile, and the
/// variables that are live on the fullest tile of each IPU.
#[derive(Debug)]
pub struct VariableSums {
    /// Number of lowered variables on all IPUs.
    pub count: u64,
    /// One entry per IPU, and in it one entry per purpose in a pipeline: the bytes of the variables
    /// whose names show the purpose, summed over the tiles of the IPU. These variables need not be
    /// live at the same time.
    pub named: Vec<BytesByName>,
    /// The names of the categories of lowered variables (`var_categories`).
    pub category_names: Vec<String>,
    /// One entry per IPU: the variables that are live on the fullest tile of the IPU at the peak of
    /// that tile.
    pub tiles: Vec<LiveOnTile>,
    /// One entry per tile: the bytes of its variables at the peak of the tile, for a comparison
    /// with the total that the compiler recorded. On the fullest tile of each IPU, all variables
    /// are added up. On other tiles, only always-live variables are added up, and all other bytes
    /// are taken from the recorded memory.
    pub totals: Vec<u64>,
    /// Whether the profile has names of variables, which show the purposes of variables in a
    /// pipeline.
    pub has_names: bool,
}

/// The variables that are live on a tile at the peak of the tile. The peak is the first liveness
/// step (execution of a program) at which the not-always-live variables of the tile take the most
/// bytes.
#[derive(Debug)]
pub struct LiveOnTile {
    /// Index of the peak step; `None` if every variable of the tile is always live.
    pub step: Option<u32>,
    /// One entry per category and purpose of live variables, ascending: the category (an index into
    /// [`VariableSums::category_names`]), the purpose in a pipeline (`None` if the names show no
    /// purpose), and the bytes, which are not 0.
    pub live: Vec<(u8, Option<PipelineName>, u64)>,
}

#[derive(Clone, Copy)]
struct ChosenVariable {
    class: u32,
    category: u8,
    name: Option<PipelineName>,
    bytes: u32,
}

const COLUMNS: &[&str] = &[
    "tile",
    "size_bytes",
    "category",
    "equivalence_class",
    "name_base_id",
];
/// Every profile has the first 4 of the [`COLUMNS`] of the table `vars_info`. It may lack the last
/// one, which refers to the names of variables.
const REQUIRED: usize = 4;

struct RangeSums {
    count: u64,
    /// One entry per IPU, and in it one entry per purpose in a pipeline: the bytes of the variables
    /// on the IPU with that purpose.
    named: Vec<BytesByName>,
    /// One entry per tile: the bytes of the always-live variables on the tile.
    always: Vec<u64>,
    /// One list per IPU: the lowered variables on the fullest tile of the IPU.
    chosen: Vec<Vec<ChosenVariable>>,
}

/// Sums up the lowered variables, and lists the live variables on the fullest tile of each IPU.
/// Returns `None` if the profile has no lowered variables. `tiles` holds the recorded memory of
/// each tile; `steps` holds the ids of all steps, ascending.
pub fn read(
    database: &Database,
    ipus: Ipus,
    tiles: &[RecordedTile],
    steps: &[u64],
) -> Result<Option<VariableSums>> {
    if !database.has_rows(TABLE)? {
        return Ok(None);
    }
    let columns = database.columns(TABLE, COLUMNS, REQUIRED)?;
    let has_names = columns.len() > REQUIRED && database.require(STRINGS, STRING_COLUMNS).is_ok();
    let (category_ids, category_names) = read_categories(database)?;
    let names = has_names.then(|| read_names(database)).transpose()?;
    let (classes, class_ids) = LiveClasses::read(database, steps)?;
    let chosen: Vec<u32> = (0..ipus.count)
        .map(|ipu| ipus.fullest_tile(tiles, ipu))
        .collect();
    let init = || RangeSums {
        count: 0,
        named: vec![BytesByName::default(); ipus.count as usize],
        always: vec![0; tiles.len()],
        chosen: vec![Vec::new(); ipus.count as usize],
    };
    let parts = database.scan_ranges(TABLE, columns, init, |row, tile, sums| {
        let tile = row.checked_tile(0, tile)?;
        let bytes = row.small(1)?;
        let category = row.position(2, &category_ids, CATEGORIES)? as u8;
        let class = class_ids.position(row.unsigned(3)?);
        let mut name = None;
        if let Some(names) = &names {
            name = names.get(&row.unsigned(4)?).copied();
        }
        sums.count += 1;
        // A variable without an equivalence class is never live, so it is counted, but its bytes
        // are not added up.
        let Some(class) = class else { return Ok(()) };
        let ipu = ipus.of_tile(tile) as usize;
        if let Some(name) = name {
            sums.named[ipu][name as usize] += u64::from(bytes);
        }
        if classes.is_always_live(class) {
            sums.always[tile as usize] += u64::from(bytes);
        }
        if chosen[ipu] == tile {
            sums.chosen[ipu].push(ChosenVariable {
                class,
                category,
                name,
                bytes,
            });
        }
        Ok(())
    })?;
    let mut sums = init();
    for part in parts {
        sums.count += part.count;
        let more = part.named.iter().flatten().chain(&part.always);
        let all = sums.named.iter_mut().flatten().chain(&mut sums.always);
        all.zip(more).for_each(|(sum, more)| *sum += more);
        for (all, more) in sums.chosen.iter_mut().zip(part.chosen) {
            all.extend(more);
        }
    }
    let found = sums.chosen.iter().map(|rows| peak(&classes, rows));
    let (peaks, found): (Vec<u64>, _) = found.unzip();
    Ok(Some(VariableSums {
        totals: totals(&sums.always, &peaks, tiles, &chosen),
        count: sums.count,
        named: sums.named,
        category_names,
        tiles: found,
        has_names,
    }))
}

/// Reads the base names of variables (names without prefix and suffix), and keeps each name that
/// shows a purpose in a pipeline, such as a stash. Returns a map from the id of such a name to the
/// purpose.
fn read_names(database: &Database) -> Result<FxHashMap<u64, PipelineName>> {
    Ok(database
        .rows(STRINGS, STRING_COLUMNS, |row| {
            let name = PipelineName::of(&row.text(1)?);
            Ok(Some(row.unsigned(0)?).zip(name))
        })?
        .into_iter()
        .flatten()
        .collect())
}

/// Returns the peak bytes of the not-always-live variables on one tile. Also returns the bytes of
/// all variables that are live at this peak (including always-live ones), summed by category and
/// purpose. `rows` has all variables of the tile.
fn peak(classes: &LiveClasses, rows: &[ChosenVariable]) -> (u64, LiveOnTile) {
    let (peak, step) = classes.peak(
        rows.iter()
            .filter(|row| !classes.is_always_live(row.class))
            .map(|row| (row.class, row.bytes)),
    );
    let step = Some(step).filter(|_| peak > 0);
    let is_live = |row: &&ChosenVariable| {
        step.is_some_and(|step| classes.is_live(row.class, step))
            || classes.is_always_live(row.class)
    };
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows.iter().filter(is_live) {
        *sums.entry((row.category, row.name)).or_default() += u64::from(row.bytes);
    }
    let live = sums
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|((category, name), bytes)| (category, name, bytes))
        .collect();
    (peak, LiveOnTile { step, live })
}

/// Returns the bytes of each tile at its peak. The bytes of always-live variables are computed
/// (`always`, one entry per tile), and all other bytes are taken from the recorded memory
/// (`tiles`). On the fullest tile of each IPU (`chosen`), the peak of not-always-live variables is
/// computed too (`peaks`, one entry per IPU).
fn totals(always: &[u64], peaks: &[u64], tiles: &[RecordedTile], chosen: &[u32]) -> Vec<u64> {
    let others = |tile: &RecordedTile| tile.total.saturating_sub(tile.always_live);
    let mut totals: Vec<u64> = tiles
        .iter()
        .zip(always)
        .map(|(tile, always)| always + others(tile))
        .collect();
    for (&tile, &peak) in chosen.iter().zip(peaks) {
        let total = &mut totals[tile as usize];
        *total = total
            .saturating_sub(tiles[tile as usize].not_always_live)
            .saturating_add(peak);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::PipelineName::{self, Accumulator, Received, Restored, Stashed};

    #[test]
    fn names_of_popart_and_of_tensorflow() {
        for (name, expected) in [
            ("Stashed___layer0/MatMul:0#", Some(Stashed)),
            ("encoder/Restored___x#", Some(Restored)),
            ("Accum___Gradient___w#", Some(Accumulator)),
            ("layer0/MatMul:0_ipucopy#", Some(Received)),
            ("stage_1/fifo.12/buffer/0#", Some(Stashed)),
            ("stage_1/IpuFifo/out/0#", Some(Restored)),
            ("stage_1/fifo.12/push#", Some(Restored)),
            ("dense/kernel/Accumulator#", Some(Accumulator)),
            ("x/inter-ipu-copy#", Some(Received)),
            ("layer0/out/MatMul#", None),
            ("accumulate/buffer#", None),
            ("weights", None),
        ] {
            assert_eq!(PipelineName::of(name), expected, "{name}");
        }
    }
}
