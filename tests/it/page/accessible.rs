//! The rules of axe-core, which checks a page for people with a screen reader, a keyboard or weak
//! eyes.

use super::SPLIT;
use super::opened::page;
use crate::support::skip;
use serde_json::{Value, json};

/// Variable with the path of the checker as one script (`axe.min.js` of the npm package axe-core),
/// which `.ci/run` fetches.
const SCRIPT: &str = "AXE_CORE";

/// Returns every rule that the page breaks, with the first elements that break it.
const BROKEN: &str = "axe.run().then((found) => found.violations.map((rule) =>
    [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html)]))";

#[test]
fn no_rule_is_broken() {
    let Some(checker) = std::env::var_os(SCRIPT) else {
        return skip(&format!("{SCRIPT} names no axe.min.js"));
    };
    let checker = std::fs::read_to_string(checker).expect("axe.min.js");
    let all = format!("{SPLIT} --sweep --explain");
    let refused = "--splits=2 --num-ipus=2 --pin=3=0";
    // Colours and places differ by scheme and width. The first page has all kinds of elements.
    let looks = [("light", 390), ("dark", 1440)];
    for (fixture, options, looks) in [
        ("poptorch-bert-training", &*all, &looks[..]),
        ("popart-bert-inference", refused, &looks[..1]),
        ("impossible", "--solve --num-ipus=3", &looks[1..]),
        ("tensorflow-cnn", "", &looks[..1]),
        ("training-pipelined", "--fit", &[("light", 1440)]),
    ] {
        let mut page = or_skip!(page(fixture, options, ""));
        for &(scheme, width) in looks {
            page.media("", scheme);
            page.browser.open(&page.path.clone(), width, "");
            page.run(&format!("{checker}; null"));
            page.in_each_view(|page, view| {
                let broken: Value = page.value(BROKEN);
                assert_eq!(broken, json!([]), "{fixture} at {width}, {scheme}: {view}");
            });
        }
    }
}
