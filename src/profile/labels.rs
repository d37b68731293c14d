//! Labels of persistent variables: names and debug contexts of variables that hold weights and
//! optimiser state.

use super::ProfileError;
use super::database::Database;
use super::encoding::decode_list;
use crate::limits;
use rustc_hash::FxHashMap;

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
