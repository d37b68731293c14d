//! The lines of a configuration. Each line has conditions on the splits that it belongs to; when
//! the reader of an HTML page moves cuts, the page chooses lines by these conditions.

use super::FormSource;
use crate::escape::printable;
use crate::report::{Split, join, sentences, with_commas};
use crate::wording::grouped;
use serde::Serialize;

/// Placeholder in a line of configuration for the index of the stage that contains
/// [`Line::position`].
pub const STAGE: &str = "\0stage\0";

/// A line of configuration with values to put in, and the conditions on the splits that have the
/// line. A line without conditions belongs to every split.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    /// The text of the line in pieces. Every second piece, from the second on, names a value to put
    /// in: `stage` (the index of the stage of `position`), `stages` and `last-stage` (the number of
    /// stages, and the index of the last one), `fullest` (bytes on the fullest tile), `counts` and
    /// `numbers` (the number of items of each stage, with commas or spaces between), `lists` (the
    /// items of each stage in brackets), `free` (IPUs without a stage) or `shortfall` (why the
    /// split does not fit). Without a value for `free` or `shortfall`, the line is left out.
    text: Vec<String>,
    /// The position of the layer order (0 for In) whose stage is put into the text, or to which
    /// `begins` refers; missing if the line needs no position.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    /// If true, only splits in which a stage other than the first begins at `position` have the
    /// line; if false, only splits in which no stage begins there. Missing if the line belongs to
    /// both.
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<bool>,
    /// The numbers of stages with which this line of the configuration is printed: the lowest and
    /// the highest, both inclusive. Missing if the line is printed for every number.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<(u32, u32)>,
    /// Whether the line is a note that stays outside the text to paste, since the form has no
    /// comments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, schemars(default))]
    pub(super) note: bool,
    /// For each position of the layer order, an item such as the name of a part of the model, or an
    /// empty string; the values `counts`, `numbers` and `lists` count or list the items of each
    /// stage. Empty if the line has none of these values. In `lists`, items after the last stage
    /// are one more list or, with a single stage, belong to this stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(default))]
    items: Vec<String>,
}

/// A configuration that is being written: its notes for the user, and its lines to paste.
pub struct Draft<'a> {
    pub source: FormSource<'a>,
    pub notes: Lines<'a>,
    pub text: Lines<'a>,
}

/// Collects the lines of a configuration, for one split or for every split of the same layers.
pub struct Lines<'a> {
    source: FormSource<'a>,
    /// The beginning of each line if the lines are notes: a comment mark, or an empty text in a
    /// form without comments. `None` if the lines are to be pasted.
    mark: Option<&'static str>,
    /// For each position of the layer order (In, a layer or Out), an item such as the name of a
    /// part of the model, or an empty text. A line whose text counts or lists items gets a copy of
    /// them.
    pub items: Vec<String>,
    pub all: Vec<Line>,
}

impl<'a> Lines<'a> {
    /// Makes an empty list of lines of a configuration: notes, which begin with `mark`, or lines to
    /// paste if `mark` is `None`.
    pub fn new(source: FormSource<'a>, mark: Option<&'static str>) -> Self {
        Self {
            source,
            mark,
            items: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Adds a line that the configuration has for every split.
    pub fn add(&mut self, text: impl AsRef<str>) {
        self.push(text.as_ref(), None, None, None);
    }

    /// Adds a line that the configuration has for every split. [`STAGE`] in `text` stands for the
    /// index of the stage that contains `position`, a position of the layer order (In, a layer or
    /// Out).
    pub fn at(&mut self, position: u32, text: impl AsRef<str>) {
        self.push(text.as_ref(), Some(position), None, None);
    }

    /// Adds a line that the configuration has only for splits in which a stage other than the first
    /// begins at the layer `position` (if `begins` is true) or in which no such stage begins there.
    /// If only one split is written, the line is dropped unless this split meets the condition.
    /// [`STAGE`] in `text` stands for the index of the stage of `position`.
    pub fn begin(&mut self, position: u32, begins: bool, text: impl AsRef<str>) {
        let source = self.source;
        if source.most_stages.is_some() || source.split.begins_at(position) == begins {
            self.push(text.as_ref(), Some(position), Some(begins), None);
        }
    }

    /// Adds lines of the configuration that depend on the number of stages. `text` returns the line
    /// for a number of stages, or `None` if there is none; consecutive numbers with equal text
    /// share one line.
    pub fn by_stages(&mut self, text: impl Fn(usize) -> Option<String>) {
        let stages = self.source.split.stages.len();
        let most_stages = self.source.most_stages;
        let (first, last) = most_stages.map_or((stages, stages), |most| (1, most));
        let lines: Vec<_> = (first..=last)
            .map(|stages| (stages, text(stages)))
            .collect();
        for run in lines.chunk_by(|(_, line), (_, next)| line == next) {
            if let ([(from, Some(line)), ..], [.., (to, _)]) = (run, run) {
                let range = (first, last) != (*from, *to) || most_stages.is_none();
                self.push(
                    line,
                    None,
                    None,
                    range.then_some((*from as u32, *to as u32)),
                );
            }
        }
    }

    fn push(
        &mut self,
        text: &str,
        position: Option<u32>,
        begins: Option<bool>,
        stages: Option<(u32, u32)>,
    ) {
        let mut text: Vec<String> = text
            .split('\0')
            .map(|piece| match self.mark {
                Some(_) => printable(piece),
                None => piece.to_string(),
            })
            .collect();
        text[0].insert_str(0, self.mark.unwrap_or_default());
        let has_list = text
            .iter()
            .skip(1)
            .step_by(2)
            .any(|slot| ["counts", "numbers", "lists"].contains(&slot.as_str()));
        self.all.push(Line {
            text,
            position,
            begins,
            stages,
            note: self.mark == Some(""),
            items: if has_list {
                self.items.clone()
            } else {
                Vec::new()
            },
        });
    }
}

impl Line {
    /// Returns the text of a line of the configuration for the split of `source`, with all values
    /// put in; `None` if a value is missing, so that the line is left out.
    pub(super) fn of(&self, source: FormSource<'_>) -> Option<String> {
        self.text
            .iter()
            .enumerate()
            .map(|(place, piece)| match place % 2 {
                0 => Some(piece.clone()),
                _ => self.put_in(piece, source),
            })
            .collect()
    }

    fn put_in(&self, slot: &str, source: FormSource<'_>) -> Option<String> {
        let FormSource { report, split, .. } = source;
        let stages = split.stages.len();
        let counts = || self.lists(split).into_iter().map(|items| items.len());
        Some(match slot {
            "stage" => split.stage_of(self.position?).to_string(),
            "stages" => stages.to_string(),
            "last-stage" => stages.saturating_sub(1).to_string(),
            "fullest" => grouped(split.peak()),
            "counts" => with_commas(counts()),
            "numbers" => join(counts(), " "),
            "lists" => {
                let mut lists = self.lists(split);
                let end = split.stages.last().map_or(0, |stage| stage.positions.end);
                let rest = self.items.iter().skip(end as usize).map(String::as_str);
                match lists.last_mut() {
                    Some(last) if stages == 1 => last.extend(rest),
                    _ if rest.len() > 0 => lists.push(rest.collect()),
                    _ => {}
                }
                with_commas(lists.iter().map(|items| format!("[{}]", items.join(", "))))
            }
            "free" => match (split.max_stages as usize).saturating_sub(stages) {
                0 => return None,
                free => free.to_string(),
            },
            _ if split.fits => return None,
            _ => printable(&report.plain(sentences::shortfall(report, split))),
        })
    }

    /// For each stage, returns the items of its layers, such as names of parts of the model, that
    /// the line of configuration counts or lists. Empty items are left out.
    fn lists(&self, split: &Split) -> Vec<Vec<&str>> {
        split
            .stages
            .iter()
            .map(|stage| {
                stage
                    .positions
                    .clone()
                    .filter_map(|position| self.items.get(position as usize))
                    .map(String::as_str)
                    .filter(|item| !item.is_empty())
                    .collect()
            })
            .collect()
    }
}

impl Split {
    /// Returns the index of the stage that contains `position` of the layer order (In, a layer or
    /// Out), or the number of stages if the position is after all stages.
    fn stage_of(&self, position: u32) -> usize {
        self.stages
            .iter()
            .take_while(|stage| stage.positions.end <= position)
            .count()
    }

    /// Returns whether a stage other than the first begins at `position` of the layer order (In, a
    /// layer or Out).
    pub(super) fn begins_at(&self, position: u32) -> bool {
        self.stages
            .iter()
            .skip(1)
            .any(|stage| stage.positions.start == position)
    }
}
