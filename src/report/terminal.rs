//! The stages as a table, and the verdict, for people.

use super::{Split, grouped, printable};
use crate::memory::Coverage;
use comfy_table::{CellAlignment, Table, presets};

/// One row for each stage.
pub fn table(split: &Split) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "Stage",
        "Layers",
        "Fullest tile",
        "Bytes there",
        "Of the limit",
    ]);
    for (number, stage) in split.stages.iter().enumerate() {
        table.add_row([
            number.to_string(),
            layers(&stage.layers),
            stage.max_tile.to_string(),
            grouped(stage.mem.max_tile_mem),
            percentage(stage.mem.max_tile_mem, split.limit),
        ]);
    }
    for column in [0, 2, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// `SUCCESS: [ None 0 1 2 | 3 4 5 ]`, or `FAILURE:` with what is missing.
pub fn verdict(split: &Split) -> String {
    let stages = split.stages.iter();
    let stages: Vec<String> = stages.map(|stage| names(&stage.layers).join(" ")).collect();
    let shown = format!("[ {} ]", stages.join(" | "));
    if split.fits() {
        return format!("SUCCESS: {shown}");
    }
    let mut lines = format!("FAILURE: {shown} {}", shortfall(split));
    lines.extend(too_large(split));
    lines
}

/// What keeps the split from fitting.
pub(super) fn shortfall(split: &Split) -> String {
    if !split.unplaced.is_empty() {
        let unplaced = names(&split.unplaced).join(" ");
        return format!("is as far as the search came; in no stage: {unplaced}");
    }
    if split.stages.len() > split.max_stages {
        let (stages, ipus) = (split.stages.len(), split.max_stages);
        return format!("has {stages} stages for {ipus} IPUs");
    }
    match split.fullest() {
        Some((number, stage)) => format!(
            "is the best, but tile {} of stage {number} is {} bytes over the limit of {}",
            stage.max_tile,
            grouped(stage.mem.max_tile_mem - split.limit),
            grouped(split.limit)
        ),
        None => String::new(),
    }
}

/// One line about how much of the fullest tile is explained, and by what.
pub fn coverage(coverage: &Coverage) -> String {
    let share = |bytes: i128| {
        let hundredths = (bytes * 10_000).div_euclid(i128::from(coverage.recorded.max(1)));
        format!("{:.2} %", hundredths as f64 / 100.0)
    };
    format!(
        "coverage of tile {}, the fullest with {} bytes: layers {}, homes {}, overhead {}, rest {}",
        coverage.tile,
        grouped(coverage.recorded),
        share(coverage.layers.into()),
        share(coverage.homes.into()),
        share(coverage.overhead.into()),
        share(coverage.rest())
    )
}

/// A line for each layer that no number of IPUs makes fit.
fn too_large(split: &Split) -> impl Iterator<Item = String> + '_ {
    split.too_large.iter().map(|layer| {
        let name = match &layer.name {
            Some(name) => format!("layer {}", printable(name)),
            None => "the operations without a layer (None)".to_string(),
        };
        let over = layer.mem.max_tile_mem.saturating_sub(split.limit);
        format!(
            "\n  {name} alone needs {} bytes on tile {}, {} over the limit: more IPUs do not help",
            grouped(layer.mem.max_tile_mem),
            layer.max_tile,
            grouped(over)
        )
    })
}

fn names(layers: &[Option<String>]) -> Vec<String> {
    let name = |layer: &Option<String>| layer.as_deref().map_or("None".into(), printable);
    layers.iter().map(name).collect()
}

/// More layers than this are shown by the first and the last of them.
const SHOWN: usize = 8;

fn layers(layers: &[Option<String>]) -> String {
    let names = names(layers);
    match names.as_slice() {
        [first, .., last] if names.len() > SHOWN => {
            format!("{first} ... {last} ({})", names.len())
        }
        few => few.join(" "),
    }
}

/// In tenths of a per cent, rounded up: what is over the limit never shows
/// as 100 %.
fn percentage(bytes: u64, limit: u64) -> String {
    let tenths = (u128::from(bytes) * 1000).div_ceil(u128::from(limit.max(1)));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::split::tests::split;

    #[test]
    fn the_table_and_the_verdict_of_a_split_that_does_not_fit() {
        let expected = [
            " Stage  Layers         Fullest tile  Bytes there  Of the limit",
            "     0  None 0                    0      600,024        94.0 %",
            "     1  1\\u{1b}[31m 2             1      700,024       109.6 %",
        ];
        assert_eq!(table(&split()), expected.join("\n"));
        let expected = "\
FAILURE: [ None 0 | 1\\u{1b}[31m 2 ] is the best, but tile 1 of stage 1 is 61,048 bytes over the limit of 638,976
  layer 2 alone needs 700,024 bytes on tile 1, 61,048 over the limit: more IPUs do not help";
        assert_eq!(verdict(&split()), expected);
    }

    #[test]
    fn a_split_that_fits() {
        let mut split = split();
        split.stages.pop();
        assert_eq!(verdict(&split), "SUCCESS: [ None 0 ]");
    }

    #[test]
    fn a_search_that_gave_up_says_how_far_it_came() {
        let mut split = split();
        split.too_large.clear();
        split.unplaced = vec![Some("3".into()), Some("4".into())];
        let text = verdict(&split);
        assert!(
            text.ends_with("is as far as the search came; in no stage: 3 4"),
            "{text}"
        );
        split.unplaced.clear();
        split.max_stages = 1;
        assert!(verdict(&split).ends_with("has 2 stages for 1 IPUs"));
    }

    #[test]
    fn the_line_about_coverage() {
        let found = Coverage {
            tile: 7,
            recorded: 2000,
            layers: 1000,
            homes: 500,
            overhead: 501,
        };
        let expected = "coverage of tile 7, the fullest with 2,000 bytes: layers 50.00 %, \
                        homes 25.00 %, overhead 25.05 %, rest -0.05 %";
        assert_eq!(coverage(&found), expected);
    }

    #[test]
    fn long_lists_of_layers_are_cut_short() {
        let many: Vec<_> = (0..9).map(|n| Some(n.to_string())).collect();
        assert_eq!(layers(&many), "0 ... 8 (9)");
        assert_eq!(layers(&many[..3]), "0 1 2");
    }

    #[test]
    fn a_byte_over_the_limit_is_more_than_all_of_it() {
        assert_eq!(percentage(638_977, 638_976), "100.1 %");
        assert_eq!(percentage(638_976, 638_976), "100.0 %");
    }
}
