//! Measures the least work that any reader of the two files has: every row and every CBOR item is
//! read once, and nothing is kept. `benches/big.sh` states all times as multiples of this time.
//!
//! ```text
//! floor profile.pop debug.cbor
//! floor --fit profile.pop debug.cbor
//! ```
//!
//! On one thread, it first reads the rows and columns that the analysis (or `--fit`) needs, through
//! SQLite, and then the debug file, through ciborium's decoder. It prints the counts, so that the
//! compiler cannot leave out any of the work.

#![forbid(unsafe_code)]

mod tables;

use anyhow::{Context, anyhow, bail};
use ciborium_io::Read;
use ciborium_ll::{Decoder, Error, Header};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

fn main() -> anyhow::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_fit = arguments.first().is_some_and(|own| own == "--fit");
    if is_fit {
        arguments.remove(0);
    }
    let [profile, debug] = &arguments[..] else {
        bail!("usage: floor [--fit] PROFILE DEBUG");
    };
    let wanted = if is_fit {
        tables::of_fit()
    } else {
        tables::all()
    };
    let start = Instant::now();
    let (rows, sum) = tables(profile, wanted).with_context(|| profile.clone())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("tables {rows} rows in {seconds:.3} s, checksum {sum:016x}");
    let start = Instant::now();
    let file = BufReader::with_capacity(BUFFER, File::open(debug)?);
    let (items, sum) = items(file).map_err(|error| anyhow!("{debug}: {error:?}"))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("contexts {items} items in {seconds:.3} s, checksum {sum:016x}");
    Ok(())
}

/// Reads all `wanted` tables. Returns the number of rows, and a sum over their values.
fn tables(path: &str, wanted: Vec<(&str, Vec<&str>)>) -> rusqlite::Result<(u64, u64)> {
    let uri = format!("file:{path}?mode=ro&immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags)?;
    let (mut rows, mut sum) = (0, 0);
    for (table, columns) in wanted {
        if connection.table_exists(None, table)? {
            let (own_rows, own_sum) = scan(&connection, table, &columns)?;
            rows += own_rows;
            sum = own_sum.wrapping_add(sum);
        }
    }
    Ok((rows, sum))
}

fn scan(connection: &Connection, table: &str, columns: &[&str]) -> rusqlite::Result<(u64, u64)> {
    let list = columns.join("\", \"");
    // `NOT INDEXED` reads the rows in rowid order, which is the fastest. Otherwise SQLite reads an
    // index that covers the columns.
    let sql = format!("SELECT \"{list}\" FROM \"{table}\" NOT INDEXED");
    let mut statement = connection.prepare(&sql)?;
    let mut cursor = statement.query([])?;
    let (mut rows, mut sum) = (0u64, 0u64);
    while let Some(row) = cursor.next()? {
        rows += 1;
        for column in 0..columns.len() {
            let value = match row.get_ref(column)? {
                ValueRef::Null => 0,
                ValueRef::Integer(value) => value as u64,
                ValueRef::Real(value) => value.to_bits(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
            };
            sum = sum.wrapping_add(value);
        }
    }
    Ok((rows, sum))
}

/// Number of bytes of the debug file that are read at a time.
const BUFFER: usize = 1 << 18;

/// Decodes the whole debug file. Returns the number of its items, and a sum over their values.
/// Texts go into the same buffer each time and are not checked.
fn items(file: BufReader<File>) -> Result<(u64, u64), Error<std::io::Error>> {
    let mut decoder = Decoder::from(file);
    let (mut items, mut sum) = (0u64, 0u64);
    let mut buffer = [0; 4096];
    // The number of items that are still to come in each open container; `None` for a container
    // that ends with a break.
    let mut open = vec![Some(1u64)];
    while let Some(left) = open.last_mut() {
        if *left == Some(0) {
            open.pop();
            continue;
        }
        *left = left.map(|left| left - 1);
        items += 1;
        let value = match decoder.pull()? {
            Header::Positive(value) | Header::Negative(value) => value,
            Header::Float(value) => value.to_bits(),
            Header::Simple(value) => u64::from(value),
            // The tagged item belongs to the same container.
            Header::Tag(tag) => {
                let left = open.last_mut().expect("the container of the tag");
                *left = left.map(|left| left + 1);
                tag
            }
            Header::Break => {
                open.pop();
                0
            }
            Header::Bytes(Some(len)) | Header::Text(Some(len)) => {
                string(&mut decoder, len, &mut buffer)?;
                len as u64
            }
            Header::Array(Some(len)) => {
                open.push(Some(len as u64));
                0
            }
            Header::Map(Some(len)) => {
                open.push(Some(2 * len as u64));
                0
            }
            // The items of the container, or the segments of a string, follow up to the break.
            Header::Bytes(None) | Header::Text(None) | Header::Array(None) | Header::Map(None) => {
                open.push(None);
                0
            }
        };
        sum = sum.wrapping_add(value);
    }
    Ok((items, sum))
}

/// Reads a string of `len` bytes and drops it.
fn string(
    decoder: &mut Decoder<BufReader<File>>,
    len: usize,
    buffer: &mut [u8],
) -> std::io::Result<()> {
    let mut left = len;
    while left > 0 {
        let piece = left.min(buffer.len());
        decoder.read_exact(&mut buffer[..piece])?;
        left -= piece;
    }
    Ok(())
}
