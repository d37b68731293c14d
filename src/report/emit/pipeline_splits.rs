//! `pipeline_splits`, as the configurations of Graphcore's vision examples take
//! it: the modules at which the next IPU begins. IPU 0 has no entry.

use super::{EmitError, ModuleTemplate, Notes, Split, quoted, starts};

pub(super) fn emit(
    split: &Split,
    module: &ModuleTemplate,
    notes: &mut Notes,
) -> Result<String, EmitError> {
    let mut modules: Vec<String> = Vec::new();
    for (_, layer) in starts(split).filter(|&(stage, _)| stage > 0) {
        let module = module.text(layer);
        if modules.contains(&module) {
            return Err(EmitError::SameModule(module));
        }
        modules.push(module);
    }
    notes.add("Each entry begins the next IPU; what runs before the first is on IPU 0.");
    let modules: Vec<String> = modules.iter().map(|module| quoted(module)).collect();
    Ok(format!("pipeline_splits: [{}]\n", modules.join(", ")))
}
