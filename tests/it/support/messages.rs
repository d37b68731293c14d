//! docs/messages.md has every error and warning. Every message of the tool in any test is compared
//! with it.

use std::sync::LazyLock;

use super::root;
use regex::Regex;

/// The cure of a message that ends with another one.
const WRAPPED: &str = "as the message at its end says";

/// Returns the messages of the page as they are printed, with `...` for parts that differ. Items of
/// lists and rows of tables without a cure have that of the line `Cure: ...` above, in their section.
fn listed() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/messages.md")).expect("the page");
    let (mut head, mut shared_cure) = (Vec::new(), None);
    let mut listed = Vec::new();
    for line in page.lines() {
        if let Some(item) = line.strip_prefix("- ") {
            let cure = shared_cure.filter(|_| !item.contains("; "));
            listed.push(message(item, cure));
        } else if line.starts_with("| message |") {
            head = cells(line);
        } else if line.starts_with("| ") {
            let cells = cells(line);
            assert!(cells.len() == head.len() && !cells.contains(&""), "{line}");
            let own_cure = head.iter().position(|head| *head == "cure");
            let cure = own_cure.map(|at| cells[at]).or(shared_cure);
            listed.push(message(cells[0], Some(cure.expect("a cure"))));
        } else if line.starts_with("## ") {
            shared_cure = None;
        }
        shared_cure = line.strip_prefix("Cure: ").or(shared_cure);
    }
    listed
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns a message with its cure. Without one, the text has its own, or ends with another message.
fn message(text: &str, cure: Option<&str>) -> String {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    assert!(letters >= 8, "too little to tell a message by: {text}");
    match cure.filter(|cure| *cure != WRAPPED) {
        Some(cure) => format!("{text}; {cure}"),
        None if text.contains("; ") || text.ends_with(": ...") => text.to_owned(),
        None => panic!("no cure: {text}"),
    }
}

/// Matches the beginning of a message: the file, or the option and its value. Only an absolute path
/// may have colons, and only a path with a point or a slash may have blanks.
const PLACE: &str =
    r"(?:(?:--[a-z-]+ )?(?:/[^;]*|[^;:]*[./][^;:]*|[^;: ]+): |--[a-z-]+(?: [a-z]+)?: )?";

/// The messages as regexes, and the messages that end with another one, which the regex captures.
struct KnownMessages {
    whole: Vec<Regex>,
    wrapping: Vec<Regex>,
}

static KNOWN: LazyLock<KnownMessages> = LazyLock::new(|| {
    let listed = listed().into_iter();
    let (wrapping, whole): (Vec<_>, Vec<_>) = listed.partition(|text| text.ends_with(": ..."));
    let escaped = |text: &str| regex::escape(text).replace(r"\.\.\.", ".*");
    let regex = |text: &str, end: &str| {
        let text = format!("^{PLACE}{}{end}$", escaped(text));
        Regex::new(&text).expect("a regex")
    };
    KnownMessages {
        // Lines such as names of the model may follow.
        whole: whole.iter().map(|text| regex(text, ":?")).collect(),
        wrapping: wrapping
            .iter()
            .map(|text| regex(text.trim_end_matches("..."), "(?<end>.*)"))
            .collect(),
    }
});

/// Is this message, without `error:` or `warning:`, on the page?
fn is_listed(text: &str) -> bool {
    let wrapping = KNOWN.wrapping.iter();
    let mut ends = wrapping.filter_map(|regex| regex.captures(text));
    KNOWN.whole.iter().any(|regex| regex.is_match(text)) || ends.any(|end| is_listed(&end["end"]))
}

/// Beginnings of clap's messages.
const OF_LIBRARY: [&str; 6] = [
    "unexpected argument '",
    "the argument '",
    "the following required arguments were not provided:",
    "a value is required for '",
    "equal sign is needed when assigning values to '",
    "invalid value '",
];

/// Checks that the page has all errors and warnings on standard error, except clap's own messages.
/// Clap's messages about values end with texts of this program.
pub fn check(standard_error: &str) {
    for line in standard_error.lines() {
        let heads = ["error: ", "warning: "];
        let Some(text) = heads.iter().find_map(|head| line.strip_prefix(head)) else {
            continue;
        };
        let is_of_library = OF_LIBRARY.iter().any(|start| text.starts_with(start));
        let value = match text.starts_with("invalid value '") {
            true => text.split_once(">': ").map(|(_, end)| end),
            false => Some(text).filter(|_| !is_of_library),
        };
        let is_known = value.is_none_or(is_listed);
        assert!(is_known, "docs/messages.md does not have\n{line}");
    }
}
