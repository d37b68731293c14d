//! The style of text for people: plain, or made for a screen.

use crate::report::text::Units;
use clap::builder::styling::AnsiColor;

/// The style of text for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// The units of amounts.
    pub units: Units,
    /// The screen; `None` for a pipe or a file.
    pub screen: Option<Screen>,
    /// The width that is requested for a pipe or a file (`COLUMNS`), in columns.
    pub columns: Option<usize>,
}

/// A terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// The width in columns.
    pub width: usize,
    /// May text be coloured?
    pub colour: bool,
    /// Can the terminal show characters that are not ASCII?
    pub unicode: bool,
}

/// The severity that a colour expresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A good result.
    Good,
    /// Something that deserves attention.
    Notable,
    /// Something is wrong.
    Bad,
}

impl TextStyle {
    /// Colours `text` by severity, if the screen has colours.
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

    /// Returns the width in columns, if it is known.
    pub fn width(&self) -> Option<usize> {
        self.screen.map(|screen| screen.width).or(self.columns)
    }

    /// Breaks lines that are wider than the screen, between words. A single word that is wider,
    /// such as a path, stays whole.
    pub fn fitted(&self, text: &str) -> String {
        match self.width() {
            Some(width) => {
                let lines: Vec<String> = text.split('\n').map(|l| broken(l, width)).collect();
                lines.join("\n")
            }
            None => text.to_string(),
        }
    }
}

fn broken(line: &str, width: usize) -> String {
    if textwrap::core::display_width(line) <= width {
        return line.to_string();
    }
    let indentation = line.len() - line.trim_start_matches(' ').len();
    let indent = " ".repeat(indentation + 2);
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .subsequent_indent(&indent);
    textwrap::fill(line, options)
}

#[cfg(test)]
mod tests {
    use super::*;

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
