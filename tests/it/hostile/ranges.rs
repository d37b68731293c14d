//! Tables that are read in ranges of rowids have the same rows as SQLite reads at once, and damage
//! never removes rows silently.

use std::fs;
use std::path::Path;

use popliner::message::FileError;
use popliner::profile::{Profile, Variables};
use rusqlite::Connection;

use super::cases::{Case, half, page_of, root_page, word};
use crate::support::each;
use crate::support::models::Random;

/// Id, tile and size of each variable.
type Rows = Vec<(u64, u64, u64)>;

fn read(path: &Path) -> Result<Rows, FileError> {
    let variables: Variables = Profile::read(path)?.variables;
    let positions = 0..variables.len() as u32;
    let row = |position: u32| {
        let tile = variables.tiles[position as usize].into();
        let bytes = variables.bytes[position as usize].into();
        (variables.id(position), tile, bytes)
    };
    Ok(positions.map(row).collect())
}

fn by_sqlite(path: &Path) -> rusqlite::Result<Rows> {
    let connection = Connection::open(path)?;
    // Without NOT INDEXED, SQLite would read an index of one case, in another order.
    let sql = "SELECT var_id, tile, size_bytes, category FROM vars_info NOT INDEXED";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// The columns of variables beside the id.
const COLUMNS: &str =
    "tile, size_bytes, category, equivalence_class, name_base_id, unlowered_var_id";

/// Writes the variables into a table of this kind, in the order of their ids, with thousands
/// between their rowids, so that the table is read in several ranges.
fn with_table(before: &str, declaration: &str, rowid: &str) -> Case {
    let rowid = match rowid {
        "" => ["", ""].map(String::from),
        name => [format!("{name}, "), "var_id * 5000, ".to_owned()],
    };
    Case::new().sql(&format!(
        "{before}; PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; VACUUM;
         ALTER TABLE vars_info RENAME TO as_written;
         CREATE TABLE vars_info ({declaration};
         INSERT INTO vars_info ({}var_id, {COLUMNS})
         SELECT {}var_id, {COLUMNS} FROM as_written ORDER BY var_id",
        rowid[0], rowid[1]
    ))
}

/// Returns a table without keys, which is read in several ranges from pages of 512 bytes.
fn in_ranges() -> Case {
    let declaration = format!("var_id, {COLUMNS})");
    with_table("PRAGMA page_size = 512", &declaration, "rowid")
}

#[test]
fn tables_of_all_kinds_have_the_rows_of_sqlite() {
    // The type of the id, what comes after all columns, and the name of the rowid.
    let kinds = [
        ("INTEGER PRIMARY KEY", ")", ""),
        ("INT", ")", "rowid"),
        ("INT", ", PRIMARY KEY (var_id DESC)) WITHOUT ROWID", ""),
        ("INT", ", PRIMARY KEY (var_id, tile))", "oid"),
        ("INT", ", rowid TEXT DEFAULT 'x')", "_rowid_"),
        ("INT", ", rowid TEXT, _RowId_ INT, UNIQUE (var_id))", "oid"),
        ("INT", ", rowid, _rowid_, oid)", ""),
        ("INT", ", oid INTEGER PRIMARY KEY)", "oid"),
        ("INT", ", computed AS (1), kept AS (2) STORED)", "rowid"),
    ];
    let settings = ["", "PRAGMA auto_vacuum = 1; PRAGMA page_size = 512"];
    let after = [
        "",
        "ALTER TABLE vars_info RENAME COLUMN size_bytes TO was;
         ALTER TABLE vars_info ADD COLUMN size_bytes INT DEFAULT 8",
        "CREATE INDEX by_size ON vars_info (size_bytes, tile, var_id)",
        "DELETE FROM vars_info WHERE var_id > 2400 OR var_id % 100 = 7",
        "DELETE FROM vars_info WHERE var_id < 2440",
    ];
    let cases = kinds
        .iter()
        .flat_map(|kind| after.map(|after| (kind, after)));
    let cases: Vec<_> = cases.zip(settings.iter().cycle()).collect();
    each(&cases, |(((id, end, rowid), after), before)| {
        let declaration = format!("var_id {id}, {COLUMNS}{end}");
        let case = with_table(before, &declaration, rowid);
        // The lists of variables name some variables that are deleted here.
        let lists = "UPDATE compute_sets SET var_ids_diff_rle = NULL; DELETE FROM exchange_regions";
        let case = case.sql(after).sql(lists);
        let found = read(&case.profile);
        let expected = by_sqlite(&case.profile).unwrap();
        assert!(found.unwrap() == expected, "{declaration} {before} {after}");
    });
}

/// Returns the pages of the table of variables: pages that point to others, and pages with rows.
fn pages(case: &Case) -> [Vec<usize>; 2] {
    let bytes = fs::read(&case.profile).unwrap();
    let (mut above, mut leaves) = (Vec::new(), Vec::new());
    let mut open = vec![root_page(&case.profile, "vars_info")];
    while let Some(number) = open.pop() {
        let page = page_of(&bytes, number);
        if bytes[page] == 0x0d {
            leaves.push(number);
            continue;
        }
        above.push(number);
        open.push(word(&bytes, page + 8));
        let cells = 0..half(&bytes, page + 3);
        open.extend(cells.map(|cell| word(&bytes, page + half(&bytes, page + 12 + 2 * cell))));
    }
    [above, leaves]
}

/// Swaps the first two rows of a page in its list of cell positions.
fn swap_rows(bytes: &mut [u8], number: usize) {
    let first = page_of(bytes, number) + 8;
    bytes[first..first + 4].rotate_left(2);
}

#[test]
fn rows_in_another_order_are_damage() {
    let [_, leaves] = pages(&in_ranges());
    let said = "`vars_info` is damaged: its rows are not in the order of their rowids at ";
    assert!(leaves.len() > 100, "{leaves:?}");
    for leaf in leaves.into_iter().step_by(10) {
        let case = in_ranges().bytes(|bytes| swap_rows(bytes, leaf));
        case.refused(&[said]);
    }
}

/// Wherever a page of the table is damaged, the rows are the ones that SQLite reads in order, or
/// there is an error.
#[test]
fn a_wrong_byte_takes_no_row_away_in_silence() {
    let sound = in_ranges();
    let [above, leaves] = pages(&sound);
    let bytes = fs::read(&sound.profile).unwrap();
    let mut random = Random(3);
    let mut place = |number: &usize| {
        let start = page_of(&bytes, *number);
        // Half of the changed bytes are in the header and the list of cell positions.
        let within = random.one_of(&[40, 512]);
        let within = random.below(within);
        (start + within, random.next() as u8)
    };
    let mut places: Vec<(usize, u8)> = leaves.iter().map(&mut place).collect();
    for _ in 0..30 {
        places.extend(above.iter().map(&mut place));
    }
    let outcomes = each(&places, |&(at, byte)| {
        let case = Case::new().bytes(|changed| {
            changed.clone_from(&bytes);
            changed[at] = byte;
        });
        let found = read(&case.profile);
        if let Ok(rows) = &found {
            let expected = by_sqlite(&case.profile).map_err(|error| error.to_string());
            assert!(Ok(rows) == expected.as_ref(), "{byte} at {at}");
        }
        found.is_ok()
    });
    let read = outcomes.iter().filter(|&&is_ok| is_ok).count();
    let refused = outcomes.len() - read;
    assert!(read > 50 && refused > 50, "{read}, {refused}");
}
