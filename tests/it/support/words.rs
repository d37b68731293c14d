//! Words of command lines, and lists of cases.

/// Options: in one line, with blanks between them, or one by one.
pub trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl<S: AsRef<str>> Words for [S] {
    fn words(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<S: AsRef<str>, const N: usize> Words for [S; N] {
    fn words(&self) -> Vec<&str> {
        self.as_slice().words()
    }
}

impl<S: AsRef<str>> Words for Vec<S> {
    fn words(&self) -> Vec<&str> {
        self.as_slice().words()
    }
}

/// Reads a list of cases, such as SQL and the parts of the message about it: an entry is one or more
/// lines at the margin, with its parts behind ` => ` or in the indented lines below, which may have
/// several parts with ` ... ` between them.
pub fn cases(list: &str) -> Vec<(String, Vec<&str>)> {
    let lines = || list.lines().filter(|line| !line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start().len();
    let margin = lines().map(indent).min().unwrap_or(0);
    let mut cases: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines() {
        let (is_head, text) = (indent(line) == margin, line.trim());
        let (text, parts) = match text.split_once(" => ") {
            Some((head, parts)) if is_head => (head, Some(parts)),
            _ => (text, Some(text).filter(|_| !is_head)),
        };
        match cases.last_mut() {
            Some(_) if !is_head => {}
            Some((head, below)) if below.is_empty() => *head = format!("{head} {text}"),
            _ => cases.push((text.to_owned(), Vec::new())),
        }
        let parts = parts.into_iter().flat_map(|parts| parts.split(" ... "));
        cases.last_mut().expect("a head").1.extend(parts);
    }
    cases
}
