//! The stages as a table, and the verdict, for people.

mod bars;
mod explain;
mod proof;
mod refusal;
mod text_style;

pub use explain::explain;
pub use proof::proof;
pub use refusal::{beside, refusal};
pub use text_style::{Screen, Severity, TextStyle};

use super::document::TiedWeightFacts;
use super::text::share;
use super::{Split, Stage, Units, printable, tied_weights};
use crate::memory::Coverage;
use crate::model::PseudoLayers;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use textwrap::core::display_width;

/// Narrower bars say nothing, wider ones no more.
const BAR: std::ops::RangeInclusive<usize> = 10..=40;

/// One row for each stage; on a screen that has room, with a bar of its memory.
/// `curves` has the bytes by step on the fullest tile of each stage, nothing for
/// a stage without steps: on a screen they are drawn below.
pub fn table(split: &Split, look: &TextStyle, curves: Option<&[Vec<u64>]>) -> String {
    let mut table = plain_table(split, look.units.for_bytes(split.limit));
    let Some(screen) = look.screen else {
        return table.trim_fmt();
    };
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(screen.width.try_into().unwrap_or(u16::MAX));
    let mut lines: Vec<String> = table.trim_fmt().lines().map(str::to_string).collect();
    // A row that takes several lines leaves no room.
    if lines.len() == split.stages.len() + 1 {
        add_bars(&mut lines, split, look, screen.width);
    }
    lines.extend(curves.iter().flat_map(|curves| drawn(curves, look, screen)));
    lines.join("\n")
}

fn plain_table(split: &Split, units: Units) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let there = match units {
        Units::Bytes => "Bytes there",
        _ => "Memory there",
    };
    table.set_header(["Stage", "Layers", "Fullest tile", there, "Of the limit"]);
    for (number, stage) in split.stages.iter().enumerate() {
        table.add_row([
            number.to_string(),
            layers(split.pseudo_layers, &stage.layers),
            stage.max_tile.to_string(),
            units.short(stage.mem.max_tile_mem),
            share(stage.mem.max_tile_mem, split.limit_of(number)),
        ]);
    }
    for column in [0, 2, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Puts a bar behind each row of a table whose first line is its header, if
/// they are not too wide.
fn add_bars(lines: &mut [String], split: &Split, look: &TextStyle, width: usize) {
    let taken = lines.iter().map(|line| display_width(line)).max();
    let taken = taken.unwrap_or(0) + 2;
    let room = width.saturating_sub(taken).min(*BAR.end());
    if !BAR.contains(&room) {
        return;
    }
    let largest = split
        .fullest()
        .map_or(0, |(_, stage)| stage.mem.max_tile_mem);
    let stages = split.stages.iter().enumerate();
    for (line, (number, stage)) in lines.iter_mut().skip(1).zip(stages) {
        let pad = " ".repeat(taken.saturating_sub(display_width(line)));
        let bar = bars::bar(
            look,
            stage.mem.max_tile_mem,
            split.limit_of(number),
            largest,
            room,
        );
        line.push_str(&pad);
        line.push_str(&bar);
    }
}

/// A line for each curve: the stage, and live bytes over steps.
fn drawn<'a>(
    curves: &'a [Vec<u64>],
    look: &'a TextStyle,
    screen: Screen,
) -> impl Iterator<Item = String> + 'a {
    let drawn = curves.iter().enumerate();
    let drawn = drawn.filter(|(_, curve)| !curve.is_empty());
    drawn.map(move |(stage, curve)| {
        let peak = look.units.amount(curve.iter().copied().max().unwrap_or(0));
        let head = format!("fullest tile of stage {stage} by step, at most {peak}: ");
        let room = screen.width.saturating_sub(display_width(&head));
        // What is left of the line, or a line of its own.
        match room >= *BAR.start() {
            true => head + &bars::curve(screen, curve, room),
            false => format!("{head}\n{}", bars::curve(screen, curve, screen.width)),
        }
    })
}

/// `SUCCESS: [ In 0 1 2 | 3 4 5 Out ]`, or `FAILURE:` with what is missing.
pub fn verdict(split: &Split, look: &TextStyle) -> String {
    let stages = split.stages.iter();
    let names = |stage: &Stage| names(split.pseudo_layers, &stage.layers).join(" ");
    let stages: Vec<String> = stages.map(names).collect();
    let shown = format!("[ {} ]", stages.join(" | "));
    if split.fits() {
        return format!("{} {shown}", look.toned(Severity::Good, "SUCCESS:"));
    }
    let units = look.units.for_bytes(split.limit);
    let failure = look.toned(Severity::Bad, "FAILURE:");
    let mut lines = format!("{failure} {shown} {}", shortfall(split, units));
    lines.extend(too_large(split, units));
    lines
}

/// What keeps the split from fitting.
pub(super) fn shortfall(split: &Split, units: Units) -> String {
    if !split.unplaced.is_empty() {
        let unplaced = names(split.pseudo_layers, &split.unplaced).join(" ");
        return format!("is as far as the search came; in no stage: {unplaced}");
    }
    if split.stages.len() > split.max_stages {
        let (stages, ipus) = (split.stages.len(), split.max_stages);
        return format!("has {stages} stages for {ipus} IPUs");
    }
    if !split.broken.is_empty() {
        return format!("breaks {}", split.broken.join(", "));
    }
    match split.worst() {
        Some((number, stage, over)) => format!(
            "{} tile {} of stage {number} is {} over the limit of {}",
            if split.is_given {
                "does not fit:"
            } else {
                "is the best, but"
            },
            stage.max_tile,
            units.amount(over),
            units.short(split.limit_of(number))
        ),
        None => String::new(),
    }
}

/// A line for each of the first tied weights; `None` when there are none.
pub fn tied_weights(tied: &[TiedWeightFacts], pseudo_layers: PseudoLayers) -> Option<String> {
    const MAX: usize = 5;
    let line = |own| format!("tied weight {}", tied_weights::sentence(own, pseudo_layers));
    let mut lines: Vec<String> = tied.iter().take(MAX).map(line).collect();
    if let Some(more @ 1..) = tied.len().checked_sub(MAX) {
        lines.push(format!("and {more} more tied weights"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// One line about how much of the fullest tile is explained, and by what; and
/// how much of it counts in several places only because it is touched there.
pub fn coverage(coverage: &Coverage, look: &TextStyle) -> String {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    let by_touch = if coverage.by_touch > 0 {
        format!(
            " ({} in every place that touches it)",
            share(coverage.by_touch.into())
        )
    } else {
        String::new()
    };
    format!(
        "coverage of tile {}, the fullest with {}: layers {}, assigned {}{by_touch}, overhead {}, \
         rest {}",
        coverage.tile,
        look.units.amount(coverage.recorded),
        share(coverage.layers.into()),
        share(coverage.assigned.into()),
        share(coverage.overhead.into()),
        share(coverage.rest())
    )
}

/// A line for each position that no number of IPUs makes fit.
fn too_large(split: &Split, units: Units) -> impl Iterator<Item = String> + '_ {
    split.too_large.iter().map(move |layer| {
        let name = printable(&split.pseudo_layers.described(&layer.name));
        let over = layer.mem.max_tile_mem.saturating_sub(split.limit);
        format!(
            "\n  {name} alone needs {} on tile {}, {} over the limit: more IPUs do not help",
            units.amount(layer.mem.max_tile_mem),
            layer.max_tile,
            units.short(over)
        )
    })
}

fn names(pseudo_layers: PseudoLayers, layers: &[Option<String>]) -> Vec<String> {
    let names = pseudo_layers.names_of(layers).into_iter();
    names.map(printable).collect()
}

/// More layers than this are shown by the first and the last of them.
const SHOWN: usize = 8;

fn layers(pseudo_layers: PseudoLayers, layers: &[Option<String>]) -> String {
    let names = names(pseudo_layers, layers);
    match names.as_slice() {
        [first, .., last] if names.len() > SHOWN => {
            format!("{first} ... {last} ({})", names.len())
        }
        few => few.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::split::tests::split;

    const PLAIN: TextStyle = TextStyle {
        units: Units::Bytes,
        screen: None,
    };

    fn on_screen(width: usize, colour: bool) -> TextStyle {
        let screen = Screen {
            width,
            colour,
            unicode: true,
        };
        TextStyle {
            units: Units::Auto,
            screen: Some(screen),
        }
    }

    #[test]
    fn a_screen_shows_bars_as_far_as_there_is_room() {
        let expected = [
            " Stage  Layers             Fullest tile  Memory there  Of the limit",
            "     0  In 0                          0     586.0 KiB        94.0 %  ████████████·│",
            "     1  1\\u{1b}[31m 2 Out             1     683.7 KiB       109.6 %  █████████████│██",
        ];
        let curves = [vec![1, 4, 2], vec![5; 400]];
        let drawn = table(&split(), &on_screen(85, false), Some(&curves));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[..3], expected);
        assert_eq!(
            lines[3],
            "fullest tile of stage 0 by step, at most 4 bytes: ▂█▄"
        );
        for width in [1, 20, 40, 60, 72, 74, 80, 120, 200] {
            let drawn = table(&split(), &on_screen(width, true), Some(&curves));
            let widest = drawn.lines().map(display_width).max();
            assert!(width < 64 || widest <= Some(width), "{width}:\n{drawn}");
            assert_eq!(drawn.contains('│'), width >= 80, "{width}:\n{drawn}");
        }
    }

    #[test]
    fn units_and_colours_of_the_verdict() {
        let text = verdict(&split(), &on_screen(80, true));
        assert!(
            text.starts_with("\u{1b}[1m\u{1b}[31mFAILURE:\u{1b}[0m [ "),
            "{text}"
        );
        assert!(
            text.contains("is 59.7 KiB over the limit of 624.0 KiB\n"),
            "{text}"
        );
        assert!(
            text.contains("needs 683.7 KiB on tile 1, 59.7 KiB over"),
            "{text}"
        );
    }

    #[test]
    fn the_table_and_the_verdict_of_a_split_that_does_not_fit() {
        let expected = [
            " Stage  Layers             Fullest tile  Bytes there  Of the limit",
            "     0  In 0                          0      600,024        94.0 %",
            "     1  1\\u{1b}[31m 2 Out             1      700,024       109.6 %",
        ];
        assert_eq!(table(&split(), &PLAIN, None), expected.join("\n"));
        let expected = "\
FAILURE: [ In 0 | 1\\u{1b}[31m 2 Out ] is the best, but tile 1 of stage 1 is 61,048 bytes over the limit of 638,976
  layer 2 alone needs 700,024 bytes on tile 1, 61,048 over the limit: more IPUs do not help";
        assert_eq!(verdict(&split(), &PLAIN), expected);
    }

    #[test]
    fn a_split_that_fits() {
        let mut split = split();
        split.stages.pop();
        assert_eq!(verdict(&split, &PLAIN), "SUCCESS: [ In 0 ]");
    }

    #[test]
    fn a_search_that_gave_up_says_how_far_it_came() {
        let mut split = split();
        split.too_large.clear();
        split.unplaced = vec![Some("3".into()), Some("4".into())];
        let text = verdict(&split, &PLAIN);
        assert!(
            text.ends_with("is as far as the search came; in no stage: 3 4"),
            "{text}"
        );
        split.unplaced.clear();
        split.max_stages = 1;
        assert!(verdict(&split, &PLAIN).ends_with("has 2 stages for 1 IPUs"));
    }

    #[test]
    fn the_line_about_coverage() {
        let found = Coverage {
            tile: 7,
            recorded: 2000,
            layers: 1000,
            assigned: 500,
            by_touch: 0,
            overhead: 501,
        };
        let expected = "coverage of tile 7, the fullest with 2,000 bytes: layers 50.00 %, \
                        assigned 25.00 %, overhead 25.05 %, rest -0.05 %";
        assert_eq!(coverage(&found, &PLAIN), expected);
        let touched = Coverage {
            by_touch: 100,
            ..found
        };
        let line = coverage(&touched, &PLAIN);
        assert!(
            line.contains("assigned 25.00 % (5.00 % in every place that touches it), "),
            "{line}"
        );
    }

    #[test]
    fn long_lists_of_layers_are_cut_short() {
        let many: Vec<_> = (0..9).map(|n| Some(n.to_string())).collect();
        let order = PseudoLayers::InAndOut;
        assert_eq!(layers(order, &many), "0 ... 8 (9)");
        assert_eq!(layers(order, &many[..3]), "0 1 2");
    }

    #[test]
    fn a_byte_over_the_limit_is_more_than_all_of_it() {
        assert_eq!(share(638_977, 638_976), "100.1 %");
        assert_eq!(share(638_976, 638_976), "100.0 %");
    }
}
