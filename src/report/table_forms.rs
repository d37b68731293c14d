//! Writes tables as text: with aligned columns, as JSON, or with tabs or commas between cells.

use super::{
    Block, Cell, Form, Report, Table,
    sections::blocks,
    table::Column,
    terminal::{TextStyle, for_people},
};
use crate::{escape, model::LayerNames};
use clap::ValueEnum;
use serde_json::{Number, Value};
use std::io;

/// The format in which results are written (`--format`).
#[derive(Debug, Clone, Copy, Default, PartialEq, ValueEnum)]
pub enum Format {
    /// Aligned columns on a terminal; otherwise JSON for --solve and TSV for tables.
    #[default]
    Auto,
    /// Aligned columns, for people.
    Table,
    /// A JSON array with an object for each row, whose keys are the columns.
    Json,
    /// A line for each row, with tabs between its columns.
    Tsv,
    /// A line for each row, with commas between its columns.
    Csv,
}

impl Format {
    /// Chooses the format for standard output: `Auto` becomes `Table` on a terminal. Any other
    /// format stays unchanged, and so does `Auto` if the output goes to a file or pipe.
    pub fn on(self, is_terminal: bool) -> Self {
        match self {
            Format::Auto if is_terminal => Format::Table,
            character => character,
        }
    }
}

impl Table {
    /// Returns all rows of the table as text in the given format: in aligned columns with the style
    /// `look`, as JSON, or as lines with tabs or commas under a header. [`Format::Auto`] means
    /// tabs.
    ///
    /// # Errors
    /// When the JSON or CSV library returns an error, which it never does for cells of tables.
    pub fn text(&self, format: Format, look: &TextStyle) -> io::Result<String> {
        match format {
            Format::Table => Ok(for_people(self, look) + "\n"),
            Format::Json => self.json(),
            Format::Csv => self.delimited(b','),
            Format::Auto | Format::Tsv => self.delimited(b'\t'),
        }
    }

    /// Returns the table as a JSON array with one object for each row. The keys of the objects are
    /// the names of the columns in lower case with underscores.
    fn json(&self) -> io::Result<String> {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| -> serde_json::Map<String, Value> {
                self.columns
                    .iter()
                    .zip(&row.cells)
                    .map(|(column, cell)| (column.key(), self.value(column, cell)))
                    .collect()
            })
            .collect();
        Ok(escape::json(serde_json::to_string_pretty(&rows)?) + "\n")
    }

    /// Converts a cell to a JSON value:
    /// - an empty cell: `null`
    /// - a number: a number, or its digits as text if it does not fit into 64 bits
    /// - text in a column of numbers, such as `1.5`: a number
    /// - a share of a whole: a number, which is 1 for the whole
    /// - the layers of a stage: an array of names
    /// - any other cell: text, or a boolean for yes or no
    fn value(&self, column: &Column, cell: &Cell) -> Value {
        let names = |layers: &LayerNames| -> Value {
            self.pseudo_layers
                .names_of(layers)
                .into_iter()
                .map(String::from)
                .collect()
        };
        match cell {
            Cell::Empty => Value::Null,
            Cell::Bool(is) => Value::from(*is),
            Cell::Number(number) => {
                Number::from_i128(*number).map_or_else(|| number.to_string().into(), Value::from)
            }
            Cell::Share(part, whole) => Value::from(*part as f64 / (*whole).max(1) as f64),
            Cell::Text(text) if column.is_number() => text
                .parse::<f64>()
                .map_or_else(|_| text.clone().into(), Value::from),
            Cell::Layers(layers) => names(layers),
            Cell::Stages(stages) => stages.iter().map(names).collect(),
            cell => Value::from(cell.plain(self.pseudo_layers)),
        }
    }

    /// Returns the table as lines: the names of the columns, then all rows. `delimiter`, a tab or a
    /// comma, separates the cells. With either one, cells are quoted by the rules of CSV.
    fn delimited(&self, delimiter: u8) -> io::Result<String> {
        let mut writer = csv::WriterBuilder::new()
            .delimiter(delimiter)
            .from_writer(Vec::new());
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            writer.write_record(cells.map(|text| escape::cell(&text)))
        };
        line(&mut self.columns.iter().map(|column| column.name.to_string()))?;
        for row in &self.rows {
            line(&mut row.cells.iter().map(|cell| cell.plain(self.pseudo_layers)))?;
        }
        let text = writer.into_inner().map_err(|error| error.into_error())?;
        String::from_utf8(text).map_err(io::Error::other)
    }
}

impl Report {
    /// Returns the tables that a report prints on standard output. People get one table, of stages
    /// or IPUs, and read the rest as sentences. Programs get all tables of the CSV form: the stages
    /// and the layers of a model, or for a compilation, its IPUs, their categories, and the
    /// comparison with a prediction. Cells of unknown values, such as cycles, are empty.
    pub fn tables(&self, format: Format) -> Vec<Table> {
        let (form, most) = match format {
            Format::Table => (Form::Terminal, 1),
            _ => (Form::Csv, usize::MAX),
        };
        blocks(self, form, |_| true)
            .filter_map(|(_, block)| match block {
                Block::Table(table) => Some(table),
                _ => None,
            })
            .take(most)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::table;
    use crate::report::testing::report;

    fn written(table: &Table, format: Format) -> String {
        table.text(format, &TextStyle::default()).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_they_need_it_and_read_back() {
        let names = ["a,b", "say \"x\"", "two\\nlines", ""];
        let table = table!("test", names, |name| { "Name" Text (name), "Bytes" Bytes (1u64), });
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
    fn a_matrix_has_the_layers_on_both_sides() {
        let layers = ["None".to_string(), "0".to_string()];
        let table = Table::matrix("affinity", &layers, &[vec![1, 2], vec![3, 4]]);
        let expected = "Layer\tNone\t0\nNone\t1\t2\n0\t3\t4\n";
        assert_eq!(written(&table, Format::Tsv), expected);
    }

    #[test]
    fn a_row_for_each_stage_and_each_layer() {
        let tables = report().tables(Format::Csv);
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        assert_eq!(names, ["stages", "layers"]);
        let [stages, layers] = [0, 1].map(|table| tables[table].plain_rows());
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[0][20], "4096");
        assert_eq!(stages[1][4..9], ["no", "637976", "1", "700024", "-62048"]);
        assert_eq!(
            stages[0][21..29],
            ["2048", "615", "1", "3", "0", "0", "0", "0"]
        );
        let last = ["", "", "885", "0", "0", "0", "0", "0", "0"];
        assert_eq!(stages[1][20..29], last);
        let kinds = stages[0][29..]
            .iter()
            .map(|bytes| bytes.parse::<u64>().unwrap());
        assert_eq!(kinds.sum::<u64>().to_string(), stages[0][9]);
        assert_eq!(layers.len(), report().layers.len());
        assert_eq!(layers[1][11..], ["400", "0"]);
        let names: Vec<&str> = layers.iter().map(|row| &*row[0]).collect();
        assert_eq!(names, ["In", "0", "1", "2", "Out"]);
    }
}
