//! Keras on IPUs: every call of a layer has a pipeline stage, stages count
//! from 0 without gaps, and `device_mapping` has the IPU of each stage. A model
//! lists its calls in the order in which they run.

use super::{ModuleTemplate, Notes, Split, layers, quoted};
use std::fmt::Write;

/// Gives each Keras layer of an existing model its stage.
const ASSIGN: &str = r#"
stage = 0
assignments = model.get_pipeline_stage_assignment()
for assignment in assignments:
    name = assignment.layer.name
    for layer, stage_of_layer in pipeline_stages.items():
        if name == layer or name.startswith((layer + "_", layer + "/")):
            stage = stage_of_layer
    assignment.pipeline_stage = stage
model.set_pipeline_stage_assignment(assignments)
model.set_pipelining_options(device_mapping=device_mapping)
"#;

pub(super) fn emit(split: &Split, module: Option<&ModuleTemplate>, notes: &mut Notes) -> String {
    let mut text = String::from("pipeline_stages = {\n");
    for (stage, layer) in layers(split) {
        let name = match module {
            Some(module) => module.text(layer),
            None => layer.to_string(),
        };
        let _ = writeln!(text, "    {}: {stage},", quoted(&name));
    }
    let ipus: Vec<String> = (0..split.stages.len()).map(|n| n.to_string()).collect();
    let _ = writeln!(text, "}}\ndevice_mapping = [{}]", ipus.join(", "));
    notes.add("Call each layer inside keras.ipu.PipelineStage(pipeline_stages[its name]).");
    match module {
        Some(_) => {
            notes.add("For a model that is there already, the loop below sets the stages:");
            notes.add("a Keras layer without an entry stays with the one that runs before it.");
            text.push_str(ASSIGN);
        }
        None => notes.add(
            "Give --module with the names of Keras layers, such as 'block{}', for a loop that sets \
             the stages of a model that is there already.",
        ),
    }
    notes.add(
        "Pass device_mapping to set_pipelining_options; training also needs \
         gradient_accumulation_steps_per_replica there.",
    );
    text
}
