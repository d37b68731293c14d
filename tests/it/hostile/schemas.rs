//! Profiles that try to make SQLite run code or loop.

use super::cases::{Case, half, root_page, word};

#[test]
fn thousands_of_other_tables_change_nothing() {
    let columns: Vec<String> = (0..200).map(|column| format!("c{column}")).collect();
    let columns = columns.join(", ");
    let tables = (0..3000).map(|number| format!("CREATE TABLE extra{number} ({columns});"));
    let sql = format!("BEGIN; {} COMMIT", tables.collect::<String>());
    Case::new().sql(&sql).same();
}

#[test]
fn schemas_that_run_code() {
    let same = [
        "CREATE TRIGGER later AFTER INSERT ON programs BEGIN DELETE FROM programs; END",
        "CREATE VIEW other AS SELECT hex(zeroblob(500000000)) FROM programs",
        "CREATE INDEX words ON programs (upper(name)) WHERE id > 3",
    ];
    for sql in same {
        Case::new().sql(sql).same();
    }
    for table in "programs vars_info memory_by_tile program_types target_info".split(' ') {
        let renamed = format!("ALTER TABLE {table} RENAME TO elsewhere; CREATE");
        let view = format!("{renamed} VIEW {table} AS SELECT * FROM elsewhere");
        let virtual_table = format!("{renamed} VIRTUAL TABLE {table} USING dbstat");
        let unknown = format!(
            "DROP TABLE {table}; PRAGMA writable_schema = ON;
             INSERT INTO sqlite_schema VALUES ('table', '{table}', '{table}', 0,
                                               'CREATE VIRTUAL TABLE {table} USING no')"
        );
        for (what, sql) in [
            ("view", view),
            ("virtual table", virtual_table),
            ("virtual table", unknown),
        ] {
            let reason = "runs no code from files; give the profile.pop that Poplar wrote";
            let is_what = format!("`{table}` is a {what}");
            Case::new().sql(&sql).refused(&[&is_what, reason]);
        }
    }
    let computed = "ALTER TABLE programs RENAME COLUMN name TO elsewhere;
                    ALTER TABLE programs ADD COLUMN name TEXT AS (hex(zeroblob(400000000)))";
    let case = Case::new().sql(computed);
    case.refused(&["`name`", "`programs`", "computed"]);
    let deep = format!("CREATE TABLE deep (x CHECK ({}1))", "- ".repeat(300));
    Case::new().sql(&deep).refused(&["SQLite cannot read"]);
    let broken = "PRAGMA writable_schema = ON;
                  UPDATE sqlite_schema SET sql = 'CREATE TABLE ' || char(27, 10) || '[2J(x'
                  WHERE name = 'blocks'";
    let case = Case::new().sql(broken);
    case.refused(&["SQLite cannot read", "copy the profile again"]);
    assert!(!case.run("--solve").err.contains('\u{1b}'));
}

/// Puts `levels` levels of pages above the last leaf of a table. Each page has as many cells as
/// fit, which all lead to the page below.
fn multiply(case: Case, table: &str, levels: usize) -> Case {
    let root = root_page(&case.profile, table);
    case.bytes(|bytes| {
        let size = half(bytes, 16);
        let page = |number: usize| (number - 1) * size;
        let mut leaf = root;
        while bytes[page(leaf)] == 0x05 {
            leaf = word(bytes, page(leaf) + 8);
        }
        let copy = bytes[page(leaf)..][..size].to_vec();
        bytes.extend(copy);
        let mut below = bytes.len() / size;
        for level in 1..=levels {
            let mut new = vec![0u8; size];
            let cells = (size - 12) / 9;
            new[0] = 0x05;
            new[3..5].copy_from_slice(&(cells as u16).to_be_bytes());
            new[5..7].copy_from_slice(&((size - 7 * cells) as u16).to_be_bytes());
            new[8..12].copy_from_slice(&(below as u32).to_be_bytes());
            for cell in 0..cells {
                let at = size - 7 * (cell + 1);
                new[12 + 2 * cell..][..2].copy_from_slice(&(at as u16).to_be_bytes());
                new[at..at + 4].copy_from_slice(&(below as u32).to_be_bytes());
                // The key of the cell says that all rows below come before it.
                new[at + 4..at + 7].copy_from_slice(&[0xff, 0xff, 0x7f]);
            }
            if level == levels {
                bytes[page(root)..][..size].copy_from_slice(&new);
            } else {
                bytes.extend(new);
                below = bytes.len() / size;
            }
        }
        let pages = (bytes.len() / size) as u32;
        bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    })
}

#[test]
fn pages_that_lead_in_circles() {
    for table in "vars_info depth_first_steps eq_class_step exchange_regions".split(' ') {
        multiply(Case::new(), table, 5).refused(&[table, "copy the profile again"]);
    }
    let long = "UPDATE compute_sets SET name = hex(zeroblob(100000))
                WHERE compute_set = (SELECT max(compute_set) FROM compute_sets)";
    let case = multiply(Case::new().sql(long), "compute_sets", 2);
    case.refused(&["`compute_sets`", "hold more bytes than the whole file"]);
}
