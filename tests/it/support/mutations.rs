//! Changes to a profile and its contexts that may damage them: cells, rows, bytes of pages, bytes
//! of CBOR. A string of bytes chooses the changes, so that a fuzzer can search and a property test
//! can use random bytes.

use std::fs;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

/// Choices from a string of bytes; 0 after its end.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let first = self.0.split_off_first();
        first.copied().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bytes = [self.byte(), self.byte(), self.byte(), 0];
        u32::from_le_bytes(bytes) as usize % bound.max(1)
    }

    fn bytes(&mut self, max_length: usize) -> Vec<u8> {
        let length = self.below(max_length + 1);
        (0..length).map(|_| self.byte()).collect()
    }
}

/// The tables that are read, with their columns. The first ones matter most.
pub struct Schema(Vec<(String, Vec<String>)>);

/// Removes keys and constraints, so that SQLite accepts any later change.
pub fn loosen(profile: &Path) -> Schema {
    let connection = Connection::open(profile).expect("a profile");
    let faster = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN";
    connection.execute_batch(faster).expect(faster);
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let mut schema = Vec::new();
    for table in strings(&connection, sql) {
        let statements = format!(
            "CREATE TABLE loose AS SELECT * FROM \"{table}\"; DROP TABLE \"{table}\";
             ALTER TABLE loose RENAME TO \"{table}\";"
        );
        connection.execute_batch(&statements).expect(&statements);
        let rows = format!("SELECT 1 FROM \"{table}\" LIMIT 1");
        if connection.prepare(&rows).unwrap().exists([]).unwrap() {
            let columns = format!("SELECT name FROM pragma_table_info('{table}')");
            schema.push((table, strings(&connection, &columns)));
        }
    }
    let end = "COMMIT; VACUUM";
    connection.execute_batch(end).expect(end);
    Schema(schema)
}

fn strings(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).expect(sql);
    let rows = statement.query_map([], |row| row.get(0)).expect(sql);
    rows.map(|row| row.expect(sql)).collect()
}

/// Changes both files by `choices`: first cells and rows, then bytes.
pub fn mutate(profile: &Path, debug: &Path, schema: &Schema, choices: &mut Choices<'_>) {
    let count = choices.byte();
    change_rows(profile, schema, usize::from(count & 7), choices);
    let of_profile = usize::from(count >> 3 & 3).saturating_sub(1);
    change_bytes(profile, of_profile, 4096, choices);
    change_bytes(debug, usize::from(count >> 5 & 3), 1, choices);
}

fn change_rows(profile: &Path, schema: &Schema, count: usize, choices: &mut Choices<'_>) {
    let connection = Connection::open(profile).expect("a profile");
    let faster = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN";
    connection.execute_batch(faster).expect(faster);
    for _ in 0..count {
        let (table, columns) = &schema.0[choices.below(schema.0.len())];
        let column = &columns[choices.below(columns.len())];
        let highest = format!("SELECT coalesce(max(rowid), 0) FROM \"{table}\"");
        let highest = connection.query_row(&highest, [], |row| row.get::<_, i64>(0));
        let highest = highest.unwrap();
        let row = 1 + choices.below(highest as usize) as i64;
        let other = 1 + choices.below(highest as usize) as i64;
        let of_row = format!("FROM \"{table}\" WHERE rowid = ?1");
        let (sql, value) = match choices.byte() % 16 {
            0 => (format!("DELETE {of_row}"), None),
            1 => (format!("INSERT INTO \"{table}\" SELECT * {of_row}"), None),
            2 | 3 => {
                let sql = format!("SELECT \"{column}\" FROM \"{table}\" WHERE rowid = {other}");
                let sql = format!("UPDATE \"{table}\" SET \"{column}\" = ({sql}) WHERE rowid = ?1");
                (sql, None)
            }
            _ => {
                let sql = format!("UPDATE \"{table}\" SET \"{column}\" = ?2 WHERE rowid = ?1");
                (sql, Some(value(choices)))
            }
        };
        let done = match value {
            Some(value) => connection.execute(&sql, params![row, value]),
            None => connection.execute(&sql, params![row]),
        };
        done.expect(&sql);
    }
    connection.execute_batch("COMMIT").expect("all changes");
}

const U32: i64 = u32::MAX as i64;
const INTEGERS: [i64; 12] = [
    -1,
    0,
    1,
    7,
    255,
    1 << 16,
    1 << 31,
    U32,
    1 << 32,
    1 << 53,
    i64::MAX,
    i64::MIN,
];

fn value(choices: &mut Choices<'_>) -> Value {
    match choices.byte() % 8 {
        0 => Value::Null,
        1 => Value::Integer(INTEGERS[choices.below(INTEGERS.len())]),
        2..4 => Value::Integer(i64::from(choices.byte())),
        4 => Value::Text(String::from_utf8_lossy(&choices.bytes(12)).into_owned()),
        5 => Value::Real(f64::from(choices.byte()) / 3.0),
        // A run of very many values.
        6 => Value::Blob([&[0x10, 0, 0, 0, 0, 0, 0, 0x80][choices.below(8)..], &[0x81]].concat()),
        _ => Value::Blob(choices.bytes(12)),
    }
}

/// Changes some bytes: single ones, bytes at the start of a block, and the length of the file.
fn change_bytes(path: &Path, count: usize, block: usize, choices: &mut Choices<'_>) {
    if count == 0 {
        return;
    }
    let mut bytes = fs::read(path).expect("a file");
    for _ in 0..count {
        let place = choices.below(bytes.len());
        let at_start = place / block * block + choices.below(12);
        match choices.byte() % 8 {
            0 => bytes.truncate(place),
            1 if block == 1 => drop(bytes.splice(place..place, choices.bytes(12))),
            2 if block == 1 => {
                drop(bytes.drain(place..(place + choices.below(12)).min(bytes.len())))
            }
            3 => set(&mut bytes, at_start, choices.byte()),
            4 => {
                let from = choices.below(bytes.len());
                let part = bytes[from..(from + block.max(16)).min(bytes.len())].to_vec();
                let to = place / block * block;
                let part = part.into_iter().zip(to..);
                part.for_each(|(byte, to)| set(&mut bytes, to, byte));
            }
            _ => set(&mut bytes, place, choices.byte()),
        }
    }
    fs::write(path, bytes).expect("a file");
}

fn set(bytes: &mut [u8], place: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(place) {
        *byte = value;
    }
}
