//! Opens a profile that may come from an untrusted source.

use super::cells::sqlite;
use crate::{
    atomic::first_bytes,
    message::{GIVE_PROFILE, PROFILE_AGAIN, Result, unusable},
};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::SystemTime,
};

const HEADER: u64 = 100;

/// A profile on disk: its path, and the state that the file had when it was first opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFile {
    /// Absolute path of the file, without symbolic links. SQLite keeps pending changes beside the
    /// file itself, not beside a link to the file.
    pub path: PathBuf,
    /// Size of the profile in bytes when it was first opened.
    pub length: u64,
    /// Time of the last modification of the profile; `None` if the file system does not store it.
    modified: Option<SystemTime>,
    /// The first 100 bytes of the profile, which are its SQLite header; fewer if the file is
    /// shorter.
    header: Vec<u8>,
}

impl ProfileFile {
    /// Checks, before SQLite opens the file at `path`, that it is a complete SQLite database
    /// without pending changes in a journal. SQLite will treat the file as immutable: it will write
    /// nothing, take no locks, and ignore journals.
    pub fn find(path: &Path) -> Result<Self> {
        let source = Self::state_of(path)?;
        // A cache of PopVision is recognized by the extension of its name, since its format is not
        // public. A public tutorial shows such a file, with the extension `pop_cache`, in a report
        // folder that was opened with PopVision.
        if path.extension() == Some("pop_cache".as_ref()) {
            return unusable(format!(
                "by its name, this is a cache that PopVision keeps beside a profile; \
                 {GIVE_PROFILE}"
            ));
        }
        check_header(&source.header)?;
        check_length(&source.header, source.length)?;
        check_unfinished(&source.path)?;
        Ok(source)
    }

    /// Reads the state (path, size, time and header) of the file at `path`. Refuses pipes and
    /// devices.
    fn state_of(path: &Path) -> Result<Self> {
        // The kind of the file is checked first: opening a pipe would block until somebody writes,
        // and the path of a pipe such as /dev/fd/63 cannot be canonicalized.
        let metadata = path.metadata()?;
        let kind = metadata.file_type();
        // A folder is not refused here, since the operating system's own error about reading a
        // folder is clear.
        if !kind.is_file() && !kind.is_dir() {
            return unusable(format!(
                "this is a pipe or a device, and a profile must be a file; {GIVE_PROFILE}"
            ));
        }
        let path = path.canonicalize()?;
        Ok(Self {
            header: first_bytes(&path, HEADER)?,
            path,
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    /// Returns an error if the size, the time or the header of the file has changed since it was
    /// first opened. (SQLite counts the changes of a file in its header.)
    pub fn check_unchanged(&self) -> Result<()> {
        check_unfinished(&self.path)?;
        if *self == Self::state_of(&self.path)? {
            return Ok(());
        }
        unusable(
            "the file changed while it was read; let the process that writes it finish, and try \
             again",
        )
    }

    /// Opens a connection to the profile with every protection of SQLite against untrusted files
    /// (<https://sqlite.org/security.html>).
    pub fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = sqlite("the file");
        let mut connection =
            Connection::open_with_flags(uri(&self.path), flags).map_err(&failed)?;
        defend(&connection).map_err(&failed)?;
        // SQLite stops the queries of this connection after a number of operations that is far
        // above the need of reading each row once: a row has at least six bytes and takes about ten
        // operations. Without this limit, damaged pages that refer to each other would yield rows
        // endlessly.
        let mut left = ((1 << 24) + self.length.saturating_mul(8)) / OPERATIONS;
        connection
            .progress_handler(
                OPERATIONS as i32,
                Some(move || {
                    left = left.saturating_sub(1);
                    left == 0
                }),
            )
            .map_err(&failed)?;
        Ok(connection)
    }
}

/// Number of operations of SQLite's virtual machine between two checks whether a query has run too
/// long.
const OPERATIONS: u64 = 1 << 14;

/// Configures a connection for an untrusted file: forbids code in the schema and writing to the
/// schema, makes SQLite check cells before it uses them, and sets limits far above the needs of a
/// profile.
fn defend(connection: &Connection) -> rusqlite::Result<()> {
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(config, value)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 3),
        (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)
}

/// Returns an error unless `header`, the first bytes of a file, is the header of an SQLite
/// database. Files that are often mistaken for a profile get specific messages.
fn check_header(header: &[u8]) -> Result<()> {
    let instead = match header {
        [] => {
            return unusable(format!(
                "the file is empty: the process that wrote it was probably stopped; \
                 {PROFILE_AGAIN}"
            ));
        }
        [0xa0..=0xbf, ..] | [0xd9, 0xd9, 0xf7, ..] => {
            return unusable(
                "the file looks like CBOR, not like a profile; give profile.pop first and \
                 debug.cbor second",
            );
        }
        _ if header.starts_with(b"SQLite format 3\0") => return Ok(()),
        _ if header.starts_with(b"!<arch>\n") => {
            ", but an archive of compiled code, such as the archive.a beside a profile"
        }
        [b'{', ..] => ", but looks like JSON, as profiles of format 1 do",
        _ => "",
    };
    unusable(format!(
        "the file is not an SQLite database{instead}; {GIVE_PROFILE}"
    ))
}

/// Returns an error if the file, of `found` bytes, is shorter than its SQLite `header` says. The
/// length in the header is only valid if the program that last changed the file also updated the
/// length: then the two change counters in the header are equal.
fn check_length(header: &[u8], found: u64) -> Result<()> {
    let word = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    // The size of a page of the SQLite file, in bytes. The value 1 stands for 65,536, which does
    // not fit two bytes.
    let page = match word(16).unwrap_or(0) >> 16 {
        1 => 1 << 16,
        size => u64::from(size),
    };
    let expected = match word(92) {
        None => HEADER,
        known_for if known_for == word(24) => u64::from(word(28).unwrap_or(0)) * page,
        Some(_) => 0,
    };
    if found >= expected {
        return Ok(());
    }
    unusable(format!(
        "the file is cut off: it has {found} bytes and should have {expected}; {PROFILE_AGAIN}"
    ))
}

/// First bytes of an SQLite journal with changes that have to be rolled back.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Returns the paths of the files that SQLite keeps beside the database at `path`: the write-ahead
/// log, the journal, and the index of the log in shared memory, in this order.
pub fn companions(path: &Path) -> [PathBuf; 3] {
    ["-wal", "-journal", "-shm"].map(|suffix| {
        let mut name = OsString::from(path.as_os_str());
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Returns an error if the write-ahead log or the journal of a profile holds changes that SQLite
/// has not yet moved into the profile.
fn check_unfinished(path: &Path) -> Result<()> {
    let [log, journal, _] = companions(path);
    let has_log = log.metadata().is_ok_and(|metadata| metadata.len() > 0);
    // An SQLite journal matters only if its header is intact: SQLite may keep a journal whose
    // changes are complete in the database, but then fills its header with zeros.
    let mut start = Vec::new();
    if journal.is_file() {
        start = first_bytes(&journal, JOURNAL.len() as u64)?;
    }
    if !has_log && start != JOURNAL {
        return Ok(());
    }
    let changes = if has_log { log } else { journal };
    unusable(format!(
        "the file is still open in another process, or that process died: changes are waiting in \
         {}; let the process finish, or open a copy of both files once with `sqlite3`",
        changes.display()
    ))
}

/// Returns the `file:` URI with which SQLite opens the file at `path` read-only and as immutable,
/// with every special or non-ASCII byte escaped.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    uri + "?mode=ro&immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the settings of SQLite that protect against code and other traps in a profile, as
    /// SECURITY.md promises.
    #[test]
    fn a_connection_trusts_nothing_in_the_file() {
        let connection = Connection::open_in_memory().unwrap();
        defend(&connection).unwrap();
        for (config, expected) in [
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            assert_eq!(connection.db_config(config), Ok(expected), "{config:?}");
        }
        let checks = connection.pragma_query_value(None, "cell_size_check", |row| row.get(0));
        assert_eq!(checks, Ok(true));
        assert_eq!(connection.limit(Limit::SQLITE_LIMIT_ATTACHED), Ok(0));
    }

    #[test]
    fn paths_are_escaped_in_addresses() {
        let address = uri(Path::new("/a b/50%/what?#é"));
        assert_eq!(
            address,
            "file:/a%20b/50%25/what%3F%23%C3%A9?mode=ro&immutable=1"
        );
    }
}
