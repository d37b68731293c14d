//! Sums over the lowered variables, in one pass that stores few of them.

use super::super::cells::Cells;
use super::super::database::Database;
use super::super::ids::Ids;
use super::super::liveness::{RANGE_COLUMNS, RANGES, push_range, read_classes, span};
use super::super::{ProfileError, RecordedTile};
use super::{Ipus, PipelineName};
use crate::witnesses::{Contradiction, recorded_variables};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes by [`PipelineName`], at the index `name as usize`.
pub type Named = [u64; PipelineName::ALL.len()];

/// Sums over the lowered variables, and the live variables of one tile of each IPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableSums {
    /// Number of lowered variables.
    pub count: u64,
    /// By IPU: bytes of its variables that are ever live, by [`PipelineName`]. They need not be
    /// live at the same time.
    pub named: Vec<Named>,
    /// Names of the categories (`var_categories`).
    pub category_names: Vec<String>,
    /// By chosen tile, in the order given: the variables that are live at its peak.
    pub tiles: Vec<LiveOnTile>,
    /// Does the profile name variables?
    pub has_names: bool,
}

/// The variables that are live on a tile at the first step of its peak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveOnTile {
    /// Index of that step; `None` if every variable of the tile is always live.
    pub step: Option<u32>,
    /// Bytes by category (a position in [`VariableSums::category_names`]) and purpose, without
    /// entries of 0 bytes.
    pub live: Vec<(u8, Option<PipelineName>, u64)>,
}

/// A variable of a chosen tile.
#[derive(Clone, Copy)]
struct ChosenVariable {
    tile: u32,
    class: u64,
    category: u8,
    name: Option<PipelineName>,
    bytes: u32,
}

const TABLE: &str = "vars_info";
const COLUMNS: &[&str] = &[
    "tile",
    "size_bytes",
    "category",
    "equivalence_class",
    "name_base_id",
];
/// Number of these columns that every profile has; the last column names variables.
const REQUIRED: usize = 4;

/// Sums over the rows of one range of the table.
#[derive(Default)]
struct Sums {
    count: u64,
    /// By IPU: bytes by purpose.
    named: Vec<Named>,
    /// By tile: bytes of always-live variables.
    always: Vec<u64>,
    chosen: Vec<ChosenVariable>,
}

impl Sums {
    fn new(ipus: Ipus) -> Self {
        Self {
            count: 0,
            named: vec![Named::default(); ipus.count as usize],
            always: vec![0; (ipus.count * ipus.tiles_per_ipu) as usize],
            chosen: Vec::new(),
        }
    }
}

/// Does the profile have lowered variables?
pub(super) fn are_there(database: &Database) -> Result<bool, ProfileError> {
    Ok(database.has_table(TABLE) && database.has_rows(TABLE)?)
}

/// Sums the variables, and compares them with `tiles`. `chosen` has one tile for each IPU, whose
/// live variables are listed.
pub(super) fn read(
    database: &Database,
    ipus: Ipus,
    tiles: &[RecordedTile],
    chosen: &[u32],
    steps: &[u64],
) -> Result<(Option<VariableSums>, Option<Contradiction>), ProfileError> {
    if !are_there(database)? {
        return Ok((None, None));
    }
    database.require(TABLE, &COLUMNS[..REQUIRED])?;
    let has_names = database.require(TABLE, COLUMNS).is_ok()
        && database.require(STRINGS, &["id", "string"]).is_ok();
    let (category_ids, category_names) = super::super::variables::read_categories(database)?;
    let names = has_names.then(|| read_names(database)).transpose()?;
    let classes = Classes::read(database)?;
    let scan = Scan {
        ipus,
        chosen,
        category_ids: &category_ids,
        names: names.as_ref(),
        classes: &classes,
    };
    let columns = if has_names {
        COLUMNS
    } else {
        &COLUMNS[..REQUIRED]
    };
    let visit = |row: Cells<'_>, sums: &mut Sums| scan.add(&row, sums);
    let parts = database.scan_ranges(TABLE, columns, visit)?;
    let sums = scan.join(parts);
    let ranges = classes.ranges_of(database, &sums.chosen)?;
    let of_tile = |&tile: &u32| {
        let rows = sums.chosen.iter().filter(|row| row.tile == tile);
        classes.peak(&ranges, &rows.copied().collect::<Vec<_>>(), steps)
    };
    let (peaks, found): (Vec<u64>, Vec<LiveOnTile>) = chosen.iter().map(of_tile).unzip();
    let totals = totals(&sums.always, &peaks, tiles, chosen);
    let variables = VariableSums {
        count: sums.count,
        named: sums.named,
        category_names,
        tiles: found,
        has_names,
    };
    Ok((Some(variables), recorded_variables(tiles, totals)))
}

/// The tables in which each row is looked up.
struct Scan<'a> {
    ipus: Ipus,
    chosen: &'a [u32],
    category_ids: &'a Ids,
    /// Purposes by id of the base name; `None` if the profile does not name variables.
    names: Option<&'a FxHashMap<u64, PipelineName>>,
    classes: &'a Classes,
}

impl Scan<'_> {
    fn add(&self, row: &Cells<'_>, sums: &mut Sums) -> Result<(), ProfileError> {
        if sums.count == 0 {
            *sums = Sums::new(self.ipus);
        }
        let tile = row.unsigned(0)?;
        if tile >= sums.always.len() as u64 {
            return Err(row.problem(0, format!("there is no tile {tile}")));
        }
        let tile = tile as u32;
        let bytes = row.small(1)?;
        let unknown = || row.problem(2, "no row of `var_categories` has this id");
        let category = self.category_ids.position(row.unsigned(2)?);
        let category = category.ok_or_else(unknown)? as u8;
        let class = row.unsigned(3)?;
        let name = match self.names {
            Some(names) => names.get(&row.unsigned(4)?).copied(),
            None => None,
        };
        sums.count += 1;
        let ipu = self.ipus.of_tile(tile);
        let is_live = self.classes.is_known(class);
        if let (Some(name), true) = (name, is_live) {
            sums.named[ipu as usize][name as usize] += u64::from(bytes);
        }
        if self.classes.is_always(class) {
            sums.always[tile as usize] += u64::from(bytes);
        }
        if self.chosen[ipu as usize] == tile && is_live {
            sums.chosen.push(ChosenVariable {
                tile,
                class,
                category,
                name,
                bytes,
            });
        }
        Ok(())
    }

    fn join(&self, parts: Vec<Sums>) -> Sums {
        let mut all = Sums::new(self.ipus);
        for part in parts {
            all.count += part.count;
            for (all, more) in all.always.iter_mut().zip(part.always) {
                *all += more;
            }
            let named = all.named.iter_mut().flatten();
            for (all, more) in named.zip(part.named.into_iter().flatten()) {
                *all += more;
            }
            all.chosen.extend(part.chosen);
        }
        all
    }
}

const STRINGS: &str = "vars_string_table";

/// The base names that state a purpose, by id.
fn read_names(database: &Database) -> Result<FxHashMap<u64, PipelineName>, ProfileError> {
    let mut names = FxHashMap::default();
    database.scan(STRINGS, &["id", "string"], |row| {
        if let Some(name) = PipelineName::of(&row.text(1)?) {
            names.insert(row.unsigned(0)?, name);
        }
        Ok(())
    })?;
    Ok(names)
}

/// The equivalence classes that have a row, and whether each is always live.
struct Classes {
    ids: Ids,
    always: Vec<bool>,
}

/// By class: ranges of step ids (end exclusive).
type Ranges = FxHashMap<u64, Vec<(u64, u64)>>;

impl Classes {
    fn read(database: &Database) -> Result<Self, ProfileError> {
        let (ids, always) = read_classes(database)?;
        Ok(Self { ids, always })
    }

    fn is_known(&self, class: u64) -> bool {
        self.ids.position(class).is_some()
    }

    fn is_always(&self, class: u64) -> bool {
        let position = self.ids.position(class);
        position.is_some_and(|position| self.always[position as usize])
    }

    /// Live ranges of the not-always-live classes of `rows`, sorted and merged.
    fn ranges_of(
        &self,
        database: &Database,
        rows: &[ChosenVariable],
    ) -> Result<Ranges, ProfileError> {
        let wanted = rows.iter().map(|row| row.class);
        let wanted: FxHashSet<u64> = wanted.filter(|&class| !self.is_always(class)).collect();
        let mut ranges = Ranges::default();
        database.scan(RANGES, RANGE_COLUMNS, |row| {
            let class = row.unsigned(0)?;
            if wanted.contains(&class) {
                let span = span(&row)?;
                let of_class = ranges.entry(class).or_default();
                of_class.push((span.start, span.end));
            }
            Ok(())
        })?;
        for of_class in ranges.values_mut() {
            of_class.sort_unstable();
            let mut joined = Vec::with_capacity(of_class.len());
            for &range in &*of_class {
                push_range(&mut joined, 0, range);
            }
            *of_class = joined;
        }
        Ok(ranges)
    }

    /// Peak bytes of the not-always-live variables among `rows`, which lie on one tile, and all
    /// variables that are live at that peak. `steps` are the ids of the steps, ascending.
    fn peak(&self, ranges: &Ranges, rows: &[ChosenVariable], steps: &[u64]) -> (u64, LiveOnTile) {
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for row in rows {
            for &(from, to) in ranges.get(&row.class).into_iter().flatten() {
                changes.push((from, i64::from(row.bytes)));
                changes.push((to, -i64::from(row.bytes)));
            }
        }
        // At one step, variables that end come before variables that begin.
        changes.sort_unstable();
        let (mut live, mut peak) = (0, 0);
        let mut at = None;
        for (step, change) in changes {
            live += change;
            if live > peak {
                (peak, at) = (live, Some(step));
            }
        }
        let is_live = |row: &&ChosenVariable| {
            let live = ranges.get(&row.class).into_iter().flatten();
            let mut live =
                live.filter(|range| at.is_some_and(|at| (range.0..range.1).contains(&at)));
            self.is_always(row.class) || live.next().is_some()
        };
        let mut sums: FxHashMap<(u8, Option<PipelineName>), u64> = FxHashMap::default();
        for row in rows.iter().filter(is_live) {
            *sums.entry((row.category, row.name)).or_default() += u64::from(row.bytes);
        }
        let sums = sums.into_iter().filter(|(_, bytes)| *bytes > 0);
        let mut live: Vec<_> = sums
            .map(|((category, name), bytes)| (category, name, bytes))
            .collect();
        live.sort_unstable_by_key(|&(category, name, _)| (category, name.map(|kind| kind as u8)));
        let step = at.map(|at| steps.partition_point(|&id| id < at) as u32);
        (peak as u64, LiveOnTile { step, live })
    }
}

/// By tile: the total computed from its variables. `always` has the always-live bytes of each tile,
/// `peaks` the peak of the other variables on each tile of `chosen`; on other tiles that peak is
/// taken from `tiles`.
fn totals(always: &[u64], peaks: &[u64], tiles: &[RecordedTile], chosen: &[u32]) -> Vec<u64> {
    let others = |tile: &RecordedTile| tile.total.saturating_sub(tile.always_live);
    let all = tiles.iter().zip(always);
    let mut totals: Vec<u64> = all.map(|(tile, always)| always + others(tile)).collect();
    for (&tile, &peak) in chosen.iter().zip(peaks) {
        let total = &mut totals[tile as usize];
        *total = total
            .saturating_sub(tiles[tile as usize].not_always_live)
            .saturating_add(peak);
    }
    totals
}
