//! The table that every form shows: typed columns, and rows.

use super::LayerNames;
use super::text::{displayed, grouped, grouped_signed, share};
use crate::model::PseudoLayers;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// Rows under typed columns. Each form shows it in its own way; the delimited
/// forms are written here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// The name of the table where several are printed.
    pub name: &'static str,
    /// How the names of layers in it read.
    #[serde(skip)]
    pub pseudo_layers: PseudoLayers,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The columns that people see, in their order; all where there are none.
    #[serde(skip)]
    pub for_people: &'static [ForPeople],
    /// The numbers that bars beside the rows show; none where there are none.
    #[serde(skip)]
    pub bars: Vec<RowBar>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The kind of value in its cells.
    pub kind: Kind,
    /// Where its numbers are in the JSON form, as a JSON pointer that goes on
    /// from that of the row, or in which `{}` means what the row has; empty
    /// where they are not there.
    pub at: Cow<'static, str>,
    /// When it is shown.
    #[serde(skip)]
    pub when: When,
}

/// When a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Only to people, where it is not 0 or empty in all rows: programs compute it
    /// themselves.
    ForPeople,
    /// To people where it is not 0 or empty in all rows; to programs always.
    NotZero,
    /// Only where it is not 0 or empty in all rows.
    NotZeroAnywhere,
    /// To people where it is at least 1 % of the limit in some row; to programs always.
    OnePercent,
}

/// A form that tables are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people at a terminal, where lines are short.
    Terminal,
    /// For people who read Markdown.
    Markdown,
    /// For people at a browser.
    Page,
    /// For programs.
    Csv,
}

/// A column that people see, and whether there is room for it on a terminal.
pub type ForPeople = (&'static str, bool);

/// A bar beside a row: bytes, and the limit that they are held against.
pub type RowBar = (u64, u64);

/// The kind of value in the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Text.
    Text,
    /// Long names from a file.
    Name,
    /// Layers.
    Layers,
    /// A number of things, such as tiles or cycles, or the index of one.
    Count,
    /// Bytes.
    Bytes,
    /// The rest of a limit, in bytes; below 0 when it is passed.
    Free,
    /// Bytes more than before, or less.
    Change,
    /// A part of a whole.
    Share,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// Where its facts are in the JSON form, as a JSON pointer or a part of one.
    pub at: String,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// A value that is not known.
    Empty,
    /// Text, which may come from a file.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(i128),
    /// Decimal text that may be beyond 64 bits.
    Decimal(String),
    /// One layer.
    #[serde(serialize_with = "layer")]
    #[schemars(with = "std::collections::BTreeMap<String, Option<String>>")]
    Layer(Option<String>),
    /// The layers of a stage.
    Layers(LayerNames),
    /// The layers of all stages.
    Stages(Vec<LayerNames>),
    /// A part and the whole.
    Share(u64, u64),
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(number: $number) -> Self {
                Cell::Number(number as i128)
            }
        }
    )*};
}
// All of them fit.
numbers!(u32, u64, usize, i64, i128);

impl From<bool> for Cell {
    fn from(is: bool) -> Self {
        Cell::Bool(is)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<LayerNames> for Cell {
    fn from(layers: LayerNames) -> Self {
        Cell::Layers(layers)
    }
}

impl From<Vec<LayerNames>> for Cell {
    fn from(stages: Vec<LayerNames>) -> Self {
        Cell::Stages(stages)
    }
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

/// The cells of a row, each from what it shows.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$($crate::report::table::Cell::from($cell)),*] };
}
pub(crate) use cells;

impl Column {
    /// Its name as a key in JSON, such as `peak_memory`; a name from a file stays.
    pub(super) fn key(&self) -> String {
        let name = match &self.name {
            Cow::Borrowed(name) => name.split(|c: char| !c.is_ascii_alphanumeric()),
            Cow::Owned(name) => return name.clone(),
        };
        let words = name.filter(|word| !word.is_empty()).map(str::to_lowercase);
        words.collect::<Vec<_>>().join("_")
    }

    /// A column whose numbers, if it has any, are at `at` in the JSON form.
    pub const fn new(name: &'static str, kind: Kind, at: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            at: Cow::Borrowed(at),
            when: When::Always,
        }
    }

    /// The column, shown at these times.
    pub const fn shown(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// A column of text.
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text, "")
    }

    /// Does it hold numbers, which are aligned to the right?
    pub fn is_number(&self) -> bool {
        matches!(
            self.kind,
            Kind::Count | Kind::Bytes | Kind::Free | Kind::Change | Kind::Share
        )
    }
}

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, columns: &[Column]) -> Self {
        Self {
            name,
            pseudo_layers: PseudoLayers::default(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            for_people: &[],
            bars: Vec::new(),
        }
    }

    /// A table without rows that names layers.
    pub fn of_layers(name: &'static str, columns: &[Column], pseudo_layers: PseudoLayers) -> Self {
        Self {
            pseudo_layers,
            ..Self::new(name, columns)
        }
    }

    /// Adds a row whose facts are at `at` in the JSON form.
    pub fn row(&mut self, at: impl Into<String>, cells: Vec<Cell>) {
        let at = at.into();
        self.rows.push(Row { at, cells });
    }

    /// The table with these columns alone, in this order.
    pub fn only(self, names: &[&str]) -> Self {
        let place = |name: &&str| self.columns.iter().position(|column| column.name == **name);
        let places: Vec<usize> = names.iter().filter_map(place).collect();
        debug_assert_eq!(places.len(), names.len(), "{names:?}");
        self.at(&places)
    }

    /// The table without the column of this name.
    pub fn without(self, name: &str) -> Self {
        let places = 0..self.columns.len();
        let places: Vec<usize> = places
            .filter(|&place| self.columns[place].name != name)
            .collect();
        self.at(&places)
    }

    /// The rows with the columns that `form` shows, in their order.
    pub fn shown_in(self, form: Form) -> Self {
        let is_terminal = form == Form::Terminal;
        let columns = self.for_people.iter();
        let columns: Vec<&str> = columns
            .filter(|(_, has_room)| *has_room || !is_terminal)
            .map(|(name, _)| *name)
            .collect();
        match form {
            Form::Csv => self.kept(|column, max| match column.when {
                When::ForPeople => false,
                When::NotZeroAnywhere => max > 0,
                When::Always | When::NotZero | When::OnePercent => true,
            }),
            _ if columns.is_empty() || form == Form::Page => self.without_zeros(),
            _ => {
                let chosen = self.only(&columns).without_zeros();
                Self {
                    for_people: &[],
                    ..chosen
                }
            }
        }
    }

    /// The rows without columns that are 0 or empty, or too small, in all of them and are
    /// shown only where they are not.
    pub fn without_zeros(self) -> Self {
        let limits = self.bars.iter().map(|&(_, limit)| limit);
        let one_percent = u128::from(limits.max().unwrap_or(0) / 100).max(1);
        self.kept(|column, max| match column.when {
            When::Always => true,
            When::NotZero | When::NotZeroAnywhere | When::ForPeople => max > 0,
            When::OnePercent => max >= one_percent,
        })
    }

    /// The rows with the columns that `is_kept`, which is also told the largest number of
    /// all rows: 0 where all are empty, and no less than any where there is text.
    fn kept(self, is_kept: impl Fn(&Column, u128) -> bool) -> Self {
        let max = |place: usize| {
            let numbers = self.rows.iter().map(|row| match &row.cells[place] {
                Cell::Number(number) => number.unsigned_abs(),
                Cell::Empty => 0,
                _ => u128::MAX,
            });
            numbers.max().unwrap_or(0)
        };
        let places = self.columns.iter().enumerate();
        let places = places.filter(|(place, column)| is_kept(column, max(*place)));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        self.at(&places)
    }

    /// The table with the columns at these places.
    fn at(mut self, places: &[usize]) -> Self {
        self.columns = chosen(&self.columns, places);
        for row in &mut self.rows {
            row.cells = chosen(&row.cells, places);
        }
        self
    }

    /// A square matrix of bytes with the layers' names on both sides.
    pub fn matrix(name: &'static str, layers: &[String], cells: &[Vec<u64>]) -> Self {
        let columns = layers.iter().map(|layer| Column {
            name: Cow::Owned(layer.clone()),
            ..Column::new("", Kind::Bytes, "")
        });
        let columns: Vec<Column> = [Column::text("Layer")].into_iter().chain(columns).collect();
        let mut table = Self::new(name, &columns);
        for (layer, cells) in layers.iter().zip(cells) {
            let numbers = cells.iter().map(|&bytes| Cell::from(bytes));
            let row = [Cell::from(layer.as_str())].into_iter().chain(numbers);
            table.row("", row.collect());
        }
        table
    }

    /// A cell for people: digits in groups, long lists of layers cut short.
    pub fn displayed(&self, cell: &Cell) -> String {
        match cell {
            Cell::Text(text) => displayed(text),
            Cell::Number(number) => grouped_signed(*number),
            Cell::Decimal(text) => text.parse().map_or_else(|_| displayed(text), grouped),
            Cell::Layer(layer) => self.pseudo_layers.displayed(layer),
            Cell::Layers(layers) => self.pseudo_layers.displayed_list(layers),
            Cell::Stages(stages) => self.pseudo_layers.displayed_stages(stages),
            other => self.plain(other),
        }
    }

    /// A cell for programs: whole names, and numbers of digits alone.
    pub(super) fn plain(&self, cell: &Cell) -> String {
        let names = |layers: &LayerNames| self.pseudo_layers.names_of(layers).join(" ");
        match cell {
            Cell::Empty => String::new(),
            Cell::Text(text) | Cell::Decimal(text) => text.clone(),
            Cell::Bool(is) => if *is { "yes" } else { "no" }.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Layer(layer) => self.pseudo_layers.name_of(layer).to_string(),
            Cell::Layers(layers) => names(layers),
            Cell::Stages(stages) => stages.iter().map(names).collect::<Vec<_>>().join(" | "),
            Cell::Share(part, whole) => share(*part, *whole),
        }
    }

    /// The rows as programs read them.
    #[cfg(test)]
    pub(super) fn plain_rows(&self) -> Vec<Vec<String>> {
        let row = |row: &Row| row.cells.iter().map(|cell| self.plain(cell)).collect();
        self.rows.iter().map(row).collect()
    }
}

/// A layer as an object: the name alone would be `null` for In, as an empty cell is.
fn layer<S: serde::Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("layer", name)])
}

fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| all[place].clone()).collect()
}
