//! Reads the lowered variables. Each lowered variable is a piece of memory on one tile.
//!
//! Names make up most bytes of `vars_info`, so the name of a single variable is fetched on demand.
//! Only lasting variables, such as weights and optimizer state, get a label: the name and the debug
//! contexts of their tensor. A variable is lasting if it is live on the first and on the last step,
//! or at nearly all steps.

use super::{Database, Ids, ProfileFile, cells::no_variables};
use crate::{limits, message::Result, progress::Progress};
use rustc_hash::FxHashMap;
use std::{mem::take, ops::Range};

/// The entry of [`Variables::classes`] for a variable that is never live, since it was never
/// allocated to a tile.
pub const NEVER_LIVE: u32 = u32::MAX;

/// All lowered variables, as parallel arrays in the order of the file, since a large model has 10^7
/// variables. The position of a variable is its index in these arrays.
#[derive(Debug, Default)]
pub struct Variables {
    ids: Ids,
    /// One entry per variable: its `var_id`. The list is empty if every `var_id` equals the
    /// position of its variable.
    var_ids: Vec<u64>,
    /// One entry per variable: the tile on which the variable lies.
    pub tiles: Vec<u16>,
    /// One entry per variable: its size in bytes.
    pub bytes: Vec<u32>,
    /// One entry per variable: its equivalence class, as an index into
    /// [`LiveClasses`](super::LiveClasses). [`NEVER_LIVE`] for a variable whose class has no row in
    /// the profile, such as class 0, which holds the variables that were never allocated.
    pub classes: Vec<u32>,
    /// One entry per variable: its category, as an index into `category_names`.
    pub categories: Vec<u8>,
    /// The names of the categories (`var_categories`), such as `variable` or `vertexCode`.
    pub category_names: Vec<String>,
    /// One entry per variable: its label, as an index into `labels`. A variable has a label if its
    /// category is `variable`, and if it is live on the first and the last step, or nearly always;
    /// all other variables have the index 0.
    pub label_of: Vec<u32>,
    /// The distinct labels of variables. A label is the name and the debug contexts of a tensor.
    /// The label at index 0 is empty and stands for no label.
    pub labels: Vec<VariableLabel>,
}

pub const TABLE: &str = "vars_info";
const COLUMNS: &[&str] = &[
    "var_id",
    "tile",
    "size_bytes",
    "category",
    "equivalence_class",
    "name_base_id",
    "unlowered_var_id",
];

/// Every profile has the first 5 of the [`COLUMNS`] of the table `vars_info`. The others are only
/// needed for the names and the debug contexts of weights and other lasting tensors.
const REQUIRED: usize = 5;

impl Variables {
    /// Reads the table of lowered variables. `persistent` has one entry per equivalence class:
    /// whether the variables of the class get labels (the names and debug contexts of their
    /// tensors). `class_ids` maps the id of a class to its index.
    pub(super) fn read(database: &Database, persistent: &[bool], class_ids: &Ids) -> Result<Self> {
        if !database.has_table(TABLE) {
            return Err(no_variables());
        }
        let columns = database.columns(TABLE, COLUMNS, REQUIRED)?;
        if !database.has_rows(TABLE)? {
            return Err(no_variables());
        }
        let has_names = columns.len() == COLUMNS.len();
        let (category_ids, category_names) = read_categories(database)?;
        let labelled = category_names.iter().position(|name| name == LABELLED);
        let parts = database.scan_ranges(TABLE, columns, Part::default, |row, id, part| {
            let own = &mut part.variables;
            own.tiles.push(row.tile(1)? as u16);
            own.bytes.push(row.small(2)?);
            let category = row.position(3, &category_ids, CATEGORIES)?;
            own.categories.push(category as u8);
            let class = class_ids.position(row.unsigned(4)?).unwrap_or(NEVER_LIVE);
            own.classes.push(class);
            match part.ids.last_mut() {
                Some(run) if run.end == id => run.end += 1,
                _ => part.ids.push(id..id + 1),
            }
            if has_names
                && persistent.get(class as usize) == Some(&true)
                && labelled == Some(category as usize)
            {
                let label = part.labels.number((row.unsigned(5)?, row.optional(6)?));
                part.labelled.push((own.tiles.len() as u32 - 1, label));
            }
            Ok(())
        })?;
        Self::join(parts, category_names, database)
    }

    /// Joins `parts`, the variables from each range of rows of `vars_info`, in rowid order. Reads
    /// their labels (names and debug contexts of weights and other lasting tensors) from
    /// `database`. Joins one column of the table at a time, so that at most one column is in memory
    /// twice.
    fn join(
        mut parts: Vec<Part>,
        category_names: Vec<String>,
        database: &Database,
    ) -> Result<Self> {
        let count = parts.iter().map(|part| part.variables.len()).sum();
        let (mut labels, mut label_of) = (LabelKeys::default(), vec![0; count]);
        // Each pass of the loop sets the labels of the variables of one part, at the start of
        // `rest`, and then shortens `rest` to the variables of all later parts.
        let mut rest = &mut label_of[..];
        for part in &mut parts {
            let numbers = labels.absorb(take(&mut part.labels));
            for (variable, label) in take(&mut part.labelled) {
                rest[variable as usize] = numbers[label as usize];
            }
            rest = &mut rest[part.variables.len()..];
        }
        let var_ids = parts
            .iter()
            .flat_map(|part| part.ids.iter().cloned())
            .flatten();
        let ids = Ids::of(TABLE, "var_id", var_ids.clone())?;
        Ok(Self {
            var_ids: match ids {
                Ids::Same(_) => Vec::new(),
                _ => var_ids.collect(),
            },
            ids,
            tiles: column(&mut parts, |part| &mut part.tiles),
            bytes: column(&mut parts, |part| &mut part.bytes),
            classes: column(&mut parts, |part| &mut part.classes),
            categories: column(&mut parts, |part| &mut part.categories),
            category_names,
            label_of,
            labels: labels.read(database)?,
        })
    }

    /// Returns the number of lowered variables in the profile.
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Returns whether there are no lowered variables.
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// Returns the `var_id` of the variable at `position`.
    pub fn id(&self, position: u32) -> u64 {
        self.var_ids
            .get(position as usize)
            .copied()
            .unwrap_or(position.into())
    }

    /// Returns the label (name and debug contexts) of the variable at `position`, as an index into
    /// `labels`; 0 for no label.
    pub fn label(&self, position: u32) -> u32 {
        self.label_of.get(position as usize).copied().unwrap_or(0)
    }

    /// Adds the bytes of each variable at `positions` to the entry in `sums` of the tile on which
    /// the variable lies. `sums` has one entry per tile.
    pub(crate) fn add_to<'a>(
        &self,
        positions: impl IntoIterator<Item = &'a u32>,
        sums: &mut [u64],
    ) {
        for position in positions {
            let position = *position as usize;
            sums[usize::from(self.tiles[position])] += u64::from(self.bytes[position]);
        }
    }

    /// Returns the position of the variable whose `var_id` is `id`; `None` if there is no such
    /// variable.
    #[inline]
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// The lowered variables in a range of rows of `vars_info`.
#[derive(Default)]
struct Part {
    /// The variables in this range of rows, without their ids and labels.
    variables: Variables,
    /// The `var_id` of each variable, as runs of consecutive ids.
    ids: Vec<Range<u64>>,
    /// The variables that have a label, as indices into `variables`, each with the index of its
    /// label in `labels`.
    labelled: Vec<(u32, u32)>,
    labels: LabelKeys,
}

/// Joins one column of `vars_info`, such as the tiles of variables, from all ranges of rows.
/// `of_part` returns the column of one range, which is moved out of `parts` to free its memory.
fn column<T: Copy>(parts: &mut [Part], of_part: fn(&mut Variables) -> &mut Vec<T>) -> Vec<T> {
    let columns = parts
        .iter_mut()
        .map(|part| take(of_part(&mut part.variables)));
    columns.collect::<Vec<_>>().concat()
}

/// Name of the category of variables that hold data of tensors. Variables of other categories have
/// no labels (names and debug contexts).
const LABELLED: &str = "variable";

pub const CATEGORIES: &str = "var_categories";

/// Reads the categories of variables. Returns a map from the id of a category to its index in the
/// list of names, and the list of names.
pub fn read_categories(database: &Database) -> Result<(Ids, Vec<String>)> {
    let mut before = 0;
    database.indexed(CATEGORIES, &["id", "name"], |row| {
        row.check_categories(before)?;
        before += 1;
        row.text(1)
    })
}

/// Fetches names of lowered variables from a profile on demand.
#[derive(Debug)]
pub struct VariableNames(pub(super) ProfileFile);

impl VariableNames {
    /// Returns the names of the variables whose `var_id` is in `ids`, in the order of `ids`. A name
    /// consists of the base name from `vars_string_table`, with prefix and suffix, such as
    /// `weights#0`. A variable without a name in the profile gets a text that says so.
    ///
    /// # Errors
    /// The same errors as [`Profile::read`](super::Profile::read), since the profile is opened
    /// again; also if the profile has changed.
    pub fn fetch(&self, ids: &[u64]) -> Result<Vec<String>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.0.check_unchanged()?;
        let database = Database::of(self.0.clone(), &Progress::new())?;
        let columns = &[
            "var_id",
            "name_base_id",
            "name_prefix__vertex_field_",
            "name_suffix",
        ];
        let wanted = ids.iter().copied().collect();
        let parts = database.with_ids(TABLE, columns, wanted, |row| {
            Ok((row.unsigned(1)?, row.optional(2)?, row.text(3)?))
        })?;
        let wanted = parts.values().map(|&(base, ..)| base).collect();
        let bases = database.with_ids(STRINGS, STRING_COLUMNS, wanted, |row| row.text(1))?;
        let name = |id: &u64| {
            let (base, field, suffix) = parts.get(id)?;
            let prefix = field.map_or(String::new(), |n| format!("__vertexField_{n}"));
            Some(format!("{prefix}{}{suffix}", bases.get(base)?))
        };
        self.0.check_unchanged()?;
        Ok(ids
            .iter()
            .map(|id| name(id).unwrap_or("(no name in the profile)".into()))
            .collect())
    }
}

/// The ids in a row of `vars_info` that identify the label of a variable: `name_base_id` for the
/// name and, unless it is NULL, `unlowered_var_id` for the debug contexts.
pub type LabelKey = (u64, Option<u64>);

/// The name and the debug contexts of a tensor, which its lowered variables on all tiles share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableLabel {
    /// Base name of the tensor (table `vars_string_table`), without prefix and suffix.
    pub name: String,
    /// Ids of the debug contexts of the tensor (table `debug_ids`).
    pub debug_ids: Vec<u64>,
    /// Whether the profile lists debug contexts of tensors (table `debug_ids`), but none for this
    /// tensor. In a real profile, all labelled tensors have debug contexts.
    pub lacks_contexts: bool,
}

/// Gives each distinct label (name and debug contexts of a tensor) an index, counted from 1 in the
/// order in which labels are added; 0 stands for no label. The map's keys are the ids that identify
/// a label in the profile.
#[derive(Default)]
pub struct LabelKeys(FxHashMap<LabelKey, u32>);

impl LabelKeys {
    /// Returns the index of the label (name and debug contexts of a tensor) that has the ids `key`
    /// in the profile. A new label gets the next index.
    pub fn number(&mut self, key: LabelKey) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry(key).or_insert(next)
    }

    /// Adds the labels (names and debug contexts of tensors) of `other` to this map. Returns one
    /// entry per index of a label in `other`: the index of the same label in this map. The index 0
    /// stands for no label in both.
    pub fn absorb(&mut self, other: LabelKeys) -> Vec<u32> {
        let mut keys: Vec<(LabelKey, u32)> = other.0.into_iter().collect();
        keys.sort_unstable_by_key(|&(_, number)| number);
        [0].into_iter()
            .chain(keys.into_iter().map(|(key, _)| self.number(key)))
            .collect()
    }

    /// Reads all labels in this map from the profile, that is, the names and the debug contexts of
    /// tensors, and returns them in the order of their indices. The label at index 0, which stands
    /// for no label, is empty.
    pub fn read(self, database: &Database) -> Result<Vec<VariableLabel>> {
        let mut labels = vec![VariableLabel::default(); self.0.len() + 1];
        if self.0.is_empty() {
            return Ok(labels);
        }
        let mut names: FxHashMap<u64, String> = self
            .0
            .keys()
            .map(|&(base, _)| (base, String::new()))
            .collect();
        database.rows_if_any(STRINGS, STRING_COLUMNS, |row| {
            if let Some(name) = names.get_mut(&row.unsigned(0)?) {
                *name = row.text(1)?;
            }
            Ok(())
        })?;
        let columns = &["variable_id", "ids"];
        let has_contexts = database.require(CONTEXTS, columns).is_ok();
        let unlowered = self.0.keys().filter_map(|&(_, unlowered)| unlowered);
        let mut contexts: FxHashMap<u64, Vec<u64>> = unlowered.map(|id| (id, vec![])).collect();
        database.rows_if_any(CONTEXTS, columns, |row| {
            let ids = row.optional(0)?.and_then(|id| contexts.get_mut(&id));
            if let Some(ids) = ids {
                *ids = row.list(1, limits::CONTEXTS_OF_VARIABLE)?;
            }
            Ok(())
        })?;
        for ((base, unlowered), number) in self.0 {
            let debug_ids = unlowered.map(|id| contexts[&id].clone());
            labels[number as usize] = VariableLabel {
                name: names[&base].clone(),
                lacks_contexts: has_contexts && debug_ids == Some(Vec::new()),
                debug_ids: debug_ids.unwrap_or_default(),
            };
        }
        Ok(labels)
    }
}

pub const STRINGS: &str = "vars_string_table";
pub const STRING_COLUMNS: &[&str] = &["id", "string"];
const CONTEXTS: &str = "debug_ids";
