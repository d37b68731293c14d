//! The table that every form shows: typed columns, and rows.

use super::cell::Cell;
use crate::model::PseudoLayers;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// Rows under typed columns, which each form shows in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// The table's name, for when several are printed.
    pub name: &'static str,
    /// The meaning of layer names in the table.
    #[serde(skip)]
    pub pseudo_layers: PseudoLayers,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The names of the columns for people, in order, with commas between; all columns if empty.
    /// Names in parentheses are left out at a terminal, which has short lines.
    #[serde(skip)]
    pub for_people: &'static str,
    /// The numbers of bars beside the rows; empty without bars.
    #[serde(skip)]
    pub bars: Vec<RowBar>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Column {
    /// The column's name.
    pub name: Cow<'static, str>,
    /// The kind of value in its cells.
    pub kind: Kind,
    /// The place of the column's numbers in the JSON form: a JSON pointer that is appended to the
    /// row's, or in which `{}` stands for the row's; empty if they have no place.
    pub at: Cow<'static, str>,
    /// The forms and values with which the column is shown.
    #[serde(skip)]
    pub when: When,
}

/// The forms and the values with which a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Only to people, if any row is neither 0 nor empty. Programs compute the column themselves.
    ForPeople,
    /// To programs always; to people if any row is neither 0 nor empty.
    NotZero,
    /// Only if any row is neither 0 nor empty.
    NotZeroAnywhere,
    /// To programs always; to people if some row has at least 1 % of the limit.
    OnePercent,
}

/// A form that shows tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people at a terminal, which has short lines.
    Terminal,
    /// For people who read Markdown.
    Markdown,
    /// For people at a browser.
    Page,
    /// For programs.
    Csv,
}

/// A bar beside a row: bytes, and the limit that they are compared with.
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
    /// The remaining bytes of a limit; below 0 if it is exceeded.
    Free,
    /// A difference in bytes.
    Change,
    /// A share of a whole.
    Share,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// The place of the row's facts in the JSON form, as a JSON pointer or a part of one.
    pub at: String,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

impl Column {
    /// Returns the column's name as a key in JSON, such as `peak_memory`. A name from a file is
    /// unchanged.
    pub(super) fn key(&self) -> String {
        let name = match &self.name {
            Cow::Borrowed(name) => name.split(|c: char| !c.is_ascii_alphanumeric()),
            Cow::Owned(name) => return name.clone(),
        };
        let words = name.filter(|word| !word.is_empty()).map(str::to_lowercase);
        words.collect::<Vec<_>>().join("_")
    }

    /// Makes a column; `at` is the place of its numbers in the JSON form, or empty.
    pub const fn new(name: &'static str, kind: Kind, at: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            at: Cow::Borrowed(at),
            when: When::Always,
        }
    }

    /// Sets when the column is shown.
    pub const fn shown(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Does the column have numbers, which are aligned to the right?
    pub fn is_number(&self) -> bool {
        matches!(
            self.kind,
            Kind::Count | Kind::Bytes | Kind::Free | Kind::Change | Kind::Share
        )
    }
}

impl Table {
    /// Makes a table without rows.
    pub fn new(name: &'static str, columns: &[Column]) -> Self {
        Self {
            name,
            pseudo_layers: PseudoLayers::default(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            for_people: "",
            bars: Vec::new(),
        }
    }

    /// Adds a row; `at` is its place in the JSON form.
    pub fn row(&mut self, at: impl Into<String>, cells: Vec<Cell>) {
        let at = at.into();
        self.rows.push(Row { at, cells });
    }

    /// Keeps only these columns, in this order.
    ///
    /// # Panics
    /// When the table has no column with one of the names.
    pub fn only(self, names: &[&str]) -> Self {
        let place = |name: &&str| self.columns.iter().position(|column| column.name == **name);
        let places = names
            .iter()
            .map(|name| place(name).expect("a column of the table"));
        let places: Vec<usize> = places.collect();
        self.at(&places)
    }

    /// Removes the column with this name.
    pub fn without(self, name: &str) -> Self {
        let places = 0..self.columns.len();
        let places: Vec<usize> = places
            .filter(|&place| self.columns[place].name != name)
            .collect();
        self.at(&places)
    }

    /// Keeps the columns that `form` shows, in its order.
    pub fn shown_in(self, form: Form) -> Self {
        let names = self.for_people.split(", ").filter(|name| !name.is_empty());
        let shown = names.filter_map(|name| match name.strip_prefix('(') {
            Some(_) if form == Form::Terminal => None,
            Some(name) => name.strip_suffix(')'),
            None => Some(name),
        });
        let columns: Vec<&str> = shown.collect();
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
                    for_people: "",
                    ..chosen
                }
            }
        }
    }

    /// Removes columns that are 0, empty or too small in all rows, if `When` hides such columns.
    pub fn without_zeros(self) -> Self {
        let limits = self.bars.iter().map(|&(_, limit)| limit);
        let one_percent = u128::from(limits.max().unwrap_or(0) / 100).max(1);
        self.kept(|column, max| match column.when {
            When::Always => true,
            When::NotZero | When::NotZeroAnywhere | When::ForPeople => max > 0,
            When::OnePercent => max >= one_percent,
        })
    }

    /// Keeps the columns that `is_kept` accepts. Its second argument is the column's largest
    /// number: 0 if all cells are empty, and `u128::MAX` if a cell is no number.
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

    /// Keeps the columns with these indices, in this order.
    fn at(mut self, places: &[usize]) -> Self {
        self.columns = chosen(&self.columns, places);
        for row in &mut self.rows {
            row.cells = chosen(&row.cells, places);
        }
        self
    }

    /// Makes a square matrix of bytes with the layers' names on both sides.
    pub fn matrix(name: &'static str, layers: &[String], cells: &[Vec<u64>]) -> Self {
        let columns = layers.iter().map(|layer| Column {
            name: Cow::Owned(layer.clone()),
            ..Column::new("", Kind::Bytes, "")
        });
        let first = [Column::new("Layer", Kind::Text, "")].into_iter();
        let columns: Vec<Column> = first.chain(columns).collect();
        let mut table = Self::new(name, &columns);
        for (layer, cells) in layers.iter().zip(cells) {
            let numbers = cells.iter().map(|&bytes| Cell::from(bytes));
            let row = [Cell::from(layer.as_str())].into_iter().chain(numbers);
            table.row("", row.collect());
        }
        table
    }

    /// Returns the rows as programs read them.
    #[cfg(test)]
    pub(super) fn plain_rows(&self) -> Vec<Vec<String>> {
        let order = self.pseudo_layers;
        let row = |row: &Row| row.cells.iter().map(|cell| cell.plain(order)).collect();
        self.rows.iter().map(row).collect()
    }
}

fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| all[place].clone()).collect()
}
