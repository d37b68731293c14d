//! Names of lowered variables, which make up most bytes of `vars_info` and are fetched on demand, and
//! labels of persistent variables: their names and the debug contexts of weights and optimizer state.

use super::database::Database;
use super::encoding::decode_list;
use super::open::Source;
use super::{FormatVersion, ProfileError};
use crate::limits;
use rustc_hash::{FxHashMap, FxHashSet};

/// Stands for a name that is not in the profile.
const NO_NAME: &str = "(no name in the profile)";

/// Id of the base name, number of the vertex field, and suffix.
type NameParts = (u64, Option<u64>, String);

/// Source from which the names of variables can be fetched.
#[derive(Debug, Clone)]
pub struct VariableNames {
    pub(super) source: Source,
    pub(super) version: FormatVersion,
}

impl VariableNames {
    /// Names of the variables with these ids, in the same order: the base name from
    /// `vars_string_table` with prefix and suffix, such as `weights#0`, or a text that says there
    /// is none.
    ///
    /// # Errors
    /// As [`Profile::read`](super::Profile::read): the file is opened again, and must not have
    /// changed.
    pub fn fetch(&self, ids: &[u64]) -> Result<Vec<String>, ProfileError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut database = Database::open_again(&self.source)?;
        database.version = self.version;
        let wanted: FxHashSet<u64> = ids.iter().copied().collect();
        let columns = &[
            "var_id",
            "name_base_id",
            "name_prefix__vertex_field_",
            "name_suffix",
        ];
        let mut parts: FxHashMap<u64, NameParts> = FxHashMap::default();
        database.rows_with("vars_info", columns, &wanted, |id, row| {
            parts.insert(id, (row.unsigned(1)?, row.optional(2)?, row.text(3)?));
            Ok(())
        })?;
        let bases = read_bases(&database, parts.values().map(|part| part.0).collect())?;
        let name = |id: &u64| {
            let (base, field, suffix) = parts.get(id)?;
            let prefix = field.map_or(String::new(), |n| format!("__vertexField_{n}"));
            Some(format!("{prefix}{}{suffix}", bases.get(base)?))
        };
        database.check_unchanged()?;
        let names = ids.iter().map(|id| name(id).unwrap_or(NO_NAME.to_string()));
        Ok(names.collect())
    }
}

fn read_bases(
    database: &Database,
    wanted: FxHashSet<u64>,
) -> Result<FxHashMap<u64, String>, ProfileError> {
    let mut bases = FxHashMap::default();
    database.rows_with(
        "vars_string_table",
        &["id", "string"],
        &wanted,
        |id, row| {
            bases.insert(id, row.text(1)?);
            Ok(())
        },
    )?;
    Ok(bases)
}

/// Ids under which the name and the contexts of a variable are found: `name_base_id`, and
/// `unlowered_var_id` unless it is NULL.
pub(super) type LabelKey = (u64, Option<u64>);

/// Label of a variable. The variables of one tensor share it, on all tiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableLabel {
    /// Base name (`vars_string_table`).
    pub name: String,
    /// Ids of the debug contexts (`debug_ids`).
    pub debug_ids: Vec<u64>,
    /// Is there no debug context in the table? In a real profile every variable of a tensor has a
    /// list of contexts there, which may say that there is none.
    pub lacks_contexts: bool,
}

/// Label keys, numbered from 1; 0 stands for no label.
#[derive(Debug, Default)]
pub(super) struct LabelKeys {
    numbers: FxHashMap<LabelKey, u32>,
    /// Last key, since neighbouring rows mostly share it.
    last: Option<(LabelKey, u32)>,
}

impl LabelKeys {
    pub(super) fn number(&mut self, key: LabelKey) -> u32 {
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        self.last = Some((key, number));
        number
    }

    /// Adds the keys of `other`; returns the new number of each of its numbers.
    pub(super) fn take(&mut self, other: LabelKeys) -> Vec<u32> {
        let mut keys: Vec<(u32, LabelKey)> =
            other.numbers.into_iter().map(|(key, n)| (n, key)).collect();
        keys.sort_unstable();
        let numbers = keys.into_iter().map(|(_, key)| self.number(key));
        [0].into_iter().chain(numbers).collect()
    }

    /// Reads the names and contexts of all labels, by number; label 0 is empty.
    pub(super) fn read(self, database: &Database) -> Result<Vec<VariableLabel>, ProfileError> {
        let mut labels = vec![VariableLabel::default(); self.numbers.len() + 1];
        let mut by_base: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        let mut by_variable: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for ((base, unlowered), number) in self.numbers {
            by_base.entry(base).or_default().push(number);
            if let Some(unlowered) = unlowered {
                by_variable.entry(unlowered).or_default().push(number);
            }
        }
        if by_base.is_empty() {
            return Ok(labels);
        }
        if database.require(STRINGS, &["id", "string"]).is_ok() {
            database.scan(STRINGS, &["id", "string"], |row| {
                for &number in by_base.get(&row.unsigned(0)?).into_iter().flatten() {
                    labels[number as usize].name = row.text(1)?;
                }
                Ok(())
            })?;
        }
        if database.require(CONTEXTS, &["variable_id", "ids"]).is_ok() {
            for &number in by_variable.values().flatten() {
                labels[number as usize].lacks_contexts = true;
            }
            database.scan(CONTEXTS, &["variable_id", "ids"], |row| {
                let Some(variable) = row.optional(0)? else {
                    return Ok(());
                };
                let Some(numbers) = by_variable.get(&variable) else {
                    return Ok(());
                };
                let ids = decode_list(row.blob(1)?, limits::CONTEXTS_OF_VARIABLE);
                let ids = ids.map_err(row.bad_blob(1))?;
                for &number in numbers {
                    let label = &mut labels[number as usize];
                    label.debug_ids.clone_from(&ids);
                    label.lacks_contexts = ids.is_empty();
                }
                Ok(())
            })?;
        }
        Ok(labels)
    }
}

const STRINGS: &str = "vars_string_table";
const CONTEXTS: &str = "debug_ids";
