//! The split as configuration.

use super::usage;
use crate::cli::Options;
use crate::report::emit::Modules;
use crate::report::{Split, emit};
use anyhow::Result;

/// Can the split be written as `options` want it? Asked before the work begins.
pub(super) fn check(options: &Options) -> Result<()> {
    for form in options.forms() {
        let checked = form.check(&modules(options));
        checked.map_err(|error| usage(error.to_string()))?;
    }
    Ok(())
}

/// The split in each form that was asked for, with the name of its section.
pub(super) fn emit(options: &Options, split: &Split) -> Result<Vec<(&'static str, String)>> {
    let forms = options.forms().into_iter();
    let emitted = forms.map(|form| {
        let text = emit::emit(form, split, &modules(options));
        let text = text.map_err(|error| usage(error.to_string()))?;
        Ok((form.section(), text))
    });
    emitted.collect()
}

/// What the options call the modules of the model's code.
fn modules(options: &Options) -> Modules<'_> {
    Modules {
        layer: options.module.as_ref(),
        before: options.module_in.as_ref(),
        after: options.module_out.as_ref(),
    }
}
