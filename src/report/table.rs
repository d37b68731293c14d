//! The table that every form of output shows: rows of cells in typed columns. The code declares a
//! column once, with the field or expression that fills its cells, and each form of output shows
//! some of the columns. If a field fills a column, the compiler checks that the field exists, and
//! the path of the field leads to the column's values in the JSON report.

use super::Report;
use crate::{
    model::{LayerNames, PseudoLayers},
    wording::{Units, displayed, join, share},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// A table with typed columns, which each form of output shows in its own way.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Table {
    /// The name of the table, such as `stages`, by which readers tell several printed tables
    /// apart.
    pub name: &'static str,
    /// The pseudo-layers of the report, which determine whether the position before the layers
    /// is shown as In or None.
    #[serde(skip)]
    pub pseudo_layers: PseudoLayers,
    /// The columns of the table, from left to right.
    pub columns: Vec<Column>,
    /// The rows of the table, from top to bottom.
    pub rows: Vec<Row>,
    /// The names of the columns that people see on a terminal and in Markdown, in order, with
    /// commas between; empty for all columns. A name in parentheses, such as `(Step)`, is a
    /// column that a terminal leaves out, since its lines are short.
    #[serde(skip)]
    pub for_people: &'static str,
    /// Whether a terminal draws a bar beside each row, which shows the row's share of a limit.
    #[serde(skip)]
    pub has_bars: bool,
}

/// A column of a table: its name, and the kind of its values.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Column {
    /// The name of the column, which is also its heading.
    pub name: Cow<'static, str>,
    /// The kind of value in the cells of the column, which determines how the values are shown.
    pub kind: Kind,
    /// Where the column's values are in the JSON report: a JSON pointer to append to the
    /// pointer of the row. If the column's pointer contains `{}`, the row's pointer is inserted
    /// there instead. Empty if the report does not have the values.
    pub at: &'static str,
    /// The condition under which forms of output show the column.
    #[serde(skip)]
    pub when: When,
}

/// The condition under which a column is shown, by form of output and by the values of its cells.
/// People read all forms except CSV, which programs read.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// Show the column in every form of output (terminal, Markdown, HTML page and CSV), whatever
    /// its values are.
    Always,
    /// Show the column only to people, and only if some value is neither 0 nor empty. Programs can
    /// compute its values from other columns.
    ForPeople,
    /// Show the column only in CSV. People see its values as part of another column.
    ForPrograms,
    /// Show the column always in CSV, but to people only if some value is neither 0 nor empty.
    NotZero,
    /// Show the column in any form only if some value is neither 0 nor empty.
    NotZeroAnywhere,
    /// Show the column always in CSV, but to people only if some value is at least 1 % of the limit
    /// that the bars beside the table's rows show. If rows have different limits, the highest limit
    /// counts.
    OnePercent,
}

/// A form of output that shows tables and sections of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Text on a terminal. Its lines are short, so it shows fewer columns.
    Terminal,
    /// A Markdown document, which people read.
    Markdown,
    /// An HTML page, which people read.
    Page,
    /// CSV tables, which programs read.
    Csv,
}

/// The kind of value in the cells of a column, which determines how the values are shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The cells of the column are short texts, such as `yes` or the name of a schedule.
    Text,
    /// The cells of the column are names from a file, which can be long.
    Name,
    /// The cells of the column are names of layers.
    Layers,
    /// The cells of the column are counts, of cycles for example, or indices, of tiles for
    /// example.
    Count,
    /// The cells of the column are numbers of bytes.
    Bytes,
    /// The cells of the column are bytes that stay free below a limit, and are below 0 if the
    /// limit is exceeded.
    Free,
    /// The cells of the column are differences in bytes, which can be below 0.
    Change,
    /// The cells of the column are shares of a whole, shown in per cent.
    Share,
}

/// A row of a table in a report, which shows one item, such as a stage or a cut.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Row {
    /// Where the item of the row is in the JSON report, as a JSON pointer such as `/cuts/0`;
    /// empty if the report does not have the item.
    pub at: String,
    /// The cells of the table's row, one for each column.
    pub cells: Vec<Cell>,
}

/// The value of one cell of a table, which people and programs read in different forms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub enum Cell {
    /// The cell is empty, since its value is unknown or does not apply.
    Empty,
    /// A text. It may come from a file, so whoever writes it into HTML, a terminal or another form
    /// must escape it.
    Text(String),
    /// A truth value, shown as `yes` or `no`.
    Bool(bool),
    /// A whole number, such as bytes, tiles or cycles; the kind of the column says which.
    Number(i128),
    /// The name of one layer; `None` for the position before all layers.
    #[serde(serialize_with = "layer")]
    #[cfg_attr(
        test,
        schemars(with = "std::collections::BTreeMap<String, Option<String>>")
    )]
    Layer(Option<String>),
    /// The names of the layers of one stage, which people see shortened if they are many.
    Layers(LayerNames),
    /// The names of the layers of each stage of a split, such as `[ In 0 | 1 Out ]`.
    Stages(Vec<LayerNames>),
    /// A part and the whole in bytes, such as the bytes in use on a tile and its limit. People see
    /// the part in per cent of the whole.
    Share(u64, u64),
}

macro_rules! from {
    ($($value:ident: $type:ty => $cell:expr,)*) => {$(
        impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        }
    )*};
}

from! {
    number: u32 => Cell::Number(number.into()),
    number: u64 => Cell::Number(number.into()),
    number: usize => Cell::Number(number as i128),
    number: i64 => Cell::Number(number.into()),
    number: i128 => Cell::Number(number),
    is: bool => Cell::Bool(is),
    text: &str => Cell::Text(text.to_string()),
    text: String => Cell::Text(text),
    layers: LayerNames => Cell::Layers(layers),
    stages: Vec<LayerNames> => Cell::Stages(stages),
}

impl<T: Clone> From<&T> for Cell
where
    Cell: From<T>,
{
    fn from(cell: &T) -> Self {
        Cell::from(cell.clone())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Cell::Empty, Into::into)
    }
}

/// Serializes the name of a layer as an object with the key `layer`. The name of the position
/// before the layers is `None`, and a bare `null` would look like an empty cell.
fn layer<S: serde::Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("layer", name)])
}

impl Cell {
    /// Returns the text of the cell for people: digits are grouped, and long lists of layers are
    /// shortened. `order` determines the name of the position before the layers, such as `In`.
    pub(super) fn displayed(&self, order: PseudoLayers) -> String {
        match self {
            Cell::Text(text) => displayed(text),
            Cell::Number(number) => Units::Bytes.signed(*number),
            Cell::Layer(layer) => displayed(order.name_of(layer)),
            Cell::Layers(layers) => order.displayed_list(layers),
            Cell::Stages(stages) => order.displayed_stages(stages),
            other => other.plain(order),
        }
    }

    /// Returns the text of the cell in output for other programs, such as CSV: names are whole, and
    /// numbers have no separators. `order` determines the name of the position before the layers,
    /// such as `In`.
    pub(super) fn plain(&self, order: PseudoLayers) -> String {
        let names = |layers: &LayerNames| order.names_of(layers).join(" ");
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Bool(is) => if *is { "yes" } else { "no" }.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Layer(layer) => order.name_of(layer).to_string(),
            Cell::Layers(layers) => names(layers),
            Cell::Stages(stages) => join(stages.iter().map(names), " | "),
            Cell::Share(part, whole) => share(*part, *whole),
        }
    }
}

impl Column {
    /// Returns the key of the column in JSON: its name in lower case with underscores, such as
    /// `peak_memory`. A name that comes from a file, such as the name of a layer, stays unchanged.
    pub(super) fn key(&self) -> String {
        let name = match &self.name {
            Cow::Borrowed(name) => name.split(|c: char| !c.is_ascii_alphanumeric()),
            Cow::Owned(name) => return name.clone(),
        };
        join(
            name.filter(|word| !word.is_empty()).map(str::to_lowercase),
            "_",
        )
    }

    /// Makes a column that every form of output shows. Each row of the table shows one object of
    /// the JSON report, and `at` is the JSON pointer from this object to the column's value. `at`
    /// is empty if the report does not have the value.
    pub const fn new(name: &'static str, kind: Kind, at: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            at,
            when: When::Always,
        }
    }

    /// Returns whether the cells of the column are numbers, which are aligned to the right.
    pub fn is_number(&self) -> bool {
        matches!(
            self.kind,
            Kind::Count | Kind::Bytes | Kind::Free | Kind::Change | Kind::Share
        )
    }
}

impl Table {
    /// Makes a table that has no rows yet.
    pub fn new(name: &'static str, columns: Vec<Column>) -> Self {
        Self {
            name,
            columns,
            ..Self::default()
        }
    }

    /// Completes a table that shows one list of `report`, an item of the list in each row. `list`
    /// is the JSON pointer to the list, such as `/cuts`, and each row gets the pointer to its item,
    /// such as `/cuts/0`. `for_people` names the columns that people see.
    pub(super) fn of(mut self, report: &Report, list: &str, for_people: &'static str) -> Self {
        self.pseudo_layers = report.pseudo_layers;
        self.for_people = for_people;
        for (place, row) in self.rows.iter_mut().enumerate() {
            row.at = format!("{list}/{place}");
        }
        self
    }

    pub(super) fn with_bars(self) -> Self {
        Self {
            has_bars: true,
            ..self
        }
    }

    /// Adds a row to the table; `cells` has its values, one for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row {
            at: String::new(),
            cells,
        });
    }

    /// Returns the table with only the columns that the form of output `form` shows. On a terminal
    /// and in Markdown, these are the columns that `for_people` lists, in its order. The condition
    /// (`When`) of a column can hide it in any form.
    ///
    /// # Panics
    /// When `for_people` names a column that the table lacks.
    pub fn shown_in(self, form: Form) -> Self {
        let one_percent = u128::from(self.highest_limit().unwrap_or(0) / 100).max(1);
        let is_csv = form == Form::Csv;
        let is_shown = |column: &Column, max: u128| match column.when {
            When::Always => true,
            When::NotZeroAnywhere => max > 0,
            When::ForPeople => !is_csv && max > 0,
            When::ForPrograms => is_csv,
            When::NotZero => is_csv || max > 0,
            When::OnePercent => is_csv || max >= one_percent,
        };
        if self.for_people.is_empty() || matches!(form, Form::Csv | Form::Page) {
            return self.kept(is_shown);
        }
        let names = self
            .for_people
            .split(", ")
            .filter_map(|name| match name.strip_prefix('(') {
                Some(_) if form == Form::Terminal => None,
                Some(name) => name.strip_suffix(')'),
                None => Some(name),
            });
        let place = |name| self.columns.iter().position(|column| column.name == name);
        let places: Vec<usize> = names
            .map(|name| place(name).expect("a column of the table"))
            .collect();
        Self {
            for_people: "",
            ..self.at(&places).kept(is_shown)
        }
    }

    /// Returns the table with only the columns that `is_kept` accepts. `is_kept` gets a column and
    /// the largest absolute value of its cells. This value is 0 if all cells are empty, and
    /// `u128::MAX` if some cell is no number, so that columns of text count as filled.
    pub(super) fn kept(self, is_kept: impl Fn(&Column, u128) -> bool) -> Self {
        let max = |place: usize| {
            self.rows
                .iter()
                .map(|row| match &row.cells[place] {
                    Cell::Number(number) => number.unsigned_abs(),
                    Cell::Empty => 0,
                    _ => u128::MAX,
                })
                .max()
                .unwrap_or(0)
        };
        let places: Vec<usize> = (0..self.columns.len())
            .filter(|&place| is_kept(&self.columns[place], max(place)))
            .collect();
        self.at(&places)
    }

    /// Returns the table with only the columns whose indices are in `places`, in that order.
    pub(super) fn at(mut self, places: &[usize]) -> Self {
        let places = places.iter();
        self.columns = (places.clone().map(|&place| self.columns[place].clone())).collect();
        for Row { cells, .. } in &mut self.rows {
            *cells = places.clone().map(|&place| cells[place].clone()).collect();
        }
        self
    }

    /// Returns the bytes and the limit that the bar beside each row shows; an empty list if the
    /// table has no bars.
    pub(super) fn bars(&self) -> Vec<(u64, u64)> {
        self.rows
            .iter()
            .flat_map(|row| &row.cells)
            .filter_map(|cell| match *cell {
                Cell::Share(bytes, limit) if self.has_bars => Some((bytes, limit)),
                _ => None,
            })
            .collect()
    }

    /// Returns the highest limit in bytes of all rows with a bar; `None` if the table has no bars.
    pub(super) fn highest_limit(&self) -> Option<u64> {
        self.bars().into_iter().map(|(_, limit)| limit).max()
    }

    /// Makes a square table of bytes between layers. `layers` names the columns and also the rows,
    /// and `cells` has the bytes of each row, one number for each column.
    pub fn matrix(name: &'static str, layers: &[String], cells: &[Vec<u64>]) -> Self {
        let mut table = Self::new(name, vec![Column::new("Layer", Kind::Text, "")]);
        table.columns.extend(layers.iter().map(|layer| Column {
            name: Cow::Owned(layer.clone()),
            ..Column::new("", Kind::Bytes, "")
        }));
        for (layer, cells) in layers.iter().zip(cells) {
            table.row(
                [layer.into()]
                    .into_iter()
                    .chain(cells.iter().map(Cell::from))
                    .collect(),
            );
        }
        table
    }
}

/// Makes a table with one row for each item of a list, such as a table of stages:
/// ```text
/// table!("stages", &split.stages, |stage, index| let tile = &stage.fullest_tile; {
///     => []
///     "Index" Count (index),
///     "Free" Free (tile.free),
///     => [.fullest_tile]
///     NotZero "Peak memory" Bytes (.bytes),
/// })
/// ```
/// A column has an optional variant of `When`, its name, a variant of `Kind`, and its cell: an
/// expression, or a path of fields of the item. `=> [.fullest_tile]` is the beginning of the paths
/// below it: `(.bytes)` is `stage.fullest_tile.bytes`. The index and `let` may be left out.
macro_rules! table {
    ($name:literal, $rows:expr, |$row:tt $(, $place:ident)?| $(let $variable:ident = $value:expr;)* {
        $(=> $of:tt $($($when:ident)? $column:literal $kind:ident $cell:tt,)*)*
    }) => {{
        use $crate::report::table::{Column, Kind, Table, table};
        let mut table = Table::new($name, vec![$($(
            Column {
                $(when: $crate::report::table::When::$when,)?
                ..Column::new($column, Kind::$kind, table!(@at $of $cell))
            }
        ),*),*]);
        for $row in $rows {
            $(let $place = table.rows.len();)?
            $(let $variable = $value;)*
            table.row(vec![$($(table!(@cell $row $of $cell)),*),*]);
        }
        table
    }};
    ($name:literal, $rows:expr, |$row:tt $(, $place:ident)?| $(let $variable:ident = $value:expr;)* {
        $($columns:tt)*
    }) => {
        $crate::report::table::table!($name, $rows, |$row $(, $place)?| $(let $variable = $value;)* {
            => [] $($columns)*
        })
    };
    (@at [$(.$of:ident)*] (.$first:ident $(.$more:ident)*)) => {
        concat!($("/", stringify!($of),)* "/", stringify!($first) $(, "/", stringify!($more))*)
    };
    (@at [] (.$first:ident?.$more:ident)) => { table!(@at [] (.$first.$more)) };
    (@at $of:tt $cell:tt) => { "" };
    (@cell $row:ident [] (.$first:ident?.$more:ident)) => {
        $row.$first.as_ref().map(|inner| &inner.$more).into()
    };
    (@cell $row:ident [$($of:tt)*] (.$($field:ident).+)) => { (&$row$($of)*.$($field).+).into() };
    (@cell $row:tt $of:tt ($cell:expr)) => { $crate::report::table::Cell::from($cell) };
}
pub(super) use table;
