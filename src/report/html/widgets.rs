//! The small pieces that pages are built from: numbers, tables, bars.

use crate::memory::Parts;
use crate::report::text::{grouped, grouped_signed, shown};
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

/// The cell of a table with a number.
pub(super) fn cell(at: impl Display, value: u64) -> Markup {
    html! { td data-json=(at) { (grouped(value)) } }
}

/// The same with a sign.
pub(super) fn signed_cell(at: impl Display, value: i64) -> Markup {
    html! { td data-json=(at) { (grouped_signed(value)) } }
}

/// Decimal text that may be beyond 64 bits, with its digits in groups.
pub(super) fn digits(text: &str) -> String {
    match text.parse() {
        Ok(number) => grouped(number),
        Err(_) => shown(text),
    }
}

/// The cell of a table with decimal text.
pub(super) fn decimal(at: impl Display, text: &str) -> Markup {
    html! { td data-json=(at) { (digits(text)) } }
}

/// A table that scrolls sideways by itself where it is wider than the page.
/// Columns whose names begin with `#` hold numbers.
pub(super) fn table(label: &str, columns: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead {
                    tr {
                        @for column in columns {
                            @match column.strip_prefix('#') {
                                Some(name) => th.n scope="col" { (name) },
                                None => th scope="col" { (column) },
                            }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
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

/// The parts of memory: class of colour, name, and bytes.
pub(super) fn parts(parts: &Parts) -> [(&'static str, &'static str, u64); 7] {
    let [
        variables,
        vertex_code,
        vertex_state,
        exchange_code,
        control_code,
        overhead,
        gaps,
    ] = parts.bytes();
    [
        ("variables", "Variables", variables),
        ("vertex-code", "Vertex code", vertex_code),
        ("vertex-state", "Vertex state", vertex_state),
        ("exchange-code", "Exchange code", exchange_code),
        ("control-code", "Control code", control_code),
        ("overhead", "Overhead", overhead),
        ("gaps", "Gaps", gaps),
    ]
}

/// The name of a part in the JSON document.
pub(super) fn json_name(class: &str) -> String {
    class.replace('-', "_")
}

/// The cells of all parts; `at` is where they stand in the document.
pub(super) fn part_cells(at: &str, bytes: &Parts) -> Markup {
    html! {
        @for (class, _, bytes) in parts(bytes) {
            (cell(format_args!("{at}/{}", json_name(class)), bytes))
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
pub(super) fn parts_legend() -> Markup {
    let entries = parts(&Parts::default()).map(|(class, name, _)| (class, name));
    legend(&entries)
}

/// A part of a whole in per cent, for positions in drawings.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    let text = format!("{share:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// A bar of stacked parts, each (class, name, bytes), against `whole`, with a
/// line at `limit`.
pub(super) fn stacked(
    parts: &[(&str, &str, u64)],
    whole: u64,
    limit: Option<u64>,
    height: u32,
) -> Markup {
    let mut start = 0u64;
    let placed: Vec<_> = parts
        .iter()
        .map(|&(class, name, bytes)| {
            let from = start;
            start = start.saturating_add(bytes);
            (class, name, bytes, from)
        })
        .collect();
    html! {
        svg.draw height=(height) aria-hidden="true" {
            rect.track width=(percent(limit.unwrap_or(whole), whole)) height=(height) rx="2" {}
            @for (class, name, bytes, from) in placed {
                @if bytes > 0 {
                    rect class=(class) x=(percent(from, whole)) width=(percent(bytes, whole))
                        height=(height) data-tip=(format!("{name}: {} bytes", grouped(bytes))) {}
                }
            }
            @if let Some(limit) = limit {
                @let at = percent(limit, whole);
                line.limit x1=(at) x2=(at) y1="-3" y2=(height + 3) {}
            }
        }
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
