//! Tables for programs: TSV or CSV on standard output.

use super::text::is_obeyed;
use clap::ValueEnum;
use std::borrow::Cow;
use std::io::{self, Write};

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Columns apart by tabs.
    #[default]
    Tsv,
    /// Columns apart by commas.
    Csv,
}

/// Rows under one header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What the table is called where several are printed.
    pub name: &'static str,
    /// The names of the columns.
    pub header: Vec<String>,
    /// The cells, as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, header: &[&str]) -> Self {
        Self {
            name,
            header: header.iter().map(|&column| column.to_string()).collect(),
            rows: Vec::new(),
        }
    }

    /// A square matrix with the layers' names on both sides.
    pub fn matrix(name: &'static str, layers: &[String], cells: &[Vec<u64>]) -> Self {
        let mut header = vec!["Layer".to_string()];
        header.extend_from_slice(layers);
        let row = |(layer, cells): (&String, &Vec<u64>)| {
            let mut row = vec![layer.clone()];
            row.extend(cells.iter().map(u64::to_string));
            row
        };
        Self {
            name,
            header,
            rows: layers.iter().zip(cells).map(row).collect(),
        }
    }

    /// Writes the header and all rows. Cells are quoted where they need it,
    /// by the rules of CSV in either format. Names come from files of strangers,
    /// so what a spreadsheet would compute gets a `'` in front, as OWASP
    /// recommends, and what a terminal would obey is written out; numbers stay
    /// as they are.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        let delimiter = match format {
            Format::Tsv => b'\t',
            Format::Csv => b',',
        };
        let mut writer = csv::WriterBuilder::new()
            .delimiter(delimiter)
            .from_writer(out);
        let rows = [&self.header].into_iter().chain(&self.rows);
        for row in rows {
            let cells = row.iter().map(|cell| harmless(cell));
            let cells: Vec<Cow<'_, str>> = cells.collect();
            let cells = cells.iter().map(|cell| cell.as_bytes());
            writer.write_record(cells).map_err(without_wrapping)?;
        }
        writer.flush()
    }
}

/// A cell that neither a spreadsheet nor a terminal takes for a command.
fn harmless(cell: &str) -> Cow<'_, str> {
    let obeyed = |c: char| is_obeyed(c) && c != '\t' && c != '\n';
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(cell);
    if !is_formula && !cell.contains(obeyed) {
        return Cow::Borrowed(cell);
    }
    let mut harmless = String::from(if is_formula { "'" } else { "" });
    for c in cell.chars() {
        match obeyed(c) {
            true => harmless.extend(c.escape_default()),
            false => harmless.push(c),
        }
    }
    Cow::Owned(harmless)
}

/// Digits with a sign before and a point between them.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let mut parts = digits.splitn(2, '.');
    parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The library's own conversion hides the kind of an error, and a closed pipe
/// is told by it.
fn without_wrapping(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, format: Format) -> String {
        let mut out = Vec::new();
        table.write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_they_need_it_and_read_back() {
        let mut table = Table::new("test", &["Name", "Bytes"]);
        let names = ["a,b", "say \"x\"", "two\nlines", "tab\there", ""];
        for name in names {
            table.rows.push(vec![name.into(), "1".into()]);
        }
        for (format, delimiter) in [(Format::Tsv, b'\t'), (Format::Csv, b',')] {
            let text = written(&table, format);
            let mut reader = csv::ReaderBuilder::new()
                .delimiter(delimiter)
                .from_reader(text.as_bytes());
            let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
            let read: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
            assert_eq!(read, names);
        }
    }

    #[test]
    fn formulas_and_control_sequences_are_disarmed_and_numbers_are_not() {
        let cells = [
            ("=1+1", "'=1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\\r=1"),
            ("-", "'-"),
            ("-12", "-12"),
            ("-3.25", "-3.25"),
            ("+7", "+7"),
            ("a=b", "a=b"),
            ("", ""),
            ("\u{1b}[31mred\u{9b}", "\\u{1b}[31mred\\u{9b}"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("naïve\nname", "naïve\nname"),
        ];
        for (cell, expected) in cells {
            assert_eq!(harmless(cell), expected);
        }
    }

    #[test]
    fn a_matrix_has_the_layers_on_both_sides() {
        let layers = ["None".to_string(), "0".to_string()];
        let table = Table::matrix("affinity", &layers, &[vec![1, 2], vec![3, 4]]);
        let expected = "Layer\tNone\t0\nNone\t1\t2\n0\t3\t4\n";
        assert_eq!(written(&table, Format::Tsv), expected);
    }
}
