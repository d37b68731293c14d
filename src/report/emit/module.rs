//! How the model's code names the modules of layers.

use crate::escape::{is_digits, is_obeyed, quoted};
use crate::message::BadValue;

/// Checks the name of the model in the user's code (`--module-root`), and returns it without spaces
/// around.
///
/// # Errors
/// If the name is empty, or has control characters.
pub fn module_name(name: &str) -> Result<String, BadValue> {
    if name.contains(is_obeyed) {
        return Err(BadValue::new(
            "a module's name has control characters; write it in one line, without them",
        ));
    }
    if name.trim().is_empty() {
        return Err(BadValue::new(
            "the name is empty; name the model, such as model",
        ));
    }
    Ok(name.trim().into())
}

/// Returns a Python expression for the module at `path`, with dots or slashes between its parts,
/// below the model `root`, such as `model.encoder.layer[3]` for `encoder.layer.3`. If a part is no
/// Python name, a call of `get_submodule`.
pub fn attribute(root: &str, path: &str) -> String {
    let mut module = root.to_string();
    for part in path.split(['.', '/']) {
        match part {
            _ if is_index(part) => module += &format!("[{part}]"),
            _ if is_name(part) => module += &format!(".{part}"),
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

/// Returns whether `part` is a number as Python writes it, without leading zeros.
fn is_index(part: &str) -> bool {
    is_digits(part) && (part == "0" || !part.starts_with('0'))
}

/// Returns whether `part` is a Python name. Only ASCII is allowed, since Python reads some other
/// letters as different ones.
fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| !c.is_ascii_digit())
        && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !KEYWORDS.contains(&part)
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
