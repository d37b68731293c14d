//! Which tables and columns a profile has.

use super::FormatVersion;
use super::error::ProfileError;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

/// What can be selected from, by name in lower case.
pub(super) struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// What it is instead of a table, with its article.
    instead: Option<&'static str>,
    /// Name in lower case, and whether it is computed when it is read.
    columns: Vec<(String, bool)>,
}

impl Schema {
    pub(super) fn read(connection: &Connection) -> Result<Self, ProfileError> {
        let mut schema = Self(FxHashMap::default());
        let read = schema.fill(connection);
        read.map_err(ProfileError::sqlite("the list of tables"))?;
        Ok(schema)
    }

    /// Views and virtual tables have no page of their own. Their columns are
    /// not queried: that would run what defines them.
    fn fill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT t.name, t.type, t.rootpage > 0, c.name, c.hidden FROM sqlite_schema t \
                   LEFT JOIN pragma_table_xinfo(iif(t.rootpage > 0, t.name, NULL)) c \
                   WHERE t.type IN ('table', 'view')";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name = |column| -> rusqlite::Result<String> {
                let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes).to_lowercase())
            };
            let instead = match (name(1)?.as_str(), row.get(2)?) {
                ("view", _) => Some("a view"),
                (_, Some(true)) => None,
                _ => Some("a virtual table"),
            };
            let entry = self.0.entry(name(0)?).or_insert(SchemaEntry {
                instead,
                columns: Vec::new(),
            });
            let hidden: Option<i64> = row.get(4)?;
            entry.columns.push((name(3)?, hidden.unwrap_or(0) != 0));
        }
        Ok(())
    }

    /// Is there anything of this name?
    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// Checks that it is a table with these columns.
    pub(super) fn require(
        &self,
        table: &'static str,
        columns: &[&'static str],
        version: FormatVersion,
    ) -> Result<(), ProfileError> {
        let Some(entry) = self.0.get(table) else {
            return Err(ProfileError::MissingTable { table, version });
        };
        if let Some(found) = entry.instead {
            return Err(ProfileError::NoTable { table, found });
        }
        for &column in columns {
            let found = entry.columns.iter().find(|(name, _)| name == column);
            match found {
                Some((_, false)) => {}
                Some((_, true)) => return Err(ProfileError::Computed { table, column }),
                None => {
                    return Err(ProfileError::MissingColumn {
                        table,
                        column,
                        version,
                    });
                }
            }
        }
        Ok(())
    }
}
