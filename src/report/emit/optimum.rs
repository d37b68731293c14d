//! `ipu_config.json` of Optimum for IPUs. `--ipu_config_overrides` sets the same keys.

use super::counts::{self, Keys};
use super::lines::{COUNTS, Lines, NUMBERS, STAGE, STAGES};
use super::pipeline::Pipeline;
use crate::escape::printable;

const KEYS: Keys = [
    "gradient_accumulation_steps",
    "replication_factor",
    "recompute_checkpoint_every_layer",
    "optimizer_state_offchip",
    "replicated_tensor_sharding",
];

pub(super) fn write(pipeline: Pipeline<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let items = counts::items(pipeline, "1", notes);
    counts::limits(pipeline, notes, "IPUConfig.to_options");
    generation(pipeline, notes);
    if pipeline.is_inference() {
        notes.add("Optimum runs inference stage by stage, not as a pipeline.");
    }
    notes.add("Save the lines as ipu_config.json, or change the configuration of a model with");
    notes.listed(&items, |notes| {
        notes.by_stages(|stages| {
            // Lists have spaces, since commas separate keys.
            let settings = counts::settings(pipeline, KEYS, stages).into_iter();
            let settings = settings.map(|(key, value)| format!("{key}={value},"));
            Some(format!(
                "--ipu_config_overrides \"ipus_per_replica={STAGES},{}layers_per_ipu=[{NUMBERS}]\"",
                settings.collect::<String>()
            ))
        });
    });
    text.add("{");
    text.add(format!("  \"ipus_per_replica\": {STAGES},"));
    let line = |key: &str, value: &str| format!("  \"{key}\": {value},");
    counts::write_settings(pipeline, KEYS, text, line);
    text.listed(&items, |text| {
        text.add(format!("  \"layers_per_ipu\": [{COUNTS}]"))
    });
    text.add("}");
}

/// Notes the constraint of generation, which compiles the encoder and the decoder separately.
fn generation(pipeline: Pipeline<'_>, notes: &mut Lines<'_>) {
    let is_of = |part: &str, name: &str| name.split(['.', '/']).any(|one| one == part);
    let layers: Vec<(u32, &str)> = pipeline.layers().collect();
    let encoder = layers.iter().rfind(|(_, name)| is_of("encoder", name));
    let decoder = layers.iter().find(|(_, name)| is_of("decoder", name));
    let (Some(&(last, name)), Some(&(first, _))) = (encoder, decoder) else {
        return;
    };
    if first < last {
        return;
    }
    notes.at(
        last,
        &format!(
            "Generation needs the encoder on 1, 2, 4, 8, ... IPUs without layers of the decoder; its last \
             layer is on IPU {STAGE}."
        ),
    );
    notes.begin(
        (first, false),
        &format!(
            "WARNING: generation needs a stage that ends with the encoder. Give --cut-after {}.",
            printable(name)
        ),
    );
}
