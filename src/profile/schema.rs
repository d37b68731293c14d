//! Which tables and columns a profile has.

use super::FormatVersion;
use super::error::ProfileError;
use super::stored_rows::StoredColumn;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

/// The tables and views of a file, by name in lower case.
pub(super) struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// Its kind when it is no table, with its article.
    instead: Option<&'static str>,
    columns: Vec<SchemaColumn>,
    /// The first page of its tree.
    root: u32,
    /// Has it no rowids? (`WITHOUT ROWID`)
    is_without_rowid: bool,
    /// Has its key an index of its own? Then no column is another name of the rowid.
    has_key_index: bool,
}

struct SchemaColumn {
    /// In lower case.
    name: String,
    /// In upper case.
    declared_type: String,
    /// Is it computed when it is read?
    is_computed: bool,
    /// Is it part of the table's key?
    is_key: bool,
}

impl SchemaColumn {
    /// Are its values stored as they are read? Integers of a column of floats are not.
    fn is_plain(&self) -> bool {
        let is = |part| self.declared_type.contains(part);
        is("INT") || !(is("REAL") || is("FLOA") || is("DOUB"))
    }
}

impl SchemaEntry {
    /// Where a column is in the records of the table, if they are made in the usual way.
    fn stored(&self, name: &str) -> Option<StoredColumn> {
        let mut columns = self.columns.iter();
        let place = columns.position(|column| column.name == name)?;
        let column = &self.columns[place];
        column.is_plain().then_some(StoredColumn {
            place,
            is_rowid: self.is_rowid(column),
        })
    }

    /// Is the column another name of the rowid?
    fn is_rowid(&self, column: &SchemaColumn) -> bool {
        let is_whole_key = column.is_key && self.columns.iter().filter(|c| c.is_key).count() == 1;
        is_whole_key
            && column.declared_type == "INTEGER"
            && !self.has_key_index
            && !self.is_without_rowid
    }

    /// The name of the rowid in SQL: a column may have one of its names.
    fn rowid(&self) -> Option<&'static str> {
        let is_free = |name: &&str| {
            let column = self.columns.iter().find(|column| column.name == **name);
            column.is_none_or(|column| self.is_rowid(column))
        };
        let names = ["rowid", "_rowid_", "oid"].into_iter();
        names.filter(|_| !self.is_without_rowid).find(is_free)
    }
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
        let sql = "SELECT t.name, t.type, CAST(t.rootpage AS INTEGER), c.name, c.hidden, c.type, c.pk, EXISTS \
                   (SELECT 1 FROM pragma_index_list(iif(t.rootpage > 0, t.name, NULL)) \
                   WHERE origin = 'pk'), (SELECT wr FROM pragma_table_list WHERE schema = 'main' \
                   AND name = t.name) FROM sqlite_schema t LEFT JOIN pragma_table_xinfo(iif(t.rootpage > 0, t.name, NULL)) c \
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
                columns: Vec::new(),
                root: root.and_then(|root| root.try_into().ok()).unwrap_or(0),
                has_key_index: is_set(7)?,
                is_without_rowid: is_set(8)?,
            });
            entry.columns.push(SchemaColumn {
                name: text(3)?.to_lowercase(),
                declared_type: text(5)?.to_uppercase(),
                is_computed: is_set(4)?,
                is_key: is_set(6)?,
            });
        }
        Ok(())
    }

    /// Is there anything of this name?
    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// The name of a table's rowid in SQL; `None` where it has none.
    pub(super) fn rowid(&self, table: &str) -> Option<&'static str> {
        self.0.get(table)?.rowid()
    }

    /// The first page of a table, and where its records have these columns; `None` when
    /// only SQLite can tell.
    pub(super) fn stored(&self, table: &str, columns: &[&str]) -> Option<(u32, Vec<StoredColumn>)> {
        let entry = self.0.get(table)?;
        // A computed column may be stored or not.
        if entry.instead.is_some()
            || entry.is_without_rowid
            || entry.columns.iter().any(|column| column.is_computed)
        {
            return None;
        }
        let stored = columns.iter().map(|column| entry.stored(column));
        Some((entry.root, stored.collect::<Option<_>>()?))
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
            let found = entry.columns.iter().find(|found| found.name == column);
            match found.map(|found| found.is_computed) {
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
