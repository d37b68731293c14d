//! The tables of a `profile.pop`.

use rusqlite::Connection;

/// Creates every table and index. SQLite keeps the text of a statement, each in one line.
pub fn create(connection: &Connection) -> rusqlite::Result<()> {
    let text = include_str!("schema.sql").lines();
    let text: Vec<&str> = text.filter(|line| !line.starts_with("--")).collect();
    for statement in text.join(" ").split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        connection.execute_batch(&words.join(" "))?;
    }
    Ok(())
}
