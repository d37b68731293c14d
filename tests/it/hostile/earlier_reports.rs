//! Damaged and hostile reports to compare with, and such files beside the profile.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cases::{Case, new_folder};
use crate::support::models::pairs;
use crate::support::{Run, read_json};

fn compare(earlier: &Path) -> Run {
    Case::new().run(&[format!("--compare={}", earlier.display())])
}

/// Returns a folder with an earlier report, the path of the report, and its text.
fn good() -> (TempDir, PathBuf, String) {
    let folder = new_folder();
    let path = folder.path().join("earlier.json");
    let run = Case::new().run("--solve --export-json=-");
    let report = run.exits(0).report().to_string();
    fs::write(&path, &report).unwrap();
    compare(&path).exits(0);
    (folder, path, report)
}

/// `src/report/compare/tests.rs` has other kinds and versions, and reports that are not complete.
#[test]
fn comparisons_with_what_is_no_report() {
    let (_folder, path, good) = good();
    let deep = "[".repeat(100_000);
    let inside = good.replacen('{', &format!("{{\"x\": {deep},"), 1);
    let long = format!("{{\"format\": [{}0]}}", "0,".repeat(8_000_000));
    let cases = [
        ("\u{0}\u{1}\u{1b}[2J".into(), "not JSON"),
        (deep, "not "),
        (inside, "not JSON"),
        (long, "its format is [0,0"),
        ("{\"format\": \"\\u001b[2J\"}".into(), "its format is"),
        (" ".repeat((1 << 24) + 1), "more than 16777216 bytes"),
    ];
    for (text, part) in cases {
        fs::write(&path, text).unwrap();
        let run = compare(&path);
        run.refuses(3, &["earlier.json: ", part]);
        assert!(!run.err.contains('\u{1b}'), "{run:?}");
        assert!(run.err.matches("line 1 column").count() <= 1, "{run:?}");
    }
    for (place, part) in [
        ("/dev/zero", "more than"),
        ("/nowhere/x", "No such file"),
        ("/", "directory"),
    ] {
        compare(Path::new(place)).refuses(3, &[place, part]);
    }
}

/// A report with any numbers and names is read back, or gives an error.
#[test]
fn comparisons_with_reports_that_were_changed() {
    let (_folder, path, good) = good();
    let good = read_json(&good);
    let text = json!("\u{1b}]0;title\u{7}");
    let values = [json!(u64::MAX), json!(-1), json!(null), json!([]), text];
    let mut accepted = 0;
    let keys: Vec<&String> = good.as_object().unwrap().keys().collect();
    for (&key, value) in pairs(&keys, &values, 7) {
        let mut changed = good.clone();
        replace(&mut changed[key], value);
        fs::write(&path, changed.to_string()).unwrap();
        let run = compare(&path);
        assert!([0, 1, 3].contains(&run.code), "{key} {value}: {run:?}");
        let text = run.out + &run.err;
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{key} {value}: {text}");
        accepted += u32::from(run.code < 2);
    }
    assert!(accepted > 0, "some changes make another report");
}

/// Replaces every value of the same kind inside `within` by `value`.
fn replace(within: &mut Value, value: &Value) {
    match within {
        Value::Array(list) => list.iter_mut().for_each(|one| replace(one, value)),
        Value::Object(map) => map.values_mut().for_each(|one| replace(one, value)),
        one if one.is_number() == value.is_number() => *one = value.clone(),
        _ => {}
    }
}

#[test]
fn files_beside_the_profile() {
    let long = format!("{{\"x\": \"{}\"}}", "x".repeat(1 << 20));
    let cases = [
        ("", "EOF"),
        ("nonsense \u{1b}[2J", "expected"),
        (&"[".repeat(100_000), "recursion limit"),
        (&long, "more than 1048576 bytes"),
    ];
    for name in ["framework.json", "app.json"] {
        let case = Case::new();
        let file = case.folder.path().join(name);
        for (text, part) in cases {
            fs::write(&file, text).unwrap();
            let run = case.run("--solve --export-json=-");
            let warning = format!("{name} beside the profile is ignored: ");
            run.exits(0).warns(&[&warning, part]);
            let report = run.report();
            let warnings = report["warnings"].as_array().unwrap().iter();
            let mut texts = warnings.filter_map(Value::as_str);
            assert!(texts.any(|text| text.starts_with(&warning)), "{report}");
            assert!(!run.err.contains('\u{1b}'), "{}", run.err);
        }
        // Any JSON goes into the report, and cannot break out of it.
        let evil = r#"{"x": ["</script><script>alert(1)</script>", 1e308, -0.0, {"": null}]}"#;
        fs::write(&file, evil).unwrap();
        let run = case.run("--solve --export-html=-");
        assert!(!run.exits(0).out.contains("<script>alert"), "{name}");
        let provenance = &case.run("--export-json=-").report()["provenance"];
        let key = name.trim_end_matches(".json");
        assert_eq!(provenance[key], read_json(evil));
    }
}
