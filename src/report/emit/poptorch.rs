//! `poptorch.BeginBlock`: the module and all that runs after it belong to the
//! block until the next begins. What runs before the first block is on IPU 0.
//! A module can begin one block only.

use super::{EmitError, ModuleTemplate, Notes, Split, starts};
use std::fmt::Write;

pub(super) fn emit(
    split: &Split,
    module: &ModuleTemplate,
    notes: &mut Notes,
) -> Result<String, EmitError> {
    let mut modules: Vec<String> = Vec::new();
    let mut text = String::new();
    for (stage, layer) in starts(split) {
        let module = module.python(layer)?;
        if modules.contains(&module) {
            return Err(EmitError::SameModule(module));
        }
        let _ = writeln!(text, "poptorch.BeginBlock({module}, ipu_id={stage})");
        modules.push(module);
    }
    let stages = split.stages.len();
    notes.add("What runs before the first block is on IPU 0, after the last on the last IPU.");
    notes.batches(stages, "deviceIterations", "gradientAccumulation");
    if !stages.is_power_of_two() {
        notes.add(format!(
            "PopTorch takes 1, 2, 4, 8, ... IPUs: for {stages} set autoRoundNumIPUs(True) in the \
             options."
        ));
    }
    Ok(text)
}
