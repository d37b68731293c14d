//! What people read on standard error: the stages as a table, the verdict, and
//! the sentences about it.

mod bars;
mod text_style;

pub use text_style::{Screen, Severity, TextStyle};

use super::fit::{sentences as fit_sentences, tables as fit_tables};
use super::sentences::{self, Sentence};
use super::table::{Cell, Kind, Table as Rows};
use super::{NO_VERDICT, Report, Split, Units, plan, step, tables, text};
use crate::wording::listed;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use textwrap::core::display_width;

/// Narrower bars say nothing, wider ones no more.
const BAR: std::ops::RangeInclusive<usize> = 10..=40;

/// One row for each stage with what people compare by; on a screen that has room, with a
/// bar of its memory.
pub fn table(report: &Report, split: &Split, look: &TextStyle) -> String {
    let stages = stage_rows(report, split);
    let fullest = split.stages.iter().map(|stage| &stage.fullest_tile);
    let bars = Bars::new(fullest.map(|tile| (tile.bytes, Some(tile.limit))));
    with_bars(&stages, &bars, look, split.limit)
}

/// Time stands for cycles where it is known, and parts of memory that a pipeline adds are
/// shown from 1 % of the limit on.
fn stage_rows(report: &Report, split: &Split) -> Rows {
    let stages = tables::stages(report).only(&COLUMNS);
    let stages = match report.provenance.target.clock_hz {
        Some(_) => stages.without("Cycles"),
        None => stages.without(tables::TIME),
    };
    let stages = stages.without_zeros(&["Cycles", tables::TIME, tables::LEARNT]);
    stages.without_below((split.limit / 100).max(1), &COLUMNS[6..11])
}

const COLUMNS: [&str; 12] = [
    "Stage",
    "Layers",
    "Peak memory",
    "Of the limit",
    tables::TIME,
    "Cycles",
    "Recomputed",
    "Stash",
    "Accumulators",
    "Waiting",
    "Passing through",
    tables::LEARNT,
];

/// A bar for each row of a table.
struct Bars {
    /// Bytes, and the limit that they are held against, if there is one.
    rows: Vec<(u64, Option<u64>)>,
    largest: u64,
}

impl Bars {
    fn new(rows: impl Iterator<Item = (u64, Option<u64>)>) -> Self {
        let rows: Vec<_> = rows.collect();
        let largest = rows.iter().map(|&(bytes, _)| bytes).max().unwrap_or(0);
        Self { rows, largest }
    }
}

/// A table with aligned columns, of which those on the right are left out where it would be
/// wider than there are columns of text.
pub fn for_people(rows: &Rows, look: &TextStyle) -> String {
    let rows = match rows.name {
        "sweep" => &rows
            .clone()
            .only(&SWEEP_COLUMNS)
            .without_zeros(&SWEEP_COLUMNS[4..5]),
        _ => rows,
    };
    let numbers = rows
        .rows
        .iter()
        .flat_map(|row| rows.columns.iter().zip(&row.cells));
    let bytes = numbers.filter_map(|(column, cell)| match (column.kind, cell) {
        (Kind::Bytes, Cell::Number(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    });
    let units = look.units.for_bytes(bytes.max().unwrap_or(0));
    let table = plain_table(rows, units);
    let Some(width) = look.width() else {
        return table.trim_fmt();
    };
    let widths = table.column_max_content_widths().into_iter();
    let mut taken = 0;
    let shown = widths.take_while(|&own| {
        taken += usize::from(own) + 2;
        taken <= width + 1
    });
    let shown = shown.count().max(2);
    if shown >= rows.columns.len() {
        return table.trim_fmt();
    }
    let names = rows.columns.iter().map(|column| column.name.as_ref());
    let names: Vec<&str> = names.collect();
    let left_out: Vec<String> = names[shown..].iter().map(|own| text::shown(own)).collect();
    let note = format!("not shown: {}; --format tsv has all", listed(&left_out));
    let table = plain_table(&rows.clone().only(&names[..shown]), units);
    format!("{}\n{}", table.trim_fmt(), look.fitted(&note))
}

const SWEEP_COLUMNS: [&str; 6] = [
    "IPUs",
    "Fits",
    "Peak memory",
    "Of the limit",
    "Cycles of a step",
    "Layers of each stage",
];

/// A table with amounts in the unit of `limit`; on a screen that has room, with a bar
/// for each row.
fn with_bars(rows: &Rows, bars: &Bars, look: &TextStyle, limit: u64) -> String {
    let mut table = plain_table(rows, look.units.for_bytes(limit));
    let Some(screen) = look.screen else {
        return table.trim_fmt();
    };
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(screen.width.try_into().unwrap_or(u16::MAX));
    let mut lines: Vec<String> = table.trim_fmt().lines().map(str::to_string).collect();
    // A row that takes several lines leaves no room.
    if lines.len() == bars.rows.len() + 1 {
        add_bars(&mut lines, bars, look, screen.width);
    }
    lines.join("\n")
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
            (Kind::Bytes, Cell::Number(bytes)) => units.short(u64::try_from(*bytes).unwrap_or(0)),
            (Kind::Change | Kind::Free, Cell::Number(bytes)) => {
                let sign = if *bytes < 0 { "-" } else { "" };
                let bytes = u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX);
                format!("{sign}{}", units.short(bytes))
            }
            (Kind::Count, Cell::Number(number)) => number.to_string(),
            (_, Cell::Layers(layers)) => rows.pseudo_layers.few(layers),
            (_, cell) => rows.shown(cell),
        }));
    }
    for (number, column) in rows.columns.iter().enumerate() {
        if let Some(own) = table.column_mut(number).filter(|_| column.is_number()) {
            own.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Adds a bar to each row of a table whose first line is its header, if they are
/// not too wide.
fn add_bars(lines: &mut [String], of: &Bars, look: &TextStyle, width: usize) {
    let taken = lines.iter().map(|line| display_width(line)).max();
    let taken = taken.unwrap_or(0) + 2;
    let room = width.saturating_sub(taken).min(*BAR.end());
    if !BAR.contains(&room) {
        return;
    }
    for (line, &(bytes, limit)) in lines.iter_mut().skip(1).zip(&of.rows) {
        let pad = " ".repeat(taken.saturating_sub(display_width(line)));
        line.push_str(&pad);
        line.push_str(&match limit {
            Some(limit) => bars::bar(look, bytes, limit, of.largest, room),
            None => bars::part(look, bytes, of.largest, room),
        });
    }
}

/// Whether a compilation fits.
pub fn fit_verdict(report: &Report, look: &TextStyle) -> String {
    let (tone, word) = match report.fit.as_ref().is_some_and(|fit| fit.fits) {
        true => (Severity::Good, "SUCCESS:"),
        false => (Severity::Bad, "FAILURE:"),
    };
    match &report.fit {
        Some(fit) if report.has_verdict() => {
            format!("{} {}", look.toned(tone, word), fit_sentences::verdict(fit))
        }
        _ => look.toned(Severity::Bad, NO_VERDICT),
    }
}

/// A row for each IPU of a compilation.
pub fn fit_table(report: &Report, look: &TextStyle) -> String {
    let Some(fit) = &report.fit else {
        return String::new();
    };
    let ipus = fit_tables::ipus(fit).only(&FIT_COLUMNS);
    let fullest = fit.ipus.iter().map(|own| &own.fullest_tile);
    with_bars(
        &ipus.without_zeros(&["Layers", "Tiles over", "Overflowed"]),
        &Bars::new(fullest.map(|tile| (tile.bytes, Some(tile.limit)))),
        look,
        fit.limit,
    )
}

/// The sentences about a compilation; then what was predicted of it.
pub fn fit_lines(report: &Report, look: &TextStyle) -> Vec<String> {
    let Some(fit) = &report.fit else {
        return Vec::new();
    };
    let words = Words::new(report, look);
    let lines = fit_sentences::lines(fit);
    let mut lines: Vec<String> = lines.iter().map(|own| words.say(own)).collect();
    if let Some(against) = &fit.against {
        // Of other cuts, what differs says nothing.
        if against.cut_elsewhere.is_none() {
            let stages = fit_tables::stages(against, report.pseudo_layers);
            let stages = stages.only(&fit_tables::FOR_PEOPLE).without("Free");
            lines.push(plain_table(&stages, words.units).trim_fmt());
        }
        let said = fit_sentences::against(against);
        lines.extend(said.iter().map(|own| words.say(own)));
    }
    lines
}

const FIT_COLUMNS: [&str; 7] = [
    "IPU",
    "Layers",
    "Peak memory",
    "Of the limit",
    "Free",
    "Tiles over",
    "Overflowed",
];

/// `SUCCESS: [ In 0 1 2 | 3 4 5 Out ]`, or `FAILURE:` with what is missing.
pub fn verdict(report: &Report, split: &Split, look: &TextStyle) -> String {
    let stages = report.pseudo_layers.all(&split.layers());
    if !report.has_verdict() {
        return format!("{}: [ {stages} ]", look.toned(Severity::Bad, NO_VERDICT));
    }
    let words = Words::new(report, look);
    if split.fits {
        let success = look.toned(Severity::Good, "SUCCESS:");
        let fits = words.part(&sentences::fits(report, split));
        return format!("{success} [ {stages} ] {fits}");
    }
    let failure = look.toned(Severity::Bad, "FAILURE:");
    let shortfall = words.part(&sentences::shortfall(report, split));
    let mut lines = vec![format!("{failure} [ {stages} ] {shortfall}")];
    lines.extend(words.indented(&sentences::too_large(report)));
    lines.join("\n")
}

/// Where the most memory is, what a step of the pipeline takes, and whether fewer IPUs
/// would be enough.
pub fn step(report: &Report, look: &TextStyle) -> Vec<String> {
    let words = Words::new(report, look);
    let peak = sentences::most_memory(report).into_iter();
    let lines = peak.chain(step::sentences(report));
    let lines: Vec<Sentence> = lines.chain(sentences::fewer_ipus(report)).collect();
    lines.iter().map(|own| words.say(own)).collect()
}

/// Which of the configurations that fit is recommended, and among what.
pub fn plan(report: &Report, look: &TextStyle) -> Vec<String> {
    let words = Words::new(report, look);
    let lines = plan::sentences(report);
    lines.iter().map(|own| words.say(own)).collect()
}

/// What else is to be said of the split: what was learnt, tied weights, the best
/// split beside one that was given, and why nothing fits. Each may have several
/// lines.
pub fn remarks(report: &Report, look: &TextStyle) -> Vec<String> {
    const MAX_TIED: usize = 5;
    let words = Words::new(report, look);
    let tied = report.tied_weights.iter().take(MAX_TIED);
    let mut remarks: Vec<String> = sentences::learnt(report)
        .map(|own| words.say(&own))
        .into_iter()
        .collect();
    remarks.extend(tied.map(|own| words.say(&sentences::tied_weight(own, report.pseudo_layers))));
    if let Some(more @ 1..) = report.tied_weights.len().checked_sub(MAX_TIED) {
        remarks.push(format!("and {more} more tied weights"));
    }
    remarks.extend(sentences::given(report).map(|own| words.say(&own)));
    let Some(refusal) = &report.refusal else {
        return remarks;
    };
    // The verdict has named what no number of IPUs makes fit.
    if report
        .split
        .as_ref()
        .is_none_or(|split| split.too_large.is_empty())
    {
        let obstacles = sentences::refusal(refusal);
        remarks.push(words.say(&obstacles.proves));
        remarks.extend(words.indented(&obstacles.ranges));
        remarks.extend(words.indented(&obstacles.others));
    }
    let help = sentences::help(report, refusal);
    remarks.extend(help.iter().map(|own| words.say(own)));
    remarks
}

/// The pipeline that the stages are weighed for, what it was chosen by, and how the
/// profile was recorded.
pub fn pipeline(report: &Report, look: &TextStyle) -> Vec<String> {
    let words = Words::new(report, look);
    let lines = sentences::pipeline(report);
    lines.iter().map(|own| words.say(own)).collect()
}

/// What shows that the split is the best, in one line; `None` when nothing does.
pub fn proof(report: &Report) -> Option<String> {
    let proof = sentences::proof(report.proof.as_ref()?)?;
    Some(proof.capital().plain(Units::Bytes, report.pseudo_layers))
}

/// One line about how much of the fullest tile is explained, and by what;
/// `None` when nothing was recorded.
pub fn coverage(report: &Report, look: &TextStyle) -> Option<String> {
    let coverage = report.memory.coverage.as_ref()?;
    let sentence = sentences::coverage(coverage);
    (coverage.recorded > 0).then(|| sentence.plain(look.units, report.pseudo_layers))
}

/// What takes the memory of each stage, and what moving a cut would do.
pub fn explain(report: &Report, look: &TextStyle) -> String {
    let words = Words::new(report, look);
    let lines = sentences::explain(report);
    let lines: Vec<String> = lines.iter().map(|own| words.say(own)).collect();
    lines.join("\n")
}

/// How sentences, amounts and layers are written: all amounts in the unit of the limit.
struct Words<'a> {
    report: &'a Report,
    units: Units,
}

impl<'a> Words<'a> {
    fn new(report: &'a Report, look: &TextStyle) -> Self {
        let units = look.units.for_bytes(report.memory.limit);
        Self { report, units }
    }

    /// A line of its own.
    fn say(&self, sentence: &Sentence) -> String {
        self.part(&sentence.clone().capital())
    }

    /// What another line goes on with.
    fn part(&self, sentence: &Sentence) -> String {
        sentence.plain(self.units, self.report.pseudo_layers)
    }

    fn indented(&self, sentences: &[Sentence]) -> Vec<String> {
        let lines = sentences.iter().map(|own| format!("  {}", self.part(own)));
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CoverageFacts;
    use crate::report::testing::report as complete;

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

    /// Two stages with one limit; the second is over it.
    fn report() -> Report {
        let mut report = complete();
        report.given = None;
        let split = report.split.as_mut().unwrap();
        split.limits = None;
        let tile = &mut split.stages[1].fullest_tile;
        (tile.limit, tile.free) = (split.limit, -61_048);
        split.stages[1].layers[0] = Some("1\u{1b}[31m".into());
        report
    }

    fn split(report: &Report) -> &Split {
        report.split.as_ref().unwrap()
    }

    #[test]
    fn a_screen_shows_bars_as_far_as_there_is_room() {
        let report = report();
        let expected = [
            " Stage  Layers             Fullest tile  Memory there  Of the limit  Cycles",
            "     0  In 0                          0     586.0 KiB        94.0 %     615  ████████████·│",
            "     1  1\\u{1b}[31m 2 Out             1     683.7 KiB       109.6 %     885  █████████████│██",
        ];
        let drawn = table(&report, split(&report), &on_screen(93, false));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[..3], expected);
        for width in [1, 20, 40, 60, 72, 74, 80, 100, 120, 200] {
            let drawn = table(&report, split(&report), &on_screen(width, true));
            let widest = drawn.lines().map(display_width).max();
            assert!(width < 72 || widest <= Some(width), "{width}:\n{drawn}");
            assert_eq!(drawn.contains('│'), width >= 100, "{width}:\n{drawn}");
        }
    }

    #[test]
    fn units_and_colours_of_the_verdict() {
        let report = report();
        let text = verdict(&report, split(&report), &on_screen(80, true));
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
    fn the_verdict_of_a_split_that_does_not_fit() {
        let report = report();
        let expected = "\
FAILURE: [ In 0 | 1\\u{1b}[31m 2 Out ] is the best, but tile 1 of stage 1 is 61,048 bytes over the limit of 638,976
  layer 2 alone needs 700,024 bytes on tile 1, 61,048 over the limit: more IPUs do not help";
        assert_eq!(verdict(&report, split(&report), &PLAIN), expected);
        let text = remarks(&complete(), &PLAIN).join("\n");
        assert!(text.contains("the best split, which does not fit either, is [ In 0 1 | 2 Out ]"));
        assert!(text.contains("with 701,024 bytes on each tile it would fit on 2 IPUs (--mem"));
    }

    #[test]
    fn a_search_that_gave_up_says_how_far_it_came() {
        let mut report = report();
        let own = report.split.as_mut().unwrap();
        own.too_large.clear();
        own.unplaced = vec![Some("3".into()), Some("4".into())];
        let text = verdict(&report, split(&report), &PLAIN);
        assert!(
            text.ends_with("is as far as the search came; in no stage: 3 4"),
            "{text}"
        );
        let own = report.split.as_mut().unwrap();
        own.unplaced.clear();
        own.max_stages = 1;
        let text = verdict(&report, split(&report), &PLAIN);
        assert!(text.ends_with("has 2 stages for 1 IPU"), "{text}");
        report.split.as_mut().unwrap().fits = true;
        let text = verdict(&report, split(&report), &PLAIN);
        assert_eq!(text, "SUCCESS: [ In 0 | 1\\u{1b}[31m 2 Out ]");
    }

    #[test]
    fn the_line_about_coverage() {
        let mut report = report();
        report.memory.coverage = Some(CoverageFacts {
            tile: 7,
            recorded: 2000,
            layers: 1000,
            assigned: 500,
            by_touch: 100,
            overhead: 501,
            rest: -1,
        });
        let expected = "coverage of tile 7, the fullest with 2,000 bytes: layers 50.00 %, \
                        assigned 25.00 % (5.00 % in every place that touches it), overhead \
                        25.05 %, rest -0.05 %";
        assert_eq!(coverage(&report, &PLAIN).unwrap(), expected);
    }

    #[test]
    fn only_what_both_programs_found_is_called_optimal() {
        let mut report = report();
        let line = proof(&report).unwrap();
        assert!(
            line.starts_with("optimal: the integer program and the"),
            "{line}"
        );
        assert!(
            line.ends_with("fullest tile 600024 needs 3 stages"),
            "{line}"
        );
        report.proof.as_mut().unwrap().optimal = false;
        assert_eq!(proof(&report), None);
    }
}
