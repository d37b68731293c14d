//! Tables and columns of a profile.

use super::FormatVersion;
use super::error::ProfileError;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

/// Tables and views of a file, by name in lower case.
pub(super) struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// Kind of an entry that is no table, with its article; `None` for a table.
    instead: Option<&'static str>,
    /// Is the entry a table without rowids? (`WITHOUT ROWID`)
    is_without_rowid: bool,
    columns: Vec<SchemaColumn>,
}

struct SchemaColumn {
    /// Name in lower case.
    name: String,
    /// Is the column computed when it is read?
    is_computed: bool,
}

impl SchemaEntry {
    fn column(&self, name: &str) -> Option<&SchemaColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl Schema {
    pub(super) fn read(connection: &Connection) -> Result<Self, ProfileError> {
        let mut schema = Self(FxHashMap::default());
        let read = schema.fill(connection);
        read.map_err(ProfileError::sqlite("the list of tables"))?;
        Ok(schema)
    }

    /// Reads the entries. Views and virtual tables have no root page; their columns are not
    /// queried, since that would run their definitions.
    fn fill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT t.name, t.type, CAST(t.rootpage AS INTEGER), c.name, c.hidden, \
                   (SELECT wr FROM pragma_table_list(t.name) WHERE schema = 'main') \
                   FROM sqlite_schema t \
                   LEFT JOIN pragma_table_xinfo(iif(t.rootpage > 0, t.name, NULL)) c \
                   WHERE t.type IN ('table', 'view')";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let text = |column| -> rusqlite::Result<String> {
                let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes).into_owned())
            };
            let is_set = |column| -> rusqlite::Result<bool> {
                Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0) != 0)
            };
            let root: Option<i64> = row.get(2)?;
            let instead = match (text(1)?.as_str(), root) {
                ("view", _) => Some("a view"),
                (_, Some(1..)) => None,
                _ => Some("a virtual table"),
            };
            let name = text(0)?.to_lowercase();
            let entry = self.0.entry(name).or_insert(SchemaEntry {
                instead,
                is_without_rowid: is_set(5)?,
                columns: Vec::new(),
            });
            entry.columns.push(SchemaColumn {
                name: text(3)?.to_lowercase(),
                is_computed: is_set(4)?,
            });
        }
        Ok(())
    }

    /// Is there a table, view or virtual table of this name?
    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// An SQL name of the table's rowid that is not also a column; `None` if there is none.
    pub(super) fn rowid(&self, table: &str) -> Option<&'static str> {
        let entry = self.0.get(table).filter(|entry| !entry.is_without_rowid)?;
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        names.find(|name| entry.column(name).is_none())
    }

    /// Checks that `table` is a table with these columns.
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
            match entry.column(column).map(|found| found.is_computed) {
                Some(false) => {}
                Some(true) => return Err(ProfileError::Computed { table, column }),
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
