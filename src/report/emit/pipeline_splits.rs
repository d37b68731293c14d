//! `pipeline_splits`, as the configurations of Graphcore's vision examples take
//! it: the modules at which the next IPU begins. IPU 0 has no entry.

use super::{EmitError, Modules, Notes, Pipeline, Start};
use crate::escape::quoted;

/// In place of a module whose name was not given.
const PLACEHOLDER: &str = "<Out>";

pub(super) fn emit(
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
    notes: &mut Notes,
) -> Result<String, EmitError> {
    if pipeline.out_returns() {
        notes.add(
            "There is nothing to paste: pipeline_splits has no way to say that Out is on IPU 0. \
             See --out-on.",
        );
        return Ok(String::new());
    }
    let template = modules
        .layer
        .ok_or(EmitError::NoModule("pipeline-splits"))?;
    let mut begun: Vec<String> = Vec::new();
    for (_, start) in pipeline.starts() {
        let module = match (start, modules.after) {
            (Start::In(_), _) => continue,
            (Start::Layer(layer), _) => template.text(layer),
            (Start::Out, Some(name)) => name.text().to_string(),
            (Start::Out, None) => {
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
    Ok(format!("pipeline_splits: [{}]\n", begun.join(", ")))
}
