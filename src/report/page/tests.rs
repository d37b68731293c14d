//! The page as text; in a browser it is tested by `tests/page.rs`.

use super::*;
use crate::report::document::testing::report;
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

#[test]
fn the_policy_names_the_style_and_the_script() {
    for (text, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
        let found = BASE64_STANDARD.encode(Sha256::digest(text));
        assert_eq!(hash, found, "the constant in src/report/page/mod.rs is old");
    }
}

#[test]
fn every_section_stands_in_the_page() {
    let page = text(&report());
    for id in [
        "split",
        "stages",
        "cuts",
        "sweep",
        "liveness",
        "memory",
        "layers",
        "execution",
        "summary",
        "made",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("The model does not fit on 2 IPUs"));
}

#[test]
fn a_report_with_little_in_it_is_a_page_too() {
    let mut report = report();
    report.split = None;
    report.cuts.clear();
    report.liveness = None;
    report.sweep = None;
    report.execution = None;
    report.memory = Default::default();
    report.layers.clear();
    let page = text(&report);
    assert!(page.contains("<section id=\"summary\">") && !page.contains("<section id=\"split\">"));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script></title><img src=x onerror=alert(1)>\"' onload=\"x\u{1b}&amp;";
    let json = serde_json::to_string(&report()).unwrap();
    // Every text of the report, but for the name of its format.
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    replace(&mut value, hostile);
    value["format"] = "popliner-report".into();
    value["execution"]["source"] = "executed-steps".into();
    let report: Report = serde_json::from_value(value).unwrap();
    let page = text(&report);
    assert!(!page.contains("<img"), "an element came in");
    assert!(!page.contains("\" onload"), "an attribute came in");
    assert!(!page.contains('\u{1b}'));
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(page.matches("</title>").count(), 1);
    assert!(page.contains("&lt;img src=x"));
}

fn replace(value: &mut serde_json::Value, hostile: &str) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = hostile.into(),
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, hostile)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| replace(value, hostile)),
        _ => {}
    }
}
