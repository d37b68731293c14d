//! Tests the HTML page as text; `tests/it/page` tests the page in a browser.

use super::*;
use crate::{
    report::sections::{SECTIONS, Section},
    report::table::Form,
    report::testing::{compiled, report},
    report::{TileCategory, TileMap, TileTotals, TileVariables, VariableKind},
};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;

mod colours;

const DOCUMENT: &str = include_str!("page.html");

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    text.split_once(from)?.1.split_once(to).map(|parts| parts.0)
}

/// Returns the report that an HTML page contains, as JSON.
fn data(page: &str) -> Value {
    let plain = between(
        page,
        "<script type=\"application/json\" id=\"report\">",
        "</script>",
    );
    if let Some(plain) = plain {
        return serde_json::from_str(plain).unwrap();
    }
    let packed = between(page, "id=\"packed-report\">", "</script>").unwrap();
    let bytes = BASE64_STANDARD.decode(packed).unwrap();
    let mut text = String::new();
    GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&crate::report::json(report).unwrap()).unwrap()
}

/// Checks that the HTML page's security policy has the hashes of the page's style and script. With
/// `BLESS=1`, the test writes these hashes.
#[test]
fn the_policy_lets_one_style_and_one_script_be() {
    let page = viewer();
    let style = between(&page, "<style>", "</style>").unwrap();
    let (_, script) = page.rsplit_once("<script>").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    let mut right = DOCUMENT.to_owned();
    for (kind, text) in [("style-src", style), ("script-src", script)] {
        let hash = BASE64_STANDARD.encode(Sha256::digest(text));
        let start = format!("; {kind} 'sha256-");
        let said = between(DOCUMENT, &start, "';").unwrap();
        right = right.replace(&format!("{start}{said}'"), &format!("{start}{hash}'"));
    }
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/html/page.html");
        std::fs::write(path, &right).unwrap();
    }
    assert!(DOCUMENT == right, "BLESS=1 cargo test --lib html");
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"").unwrap();
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"));
}

#[test]
fn the_page_has_the_json_form_in_it() {
    for report in [report(), compiled()] {
        let page = text(&report);
        assert_eq!(data(&page), json(&report));
        let without = between(&page, "<noscript>", "</noscript>").unwrap();
        assert!(without.contains(&report.heading()), "{without}");
        assert!(without.contains("Peak memory"), "{without}");
    }
    assert!(!viewer().contains("id=\"report\""));
}

/// Collects the numbers in the tables of `sections`, the part of the JSON report that people read,
/// that are also in its part for programs. Each number has the JSON pointer to the field that must
/// have the same number.
fn numbers(sections: &Value, found: &mut Vec<(String, Value)>) {
    for section in sections.as_array().unwrap() {
        let blocks = section["blocks"].as_array().unwrap().iter();
        for table in blocks.filter_map(|block| block.get("table")) {
            let columns = table["columns"].as_array().unwrap();
            for row in table["rows"].as_array().unwrap() {
                let cells = row["cells"].as_array().unwrap();
                assert_eq!(cells.len(), columns.len(), "{row}");
                for (column, cell) in columns.iter().zip(cells) {
                    let [row, column] = [&row["at"], &column["at"]].map(|at| at.as_str().unwrap());
                    let at = match column.contains("{}") {
                        true => column.replace("{}", row),
                        false => format!("{row}{column}"),
                    };
                    if at.starts_with('/') && !column.is_empty() && !cell.is_null() {
                        found.push((at, cell.clone()));
                    }
                }
            }
        }
    }
}

#[test]
fn every_number_of_a_table_is_where_its_column_says() {
    for report in [report(), compiled()] {
        let json = json(&report);
        let mut found = Vec::new();
        numbers(&json["sections"], &mut found);
        found.retain(|(at, _)| !at.is_empty());
        assert!(found.len() > 30, "{}", found.len());
        for (at, number) in found {
            assert_eq!(json.pointer(&at), Some(&number), "{at}");
        }
    }
}

#[test]
fn a_report_with_little_in_it_is_a_page_too() {
    let mut report = report();
    report.split = None;
    report.proof = None;
    report.refusal = None;
    report.given = None;
    report.cuts.clear();
    report.liveness = None;
    report.sweep = None;
    report.execution = None;
    report.memory = Default::default();
    report.layers.clear();
    let found = data(&text(&report));
    let ids = found["sections"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|element| element["id"].as_str().unwrap()).collect();
    assert!(
        ids.contains(&"warnings") && !ids.contains(&"split"),
        "{ids:?}"
    );
    assert_eq!(found["heading"], report.heading());
    assert_eq!(found["configuration"], Value::Array(Vec::new()));
}

/// Makes the data of the page's drawing of 1,472 tiles. The tiles have different bytes, so that
/// compression does not make the data small.
fn tile_map() -> TileMap {
    let bytes = |category: u64| -> Vec<u64> {
        let tiles = 0..1472;
        let hashes = tiles.map(|tile: u64| (tile + category).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        hashes.map(|hash| hash >> 46).collect()
    };
    let category = |category: u64| TileCategory {
        name: format!("category{category}"),
        bytes: bytes(category),
        overlapped: bytes(category + 1),
    };
    let kind = |kind: u32| VariableKind {
        name: format!("bert/encoder/layer/{}/MatMul/Weight0#{kind}", kind % 100),
        category: "variable".into(),
        always_live: true,
    };
    let largest = |tile: u32| (0..10).map(|number| (tile * 10 + number, 20_000)).collect();
    TileMap {
        categories: (0..20).map(category).collect(),
        left_out: 0,
        variables: Some(TileVariables {
            most: 10,
            tiles: (0..1472).collect(),
            kinds: (0..14_720).map(kind).collect(),
            largest: (0..1472).map(largest).collect(),
        }),
    }
}

#[test]
fn a_large_report_is_compressed_and_stays_in_its_room() {
    let mut report = report();
    let tiles = vec![12_345_678; 1472];
    report.memory.tiles = Some(TileTotals {
        fullest: 0,
        total: tiles.clone(),
        with_gaps: Some(tiles.clone()),
        always_live: tiles.clone(),
        not_always_live: tiles,
    });
    report.memory.tile_map = Some(tile_map());
    let page = text(&report);
    assert!(page.contains("id=\"packed-report\""));
    assert!(page.len() < 2_400_000, "{}", page.len());
    assert_eq!(data(&page), json(&report));
    // If the report may take fewer bytes of the HTML page than it needs, parts that the page can do
    // without are left out, such as the data of drawings. The split must stay.
    for most in [250_000, 100_000, 0] {
        let page = super::within(&report, most);
        assert!(page.len() <= most.max(100_000), "{most}: {}", page.len());
        let found = data(&page);
        assert_eq!(found["split"], json(&report)["split"]);
    }
}

/// The functions in [`LEFT_OUT`] remove parts of a report, one by one, until its HTML page is small
/// enough. Each function must remove its own part, and nothing that a later function removes.
#[test]
fn what_tells_least_is_left_out_first() {
    let mut report = report();
    report.memory.tile_map = Some(tile_map());
    let parts = [
        "/live_steps/others/0/layers",
        "/live_steps/others",
        "/what_if/profiles/0/bytes",
        "/memory/tile_map/variables/largest",
        "/what_if",
        "/live_steps",
        "/memory/tile_map",
        "/provenance/framework",
    ];
    assert_eq!(parts.len(), LEFT_OUT.len());
    let is_short = |part: &str| part.ends_with("/largest");
    for (number, leave_out) in LEFT_OUT.iter().enumerate() {
        let before = json(&report);
        leave_out(&mut report);
        let after = json(&report);
        let is_same = |part: &&str| before.pointer(part) == after.pointer(part);
        let part = parts[number];
        assert!(is_short(part) || !is_same(&part), "{part} is still there");
        let later = parts[number + 1..].iter();
        let mut later =
            later.filter(|later| !later.starts_with(part) && !part.starts_with(**later));
        assert!(later.all(is_same), "{part} takes another part along");
    }
}

#[test]
fn scripts_ask_for_every_section_of_the_page() {
    let is_on_page = |section: &&Section| section.forms.contains(&Form::Page);
    for section in SECTIONS.iter().filter(is_on_page) {
        let asked = format!("'{}'", section.id);
        assert!(SCRIPT.contains(&asked), "no script asks for {asked}");
    }
}
