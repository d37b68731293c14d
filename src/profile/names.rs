//! Names of lowered variables. They make up most bytes of `vars_info` and are seldom needed, so
//! they are fetched on demand.

use super::database::Database;
use super::open::Source;
use super::{FormatVersion, ProfileError};
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
