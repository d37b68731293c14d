//! Writes the report for people on standard error: a table of stages, the verdict, and sentences.

mod aligned;

pub use aligned::for_people;

use super::{Block, Form, NO_VERDICT, Report, ScreenPart, Section, Sentence, sections::blocks};
use crate::wording::{Units, join};
use aligned::with_bars;
use clap::builder::styling::AnsiColor;

/// Returns those sections of a report that `is_wanted` accepts, as text for a terminal: the text
/// of each sentence or table, with the section that it belongs to.
pub fn sections(
    report: &Report,
    look: &TextStyle,
    is_wanted: impl Fn(&Section) -> bool,
) -> impl Iterator<Item = (&'static Section, String)> {
    blocks(report, Form::Terminal, is_wanted)
        .filter_map(|(section, own)| Some((section, block(report, look, own)?)))
}

/// Returns the sections of a report that belong to the given `parts` of a terminal's output, as one
/// text. The text does not end with a line feed.
pub fn text(report: &Report, look: &TextStyle, parts: &[ScreenPart]) -> String {
    let wanted = sections(report, look, |section| parts.contains(&section.part));
    join(wanted.map(|(_, line)| line), "\n")
}

/// Returns the text of `block`, a sentence or table of a section, for a terminal. All amounts of
/// memory have one unit, which suits the limit of a tile. Returns `None` for a heading inside a
/// section, which only Markdown shows.
fn block(report: &Report, look: &TextStyle, block: Block) -> Option<String> {
    let limit = report.memory.limit;
    let units = look.units.for_bytes(limit);
    let part = |sentence: Sentence| sentence.plain(units, report.pseudo_layers);
    match block {
        Block::Verdict(fits, sentence) => Some(verdict(look, fits, sentence.map(part))),
        Block::Line(sentence) | Block::Paragraph(sentence) => Some(part(sentence.capital())),
        Block::Under(sentence) => Some(format!("  {}", part(sentence.capital()))),
        Block::Table(table) => Some(with_bars(&table, look, limit)),
        Block::Label(_) => None,
    }
}

/// Returns the text of a verdict, such as `SUCCESS: [ In 0 1 2 | 3 4 5 Out ]`, or `FAILURE:` and
/// the reason. `sentence` is the text after the colon. `fits` is `None` if contradictions in the
/// profile prevent a verdict.
fn verdict(look: &TextStyle, fits: Option<bool>, sentence: Option<String>) -> String {
    let (tone, word, colon) = match fits {
        Some(true) => (Severity::Good, "SUCCESS:", ""),
        Some(false) => (Severity::Bad, "FAILURE:", ""),
        None => (Severity::Bad, NO_VERDICT, ":"),
    };
    let word = look.toned(tone, word);
    match sentence {
        Some(sentence) => format!("{word}{colon} {sentence}"),
        None => word,
    }
}

/// The style of text for people: units of memory, colours and width.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextStyle {
    /// The units in which amounts of memory are written, such as KiB.
    pub units: Units,
    /// Width, colours and characters of the terminal on which the text is printed; `None` if the
    /// text goes to a pipe or a file.
    pub screen: Option<Screen>,
    /// The width in columns for text that goes to a pipe or a file, as the environment variable
    /// `COLUMNS` requests it.
    pub columns: Option<usize>,
}

/// What a terminal can show: its width, colours and characters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Screen {
    /// The width of the terminal in columns.
    pub width: usize,
    /// Whether text on the terminal may be coloured.
    pub colour: bool,
    /// Whether the terminal can show characters that are not ASCII.
    pub unicode: bool,
}

/// How good or bad a text is, which its colour on a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Severity {
    /// The text is good news, shown in green.
    Good,
    /// The text deserves attention, shown in yellow.
    Notable,
    /// The text is bad news, shown in red.
    Bad,
}

impl TextStyle {
    /// Returns `text` in the colour of the severity `tone`, or unchanged if the output has no
    /// colours.
    pub fn toned(&self, tone: Severity, text: &str) -> String {
        if !self.screen.is_some_and(|screen| screen.colour) {
            return text.to_string();
        }
        let colour = match tone {
            Severity::Good => AnsiColor::Green,
            Severity::Notable => AnsiColor::Yellow,
            Severity::Bad => AnsiColor::Red,
        };
        let style = colour.on_default().bold();
        format!("{style}{text}{style:#}")
    }

    /// Returns the width of the terminal in columns; without a terminal, the width that the user
    /// requested. Returns `None` if neither is known.
    pub fn width(&self) -> Option<usize> {
        self.screen.map(|screen| screen.width).or(self.columns)
    }

    /// Breaks lines of `text` that are wider than [`width`](Self::width). Lines break between
    /// words, and the rest of a line is indented. A single word that is too wide, such as a path,
    /// stays whole. If the width is unknown, `text` stays unchanged.
    pub fn fitted(&self, text: &str) -> String {
        match self.width() {
            Some(width) => join(text.split('\n').map(|line| broken(line, width)), "\n"),
            None => text.to_string(),
        }
    }
}

fn broken(line: &str, width: usize) -> String {
    if textwrap::core::display_width(line) <= width {
        return line.to_string();
    }
    let indent = " ".repeat(line.len() - line.trim_start_matches(' ').len() + 2);
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .subsequent_indent(&indent);
    textwrap::fill(line, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CoverageFacts;
    use crate::report::testing::report as complete;
    use textwrap::core::display_width;

    const PLAIN: TextStyle = TextStyle {
        units: Units::Bytes,
        screen: None,
        columns: None,
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
            columns: None,
        }
    }

    /// Makes a report with two stages, of which the second one exceeds the limit.
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

    fn section(report: &Report, id: &str, look: &TextStyle) -> String {
        let lines = sections(report, look, |section| section.id == id);
        lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_screen_shows_bars_as_far_as_there_is_room() {
        let report = report();
        let expected = [
            " Stage  Layers             Peak memory  Of the limit      Time",
            "     0  In 0                 586.0 KiB        94.0 %  0.000 ms  ███████████████████████··│",
            "     1  1\\u{1b}[31m 2 Out    683.7 KiB       109.6 %  0.001 ms  █████████████████████████│███",
        ];
        let drawn = section(&report, "split", &on_screen(93, false));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[..3], expected);
        for width in [1, 20, 40, 60, 72, 80, 100, 120, 200] {
            let drawn = section(&report, "split", &on_screen(width, true));
            let widest = drawn.lines().map(display_width).max();
            assert!(width < 72 || widest <= Some(width), "{width}:\n{drawn}");
            assert_eq!(drawn.contains('│'), width >= 80, "{width}:\n{drawn}");
        }
    }

    #[test]
    fn units_and_colours_of_the_verdict() {
        let report = report();
        let text = section(&report, "verdict", &on_screen(80, true));
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
        let expected = "FAILURE: [ In 0 | 1\\u{1b}[31m 2 Out ] is the best, but tile 1 of stage 1 is 61,048 bytes over the limit of 638,976
  The most memory is missing in 1 2: 700,024 bytes of 638,976 on tile 1
  Layer 2 by itself needs 700,024 bytes on tile 1, 61,048 over the limit";
        assert_eq!(section(&report, "verdict", &PLAIN), expected);
        let text = text(
            &complete(),
            &PLAIN,
            &[ScreenPart::Verdict, ScreenPart::Table, ScreenPart::Answer],
        );
        assert!(text.contains("The best split, which does not fit either, is [ In 0 1 | 2 Out ]"));
        assert!(!text.contains("on each tile it would fit"), "{text}");
    }

    #[test]
    fn a_tile_is_never_larger_than_the_target_s() {
        let mut report = complete();
        let of_target = report.provenance.target.bytes_per_tile;
        for (memory, said) in [(of_target, true), (of_target + 1, false)] {
            let refusal = report.refusal.as_mut().unwrap();
            refusal.smallest_tile_memory = Some(memory);
            let text = text(&report, &PLAIN, &[ScreenPart::Answer]);
            let way_out = "With 638,976 bytes on each tile it would fit on 2 IPUs (--mem-per-tile";
            assert_eq!(text.contains(way_out), said, "{text}");
        }
    }

    #[test]
    fn a_search_that_gave_up_says_how_far_it_came() {
        let mut report = report();
        report.refusal = None;
        let split = report.split.as_mut().unwrap();
        split.too_large.clear();
        split.unplaced = vec![Some("3".into()), Some("4".into())];
        let text = section(&report, "verdict", &PLAIN);
        assert!(
            text.ends_with("is as far as the search got; in no stage: 3 4"),
            "{text}"
        );
        let split = report.split.as_mut().unwrap();
        split.unplaced.clear();
        split.max_stages = 1;
        let text = section(&report, "verdict", &PLAIN);
        assert!(text.ends_with("has 2 stages for 1 IPU"), "{text}");
        report.split.as_mut().unwrap().fits = true;
        let text = section(&report, "verdict", &PLAIN);
        assert_eq!(
            text,
            "SUCCESS: [ In 0 | 1\\u{1b}[31m 2 Out ] fits on 2 IPUs"
        );
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
        let expected = "100.05 % of the fullest tile of the whole model, tile 7 with 2,000 bytes, is \
                        attributed: 50.00 % to layers, 25.00 % to other operations (5.00 % in \
                        every place that uses it), 25.05 % to every stage";
        assert_eq!(section(&report, "coverage", &PLAIN), expected);
    }

    #[test]
    fn only_what_both_programs_found_is_called_optimal() {
        let mut report = report();
        let line = section(&report, "proof", &PLAIN);
        assert!(
            line.starts_with("Optimal: the integer program and the"),
            "{line}"
        );
        assert!(line.ends_with("agree on peak 700024"), "{line}");
        report.proof.as_mut().unwrap().objectives.clear();
        assert_eq!(section(&report, "proof", &PLAIN), "");
    }

    const NARROW: Screen = Screen {
        width: 20,
        colour: true,
        unicode: true,
    };

    #[test]
    fn lines_are_broken_between_words() {
        let look = TextStyle {
            screen: Some(NARROW),
            ..TextStyle::default()
        };
        let text = "short\n  one --layer-name-regex two three four five\n/a/path/without/any/space";
        let expected = "short\n  one\n    --layer-name-regex\n    two three four\n    five\n\
                        /a/path/without/any/space";
        assert_eq!(look.fitted(text), expected);
        assert_eq!(TextStyle::default().fitted(text), text);
    }

    #[test]
    fn colours_take_no_place() {
        let look = TextStyle {
            screen: Some(NARROW),
            ..TextStyle::default()
        };
        let text = look.toned(Severity::Bad, "exactly twenty wide.");
        assert!(text.starts_with("\u{1b}[") && text.ends_with("\u{1b}[0m"));
        assert_eq!(look.fitted(&text), text);
        assert_eq!(TextStyle::default().toned(Severity::Bad, "plain"), "plain");
    }
}
