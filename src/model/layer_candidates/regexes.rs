//! Patterns as regexes that a user can paste.

use super::evidence::Evidence;
use super::patterns::MAX_DIGITS;
use rustc_hash::FxHashSet;

/// More words than these before the same label are no kinds of layers.
const MAX_WORDS: usize = 8;

/// Regexes that may give the layers of `evidence`, the plainest first: where the
/// label is the end of longer words too, it must be anchored.
pub(super) fn of(evidence: &Evidence<'_>) -> Vec<String> {
    let pattern = &evidence.pattern;
    let label = literal(pattern.label);
    let second = pattern.between.map(literal);
    // The name of a layer is made of its groups, so two may look the same.
    let number = match second {
        None => r"(\d+)".to_string(),
        Some(between) if has_equal_names(evidence) => format!(r"(\d+{between}\d+)"),
        Some(between) => format!(r"(\d+){between}(\d+)"),
    };
    if pattern.is_part {
        return vec![format!(r"(?:^|{label})(\d{{1,{MAX_DIGITS}}}){label}")];
    }
    let before = match pattern.after_word {
        None => String::new(),
        Some(after) => match words(evidence) {
            Some(words) => format!("({words}){}", literal(after)),
            None => return Vec::new(),
        },
    };
    let plain = format!("{before}{label}{number}");
    let anchored = format!("(?:^|[^A-Za-z]){plain}");
    vec![plain, anchored]
}

/// The words before the label, in the order of the program.
fn words(evidence: &Evidence<'_>) -> Option<String> {
    let mut seen = FxHashSet::default();
    let words = evidence.fillings.iter().map(|filling| filling.word);
    let words = words.filter(|&word| seen.insert(word)).map(literal);
    let words: Vec<String> = words.collect();
    (words.len() <= MAX_WORDS).then(|| words.join("|"))
}

fn has_equal_names(evidence: &Evidence<'_>) -> bool {
    let mut names = FxHashSet::default();
    let mut fillings = evidence.fillings.iter();
    !fillings.all(|filling| names.insert(format!("{}{}", filling.first, filling.second)))
}

/// Text as a regex. In the inputs of operations every `.` is read as `/`
/// (docs/model.md, "Layers").
fn literal(text: &str) -> String {
    // A space or a minus need no escape outside of brackets.
    regex::escape(text)
        .replace(r"\.", "[./]")
        .replace(r"\-", "-")
}
