//! Names with markup or control characters stay text in every form.

use super::Report;
use super::testing::{compiled, hostile, hostile_compiled, report};
use super::{csv, html, markdown, write_json};
use crate::escape::is_obeyed;

const HOSTILE: [&str; 4] = [
    "</script><img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "a\u{1b}[31m\u{202e}b\u{2066}c\r\n# heading\u{2028}\u{9b}",
    "|`*_[x](javascript:y) @all \"' onload=\"z",
];

/// Returns reports on a split and on a compilation, with each of the hostile names.
fn reports() -> impl Iterator<Item = (&'static str, Report)> {
    let of_name = |name| [hostile(name), hostile_compiled(name)].map(|report| (name, report));
    HOSTILE.into_iter().flat_map(of_name)
}

#[test]
fn in_the_page() {
    for (name, report) in reports() {
        let page = html::text(&report);
        assert!(
            !page.contains("<img") && !page.contains("\" onload"),
            "{name}"
        );
        let begun = page.matches("<script").count();
        assert_eq!(page.matches("</script>").count(), begun, "{name}");
        let obeyed = page.chars().find(|&c| is_obeyed(c) && c != '\n');
        assert_eq!(obeyed, None, "{name}");
    }
}

#[test]
fn in_markdown() {
    for (name, hostile) in reports() {
        let plain = match hostile.fit {
            Some(_) => markdown::text(&compiled()),
            None => markdown::text(&report()),
        };
        let text = markdown::text(&hostile);
        assert!(!text.contains("<img") && !text.contains("@all"), "{name}");
        assert!(!text.contains("](") && !text.contains('`'), "{name}");
        assert!(!text.chars().any(|c| is_obeyed(c) && c != '\n'), "{name}");
        // Hostile names add no line and no cell.
        let bars = |text: &str| -> Vec<usize> {
            let lines = text.lines().map(|line| line.matches('|').count());
            lines.collect()
        };
        assert_eq!(bars(&text), bars(&plain), "{name}");
    }
}

#[test]
fn in_the_spreadsheet_form() {
    for (name, report) in reports() {
        let mut out = Vec::new();
        csv::write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.chars().any(|c| is_obeyed(c) && c != '\n'), "{name}");
        let mut reader = ::csv::ReaderBuilder::new();
        let mut reader = reader.flexible(true).from_reader(text.as_bytes());
        for record in reader.records() {
            for cell in &record.unwrap() {
                let is_formula = cell.starts_with(['=', '+', '@']);
                assert!(!is_formula, "{name}: {cell}");
            }
        }
    }
}

#[test]
fn in_json_they_read_back() {
    for (_, report) in reports() {
        let mut out = Vec::new();
        write_json(&report, &mut out).unwrap();
        let json = String::from_utf8(out).unwrap();
        assert!(!json.chars().any(|c| is_obeyed(c) && c != '\n'), "{json}");
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
