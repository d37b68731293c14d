//! `pipeline_splits`, as the configurations of Graphcore's vision examples take
//! it: the modules at which the next IPU begins. IPU 0 has no entry.

use super::lines::Lines;
use super::{EmitError, Modules, Pipeline};
use crate::escape::quoted;

/// In place of a module whose name was not given.
const PLACEHOLDER: &str = "<Out>";

pub(super) fn write(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Lines<'_>,
    text: &mut Lines<'_>,
) -> Result<(), EmitError> {
    let stages = &pipeline.split.stages;
    if pipeline.out_returns(stages.len()) {
        notes.add(
            "There is nothing to paste: pipeline_splits has no way to say that Out is on IPU 0. \
             See --out-on.",
        );
        return Ok(());
    }
    let template = modules
        .layer
        .ok_or(EmitError::NoModule("pipeline-splits"))?;
    let mut begun: Vec<String> = Vec::new();
    for stage in stages.iter().skip(1) {
        let module = match (stage.named_layers().next(), modules.after) {
            (Some(layer), _) => template.text(layer),
            (None, Some(name)) => name.text().to_string(),
            (None, None) => {
                notes.add(format!(
                    "In place of {PLACEHOLDER} write the first module of Out, such as the head \
                     (--module-out)."
                ));
                PLACEHOLDER.to_string()
            }
        };
        if begun.contains(&module) {
            return Err(EmitError::SameModule(module));
        }
        begun.push(module);
    }
    notes.add("Each entry begins the next IPU; what runs before the first is on IPU 0.");
    let begun: Vec<String> = begun.iter().map(|module| quoted(module)).collect();
    text.add(format!("pipeline_splits: [{}]", begun.join(", ")));
    Ok(())
}
