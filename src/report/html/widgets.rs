//! The small pieces that pages are built from: numbers, tables, bars.

use crate::memory::Parts;
use crate::report::Report;
use crate::report::sentences::{Phrase, Sentence};
use crate::report::table::{Cell, Column, Kind, Row, Table};
use crate::report::tables::bar;
use crate::report::text::{capital, grouped, grouped_signed, shown};
use maud::{Markup, html};
use std::fmt::Display;

/// A number with the place in the JSON document where it comes from, as a
/// JSON pointer, so that it can be checked. Inside elements with `data-at`
/// the pointer goes on from those of all of them.
pub(super) fn number(at: impl Display, value: u64) -> Markup {
    html! { span data-json=(at) { (grouped(value)) } }
}

/// The same with a sign.
pub(super) fn signed(at: impl Display, value: i64) -> Markup {
    html! { span data-json=(at) { (grouped_signed(value)) } }
}

/// A table that scrolls sideways, without the page, where it is wider than the
/// page. Numbers have their places in the JSON form, the rows those that they
/// go on from.
pub(super) fn table(label: &str, table: &Table) -> Markup {
    html! {
        (scrolling(label, &table.columns, html! {
            @for row in &table.rows { (table_row(table, row)) }
        }))
    }
}

/// A table with rows that are made by hand.
pub(super) fn scrolling(label: &str, columns: &[Column], rows: Markup) -> Markup {
    framed(label, columns, html! { tbody { (rows) } })
}

/// A table whose rows the script makes, in the body with this id.
pub(super) fn filled(id: &str, label: &str, columns: &[Column]) -> Markup {
    framed(label, columns, html! { tbody id=(id) {} })
}

fn framed(label: &str, columns: &[Column], body: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(label) {
            table {
                thead {
                    tr {
                        @for column in columns {
                            @if column.is_number() {
                                th.n scope="col" { (column.name) }
                            } @else if column.kind == Kind::Bar {
                                th scope="col" { span.unseen { (column.name) } }
                            } @else {
                                th scope="col" { (column.name) }
                            }
                        }
                    }
                }
                (body)
            }
        }
    }
}

/// One row of a table.
pub(super) fn table_row(table: &Table, row: &Row) -> Markup {
    let fills_in = table.columns.iter().any(|column| column.at.contains("{}"));
    let at = Some(&row.at).filter(|at| !fills_in && !at.is_empty());
    let cells = table.columns.iter().zip(&row.cells);
    html! {
        tr data-at=[at] {
            @for (column, own) in cells { (cell(table, column, own, &column.at.replace("{}", &row.at))) }
        }
    }
}

/// A cell, with its place in the JSON form where it has one.
fn cell(table: &Table, column: &Column, cell: &Cell, at: &str) -> Markup {
    let shown = table.shown(cell);
    match (cell, column.kind) {
        (Cell::Bar { parts, whole }, _) => {
            html! { td.draw { (stacked(parts, *whole, None, 12)) } }
        }
        (Cell::Number(free), Kind::Free) if !at.is_empty() => {
            html! { td.bad[*free < 0] data-json=(at) { (shown) } }
        }
        (Cell::Number(change), Kind::Change) if !at.is_empty() => {
            html! { td.good[*change < 0] data-json=(at) { (shown) } }
        }
        (Cell::Number(_) | Cell::Decimal(_), _) if !at.is_empty() => {
            html! { td data-json=(at) { (shown) } }
        }
        (Cell::Empty, _) if column.is_number() => html! { td.n { "\u{2013}" } },
        (Cell::Share(part, whole), _) => {
            html! { td.n.bad[part > whole] { (shown) } }
        }
        (Cell::Bool(fits), _) => html! { td.good[*fits].bad[!*fits] { (shown) } },
        (Cell::Layers(_) | Cell::Stages(_), _) => html! { td.name.list { (shown) } },
        (_, Kind::Name) => html! { td.name.wrap { (shown) } },
        (_, Kind::Text | Kind::Layers) => html! { td.name { (shown) } },
        _ => html! { td.n { (shown) } },
    }
}

/// A sentence with a capital letter and a full stop.
pub(super) fn sentence(report: &Report, sentence: &Sentence) -> Markup {
    let pseudo_layers = report.pseudo_layers;
    let sentence = sentence.clone().capital();
    html! {
        @for (place, phrase) in sentence.phrases.iter().enumerate() {
            @match phrase {
                Phrase::Text(text) => (text),
                Phrase::Amount(bytes) => { (grouped(*bytes)) " bytes" },
                Phrase::Bytes(number) | Phrase::Count(number) => (grouped(*number)),
                Phrase::Name(name) if place == 0 => span.name { (capital(&shown(name))) },
                Phrase::Name(name) => span.name { (shown(name)) },
                Phrase::List(list) => span.name { (list) },
                Phrase::Code(code) => code { (shown(code)) },
                Phrase::Layers(layers) => span.name { (pseudo_layers.shown_list(layers)) },
                Phrase::Stages(stages) => span.name { (pseudo_layers.shown_stages(stages)) },
            }
        }
        "."
    }
}

/// A long table, folded away.
pub(super) fn folded(summary: &str, table: Markup) -> Markup {
    html! {
        details {
            summary { (summary) }
            (table)
        }
    }
}

/// A table so long that it stays folded on paper too.
pub(super) fn long(summary: &str, table: Markup) -> Markup {
    html! {
        details.long {
            summary { (summary) }
            (table)
        }
    }
}

/// What the colours mean.
pub(super) fn legend(entries: &[(&str, &str)]) -> Markup {
    html! {
        ul.legend {
            @for (class, name) in entries {
                li {
                    svg viewBox="0 0 10 10" aria-hidden="true" {
                        rect class=(class) width="10" height="10" rx="2" {}
                    }
                    (name)
                }
            }
        }
    }
}

/// The legend of the parts of memory.
/// Those of a pipeline only where `parts` have some.
pub(super) fn parts_legend(parts: &Parts) -> Markup {
    let of_layers = bar(parts).len() - OF_PIPELINE;
    let entries = bar(parts).into_iter().enumerate();
    let entries = entries.filter(|&(number, (.., bytes))| number < of_layers || bytes > 0);
    let entries: Vec<_> = entries.map(|(_, (class, name, _))| (class, name)).collect();
    legend(&entries)
}

/// How many parts a pipeline adds, the last ones.
const OF_PIPELINE: usize = 5;

/// A part of a whole in per cent, for positions in drawings.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    let text = format!("{share:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// Where each of parts that follow one another begins, from 0 on, by how long it is.
pub(super) fn starts() -> impl FnMut(u64) -> u64 {
    let mut end = 0u64;
    move |length| {
        let start = end;
        end = end.saturating_add(length);
        start
    }
}

/// A bar of stacked parts, each (class, name, bytes or cycles), against `whole`, with a
/// line at `limit`.
pub(super) fn stacked(
    parts: &[(&str, &str, u64)],
    whole: u64,
    limit: Option<u64>,
    height: u32,
) -> Markup {
    let mut start = starts();
    let placed: Vec<_> = parts
        .iter()
        .map(|&(class, name, bytes)| (class, name, bytes, start(bytes)))
        .collect();
    html! {
        svg.draw height=(height) aria-hidden="true" {
            rect.track width=(percent(limit.unwrap_or(whole), whole)) height=(height) rx="2" {}
            @for (class, name, bytes, from) in placed {
                @if bytes > 0 {
                    rect class=(class) x=(percent(from, whole)) width=(percent(bytes, whole))
                        height=(height) data-tip=(format!("{name}: {} {}", grouped(bytes), unit(class))) {}
                }
            }
            @if let Some(limit) = limit {
                @let at = percent(limit, whole);
                line.limit x1=(at) x2=(at) y1="-3" y2=(height + 3) {}
            }
        }
    }
}

/// What the parts of a bar are counted in: those of cycles have classes of their own.
fn unit(class: &str) -> &'static str {
    match class {
        "compute" | "exchange" => "cycles",
        _ => "bytes",
    }
}

/// What the dashed lines are: the limit, or those by IPU where they differ, below `at`
/// in the JSON form.
pub(super) fn limits(at: &str, limit: u64, by_ipu: &Option<Vec<u64>>) -> Markup {
    let Some(limits) = by_ipu else {
        return html! { "The dashed line is the limit of " (number(format_args!("{at}/limit"), limit)) " bytes." };
    };
    html! {
        "The dashed lines are the limits, which differ by IPU: "
        @for (ipu, &limit) in limits.iter().enumerate() {
            @if ipu > 0 { ", " }
            (number(format_args!("{at}/limits/{ipu}"), limit))
        }
        " bytes."
    }
}

/// Bytes for an axis, with few digits.
pub(super) fn rounded(bytes: u64) -> String {
    let units = [("GiB", 30u32), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|&(_, shift)| bytes >> shift > 0);
    let Some((unit, shift)) = unit else {
        return format!("{bytes} B");
    };
    let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        rest => format!("{}.{rest} {unit}", tenths / 10),
    }
}

/// The scale to the left of a drawing: bytes, and the pixel from the top.
pub(super) fn scale(height: u32, ticks: impl Iterator<Item = (u64, f64)>) -> Markup {
    html! {
        svg.scale height=(height) aria-hidden="true" {
            @for (bytes, y) in ticks {
                text.axis x="100%" y=(y + 4.0) text-anchor="end" { (rounded(bytes)) }
            }
        }
    }
}

/// Round values for a scale up to `most`: at most five, above 0.
pub(super) fn ticks(most: u64) -> Vec<u64> {
    let mut step = 1u64;
    while most / step >= 5 {
        step = match step.checked_mul(2) {
            Some(larger) => larger,
            None => return Vec::new(),
        };
    }
    (1..=most / step).map(|tick| tick * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_few_round_values() {
        assert!(ticks(0).is_empty());
        assert_eq!(ticks(638_976), [131_072, 262_144, 393_216, 524_288]);
        assert!(ticks(u64::MAX).len() <= 5);
        assert_eq!(rounded(131_072), "128 KiB");
        assert_eq!(rounded(1_572_864), "1.5 MiB");
        assert_eq!(rounded(1023), "1023 B");
        assert_eq!(rounded(u64::MAX), "17179869184 GiB");
    }

    #[test]
    fn positions_have_two_digits_at_most() {
        assert_eq!(percent(1, 3), "33.33%");
        assert_eq!(percent(1, 2), "50%");
        assert_eq!(percent(0, 0), "0%");
    }
}
