//! The lines of a form, each with the splits that it is a line of: a page in which cuts
//! are moved chooses among them as it is done here.

use super::{EmitError, Pipeline, printable};
use crate::report::sentences;
use crate::report::text::grouped;
use crate::report::{Split, Units};
use schemars::JsonSchema;
use serde::Serialize;

/// Where the number of something goes in a text.
macro_rules! slot {
    ($name:literal) => {
        concat!("\0", $name, "\0")
    };
}

/// The stage of the line's position.
pub(super) const STAGE: &str = slot!("stage");
/// How many stages there are.
pub(super) const STAGES: &str = slot!("stages");
/// The last stage.
pub(super) const LAST_STAGE: &str = slot!("last-stage");
/// The bytes on the fullest tile of all stages.
pub(super) const FULLEST: &str = slot!("fullest");
/// How many layers each stage has, from the first on.
pub(super) const COUNTS: &str = slot!("counts");
/// How many IPUs have no stage; no line where there are none.
pub(super) const FREE: &str = slot!("free");
/// The reason why the split does not fit; no line where it fits.
pub(super) const SHORTFALL: &str = slot!("shortfall");

/// A line of a form. Without conditions it is a line of every split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Line {
    /// Its text and, at every second place, what is put in between: `stage` (that of
    /// `position`), `stages` and `last-stage` (numbers), `fullest` (bytes on the fullest
    /// tile), `counts` (layers of each stage), `free` (IPUs without a stage) or
    /// `shortfall` (why the split does not fit). There is no line without one of the
    /// last two.
    text: Vec<String>,
    /// The position in the order of layers that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    /// Is it there where a stage begins at `position`, or where none does?
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<bool>,
    /// The numbers of stages with which it is there, both inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<(u32, u32)>,
}

/// Lines while they are written: those of one split, or of every split of its layers.
pub(super) struct Lines<'a> {
    pipeline: Pipeline<'a>,
    is_comment: bool,
    pub(super) all: Vec<Line>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(pipeline: Pipeline<'a>, is_comment: bool) -> Self {
        let all = Vec::new();
        Self {
            pipeline,
            is_comment,
            all,
        }
    }

    /// A line of every split.
    pub(super) fn add(&mut self, text: impl AsRef<str>) {
        self.push(text.as_ref(), None, None, None);
    }

    /// A line that has the stage of a position in it.
    pub(super) fn at(&mut self, position: u32, text: &str) {
        self.push(text, Some(position), None, None);
    }

    /// A line where a stage begins at a position, or (`begins` is false) where none does.
    ///
    /// # Errors
    /// Those of `text`, which is asked for only where the line is wanted.
    pub(super) fn begin(
        &mut self,
        (position, begins): (u32, bool),
        text: impl FnOnce() -> Result<String, EmitError>,
    ) -> Result<(), EmitError> {
        let pipeline = self.pipeline;
        if pipeline.most_stages.is_some() || pipeline.split.begins_at(position) == begins {
            self.push(&text()?, Some(position), Some(begins), None);
        }
        Ok(())
    }

    /// A line that is another with each number of stages, or none.
    pub(super) fn by_stages(&mut self, text: impl Fn(usize) -> Option<String>) {
        let (first, last) = self.pipeline.numbers_of_stages();
        let mut from = first;
        while from <= last {
            let line = text(from);
            let to = (from..=last).take_while(|&at| text(at) == line).last();
            let to = to.unwrap_or(from);
            if let Some(line) = line {
                let range = (first, last) != (from, to) || self.pipeline.most_stages.is_none();
                let stages = range.then_some((from as u32, to as u32));
                self.push(&line, None, None, stages);
            }
            from = to + 1;
        }
    }

    /// A line where Out runs on the first of several stages.
    ///
    /// # Errors
    /// Those of `text`, which is asked for only where the line is wanted.
    pub(super) fn if_out_returns(
        &mut self,
        text: impl FnOnce() -> Result<String, EmitError>,
    ) -> Result<(), EmitError> {
        let pipeline = self.pipeline;
        if pipeline.out_returns(pipeline.numbers_of_stages().1) {
            let text = text()?;
            self.by_stages(|stages| pipeline.out_returns(stages).then(|| text.clone()));
        }
        Ok(())
    }

    fn push(
        &mut self,
        text: &str,
        position: Option<u32>,
        begins: Option<bool>,
        stages: Option<(u32, u32)>,
    ) {
        let pieces = text.split('\0').map(|piece| match self.is_comment {
            true => printable(piece),
            false => piece.to_string(),
        });
        let mut text: Vec<String> = pieces.collect();
        if self.is_comment {
            text[0].insert_str(0, "# ");
        }
        self.all.push(Line {
            text,
            position,
            begins,
            stages,
        });
    }
}

impl Line {
    /// The line of a split, without a line feed; `None` where it has none.
    pub(super) fn of(&self, pipeline: Pipeline<'_>) -> Option<String> {
        let pieces = self.text.iter().enumerate();
        let pieces = pieces.map(|(place, piece)| match place % 2 {
            0 => Some(piece.clone()),
            _ => self.put_in(piece, pipeline),
        });
        pieces.collect()
    }

    fn put_in(&self, slot: &str, pipeline: Pipeline<'_>) -> Option<String> {
        let Pipeline { report, split, .. } = pipeline;
        let stages = split.stages.len();
        match slot {
            "stage" => Some(split.stage_of(self.position?).to_string()),
            "stages" => Some(stages.to_string()),
            "last-stage" => Some(stages.saturating_sub(1).to_string()),
            "fullest" => {
                let fullest = split.fullest().map_or(0, |stage| stage.fullest_tile.bytes);
                Some(grouped(fullest))
            }
            "counts" => {
                let counts = split
                    .stages
                    .iter()
                    .map(|stage| stage.named_layers().count());
                Some(
                    counts
                        .map(|count| count.to_string())
                        .collect::<Vec<_>>()
                        .join(", "),
                )
            }
            "free" => {
                let free = (split.max_stages as usize).saturating_sub(stages);
                Some(free.to_string()).filter(|_| free > 0)
            }
            _ => {
                let shortfall = sentences::shortfall(report, split);
                let shortfall = shortfall.plain(Units::Bytes, report.pseudo_layers);
                Some(printable(&shortfall)).filter(|_| !split.fits)
            }
        }
    }
}

impl Split {
    /// The stage that a position is in.
    fn stage_of(&self, position: u32) -> usize {
        let before = |stage: &&crate::report::Stage| stage.positions.end <= position;
        self.stages.iter().take_while(before).count()
    }

    /// Does a stage other than the first begin at a position?
    fn begins_at(&self, position: u32) -> bool {
        let mut later = self.stages.iter().skip(1);
        later.any(|stage| stage.positions.start == position)
    }
}
