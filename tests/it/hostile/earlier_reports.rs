//! Reports: on a full disk, in a closed pipe, of damaged and hostile files, and compared with files
//! that are no reports.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use ciborium::Value;

use crate::hostile::cases::{Case, limited, new_folder, snapshot};
use crate::support::models::pairs;
use crate::support::{Run, finish, finish_unread};

const EXPORTS: [&str; 4] = [
    "--export-json",
    "--export-csv",
    "--export-markdown",
    "--export-html",
];

fn arguments<'a>(case: &'a Case, more: &[&'a str]) -> Vec<&'a OsStr> {
    let files = [case.profile.as_os_str(), case.debug.as_os_str()];
    let more = more.iter().map(|option| OsStr::new(*option));
    files.into_iter().chain(more).collect()
}

#[test]
fn exports_on_a_full_disk() {
    let case = Case::new();
    let report = case.folder.path().join("report");
    for export in EXPORTS {
        let option = format!("{export}={}", report.display());
        for old in [None, Some("what stood there")] {
            let _ = fs::remove_file(&report);
            if let Some(old) = old {
                fs::write(&report, old).unwrap();
            }
            let before = snapshot(case.folder.path());
            // No file may have a byte, and the signal for larger files is ignored.
            let few = "trap '' XFSZ; ulimit -f 0";
            let run = finish(&mut limited(few, &arguments(&case, &[&option])));
            assert_eq!(run.code, 3, "{export}: {run:?}");
            let is_named = run.err.contains("report: ") && run.err.contains("File too large");
            assert!(is_named, "{export}: {run:?}");
            assert!(before == snapshot(case.folder.path()), "{export}");
        }
        for place in ["/dev/full", "/nowhere/report", "/"] {
            let option = format!("{export}={place}");
            let run = finish(&mut limited("", &arguments(&case, &[&option])));
            assert_eq!(run.code, 3, "{export}: {run:?}");
            assert!(run.err.contains(place), "{export}: {run:?}");
        }
    }
}

/// `-` is standard output, with all its rules.
#[test]
fn exports_to_standard_output() {
    let case = Case::new();
    for export in EXPORTS {
        let option = format!("{export}=-");
        let mut command = limited("", &arguments(&case, &["--solve", &option]));
        let run = finish_unread(&mut command);
        assert_eq!(run.code, 0, "{export}: {run:?}");
        assert!(!run.err.contains("error"), "{export}: {run:?}");
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = limited("", &arguments(&case, &[&option]));
        let run = finish(command.stdout(full));
        assert_eq!(run.code, 3, "{export}: {run:?}");
        assert!(run.err.contains("No space left"), "{export}: {run:?}");
    }
}

fn compare(earlier: &Path) -> Run {
    let case = Case::new();
    let option = format!("--compare={}", earlier.display());
    case.run(&[&option])
}

#[test]
fn comparisons_with_what_is_no_report() {
    let folder = new_folder();
    let path = folder.path().join("earlier.json");
    let option = format!("--export-json={}", path.display());
    let run = finish(&mut limited(
        "",
        &arguments(&Case::new(), &["--solve", &option]),
    ));
    assert_eq!(run.code, 0, "{run:?}");
    let good = fs::read_to_string(&path).unwrap();
    assert_eq!(compare(&path).code, 0);
    let numbers = format!("{{\"format\": [{}0]}}", "0,".repeat(8_000_000));
    let wrong = |from: &str, to: &str| {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        changed
    };
    let cases: Vec<(&str, String, &str)> = vec![
        ("empty", String::new(), "not JSON"),
        ("cut off", good[..good.len() / 2].into(), "not JSON"),
        ("binary", "\u{0}\u{1}\u{1b}[2J".into(), "not JSON"),
        ("deep", "[".repeat(100_000), "not "),
        (
            "deep in a report",
            wrong("{", &format!("{{\"x\": {},", "[".repeat(100_000))),
            "not JSON",
        ),
        ("a number", "7".into(), "its format is"),
        ("numbers", numbers, "its format is [0,0"),
        (
            "a newer one",
            wrong("\"version\":", "\"version\": 99, \"was\":"),
            "version 99",
        ),
        (
            "half of one",
            "{\"format\": \"popliner-report\", \"version\": 3}".into(),
            "not a complete one",
        ),
        (
            "escapes",
            "{\"format\": \"\\u001b[2J\"}".into(),
            "its format is",
        ),
        (
            "too large",
            " ".repeat((1 << 24) + 1),
            "more than 16777216 bytes",
        ),
    ];
    for (what, text, part) in cases {
        fs::write(&path, text).unwrap();
        let run = compare(&path);
        assert_eq!((run.code, &*run.out), (3, ""), "{what}: {run:?}");
        let is_named = run.err.contains("earlier.json: ") && run.err.contains(part);
        assert!(is_named && !run.err.contains('\u{1b}'), "{what}: {run:?}");
    }
    for (place, part) in [
        ("/dev/zero", "more than"),
        ("/nowhere/x", "No such file"),
        ("/", "directory"),
    ] {
        let run = compare(Path::new(place));
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.err.contains(place) && run.err.contains(part), "{run:?}");
    }
}

/// A report with any numbers and names is read back, or gives an error.
#[test]
fn comparisons_with_reports_that_were_changed() {
    let folder = new_folder();
    let path = folder.path().join("earlier.json");
    let option = format!("--export-json={}", path.display());
    finish(&mut limited(
        "",
        &arguments(&Case::new(), &["--solve", &option]),
    ));
    let good: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let values = [
        serde_json::json!(u64::MAX),
        serde_json::json!(-1),
        serde_json::json!(null),
        serde_json::json!([]),
        serde_json::json!("\u{1b}]0;title\u{7}"),
    ];
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
fn replace(within: &mut serde_json::Value, value: &serde_json::Value) {
    match within {
        serde_json::Value::Array(list) => list.iter_mut().for_each(|one| replace(one, value)),
        serde_json::Value::Object(map) => map.values_mut().for_each(|one| replace(one, value)),
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
        for (text, part) in cases {
            let case = Case::new();
            fs::write(case.folder.path().join(name), text).unwrap();
            let run = case.run(&["--solve", "--export-json=-"]);
            assert_eq!(run.code, 0, "{run:?}");
            let warning = format!("warning: {name} beside the profile is ignored: ");
            let line = run.err.lines().find(|line| line.contains(&warning));
            assert!(
                line.is_some_and(|line| line.contains(part)),
                "{part}: {}",
                run.err
            );
            assert!(!run.err.contains('\u{1b}'), "{}", run.err);
        }
        // Any JSON goes into the report, and cannot break out of it.
        let case = Case::new();
        let evil = r#"{"x": ["</script><script>alert(1)</script>", 1e308, -0.0, {"": null}]}"#;
        fs::write(case.folder.path().join(name), evil).unwrap();
        let run = case.run(&["--solve", "--export-html=-"]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(!run.out.contains("<script>alert"), "{name}");
        fs::write(case.folder.path().join(name), "[1, \"x\"]").unwrap();
        let run = case.run(&["--solve", "--export-json=-", "--export-markdown=-"]);
        assert_eq!(run.code, 0, "{run:?}");
    }
}

/// Returns a case in which all layer names begin with `start`, and the regex for them.
fn named(start: &str) -> (Case, String) {
    let case = Case::new().cbor(|_, strings| {
        for string in strings.iter_mut() {
            let text = string.as_text().unwrap().to_lowercase();
            if text.contains("layer") {
                *string = Value::Text(format!("{start}{text}"));
            }
        }
    });
    let regex = format!(
        "--layer-name-regex=({}.*layer\\D*\\d+)",
        regex::escape(start)
    );
    (case, regex)
}

/// Returns the names of the layers, in order.
fn layers(case: &Case, regex: &str) -> Vec<String> {
    let run = case.run(&[regex, "--solve", "--export-json=-"]);
    let start = run.out.find("# export-json\n").map_or(0, |at| at + 14);
    let report: serde_json::Value = serde_json::from_str(&run.out[start..]).expect("a report");
    let layers = report["layers"].as_array().expect("layers").iter();
    layers
        .filter_map(|layer| layer["name"].as_str().map(str::to_string))
        .filter(|name| name != "Out")
        .collect()
}

#[test]
fn orders_with_names_that_are_commands() {
    let evil = "\u{1b}]0;title\u{7}\u{202e}";
    let (case, regex) = named(evil);
    let unknown = [
        format!("--pin={evil}no=0"),
        format!("--together={evil}no,{evil}none"),
        format!("--cut-after={evil}no"),
        format!("--no-cut-after={evil}no"),
        format!("--check-splits={evil}no"),
    ];
    for order in &unknown {
        let run = case.run(&["--solve", &regex, order]);
        assert_eq!((run.code, &*run.out), (2, ""), "{run:?}");
        let is_plain = !run.err.contains(['\u{1b}', '\u{7}', '\u{202e}']);
        let mut lines = run.err.lines();
        let has_error = lines.any(|line| line.starts_with("error: "));
        assert!(is_plain && has_error, "{}", run.err);
    }
    let names = layers(&case, &regex);
    let (first, last) = (names.first().unwrap(), names.last().unwrap());
    // The pins contradict each other, and the refusal names them.
    let pins = [format!("--pin={last}=0"), format!("--pin={first}=1")];
    let run = case.run(&["--solve", &regex, &pins[0], &pins[1]]);
    assert!([1, 2].contains(&run.code), "{run:?}");
    assert!(
        !run.err.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{}",
        run.err
    );
}

#[test]
fn names_with_commas() {
    let (case, regex) = named("a,b\\c=");
    let names = layers(&case, &regex);
    assert!(
        names.len() > 1 && names[0].starts_with("a,b\\c="),
        "{names:?}"
    );
    let escaped = names[0].replace('\\', "\\\\").replace(',', "\\,");
    let run = case.run(&["--solve", &regex, &format!("--check-splits={escaped}")]);
    assert!(run.code < 2, "{run:?}");
    let counts = format!("--layers-per-ipu=1,{}", names.len() - 1);
    let counted = case.run(&["--solve", &regex, &counts]);
    assert_eq!(
        (&run.out, run.code),
        (&counted.out, counted.code),
        "{}",
        counted.err
    );
    let run = case.run(&["--solve", &regex, &format!("--check-splits={}", names[0])]);
    assert_eq!(run.code, 2, "{run:?}");
    let pin = format!("--pin={}=0", names[0]);
    assert!(case.run(&["--solve", &regex, &pin]).code < 2);
}
