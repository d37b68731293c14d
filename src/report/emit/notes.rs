//! What is above a configuration, as comments.

use super::{Pipeline, printable};
use crate::memory::Schedule;
use crate::report::text::grouped;
use crate::report::{NO_VERDICT, Units, sentences};
use std::fmt;

/// Lines of comment.
pub(super) struct Notes {
    lines: Vec<String>,
}

impl Notes {
    /// What is to be said of a split in any form: first of all that it does
    /// not fit.
    pub(super) fn new(pipeline: Pipeline<'_>) -> Self {
        let mut notes = Self { lines: Vec::new() };
        if !pipeline.report.has_verdict() {
            notes.add(format!("WARNING: {NO_VERDICT}."));
        } else if !pipeline.split.fits {
            let shortfall = sentences::shortfall(pipeline.report, pipeline.split);
            let shortfall = shortfall.plain(Units::Bytes, pipeline.report.pseudo_layers);
            notes.add(format!(
                "WARNING: the model does not fit. This split {shortfall}."
            ));
        }
        if !pipeline.split.unplaced.is_empty() {
            notes.add("There is nothing to paste: layers are left over.");
            return notes;
        }
        notes.add(format!(
            "Stages: {}, one for each IPU. The fullest tile needs {} of {} bytes.",
            pipeline.split.stages.len(),
            grouped(
                pipeline
                    .split
                    .fullest()
                    .map_or(0, |own| own.fullest_tile.bytes)
            ),
            grouped(pipeline.split.limit)
        ));
        if pipeline.out_returns() {
            notes.add(
                "Out (what runs after the layers) is on IPU 0 with In, after the stage on the \
                 last IPU.",
            );
        }
        notes.weighed_for(pipeline);
        notes.add("Set the same available memory proportion on all IPUs: that of the profile.");
        notes
    }

    pub(super) fn add(&mut self, note: impl Into<String>) {
        self.lines.push(note.into());
    }

    /// How many batches a pipeline needs at least, if it is one: in training what
    /// its schedule needs, or else that of PopART.
    pub(super) fn batches(&mut self, pipeline: Pipeline<'_>, inference: &str, training: &str) {
        let stages = pipeline.forward_stages();
        if stages > 1 {
            let schedule = pipeline.training().map(|own| own.schedule);
            let least = schedule
                .unwrap_or(Schedule::Popart)
                .least_accumulation(stages);
            self.add(format!(
                "The pipeline needs {inference} of at least {stages} for inference, and {training} \
                 of at least {least} for training."
            ));
        }
    }

    /// Which pipeline the stages were weighed for.
    pub(super) fn weighed_for(&mut self, pipeline: Pipeline<'_>) {
        if let Some(own) = pipeline.training() {
            self.add(format!(
                "Weighed for training with schedule {} and recompute {}.",
                own.schedule, own.recompute
            ));
        }
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "# {}", printable(line))?;
        }
        Ok(())
    }
}
