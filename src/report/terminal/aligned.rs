//! Writes tables for people: aligned columns, with a bar beside each row if there is room.

use super::{Severity, TextStyle};
use crate::{
    report::table::{Kind, Table as Rows},
    report::{Cell, Form},
    wording::{Units, displayed, listed},
};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use textwrap::core::display_width;

/// The minimum and the maximum width, in columns of text, of the bar beside a row of a table. If
/// there is less room, no bars are drawn.
const BAR: std::ops::RangeInclusive<usize> = 10..=40;

/// The minimum width, in columns of text, to which a column with names of layers may be wrapped. If
/// a table is still too wide, other columns are removed.
const MIN_LAYERS: usize = 24;

/// Returns the text of a table with aligned columns. If a table without bars is too wide for the
/// terminal, names of layers are broken into several lines, and columns are removed until the table
/// fits or has two columns. Columns with names of layers are removed last, all other columns from
/// the right. A last line of the text names the removed columns.
pub fn for_people(rows: &Rows, look: &TextStyle) -> String {
    let rows = rows.clone().shown_in(Form::Terminal);
    if let Some(limit) = rows.highest_limit() {
        return with_bars(&rows, look, limit);
    }
    let units = look.units.for_bytes(most_bytes(&rows));
    let table = plain_table(&rows, units);
    let widths: Vec<usize> = table
        .column_max_content_widths()
        .into_iter()
        .map(usize::from)
        .collect();
    let whole = taken(widths.iter().copied());
    let Some(room) = look.width().filter(|&room| whole > room) else {
        return table.trim_fmt();
    };
    let least = |place: usize| match rows.columns[place].kind {
        Kind::Layers => widths[place].min(MIN_LAYERS),
        _ => widths[place],
    };
    let mut kept: Vec<usize> = (0..widths.len()).collect();
    while taken(kept.iter().map(|&place| least(place))) > room && kept.len() > 2 {
        let last = kept
            .iter()
            .rposition(|&place| rows.columns[place].kind != Kind::Layers);
        kept.remove(last.unwrap_or(kept.len() - 1));
    }
    let chosen = rows.clone().at(&kept);
    let mut table = plain_table(&chosen, units);
    limit_width(&mut table, room);
    // A column with names of layers may be wrapped to several lines; all others keep their width.
    for (column, own) in table.column_iter_mut().zip(&chosen.columns) {
        if own.kind != Kind::Layers {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let left_out: Vec<_> = (0..widths.len())
        .filter(|place| !kept.contains(place))
        .map(|place| displayed(&rows.columns[place].name))
        .collect();
    if left_out.is_empty() {
        return table.trim_fmt();
    }
    let note = format!("Not shown: {}; --format tsv has all", listed(&left_out));
    format!("{}\n{}", table.trim_fmt(), look.fitted(&note))
}

/// Computes the width of a table, in columns of text, from the widths of its columns (`widths`) and
/// the space between them.
fn taken(widths: impl Iterator<Item = usize>) -> usize {
    widths
        .map(|width| width + 2)
        .sum::<usize>()
        .saturating_sub(1)
}

/// Returns the highest number of bytes in any cell of the table, which decides the unit of all
/// amounts.
fn most_bytes(rows: &Rows) -> u64 {
    rows.rows
        .iter()
        .flat_map(|row| rows.columns.iter().zip(&row.cells))
        .filter_map(|(column, cell)| match (column.kind, cell) {
            (Kind::Bytes, Cell::Number(bytes)) => u64::try_from(*bytes).ok(),
            _ => None,
        })
        .max()
        .unwrap_or(0)
}

/// Returns the text of a table. On a terminal, a bar follows each row if there is room and every
/// row takes one line. `limit`, in bytes, determines the unit of all amounts of memory.
pub fn with_bars(rows: &Rows, look: &TextStyle, limit: u64) -> String {
    let mut table = plain_table(rows, look.units.for_bytes(limit));
    let Some(screen) = look.screen else {
        return table.trim_fmt();
    };
    limit_width(&mut table, screen.width);
    let mut lines: Vec<String> = table.trim_fmt().lines().map(str::to_string).collect();
    // Leave out the bars if the header or a row of the table takes more than one line, since the
    // code below appends one bar to each line after the first.
    let bars = rows.bars();
    let widths = lines.iter().map(|line| display_width(line));
    let taken = widths.max().unwrap_or(0) + 2;
    let room = screen.width.saturating_sub(taken).min(*BAR.end());
    if lines.len() == bars.len() + 1 && BAR.contains(&room) {
        let largest = bars.iter().map(|&(bytes, _)| bytes).max().unwrap_or(0);
        for (line, own) in lines.iter_mut().skip(1).zip(bars) {
            let pad = " ".repeat(taken.saturating_sub(display_width(line)));
            *line += &(pad + &bar(look, own, largest, room));
        }
    }
    lines.join("\n")
}

fn limit_width(table: &mut Table, width: usize) {
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.try_into().unwrap_or(u16::MAX));
}

fn plain_table(rows: &Rows, units: Units) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(rows.columns.iter().map(|column| match column.kind {
        Kind::Bytes if units != Units::Bytes => column.name.replace("Bytes", "Memory"),
        _ => column.name.to_string(),
    }));
    for row in &rows.rows {
        let cells = rows.columns.iter().zip(&row.cells);
        table.add_row(cells.map(|(column, cell)| match (column.kind, cell) {
            (Kind::Bytes | Kind::Change | Kind::Free, Cell::Number(bytes)) => units.signed(*bytes),
            (Kind::Count, Cell::Number(number)) => number.to_string(),
            (_, Cell::Layers(layers)) => rows.pseudo_layers.plain_list(layers),
            (_, cell) => cell.displayed(rows.pseudo_layers),
        }));
    }
    for (column, own) in table.column_iter_mut().zip(&rows.columns) {
        if own.is_number() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The share of the limit, in per cent, above which the bar of a row has the colour of a warning.
const NOTABLE: u128 = 90;

/// Draws `bytes` as a bar of `width` columns of text with a mark at `limit`. The whole width stands
/// for `limit` or, if it is higher, for `largest`: the most bytes in any row of the table. The bar
/// passes the mark if and only if `bytes` is over the limit.
fn bar(look: &TextStyle, (bytes, limit): (u64, u64), largest: u64, width: usize) -> String {
    let [full, free, mark] = match look.screen {
        Some(screen) if screen.unicode => ["█", "·", "│"],
        _ => ["#", ".", "|"],
    };
    let cells = width.saturating_sub(1);
    let whole = u128::from(largest.max(limit).max(1));
    let scaled = |bytes: u64| ((u128::from(bytes) * cells as u128).div_ceil(whole)) as usize;
    let beyond = scaled(largest.saturating_sub(limit)).min(cells);
    let within = cells - beyond;
    // Rounding must not hide small numbers of bytes: the part of the bar up to the limit looks full
    // only if no bytes are free below the limit, and empty only for 0 bytes.
    let share = (u128::from(bytes.min(limit)) * within as u128 / u128::from(limit.max(1))) as usize;
    let filled = share.clamp(usize::from(bytes > 0).min(within), within);
    let drawn = format!(
        "{}{}{mark}{}",
        full.repeat(filled),
        free.repeat(within - filled),
        full.repeat(scaled(bytes.saturating_sub(limit)).min(beyond))
    );
    let tone = if bytes > limit {
        Severity::Bad
    } else if u128::from(bytes) * 100 > u128::from(limit) * NOTABLE {
        Severity::Notable
    } else {
        Severity::Good
    };
    look.toned(tone, &drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::terminal::Screen;

    fn look(unicode: bool) -> TextStyle {
        let screen = Screen {
            width: 80,
            colour: false,
            unicode,
        };
        TextStyle {
            units: Units::Bytes,
            screen: Some(screen),
            columns: None,
        }
    }

    #[test]
    fn a_bar_passes_the_mark_only_over_the_limit() {
        let cases = [
            (0, 100, "..........|"),
            (1, 100, "#.........|"),
            (50, 100, "#####.....|"),
            (100, 100, "##########|"),
            (100, 200, "#####|"),
            (101, 200, "#####|#"),
            (200, 200, "#####|#####"),
            (0, 200, ".....|"),
        ];
        for (bytes, largest, expected) in cases {
            assert_eq!(
                bar(&look(false), (bytes, 100), largest, 11),
                expected,
                "{bytes}"
            );
        }
        assert_eq!(bar(&look(true), (60, 100), 100, 6), "███··│");
    }

    #[test]
    fn no_bar_is_wider_than_it_may_be() {
        let amounts = [0, 1, 99, 100, 101, 5_000, u64::MAX];
        for width in 0..12 {
            for bytes in amounts {
                for limit in amounts {
                    for largest in amounts.into_iter().filter(|&largest| largest >= bytes) {
                        let drawn = bar(&look(true), (bytes, limit), largest, width);
                        let wide = drawn.chars().count();
                        assert!(wide <= width.max(1), "{bytes} {limit} {largest} {width}");
                    }
                }
            }
        }
    }
}
