//! The report as tables for a spreadsheet.
//!
//! Each table follows a line with its name, such as `# stages`. A report on a model has the table
//! of stages, if there is a split, and the table of layers; a report on a compilation has the
//! tables that standard output has. All bytes are exact; the limit of a stage is the limit of its
//! IPU. Cells of missing numbers are empty, such as cycles if the profile has none. `In`, `Out` and
//! `None` are the pseudo-layers.

use super::sections::tables_of;
use super::table::Form;
use super::{Format, Report};
use std::io::{self, Write};

/// Writes all tables that the CSV form has.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for table in tables_of(report, Form::Csv) {
        writeln!(out, "# {}", table.name)?;
        table.write(Format::Csv, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::report;

    #[test]
    fn a_row_for_each_stage_and_each_layer() {
        let mut out = Vec::new();
        write(&report(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (stages, layers) = text.split_once("# layers\n").expect("two tables");
        let stages = stages.strip_prefix("# stages\n").expect("a name");
        let rows = |text: &str| -> Vec<Vec<String>> {
            let reader = csv::ReaderBuilder::new();
            let mut reader = reader.from_reader(text.as_bytes());
            let records = reader.records().map(|record| record.unwrap());
            records
                .map(|record| record.iter().map(String::from).collect())
                .collect()
        };
        let stages = rows(stages);
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[0][20], "4096");
        assert_eq!(stages[1][4..9], ["no", "637976", "1", "700024", "-62048"]);
        assert_eq!(
            stages[0][21..],
            ["2048", "615", "1", "3", "0", "0", "0", "0"]
        );
        let last = ["", "", "885", "0", "0", "0", "0", "0", "0"];
        assert_eq!(stages[1][20..], last);
        let layers = rows(layers);
        assert_eq!(layers.len(), report().layers.len());
        assert_eq!(layers[1][11..], ["400", "0"]);
        let names: Vec<&str> = layers.iter().map(|row| &*row[0]).collect();
        assert_eq!(names, ["In", "0", "1", "2", "Out"]);
    }
}
