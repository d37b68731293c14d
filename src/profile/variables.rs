//! Lowered variables: each is a piece of memory on one tile.

use super::cells::Cells;
use super::database::Database;
use super::ids::{IdColumn, Ids};
use super::names::{LabelKeys, VariableLabel};
use super::{LiveClasses, ProfileError, Target};
use crate::parallel::concatenated;
use std::mem::take;

/// Class of a variable that was never allocated to a tile.
pub const NEVER_LIVE: u32 = u32::MAX;

/// Every lowered variable, as parallel arrays: a large model has 10^7 of them.
#[derive(Debug, Clone)]
pub struct Variables {
    ids: Ids,
    /// Id of each variable; `None` if ids equal the positions.
    var_ids: Option<Vec<u64>>,
    /// Tile of each variable.
    pub tiles: Vec<u16>,
    /// Size of each variable in bytes.
    pub bytes: Vec<u32>,
    /// Equivalence class of each variable, as a position in [`LiveClasses`]; [`NEVER_LIVE`] for a
    /// class without a row (class 0 holds the variables that were never allocated).
    pub classes: Vec<u32>,
    /// Category of each variable, as a position in `category_names`.
    pub categories: Vec<u8>,
    /// Names of the categories (`var_categories`), such as `variable` or `vertexCode`.
    pub category_names: Vec<String>,
    /// Label of each variable, as a position in `labels`. Variables of category `variable` that are
    /// live on the first and on the last step have one, all others have 0. Empty if the profile has
    /// no names.
    pub label_of: Vec<u32>,
    /// The labels; the first is empty.
    pub labels: Vec<VariableLabel>,
}

/// Columns of the rows of one range.
#[derive(Default)]
struct VariableColumns {
    var_ids: IdColumn,
    tiles: Vec<u16>,
    bytes: Vec<u32>,
    classes: Vec<u32>,
    categories: Vec<u8>,
    label_of: Vec<u32>,
    labels: LabelKeys,
}

pub(super) const TABLE: &str = "vars_info";
const COLUMNS: &[&str] = &[
    "var_id",
    "tile",
    "size_bytes",
    "category",
    "equivalence_class",
    "name_base_id",
    "unlowered_var_id",
];

/// Number of these columns that every profile has; the others name variables.
const REQUIRED: usize = 5;

impl Variables {
    pub(super) fn read(
        database: &Database,
        target: &Target,
        (classes, class_ids): (&LiveClasses, &Ids),
    ) -> Result<Self, ProfileError> {
        if !database.has_table(TABLE) {
            return Err(ProfileError::NoLoweredVariables);
        }
        database.require(TABLE, &COLUMNS[..REQUIRED])?;
        let has_names = database.require(TABLE, COLUMNS).is_ok();
        let columns = if has_names {
            COLUMNS
        } else {
            &COLUMNS[..REQUIRED]
        };
        if !database.has_rows(TABLE)? {
            return Err(ProfileError::NoLoweredVariables);
        }
        let (category_ids, category_names) = read_categories(database)?;
        let persistent = persistent(classes);
        let labelled = category_names.iter().position(|name| name == LABELLED);
        let visit = |row: Cells<'_>, part: &mut VariableColumns| {
            let tile = row.unsigned(1)?;
            if tile >= u64::from(target.num_tiles) {
                return Err(row.problem(1, format!("there is no tile {tile}")));
            }
            let category = category_ids
                .position(row.unsigned(3)?)
                .ok_or_else(|| row.problem(3, "no row of `var_categories` has this id"))?;
            let class = class_ids.position(row.unsigned(4)?).unwrap_or(NEVER_LIVE);
            part.var_ids.push(row.unsigned(0)?);
            part.tiles.push(tile as u16);
            part.bytes.push(row.small(2)?);
            part.categories.push(category as u8);
            part.classes.push(class);
            if has_names {
                let is_persistent = persistent.get(class as usize) == Some(&true);
                let label = if is_persistent && labelled == Some(category as usize) {
                    part.labels.number((row.unsigned(5)?, row.optional(6)?))
                } else {
                    0
                };
                part.label_of.push(label);
            }
            Ok(())
        };
        let parts = database.scan_ranges(TABLE, columns, visit)?;
        Self::join(parts, category_names, database)
    }

    /// Concatenates the parts column by column, so that at most a few columns are in memory twice.
    fn join(
        mut parts: Vec<VariableColumns>,
        category_names: Vec<String>,
        database: &Database,
    ) -> Result<Self, ProfileError> {
        let (mut var_ids, mut labels) = (IdColumn::default(), LabelKeys::default());
        for part in &mut parts {
            var_ids.append(take(&mut part.var_ids));
            let numbers = labels.take(take(&mut part.labels));
            let labels = part.label_of.iter_mut();
            labels.for_each(|label| *label = numbers[*label as usize]);
        }
        let tiles = parts.iter_mut().map(|part| take(&mut part.tiles)).collect();
        let bytes = parts.iter_mut().map(|part| take(&mut part.bytes)).collect();
        let classes = parts.iter_mut().map(|part| take(&mut part.classes));
        let classes = classes.collect();
        let categories = parts.iter_mut().map(|part| take(&mut part.categories));
        let categories = categories.collect();
        let label_of = parts.into_iter().map(|part| part.label_of).collect();
        let ((tiles, bytes), (classes, categories, label_of)) = rayon::join(
            || (concatenated(tiles), concatenated(bytes)),
            || {
                (
                    concatenated(classes),
                    concatenated(categories),
                    concatenated(label_of),
                )
            },
        );
        let (ids, var_ids) = var_ids.index(TABLE, "var_id")?;
        let labels = labels.read(database)?;
        Ok(Self {
            ids,
            var_ids,
            tiles,
            bytes,
            classes,
            categories,
            category_names,
            label_of,
            labels,
        })
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.tiles.len()
    }

    /// Are there no variables?
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// The `var_id` of the variable at `position`.
    pub fn id(&self, position: u32) -> u64 {
        match &self.var_ids {
            Some(ids) => ids[position as usize],
            None => u64::from(position),
        }
    }

    /// Label of the variable at `position`, as a position in `labels`.
    pub fn label(&self, position: u32) -> u32 {
        self.label_of.get(position as usize).copied().unwrap_or(0)
    }

    /// Position of the variable with this `var_id`.
    #[inline]
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// Category whose variables have labels: it holds the data of tensors.
const LABELLED: &str = "variable";

/// By class: is it live on the first and on the last step?
fn persistent(classes: &LiveClasses) -> Vec<bool> {
    let all = 0..classes.len() as u32;
    all.map(|class| classes.lasts(class)).collect()
}

pub(super) fn read_categories(database: &Database) -> Result<(Ids, Vec<String>), ProfileError> {
    let table = "var_categories";
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    database.scan(table, &["id", "name"], |row| {
        if names.len() > usize::from(u8::MAX) {
            return Err(row.problem(0, "a profile has at most 256 categories"));
        }
        ids.push(row.unsigned(0)?);
        names.push(row.text(1)?);
        Ok(())
    })?;
    let ids = Ids::of(table, "id", &ids)?;
    Ok((ids, names))
}
