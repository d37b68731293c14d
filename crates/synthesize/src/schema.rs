//! The tables of a `profile.pop`.

use rusqlite::{Connection, Params};

/// Creates every table and index. SQLite keeps the text of a statement, each in one line. A column
/// that a row is inserted without is 0 or empty.
pub fn create(connection: &Connection) -> rusqlite::Result<()> {
    let text = include_str!("schema.sql").lines();
    let text: Vec<&str> = text.filter(|line| !line.starts_with("--")).collect();
    for statement in text.join(" ").split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let statement = words.join(" ").replace("NOT NULL", "NOT NULL DEFAULT 0");
        connection.execute_batch(&statement)?;
    }
    Ok(())
}

/// Inserts rows into a table, given as `name`, or as `name (columns)` where others stay empty.
pub fn insert<P: Params>(
    connection: &Connection,
    table: &str,
    rows: impl IntoIterator<Item = P>,
) -> rusqlite::Result<()> {
    let columns = match table.split_once('(') {
        Some((_, columns)) => columns.split(',').count(),
        None => {
            let count = "SELECT count(*) FROM pragma_table_info(?)";
            let mut count = connection.prepare_cached(count)?;
            count.query_row([table], |row| row.get(0))?
        }
    };
    let values = vec!["?"; columns].join(", ");
    let sql = format!("INSERT INTO {table} VALUES ({values})");
    let mut statement = connection.prepare_cached(&sql)?;
    for row in rows {
        statement.execute(row)?;
    }
    Ok(())
}
