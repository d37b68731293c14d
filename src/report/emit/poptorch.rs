//! Writes calls of `poptorch.BeginBlock`. A call begins a block at a module: the block has the
//! module and all operations after it, until the next block begins. Operations before the first
//! block are on IPU 0. A module can begin only one block.

use super::{Draft, FormSource, Lines, STAGE};
use crate::{
    escape::{is_digits, is_obeyed, printable, quoted},
    memory::Recompute,
    message::BadValue,
    model::{Framework, ModuleCalls},
    wording::counted,
};

impl<'a> FormSource<'a> {
    /// Returns the modules that run at a position of the layer order (In, a layer or Out); `None`
    /// if the profile is not of PopTorch.
    pub fn torch_calls(self, position: u32) -> Option<&'a ModuleCalls> {
        self.calls(position, Framework::Poptorch)
    }
}

/// Returns a call of `BeginBlock` that puts `module`, a Python expression, and the operations after
/// it on `ipu`. If `module` is `None`, the call has the placeholder `...`, and a comment that tells
/// the user to replace it with `what`, a description such as `the module of layer 3`.
fn block(module: Option<String>, what: &str, ipu: &str) -> String {
    match module {
        Some(module) => format!("poptorch.BeginBlock({module}, ipu_id={ipu})"),
        None => format!("poptorch.BeginBlock(..., ipu_id={ipu})  # replace ... with {what}"),
    }
}

impl Draft<'_> {
    /// Adds a `BeginBlock` for each stage, in execution order, at the module that begins the stage.
    /// Also warns of stages that begin with operations outside modules.
    pub fn blocks(&mut self) {
        let source = self.source;
        let known = |position| {
            let begin = source.torch_calls(position)?.begin.as_deref()?;
            Some(attribute(source.root, begin))
        };
        let of_out = "the first module of Out, such as the head";
        let line = |position, name: &str, ipu: &str| {
            let what = match source.out() {
                Some(out) if out == position => of_out.to_string(),
                _ => format!("the module of layer {}", printable(name)),
            };
            block(known(position), &what, ipu)
        };
        // Operations before the first `BeginBlock` run on IPU 0. So In (the operations before the
        // first layer) needs no call if it is a stage of its own.
        match (known(0), source.layers().next()) {
            (Some(before), _) => self.text.add(block(Some(before), "", "0")),
            (None, Some((first, name))) => self.text.begin(first, false, line(first, name, "0")),
            (None, None) => {}
        }
        for (position, name) in source.layers_and_out() {
            self.text.begin(position, true, line(position, name, STAGE));
            self.warn_functional(position);
        }
        let after = block(known(source.place_of_out()), of_out, "0");
        self.text
            .by_stages(|stages| source.out_returns(stages).then(|| after.clone()));
    }

    /// Warns of splits in which a stage begins at `position` (In, a layer or Out) with operations
    /// that belong to no module. A `BeginBlock` call begins a stage at a module, so these
    /// operations would stay on the IPU of the stage before.
    pub fn warn_functional(&mut self, position: u32) {
        let root = self.source.root;
        let Some(calls) = self.source.torch_calls(position) else {
            return;
        };
        let inside = calls
            .inside
            .as_ref()
            .map_or(root.to_string(), |path| attribute(root, path));
        let instead =
            format!("call poptorch.Block.start(ipu_id={STAGE}) in the forward of {inside}");
        let text = match (&calls.begin, calls.operations_before) {
            (Some(_), 0) => return,
            (Some(nearest), count) => format!(
                "WARNING: {} before {} in its stage belong to no module that begins there, so they \
                 stay on the IPU before. To begin the stage with them, {instead}.",
                counted(count, "operation"),
                attribute(root, nearest)
            ),
            (None, _) => format!(
                "WARNING: no module begins where IPU {STAGE} does, or it runs several times. \
                 Instead of the block, {instead}."
            ),
        };
        self.notes.begin(position, true, text);
    }

    /// Adds Python code that makes the outputs of layers checkpoints, from which recomputation
    /// starts, and notes on layers whose module is unknown. Adds nothing if the pipeline keeps no
    /// checkpoints.
    pub fn checkpoints(&mut self) {
        let (source, checkpoints) = (self.source, self.source.checkpoints());
        if checkpoints == Recompute::None {
            return;
        }
        let mut modules = Lines::new(source, None);
        for (position, layer) in source.layers() {
            let (lines, line) = match source
                .torch_calls(position)
                .and_then(|calls| calls.output.as_deref())
            {
                Some(path) => (
                    &mut modules,
                    format!("    {},", attribute(source.root, path)),
                ),
                None => (
                    &mut self.notes,
                    format!(
                        "Pass the output of layer {} through poptorch.recomputationCheckpoint(...), \
                         so that recomputation starts again there.",
                        printable(layer)
                    ),
                ),
            };
            match checkpoints {
                Recompute::Stage => lines.begin(position + 1, true, line),
                _ => lines.add(line),
            }
        }
        if !modules.all.is_empty() {
            self.text.add("\nfor layer in [");
            self.text.all.append(&mut modules.all);
            self.text.add(
                "]:\n    layer.register_forward_hook(\n        \
                 lambda layer, inputs, output: poptorch.recomputationCheckpoint(output)\n    )",
            );
        }
    }
}

/// Checks the name of the model in the user's code (`--module-root`), and removes spaces at both
/// ends.
///
/// # Errors
/// If the name is empty, or has control characters.
pub fn module_name(name: &str) -> Result<String, BadValue> {
    if name.contains(is_obeyed) {
        return Err(BadValue(
            "a module's name has control characters; write it in one line, without them".to_owned(),
        ));
    }
    if name.trim().is_empty() {
        return Err(BadValue(
            "the name is empty; name the model, such as model".to_owned(),
        ));
    }
    Ok(name.trim().into())
}

/// Returns a Python expression for a module, such as `model.encoder.layer[3]` for the `path`
/// `encoder.layer.3` below the model `root`. Dots or slashes separate the parts of `path`. If a
/// part is neither a Python name nor a list index, the expression calls `get_submodule`.
fn attribute(root: &str, path: &str) -> String {
    let mut module = root.to_string();
    for part in path.split(['.', '/']) {
        match part {
            // A part of a module's path such as `03` cannot become an index like `[3]`, since
            // `[03]` is not valid Python and `[3]` would be another module. The expression then
            // calls `get_submodule`.
            _ if is_digits(part) && (part == "0" || !part.starts_with('0')) => {
                module += &format!("[{part}]")
            }
            _ if is_name(part) => module += &format!(".{part}"),
            _ => return format!("{root}.get_submodule({})", quoted(&path.replace('/', "."))),
        }
    }
    module
}

/// The keywords of Python, which cannot be attributes in an expression although modules may have
/// these names.
const KEYWORDS: &str = "False None True and as assert async await break class continue def del \
                        elif else except finally for from global if import in is lambda nonlocal \
                        not or pass raise return try while with yield";

/// Returns whether `part` is a Python name in ASCII. Python replaces some other letters by similar
/// ones, so names with letters outside ASCII are refused.
fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| !c.is_ascii_digit())
        && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && KEYWORDS.split(' ').all(|keyword| keyword != part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_with_something_in_it() {
        for wrong in ["", " ", "a\nb", "a\u{1b}"] {
            assert!(module_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(module_name(" model.cls").unwrap(), "model.cls");
    }

    #[test]
    fn paths_are_attributes_with_numbers_as_indices() {
        let cases = [
            ("bert.encoder.layer.3", "model.bert.encoder.layer[3]"),
            ("0.conv", "model[0].conv"),
            ("a.in", "model.get_submodule(\"a.in\")"),
            ("a.b-c", "model.get_submodule(\"a.b-c\")"),
            ("a.03", "model.get_submodule(\"a.03\")"),
        ];
        for (path, expected) in cases {
            assert_eq!(attribute("model", path), expected);
        }
    }
}
