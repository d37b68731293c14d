//! The rules of axe-core, which checks a page for people with a screen reader, a keyboard or weak
//! eyes.

use super::browser::Browser;
use super::{export, show, views};
use crate::support::{profile, skip};
use serde_json::{Value, json};
use std::path::Path;

/// Variable with the path of the checker as one script (`axe.min.js` of the npm package axe-core),
/// which `.ci/run` fetches.
const SCRIPT: &str = "AXE_CORE";

/// Returns every rule that the page breaks, with the first elements that break it.
const BROKEN: &str = "axe.run().then((found) => found.violations.map((rule) =>
    [rule.impact, rule.id, rule.nodes.slice(0, 3).map((node) => node.html)]))";

fn checker() -> Option<String> {
    let Some(path) = std::env::var_os(SCRIPT) else {
        skip(&format!("{SCRIPT} names no axe.min.js"));
        return None;
    };
    Some(std::fs::read_to_string(path).expect("axe.min.js"))
}

fn check(browser: &mut Browser, checker: &str, page: &Path) {
    for (scheme, width) in [("light", 390), ("light", 1440), ("dark", 1440)] {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.send("Emulation.setEmulatedMedia", json!({"features": features}));
        browser.open(page, width);
        browser.value(&format!("{checker}; null"));
        for view in views(browser) {
            show(browser, &view);
            let broken = browser.value(BROKEN);
            let place = format!("{} at {width}, {scheme}: {view}", page.display());
            assert_eq!(broken, Value::Array(Vec::new()), "{place}");
        }
    }
}

#[test]
fn no_rule_is_broken() {
    let mut browser = or_skip!(Browser::find());
    let Some(checker) = checker() else { return };
    let cases: [(&str, &[&str]); 5] = [
        (
            "poptorch-bert-training",
            &["--solve", "--num-ipus=4", "--sweep", "--explain"],
        ),
        (
            "popart-bert-inference",
            &["--check-splits=1", "--num-ipus=2", "--pin=3=0"],
        ),
        ("impossible", &["--solve", "--num-ipus=3"]),
        ("tensorflow-cnn", &[]),
        ("training-pipelined", &["--fit"]),
    ];
    for (fixture, options) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, _) = export(&profile(fixture), options, folder.path());
        check(&mut browser, &checker, &page);
    }
}
