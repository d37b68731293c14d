//! docs/messages.md lists each message once, with a way out. `tests/it/support/messages.rs` compares
//! all that the tool prints in any test with that page.

use crate::support::messages::{WRAPPED, listed};
use std::collections::BTreeSet;

/// Verbs that a way out can begin with.
const VERBS: &str = "change check choose compile copy free give keep leave let look name predict \
                     put read record remove report run save see set try use write";

#[test]
fn each_message_says_what_happened_and_ends_with_a_way_out() {
    let listed = listed();
    let different: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(different.len(), listed.len(), "a row is a duplicate");
    for text in &listed {
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
