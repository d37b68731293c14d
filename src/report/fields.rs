//! Columns with the fields or values that fill them. Each column is declared once, and every form
//! shows some of them. If a cell is a field of the row, its place in the JSON form is the path of
//! that field, which the compiler checks.

use super::table::{Column, Table};
use super::{Cell, Report};

/// A column of a table, with the function that makes its cells from items of type `T`, one for each
/// row.
pub struct FilledColumn<T> {
    pub column: Column,
    /// Makes the cell of a row from the row's item, the report, and the index of the row.
    pub cell: fn(&T, &Report, usize) -> Cell,
}

/// Declares an array of [`FilledColumn`]s in the order of the CSV form. Each line has a variant of
/// `When` unless the column is always shown, the name, a variant of `Kind`, and in parentheses the
/// cell: a closure as in [`FilledColumn::cell`] that returns what a [`Cell`] can be made from, or the
/// path of a field of the item, such as `(.fullest_tile.bytes)`.
macro_rules! fields {
    ($($($when:ident)? $name:literal $kind:ident $cell:tt,)*) => {{
        use $crate::report::fields::{FilledColumn, fields};
        use $crate::report::table::{Column, Kind};
        [$(FilledColumn {
            column: Column::new($name, Kind::$kind, fields!(@at $cell))$(.shown($crate::report::table::When::$when))?,
            cell: fields!(@cell $cell),
        }),*]
    }};
    (@at (.$first:ident $(.$more:ident)*)) => {
        concat!("/", stringify!($first) $(, "/", stringify!($more))*)
    };
    (@at (.$first:ident?.$more:ident)) => {
        concat!("/", stringify!($first), "/", stringify!($more))
    };
    (@at $cell:tt) => { "" };
    (@cell (.$first:ident $(.$more:ident)*)) => { |row, _, _| (&row.$first$(.$more)*).into() };
    (@cell (.$first:ident?.$more:ident)) => {
        |row, _, _| row.$first.as_ref().map(|inner| &inner.$more).into()
    };
    (@cell (|$row:pat_param, $report:pat_param, $place:pat_param| $cell:expr)) => {
        |$row, $report, $place| $cell.into()
    };
}
pub(super) use fields;

impl Table {
    /// Makes a table of this name with the columns of `fields` and a row for each of `items`, which
    /// are all items of one list of the report. `list` is the list's place in the JSON form, such as
    /// `/cuts`.
    pub(super) fn of<'a, T: 'a>(
        name: &'static str,
        fields: &[FilledColumn<T>],
        report: &Report,
        list: &str,
        items: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        let mut table = Self::new(
            name,
            fields.iter().map(|field| field.column.clone()).collect(),
        );
        table.pseudo_layers = report.pseudo_layers;
        for (place, item) in items.into_iter().enumerate() {
            let cells = fields.iter().map(|field| (field.cell)(item, report, place));
            table.row(format!("{list}/{place}"), cells.collect());
        }
        table
    }
}

/// Makes a table whose rows have no place in the JSON form. Its arguments are the name, an item for
/// each row, and for each column its kind, its name, and the cell as an expression of the item.
/// `let` bindings for the cells may precede the columns.
macro_rules! table {
    ($name:literal, $rows:expr, |$row:pat_param| $(let $variable:ident = $value:expr;)* {
        $($kind:ident $column:literal: $cell:expr,)*
    }) => {{
        use $crate::report::table::{Column, Kind, Table};
        let mut table = Table::new($name, vec![$(Column::new($column, Kind::$kind, "")),*]);
        for $row in $rows {
            $(let $variable = $value;)*
            table.row("", vec![$($crate::report::cell::Cell::from($cell)),*]);
        }
        table
    }};
}
pub(super) use table;
