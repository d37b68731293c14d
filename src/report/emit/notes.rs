//! The comments above a configuration.

use super::lines::{FULLEST, Lines, SHORTFALL, STAGES};
use super::pipeline::Pipeline;
use crate::memory::Schedule;
use crate::report::text::grouped;
use crate::report::{Estimate, NO_VERDICT, Units, sentences};

/// Adds the notes that every form has. The first one warns of a split that does not fit.
pub(super) fn begin(pipeline: Pipeline<'_>, notes: &mut Lines<'_>) {
    if pipeline.report.has_verdict() {
        notes.add(format!(
            "WARNING: the model does not fit. This split {SHORTFALL}."
        ));
    } else {
        notes.add(format!("WARNING: {NO_VERDICT}."));
    }
    for sentence in pipeline
        .report
        .estimate
        .iter()
        .flat_map(Estimate::sentences)
    {
        let text = sentence.capital();
        let text = text.plain(Units::Bytes, pipeline.report.pseudo_layers);
        notes.add(format!("{text}."));
    }
    if !pipeline.split.unplaced.is_empty() {
        notes.add("There is nothing to paste: some layers are in no stage.");
        return;
    }
    notes.add(format!(
        "Stages: {STAGES}, one for each IPU. The fullest tile needs {FULLEST} of {} bytes.",
        grouped(pipeline.split.limit)
    ));
    notes.by_stages(|stages| {
        let text = "Out (the operations after the layers) runs on IPU 0 with In, after the stage on the \
                    last IPU.";
        pipeline.out_returns(stages).then(|| text.into())
    });
    notes.add(match &pipeline.report.pipeline {
        Some(facts) => {
            let chosen = sentences::named(facts).capital();
            let chosen = chosen.plain(Units::Bytes, pipeline.report.pseudo_layers);
            format!("{chosen}.")
        }
        None => "Pipeline: none, since neither --memory-model classic nor --solver greedy \
                 computes what a pipeline keeps."
            .to_string(),
    });
    notes.add("Set the available memory proportion of the profile on all IPUs.");
}

/// Notes the smallest number of batches that a pipeline needs, if the configuration does not set
/// it. `inference` and `training` are the framework's names for the number.
pub(super) fn batches(
    pipeline: Pipeline<'_>,
    notes: &mut Lines<'_>,
    inference: &str,
    training: &str,
) {
    notes.by_stages(|stages| {
        let all = pipeline.forward_stages(stages);
        let least = Schedule::Popart.least_accumulation(all);
        let both = format!(" for inference, and {training} of at least {least} for training");
        let both = if pipeline.is_inference() { "" } else { &both };
        let text = format!("The pipeline needs {inference} of at least {all}{both}.");
        let is_said = all < 2 || pipeline.accumulation(stages).is_some();
        (!is_said).then_some(text)
    });
}

/// Warns if a framework lacks the schedule; `known` are the schedules that it has.
pub(super) fn schedule(
    pipeline: Pipeline<'_>,
    notes: &mut Lines<'_>,
    framework: &str,
    known: &[Schedule],
) {
    let schedule = pipeline.training().map(|training| training.schedule);
    let foreign = schedule.filter(|schedule| !known.contains(schedule));
    if let (Some(schedule), Some(first)) = (foreign, known.first()) {
        notes.add(format!(
            "WARNING: {framework} has no schedule {schedule}. Compute the split with --schedule \
             {first}."
        ));
    }
}
