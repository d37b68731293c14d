//! Collects the texts of all errors and warnings from the sources of the library. They are
//! formatted, so that regexes find items and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use crate::support::{files, root};
use regex::Regex;

/// Types whose text is a part of other messages, after a colon.
pub const REASONS: [&str; 2] = ["BlobError", "Damage"];
/// Types that hold the text of `usage`, `BadValue::new` and `FileError::new`.
pub const HOLDERS: [&str; 3] = ["BadValue", "FileError", "UsageError"];

/// A literal. Its text is a group.
const TEXT: &str = r#""((?:[^"\\]|\\(?s:.))*)""#;
/// The text of an error, the keyword of a struct, the name of the struct or variant, and the type
/// in the variant.
const ERROR: &str = r"(?x)
    \#\[error\(\s* (?: transparent | TEXT(?s:.*?) ) \)\]\s+
    (?:pub(?:\(\w+\))?\ )? (struct\ )? (\w+) (?: \((?:\#\[from\]\ )?(?:\w+::)* (\w+) )?";
/// A function or macro that makes a message, whether its text is formatted, and the text.
const CALL: &str = r#"(?x)
    \b( usage\( | FileError::new\( | Warning::new\( | BadValue::new\( | anyhow!\( | bail!\( |
        ensure!\([^"]*, )\s*
    (format!\(\s*)? (?:TEXT)?"#;

/// Other code that leads to standard error, unless `ok` follows.
const FORBIDDEN: [&str; 4] = [
    r"\b(?:eprintln|eprint|dbg)!",
    r"(?m)^impl\b.*\bError for\b",
    r"type Err = (?<ok>BadValue)?",
    // The context of an error is a file, or an option and its value.
    r#"(?x) \.(?:with_)?context\( (?:\|\|\ )?
       (?<ok> context | option | [\w.]*displayed\( |
              (?:format!\()? "(?:\{option\}|--[a-z-]+)(?:\ \{\})?" )?"#,
];
/// Code that prints a message, or makes the type that holds its text.
const SPEECH: &str = r"\bError::msg|\bio::stderr|\b(?:Warning|BadValue|FileError|UsageError)\(";
/// The files that may have it.
const SPEAKERS: [&str; 4] = [
    "src/message.rs",
    "src/app/messages.rs",
    "src/app/mod.rs",
    "src/progress/bars.rs",
];

/// Compiles a pattern, once for all files.
fn regex(pattern: &'static str) -> Regex {
    static COMPILED: Mutex<BTreeMap<&str, Regex>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().expect("no panic");
    let new = || Regex::new(&pattern.replace("TEXT", TEXT)).expect("a regex");
    compiled.entry(pattern).or_insert_with(new).clone()
}

/// The messages of all files of the library.
pub static FOUND: LazyLock<FoundMessages> = LazyLock::new(FoundMessages::read);

/// The messages in the sources.
#[derive(Default)]
pub struct FoundMessages {
    /// The messages in the form of the page, with their ids.
    pub messages: BTreeMap<String, String>,
    /// Types with messages of their own.
    pub owners: BTreeSet<String>,
    /// Types whose text is the text of another type.
    pub transparent: BTreeSet<String>,
    /// Forbidden code: file and code.
    pub refused: Vec<String>,
}

/// A file without its comments and tests.
struct Source {
    /// The path relative to the root of the repository.
    path: String,
    code: String,
    /// Ways out in the constants of this file, or else in the shared ones.
    constants: BTreeMap<String, String>,
}

impl FoundMessages {
    /// Reads all files of the library that are not for tests.
    fn read() -> Self {
        let mut found = Self::default();
        let shared = Source::read(Path::new("src/message.rs"), &BTreeMap::new()).constants;
        for path in files(&root().join("src")) {
            let path = path.strip_prefix(root()).expect("a source");
            let name = path.to_string_lossy();
            if name.ends_with(".rs") && !name.contains("/test") {
                let source = Source::read(path, &shared);
                found.take_errors(&source);
                found.take_calls(&source);
                found.take_forbidden(&source);
            }
        }
        found
    }

    /// Takes the texts of `thiserror`.
    fn take_errors(&mut self, source: &Source) {
        let errors = regex(ERROR);
        let count = source.code.matches("#[error(").count();
        if errors.captures_iter(&source.code).count() != count {
            self.refuse(source, "an error without a literal");
        }
        for error in errors.captures_iter(&source.code) {
            let name = &error[3];
            let before = &source.code[..error.get_match().start()];
            let owner = match error.get(2) {
                Some(_) => name,
                None => last(r"(?:enum|struct) (\w+)", before),
            };
            let Some(text) = error.get(1) else {
                let passed_on = error.get(4).map(|of| of.as_str().to_owned());
                self.transparent.extend(passed_on);
                continue;
            };
            self.owners.insert(owner.to_owned());
            let is_part = REASONS.contains(&owner) || HOLDERS.contains(&owner);
            if !is_part {
                self.take(source, name, &source.filled(text.as_str()));
            }
        }
    }

    /// Takes the texts of calls.
    fn take_calls(&mut self, source: &Source) {
        for call in regex(CALL).captures_iter(&source.code) {
            let before = &source.code[..call.get_match().start()];
            if before.ends_with("fn ") {
                continue;
            }
            let Some(text) = call.get(3) else {
                self.refuse(source, &format!("{} without a literal", &call[1]));
                continue;
            };
            let text = match call.get(2).is_some() || call[1].contains('!') {
                true => source.filled(text.as_str()),
                false => unescaped(text.as_str()),
            };
            let maker = match last(r"fn (\w+)", before) {
                "new" | "from_str" | "from" | "parse" => {
                    last(r"(?m)^impl(?:<.*?>)? (?:.* for )?(?:\w+::)*(\w+)", before)
                }
                maker => maker,
            };
            self.take(source, maker, &text);
        }
    }

    /// Records a message. Only its first line, if more can follow.
    fn take(&mut self, source: &Source, maker: &str, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        let line = line.trim_end_matches(":...").trim_end_matches(':');
        if !self.messages.contains_key(line) {
            let id = self.new_id(source, maker);
            self.messages.insert(line.to_owned(), id);
        }
    }

    /// Makes an id of the module and the maker, with a number from the second message on.
    fn new_id(&self, source: &Source, maker: &str) -> String {
        let room = source.path.split(['/', '.']).nth(1).expect("a module");
        let words = regex("[A-Z]").replace_all(maker, "-$0");
        let words = words.trim_start_matches('-').to_lowercase();
        let id = format!("{room}-{words}").replace('_', "-");
        let numbered = (2..).map(|number| format!("{id}-{number}"));
        let mut ids = std::iter::once(id.clone()).chain(numbered);
        let is_taken = |id: &String| self.messages.values().any(|taken| taken == id);
        ids.find(|id| !is_taken(id)).expect("one that is free")
    }

    /// Takes forbidden code.
    fn take_forbidden(&mut self, source: &Source) {
        let may_speak = SPEAKERS.contains(&&*source.path);
        let speech = (!may_speak).then_some(SPEECH);
        for pattern in FORBIDDEN.into_iter().chain(speech) {
            for code in regex(pattern).captures_iter(&source.code) {
                if code.name("ok").is_none() {
                    self.refuse(source, &code[0]);
                }
            }
        }
    }

    fn refuse(&mut self, source: &Source, code: &str) {
        self.refused.push(format!("{}: {code}", source.path));
    }
}

impl Source {
    fn read(path: &Path, shared: &BTreeMap<String, String>) -> Self {
        let text = std::fs::read_to_string(root().join(path)).expect("a source");
        let tests = regex(r"(?m)^#\[cfg\(test\)\]\n.*\{\n(?:.*\n)*?\}\n");
        let code = regex(r"(?m)^ *//.*\n").replace_all(&text, "");
        let code = tests.replace_all(&code, "").into_owned();
        let mut constants = shared.clone();
        for constant in regex(r"const (\w+): &str =\s+TEXT;").captures_iter(&code) {
            constants.insert(constant[1].to_owned(), unescaped(&constant[2]));
        }
        Self {
            path: path.display().to_string(),
            code,
            constants,
        }
    }

    /// Returns the text of a literal with constants in their places, and `...` in other places.
    fn filled(&self, literal: &str) -> String {
        let place = regex(r"\{\{|\}\}|\{([^}]*)\}");
        let text = unescaped(literal);
        let text = place.replace_all(&text, |place: &regex::Captures<'_>| match place.get(1) {
            Some(name) => self
                .constants
                .get(name.as_str())
                .map_or("...", |text| text)
                .to_owned(),
            None => place[0][1..].to_owned(),
        });
        regex(r"\.{4,}").replace_all(&text, "...").into_owned()
    }
}

/// Returns the text of a literal as the compiler reads it.
fn unescaped(literal: &str) -> String {
    let escape = regex(r"\\(?:\n\s*|(.))");
    let letter = |escape: &regex::Captures<'_>| match escape.get(1).map(|letter| letter.as_str()) {
        Some("n") => "\n".to_owned(),
        letter => letter.unwrap_or_default().to_owned(),
    };
    escape.replace_all(literal, letter).into_owned()
}

/// Returns the group of the last match.
fn last<'a>(pattern: &'static str, code: &'a str) -> &'a str {
    let found = regex(pattern).captures_iter(code).last();
    found.map_or("", |found| found.get(1).expect("a group").as_str())
}
