//! How the model's code names the modules of layers.

use crate::escape::{is_obeyed, printable, quoted};
use crate::message::BadValue;
use std::str::FromStr;
use thiserror::Error;

/// The end of an error: how to write the module of a layer in Python.
const MODULE_FORMS: &str = "write [{}] for a number, [\"{}\"] for a key, or a valid Python name";

/// The reason why a split cannot be written in a form of `--emit`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The template that the user gave (`--module`) does not make a valid Python name for a layer.
    #[error("--module: with layer {layer} it would be {module}, but {reason}; {MODULE_FORMS}")]
    NoModuleName {
        /// The name of the layer.
        layer: String,
        /// The template with the layer's name put in.
        module: String,
        /// The reason why `module` is not valid.
        reason: &'static str,
    },
    /// The user named the first module of Out (`--module-out`), but the memory model has no Out.
    #[error(
        "--module-out: this memory model has no Out, and the operations after the layers run with \
         the last layer; leave the option out"
    )]
    NoOut,
}

/// The names of modules in the model's code that the user gave; `None` for names that were not
/// given.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModuleNames<'a> {
    /// The name of the whole model (`--module-root`).
    pub root: Option<&'a str>,
    /// The template for the module of a layer (`--module`).
    pub layer: Option<&'a ModuleTemplate>,
    /// The first module of In, such as the embedding (`--module-in`).
    pub before: Option<&'a str>,
    /// The first module of Out, such as the head (`--module-out`).
    pub after: Option<&'a str>,
}

fn one_line(name: &str) -> Result<(), BadValue> {
    if name.contains(is_obeyed) {
        return Err(BadValue::new(
            "a module's name has control characters; write it in one line, without them",
        ));
    }
    Ok(())
}

/// A text with one `{}`, for which a layer's name is put in, such as `model.encoder.layer[{}]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleTemplate {
    before: String,
    after: String,
}

impl FromStr for ModuleTemplate {
    type Err = BadValue;

    fn from_str(template: &str) -> Result<Self, BadValue> {
        one_line(template)?;
        let parts: Vec<&str> = template.split("{}").collect();
        match parts[..] {
            [before, after] => Ok(Self {
                before: before.into(),
                after: after.into(),
            }),
            _ => Err(BadValue::new(
                "the template has no place for the layer; write {} once, such as \
                 'model.bert.encoder.layer[{}]'",
            )),
        }
    }
}

/// Checks the name of a module in the model's code, and returns it without spaces around.
///
/// # Errors
/// If the name is empty, or has control characters.
pub fn module_name(name: &str) -> Result<String, BadValue> {
    one_line(name)?;
    if name.trim().is_empty() {
        return Err(BadValue::new(
            "the name is empty; name a module, such as model.bert.embeddings",
        ));
    }
    Ok(name.trim().into())
}

impl ModuleTemplate {
    /// Returns the template with a layer's name put in, as plain text.
    pub fn text(&self, layer: &str) -> String {
        format!("{}{layer}{}", self.before, self.after)
    }

    /// Returns the template with a layer's name put in, as a Python expression. In brackets without
    /// quotes, the name must be a number, which is written without leading zeros.
    ///
    /// # Errors
    /// [`EmitError::NoModuleName`] when Python would read another name, or reject the expression.
    pub fn python(&self, layer: &str) -> Result<String, EmitError> {
        let unfit = |reason| EmitError::NoModuleName {
            layer: printable(layer),
            module: printable(&self.text(layer)),
            reason,
        };
        match self.before.chars().next_back() {
            Some('[') => match index(layer) {
                Some(index) => Ok(self.text(index)),
                None => Err(unfit("an index must be a number")),
            },
            Some(quote @ ('"' | '\'')) => {
                let ends = |c: char| c == quote || c == '\\' || is_obeyed(c);
                if layer.contains(ends) {
                    return Err(unfit("the layer's name would end the text in quotes"));
                }
                Ok(self.text(layer))
            }
            before => {
                let starts = before.is_none_or(|c| c == '.' || c.is_whitespace());
                if is_name(layer, starts) {
                    return Ok(self.text(layer));
                }
                Err(unfit("that is not a valid Python name"))
            }
        }
    }
}

/// Returns a Python expression for the module at `path`, with dots or slashes between its parts,
/// below the model `root`, such as `model.encoder.layer[3]` for `encoder.layer.3`. If a part is no
/// Python name, a call of `get_submodule`.
pub(super) fn attribute(root: &str, path: &str) -> String {
    let mut module = root.to_string();
    for part in path.split(['.', '/']) {
        match index(part) {
            Some(number) if number == part => module.push_str(&format!("[{number}]")),
            _ if is_name(part, true) && !KEYWORDS.contains(&part) => {
                module.push_str(&format!(".{part}"));
            }
            _ => return format!("{root}.get_submodule({})", quoted(&path.replace('/', "."))),
        }
    }
    module
}

/// The keywords of Python, which a module's name may equal but an expression may not contain.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns the digits of `layer` without leading zeros, as Python writes numbers; `None` if it has
/// other characters or none.
fn index(layer: &str) -> Option<&str> {
    let is_number = !layer.is_empty() && layer.bytes().all(|byte| byte.is_ascii_digit());
    let digits = layer.trim_start_matches('0');
    is_number.then_some(if digits.is_empty() { "0" } else { digits })
}

/// Returns whether `part` is at least one letter, digit or underscore, so that it can be in a
/// Python name; if `starts`, it must not begin with a digit, so that it can begin one. Only ASCII
/// is allowed, since Python reads some other letters as different ones.
fn is_name(part: &str, starts: bool) -> bool {
    let allowed = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let first = part.chars().next();
    let start = first.is_some_and(|c| !starts || !c.is_ascii_digit());
    start && part.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> ModuleTemplate {
        text.parse().unwrap()
    }

    #[test]
    fn a_template_has_one_place_for_the_layer() {
        for wrong in ["", "model", "model[{}][{}]", "model\n[{}]"] {
            assert!(wrong.parse::<ModuleTemplate>().is_err(), "{wrong}");
        }
        assert_eq!(template("a.{}.b").text("3"), "a.3.b");
    }

    #[test]
    fn a_name_is_one_line_with_something_in_it() {
        for wrong in ["", " ", "a\nb", "a\u{1b}"] {
            assert!(module_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(module_name(" model.cls").unwrap(), "model.cls");
    }

    #[test]
    fn python_gets_what_it_can_read() {
        let cases = [
            ("layer[{}]", "3", "layer[3]"),
            ("layer[{}]", "007", "layer[7]"),
            ("layer[{}]", "000", "layer[0]"),
            ("layer[{} - 1]", "12", "layer[12 - 1]"),
            ("model.layer_{}", "03", "model.layer_03"),
            ("model.{}", "conv1", "model.conv1"),
            ("layers['{}']", "a/b", "layers['a/b']"),
        ];
        for (text, layer, expected) in cases {
            assert_eq!(template(text).python(layer).as_deref(), Ok(expected));
        }
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

    #[test]
    fn python_is_given_nothing_else() {
        let cases = [
            ("layer[{}]", "x"),
            ("layer[{}]", ""),
            ("layer[{}]", "0) or evil("),
            ("model.{}", "3"),
            ("{}", "3"),
            ("model.layer{}", "3; evil()"),
            ("model.layer{}", "\n3"),
            ("model.layer{}", ""),
            ("layers['{}']", "it's"),
            ("layers[\"{}\"]", "a\\"),
        ];
        for (text, layer) in cases {
            let error = template(text).python(layer).unwrap_err();
            let is_named = matches!(error, EmitError::NoModuleName { .. });
            assert!(is_named && !error.to_string().contains('\n'), "{error}");
        }
    }
}
