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
        notes.computed_for(pipeline);
        notes.add("Set the same available memory proportion on all IPUs: that of the profile.");
        notes
    }

    pub(super) fn add(&mut self, note: impl Into<String>) {
        self.lines.push(note.into());
    }

    /// How many batches a pipeline needs at least, if it is one, where the configuration does
    /// not say it: `inference` and `training` are what the framework calls them.
    pub(super) fn batches(&mut self, pipeline: Pipeline<'_>, inference: &str, training: &str) {
        let stages = pipeline.forward_stages();
        if stages < 2 || pipeline.accumulation().is_some() {
            return;
        }
        let least = Schedule::Popart.least_accumulation(stages);
        let both = format!(" for inference, and {training} of at least {least} for training");
        let both = if pipeline.is_inference() { "" } else { &both };
        self.add(format!(
            "The pipeline needs {inference} of at least {stages}{both}."
        ));
    }

    /// Which pipeline the memory of the stages was computed for.
    fn computed_for(&mut self, pipeline: Pipeline<'_>) {
        let report = pipeline.report;
        self.add(match &report.pipeline {
            Some(facts) => {
                let chosen = sentences::chosen(facts).capital();
                format!("{}.", chosen.plain(Units::Bytes, report.pseudo_layers))
            }
            None => "Pipeline: none, since neither --memory-model classic nor --solver greedy \
                     computes what a pipeline keeps."
                .to_string(),
        });
    }

    /// That a framework has no such schedule.
    pub(super) fn schedule(&mut self, pipeline: Pipeline<'_>, framework: &str, own: &[Schedule]) {
        let schedule = pipeline.training().map(|own| own.schedule);
        let foreign = schedule.filter(|schedule| !own.contains(schedule));
        if let (Some(schedule), Some(first)) = (foreign, own.first()) {
            self.add(format!(
                "WARNING: {framework} has no schedule {schedule}. Compute the split with \
                 --schedule {first}."
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
