//! Keras on IPUs: every call of a layer has a pipeline stage, stages count from 0 without gaps, and
//! `device_mapping` has the IPU of each stage. A model lists its calls in the order in which they
//! run.

use super::form_source::FormSource;
use super::lines::{Lines, STAGE};
use crate::escape::{printable, quoted};
use crate::model::{Framework, PseudoLayers};

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

    /// Returns whether the profile has the name of a Keras layer at which each layer begins. False
    /// if one Keras layer spans several layers.
    pub fn has_keras_names(self) -> bool {
        self.is_keras()
            && self
                .layers()
                .all(|(position, _)| self.keras_begin(position).is_some())
    }
}

/// Adds to `text` the dictionary `pipeline_stages`, which has the stage of each Keras layer, and to
/// `notes` warnings of Keras layers that are unknown or run in several stages.
pub fn stages(source: FormSource<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let has_names = source.has_keras_names();
    let known = |place| match has_names {
        true => source.keras_layers(place),
        false => &[],
    };
    let entry = |name: &str, stage: &str| format!("    {}: {stage},", quoted(name));
    let unknown = |place| format!("WARNING: the Keras layers of {place} are unknown.");
    if let (Some((first, _)), []) = (source.layers().next(), known(0)) {
        notes.begin(first, true, &unknown("In"));
    }
    let mut calls: Vec<(u32, &str)> = known(0).iter().map(|name| (0, &**name)).collect();
    for (position, layer) in source.layers() {
        match known(position) {
            [] => calls.push((position, layer)),
            names => calls.extend(names.iter().map(|name| (position, &**name))),
        }
    }
    let after = known(source.place_of_out());
    match source.out() {
        Some(out) if after.is_empty() => notes.begin(out, true, &unknown("Out")),
        Some(out) => calls.extend(after.iter().map(|name| (out, &**name))),
        None if after.is_empty() => notes.if_out_returns(&unknown("Out")),
        None => {}
    }
    text.add("pipeline_stages = {");
    let mut seen = Vec::new();
    for (position, name) in calls {
        if seen.contains(&name) {
            let warning = format!(
                "WARNING: Keras layer {} also runs in stages before {STAGE}, but can have only one \
                 stage. Call its parts inside keras.ipu.PipelineStage(...).",
                printable(name)
            );
            notes.begin(position, true, &warning);
        } else {
            text.at(position, &entry(name, STAGE));
            seen.push(name);
        }
    }
    let is_apart = source.report.pseudo_layers == PseudoLayers::OutWithIn;
    let is_missing = |name: &&String| is_apart && !seen.contains(&name.as_str());
    for name in after.iter().filter(is_missing) {
        text.by_stages(|stages| {
            let last = source.forward_stages(stages).saturating_sub(1);
            Some(entry(name, &last.to_string()))
        });
    }
}
