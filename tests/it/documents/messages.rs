//! docs/messages.md against the sources: the page has each error and warning that the code can
//! make, and the code can make each one on the page.
//!
//! To add a message, make it in one of the ways below, with its text as a literal (what happened
//! and where, `; `, the way out), and give it a row on the page: the text with `...` for parts that
//! differ, its cause unless the text says it, and its way out as printed. A line `Cure: ...` above a
//! table has the way out of all its rows. A shared way out is a constant in `src/message.rs`, which
//! the text names.
//!
//! | way | use |
//! |---|---|
//! | `#[error("...")]` | errors that code decides on |
//! | `FileError::new("...")` | a file cannot be read or used |
//! | `anyhow!`, `bail!`, `ensure!` | errors of a file, in the modules around |
//! | `usage("...")` | the command line asks for something impossible |
//! | `BadValue::new("...")` | the value of an option cannot be understood |
//! | `Warning::new("...")` | something is unusual |
//!
//! The code must have no other way (`no_other_way_leads_to_standard_error`). A bare
//! `std::io::Error` that an `anyhow::Result` passes on is only found by tests that run the tool:
//! everything that the tool prints there is also compared with the page.

mod collector;

use std::collections::BTreeSet;

use crate::cli::goldens::difference;
use crate::support::messages::{WRAPPED, listed, page, rows};
use collector::{FOUND, HOLDERS, REASONS};

/// Verbs that a way out can begin with.
const VERBS: &str = "change check choose compile copy free give keep leave let look name predict \
                     put read record remove report run save see set try use write";

#[test]
fn the_page_has_all_messages_and_no_others() {
    let listed = listed();
    let on_page: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(on_page.len(), listed.len(), "a row is a duplicate");
    let in_code: BTreeSet<&String> = FOUND.messages.keys().collect();
    let missing: Vec<_> = in_code.difference(&on_page).collect();
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
    let gone: Vec<_> = on_page.difference(&in_code).collect();
    assert!(gone.is_empty(), "only on the page: {gone:#?}");
}

/// An id is the module and the variant or the function that makes the message, so that the page
/// leads to the code.
#[test]
fn each_message_has_its_id_as_an_anchor() {
    let text = std::fs::read_to_string(page()).expect("the page");
    let mut anchored = text.clone();
    for row in rows(&text) {
        let Some(id) = FOUND.messages.get(&row.message) else {
            continue;
        };
        let old_anchor = format!("<a id=\"{}\"></a>", row.anchor);
        let line = row.line.replacen(&old_anchor, "", 1);
        let line = line.replacen("| ", &format!("| <a id=\"{id}\"></a>"), 1);
        anchored = anchored.replacen(row.line, &line, 1);
    }
    assert_eq!(difference(&page(), &anchored), None);
}

#[test]
fn no_other_way_leads_to_standard_error() {
    assert!(FOUND.refused.is_empty(), "{}", FOUND.refused.join("\n"));
    // A transparent error passes on a text that has a message of its own.
    let unknown: Vec<&String> = FOUND.transparent.difference(&FOUND.owners).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for name in REASONS.iter().chain(&HOLDERS) {
        assert!(FOUND.owners.contains(*name), "there is no {name}");
    }
}

#[test]
fn each_message_says_what_happened_and_ends_with_a_way_out() {
    for text in listed() {
        let Some((what, cure)) = text.rsplit_once("; ") else {
            let is_wrapping = text.ends_with(": ...");
            assert!(is_wrapping, "no way out, and not {WRAPPED}: {text}");
            continue;
        };
        let letters = what.chars().filter(|c| c.is_alphabetic()).count();
        assert!(letters >= 8, "too little to tell it by: {text}");
        let verb = cure.split([' ', ',']).next().unwrap_or_default();
        assert!(
            VERBS.split(' ').any(|known| known == verb),
            "{verb} is no way out: {text}"
        );
    }
}
