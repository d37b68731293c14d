//! Keras on IPUs: every call of a layer has a pipeline stage, stages count from 0 without gaps, and
//! `device_mapping` has the IPU of each stage. A model lists its calls in the order in which they
//! run, so the form names the layers that begin stages, and other calls take the stage of the call
//! before.

use super::form_source::FormSource;
use super::lines::{Lines, STAGE};
use crate::escape::{printable, quoted};
use crate::model::Framework;

impl<'a> FormSource<'a> {
    /// Returns the names of the Keras layers that a position of the layer order calls; empty if
    /// another framework recorded the profile.
    fn keras_layers(self, position: u32) -> &'a [String] {
        let calls = self.calls(position, Framework::Tensorflow);
        calls.map_or(&[], |calls| &calls.top)
    }

    /// Returns whether the profile was recorded with TensorFlow.
    pub fn is_keras(self) -> bool {
        self.report.framework() == Some(Framework::Tensorflow)
    }

    /// Returns the first Keras layer that a position of the layer order calls and no earlier
    /// position calls; `None` if there is none.
    pub fn keras_begin(self, position: u32) -> Option<&'a String> {
        let mut layers = self.keras_layers(position).iter();
        layers.find(|layer| !(0..position).any(|at| self.keras_layers(at).contains(layer)))
    }

    /// Returns whether the profile has the name of the Keras layer at which each stage after the
    /// first begins.
    pub fn has_keras_names(self) -> bool {
        let mut stages = self.split.stages.iter().skip(1);
        self.is_keras() && stages.all(|stage| self.keras_begin(stage.positions.start).is_some())
    }
}

/// Adds to `text` the entries of `pipeline_stages`: for each stage except the first, the Keras layer
/// at which it begins. Adds to `notes` warnings of stages whose first operations belong to a layer
/// that runs before, too.
pub fn stages(source: FormSource<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let entry = |position, name: &str, stage: &str| match source.keras_begin(position) {
        Some(layer) => format!("    {}: {stage},", quoted(layer)),
        None => format!(
            "    {}: {stage},  # write its first Keras layer",
            quoted(&format!("<{name}>"))
        ),
    };
    let out = source.out().map(|out| (out, "Out"));
    for (position, name) in source.layers().chain(out) {
        text.begin(position, true, &entry(position, name, STAGE));
        let layers = source.keras_layers(position);
        let begin = source.keras_begin(position);
        if let (Some(earlier), Some(begin)) =
            (layers.first().filter(|&it| Some(it) != begin), begin)
        {
            let warning = format!(
                "WARNING: layer {} runs before stage {STAGE}, too, so what it does in this stage \
                 before layer {} stays in the stage before.",
                printable(earlier),
                printable(begin)
            );
            notes.begin(position, true, &warning);
        }
    }
    text.by_stages(|stages| {
        let last = source.forward_stages(stages).saturating_sub(1).to_string();
        let is_apart = source.out_returns(stages);
        is_apart.then(|| entry(source.place_of_out(), "Out", &last))
    });
}
