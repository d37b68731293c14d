//! Columns side by side: layers, tiles by how full they are, numbers of IPUs.

use super::widgets::{percent, rounded, scale, ticks};
use maud::{Markup, html};

/// One column.
pub(super) struct Bar {
    pub(super) height: u64,
    /// The class of its colour.
    pub(super) class: &'static str,
    /// The text below it.
    pub(super) name: String,
    /// What the pointer shows.
    pub(super) tip: String,
}

/// Columns of equal width.
pub(super) struct Columns<'a> {
    pub(super) columns: Vec<Bar>,
    /// Groups of neighbours, each with its name, a shorter one for where there
    /// is less room, and its number of columns.
    pub(super) groups: Vec<(String, String, usize)>,
    /// A line across, as bytes.
    pub(super) limit: Option<u64>,
    /// Are the names, where there are any, at the left edges of their columns?
    pub(super) on_edges: bool,
    /// Is the height in bytes?
    pub(super) in_bytes: bool,
    /// Height of the drawing in pixels.
    pub(super) height: u32,
    /// What is drawn, for those who cannot see it.
    pub(super) label: &'a str,
}

const BELOW: u32 = 20;
const ABOVE: u32 = 20;

impl Columns<'_> {
    pub(super) fn drawing(&self) -> Markup {
        let count = self.columns.len() as u64;
        let most = self.columns.iter().map(|column| column.height).max();
        let most = most.unwrap_or(0).max(self.limit.unwrap_or(0)).max(1);
        let room = f64::from(self.height - ABOVE - BELOW);
        let base = self.height - BELOW;
        let y = |bytes: u64| {
            let height = room * (bytes as f64 / most as f64);
            ((f64::from(base) - height) * 10.0).round() / 10.0
        };
        // Narrow columns are closer together.
        let gap = if count > 60 { 0 } else { 12 };
        let filled = (0u64..).zip(&self.columns);
        let filled = filled.filter(|(_, column)| column.height > 0);
        let drawing = html! {
            svg height=(self.height) role="img" aria-label=(self.label) {
                (self.group_drawings(count))
                @if self.in_bytes {
                    @for tick in ticks(most) {
                        line.grid x1="0" x2="100%" y1=(y(tick)) y2=(y(tick)) {}
                    }
                }
                @for (place, column) in filled {
                    // A small one is seen too.
                    @let top = y(column.height).min(f64::from(base) - 1.5);
                    rect class=(column.class) data-tip=(column.tip)
                        x=(percent(place * 100 + gap / 2, count * 100))
                        width=(percent(100 - gap, count * 100))
                        y=(top) height=(f64::from(base) - top) {}
                }
                line.grid x1="0" x2="100%" y1=(base) y2=(base) {}
                @if let Some(limit) = self.limit {
                    line.limit x1="0" x2="100%" y1=(y(limit)) y2=(y(limit)) {}
                    text.limit-text.halo x="100%" y=(y(limit) - 4.0) text-anchor="end" {
                        "limit " (rounded(limit))
                    }
                }
                @if self.on_edges { (self.edges(count)) } @else { (self.names(count)) }
            }
        };
        let ticks = ticks(most).into_iter().map(|tick| (tick, y(tick)));
        if self.in_bytes {
            html! { div.plot { (scale(self.height, ticks)) (drawing) } }
        } else {
            drawing
        }
    }

    fn group_drawings(&self, count: u64) -> Markup {
        let mut start = 0u64;
        let placed = self.groups.iter().enumerate().map(|(number, group)| {
            let (long, short, columns) = (&group.0, &group.1, group.2 as u64);
            let from = start;
            start += columns;
            let name = [long, short]
                .into_iter()
                .find(|name| fits(name, columns, count));
            (number % 2 == 1, name, from, columns)
        });
        html! {
            @for (other, name, from, columns) in placed {
                rect.band.other[other] x=(percent(from, count)) width=(percent(columns, count))
                    height=(self.height - BELOW) {}
                @if let Some(name) = name {
                    text.on x=(percent(from, count)) y="14" dx="5" { (name) }
                }
            }
        }
    }

    /// The names that there are, at the left edges of their columns.
    fn edges(&self, count: u64) -> Markup {
        html! {
            @for (place, column) in (0u64..).zip(&self.columns) {
                @if !column.name.is_empty() {
                    text.axis x=(percent(place, count)) y=(self.height - 5)
                        text-anchor=(if place == 0 { "start" } else { "middle" }) { (column.name) }
                }
            }
        }
    }

    /// The names below: all of them, or one at regular intervals.
    fn names(&self, count: u64) -> Markup {
        let longest = self
            .columns
            .iter()
            .map(|column| column.name.chars().count());
        let longest = longest.max().unwrap_or(0) as f64;
        let apart = ((longest * LETTER + 4.0) * count as f64 / PHONE)
            .ceil()
            .max(1.0) as u64;
        let shown = (0u64..)
            .zip(&self.columns)
            .filter(|(place, _)| place % apart == 0);
        html! {
            @for (place, column) in shown {
                text.axis x=(percent(place * 2 + 1, count * 2)) y=(self.height - 5)
                    text-anchor="middle" { (column.name) }
            }
        }
    }
}

/// The narrowest drawing, and how much of it a letter takes, in pixels.
const PHONE: f64 = 300.0;
const LETTER: f64 = 6.8;

fn fits(name: &str, columns: u64, count: u64) -> bool {
    let room = columns as f64 / count.max(1) as f64 * PHONE;
    name.chars().count() as f64 * LETTER + 5.0 <= room
}
