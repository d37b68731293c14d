//! Defines the lines of a configuration that `--emit` writes. Each line has conditions on the
//! splits that it belongs to; when the reader of an HTML page moves cuts, the page chooses lines by
//! these conditions.

use super::FormSource;
use crate::{
    escape::printable,
    report::{Split, sentences},
    wording::{grouped, join},
};
use serde::Serialize;

/// Placeholder in a line of configuration. It is replaced by the index of the stage that contains
/// the position of the layer order in [`Line::position`].
pub const STAGE: &str = "\0stage\0";

/// A line of configuration, with values to fill in, and with conditions that say for which splits
/// the line is written. A line without conditions is written for every split.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    /// The pieces of the line: fixed text and names of values, alternating, beginning with fixed
    /// text. In a configuration, each name is replaced by its value:
    /// - `stage`: the index of the stage that contains `position`
    /// - `stages`, `last-stage`: the number of stages, the index of the last stage
    /// - `fullest`: bytes on the fullest tile of the split
    /// - `counts`, `numbers`: how many of `items` each stage has, with commas or spaces between
    /// - `lists`: the `items` of each stage, in brackets
    /// - `free`: the number of IPUs without a stage; if there are none, the line is left out
    /// - `shortfall`: why the split does not fit; if it fits, the line is left out
    text: Vec<String>,
    /// The position of the layer order (0 for In) that this line of the configuration is about.
    /// `begins` says whether a stage must begin there, and `stage` in `text` stands for the index
    /// of the stage that contains it. Missing if the line has neither `begins` nor `stage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    /// If true, this line of configuration belongs only to splits in which a stage other than
    /// the first begins at `position`; if false, only to all other splits. Missing if it
    /// belongs to every split.
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<bool>,
    /// The numbers of stages with which this line of the configuration is printed: the lowest
    /// and the highest, both inclusive. Missing if the line is printed for every number.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<(u32, u32)>,
    /// Whether this line is a note for the user on a configuration in JSON. JSON has no comments,
    /// so the note is shown beside the configuration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, schemars(default))]
    pub(super) note: bool,
    /// For each position of the layer order, the name of a part of the model, or an empty text. In
    /// `text`, the values `counts` and `numbers` say how many names each stage has, and the value
    /// `lists` has the names of each stage. If Out (the operations after the layers) runs on the
    /// first IPU, its name comes after those of all stages: `lists` then ends with one more list
    /// for Out or, if there is only one stage, adds the name to the list of this stage. Empty if
    /// `text` has none of these values.
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

/// Collects the lines of a configuration, for one split or for every split of the model's layers.
pub struct Lines<'a> {
    source: FormSource<'a>,
    /// The beginning of each line if the lines are notes for the user: a comment mark, or an empty
    /// text in JSON, which has no comments. `None` if the lines are the configuration to paste.
    mark: Option<&'static str>,
    /// For each position of the layer order (In, a layer or Out), the name of a part of the model,
    /// or an empty text. Each line of configuration that lists or counts the names of a stage gets
    /// a copy when it is added.
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

    /// Adds a line of configuration that is written for every split.
    pub fn add(&mut self, text: impl AsRef<str>) {
        self.all.push(self.line(text.as_ref()));
    }

    /// Adds a line of configuration that is written for every split. [`STAGE`] in `text` stands for
    /// the index of the stage that contains `position`, a position of the layer order (In, a layer
    /// or Out).
    pub fn at(&mut self, position: u32, text: impl AsRef<str>) {
        self.all.push(Line {
            position: Some(position),
            ..self.line(text.as_ref())
        });
    }

    /// Adds a line of configuration that belongs only to some splits:
    /// - if `begins` is true, to splits in which a stage other than the first begins at `position`
    ///   of the layer order
    /// - otherwise, to all other splits
    ///
    /// If only one split is written and the line does not belong to it, nothing is added. [`STAGE`]
    /// in `text` stands for the index of the stage that contains `position`.
    pub fn begin(&mut self, position: u32, begins: bool, text: impl AsRef<str>) {
        let source = self.source;
        if source.most_stages.is_some() || source.split.begins_at(position) == begins {
            self.all.push(Line {
                position: Some(position),
                begins: Some(begins),
                ..self.line(text.as_ref())
            });
        }
    }

    /// Adds lines of configuration that depend on the number of stages. `text` returns the line for
    /// a number of stages, or `None` for no line. Consecutive numbers of stages with equal text
    /// share one line.
    pub fn by_stages(&mut self, text: impl Fn(usize) -> Option<String>) {
        let stages = self.source.split.stages.len();
        let (first, last) = (self.source.most_stages).map_or((stages, stages), |most| (1, most));
        let lines = Vec::from_iter((first..=last).map(|stages| (stages, text(stages))));
        for run in lines.chunk_by(|(_, line), (_, next)| line == next) {
            if let ([(from, Some(line)), ..], [.., (to, _)]) = (run, run) {
                self.all.push(Line {
                    stages: (run.len() < lines.len()).then_some((*from as u32, *to as u32)),
                    ..self.line(line)
                });
            }
        }
    }

    fn line(&self, text: &str) -> Line {
        let mut text: Vec<String> = text
            .split('\0')
            .map(|piece| match self.mark {
                Some(_) => printable(piece),
                None => piece.to_string(),
            })
            .collect();
        text[0].insert_str(0, self.mark.unwrap_or_default());
        let mut slots = text.iter().skip(1).step_by(2);
        let has_list = slots.any(|slot| ["counts", "numbers", "lists"].contains(&&**slot));
        Line {
            text,
            note: self.mark == Some(""),
            items: if has_list {
                self.items.clone()
            } else {
                Vec::new()
            },
            ..Line::default()
        }
    }
}

impl Line {
    /// Returns the text of a line of the configuration for the split of `source`, with each name of
    /// a value replaced by its value. Returns `None` if a value is missing; the line is then left
    /// out.
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
            "stage" => {
                let position = self.position?;
                (split
                    .stages
                    .partition_point(|stage| stage.positions.end <= position))
                .to_string()
            }
            "stages" => stages.to_string(),
            "last-stage" => stages.saturating_sub(1).to_string(),
            "fullest" => grouped(split.peak()),
            "counts" => join(counts(), ", "),
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
                join(
                    lists.iter().map(|items| format!("[{}]", items.join(", "))),
                    ", ",
                )
            }
            "free" => match (split.max_stages as usize).saturating_sub(stages) {
                0 => return None,
                free => free.to_string(),
            },
            _ if split.fits => return None,
            _ => printable(&report.plain(sentences::shortfall(report, split))),
        })
    }

    /// Returns one list for each stage of the split: the texts that `items` has for the positions
    /// (In, layers, Out) of the stage, without empty texts.
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
    /// Returns whether a stage other than the first begins at `position` of the layer order (In, a
    /// layer or Out).
    pub(super) fn begins_at(&self, position: u32) -> bool {
        self.stages
            .iter()
            .skip(1)
            .any(|stage| stage.positions.start == position)
    }
}
