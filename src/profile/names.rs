//! Names of lowered variables. They are most of the bytes of `vars_info` and
//! seldom wanted, so they are fetched for single tiles on demand.

use super::database::Database;
use super::{FormatVersion, ProfileError};
use crate::progress::Progress;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::PathBuf;

/// Where the names of variables can be fetched from.
#[derive(Debug, Clone)]
pub struct VariableNames {
    pub(super) path: PathBuf,
    pub(super) version: FormatVersion,
}

impl VariableNames {
    /// The names of the variables with these ids, in the same order: the base
    /// name from `vars_string_table` with prefix and suffix, such as
    /// `weights#0`.
    ///
    /// # Errors
    /// As [`Profile::read`](super::Profile::read); the file is opened again.
    pub fn fetch(&self, ids: &[u64]) -> Result<Vec<String>, ProfileError> {
        let (Some(lowest), Some(highest)) = (ids.iter().min(), ids.iter().max()) else {
            return Ok(Vec::new());
        };
        let mut database = Database::open(&self.path, &Progress::new())?;
        database.version = self.version;
        let between = format!("WHERE var_id BETWEEN {lowest} AND {highest}");
        let wanted: FxHashSet<u64> = ids.iter().copied().collect();
        let columns = &[
            "var_id",
            "name_base_id",
            "name_prefix__vertex_field_",
            "name_suffix",
        ];
        let mut parts = FxHashMap::default();
        database.scan_where("vars_info", columns, &between, |row| {
            let id = row.unsigned(0)?;
            if wanted.contains(&id) {
                parts.insert(id, (row.unsigned(1)?, row.optional(2)?, row.text(3)?));
            }
            Ok(())
        })?;
        let bases = read_bases(&database, parts.values().map(|part| part.0).collect())?;
        let name = |id: &u64| {
            let (base, field, suffix) = parts.get(id)?;
            let prefix = field.map_or(String::new(), |n| format!("__vertexField_{n}"));
            Some(format!("{prefix}{}{suffix}", bases.get(base)?))
        };
        Ok(ids.iter().map(|id| name(id).unwrap_or_default()).collect())
    }
}

fn read_bases(
    database: &Database,
    wanted: FxHashSet<u64>,
) -> Result<FxHashMap<u64, String>, ProfileError> {
    let mut bases = FxHashMap::default();
    database.scan("vars_string_table", &["id", "string"], |row| {
        let id = row.unsigned(0)?;
        if wanted.contains(&id) {
            bases.insert(id, row.text(1)?);
        }
        Ok(())
    })?;
    Ok(bases)
}
