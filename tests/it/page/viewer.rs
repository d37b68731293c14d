//! The page without a report (`--generate viewer`), which opens reports.

use super::browser::Browser;
use super::opened::{Page, export, report};
use crate::support::{popliner, profile, split_of};
use serde_json::{Value, json};
use std::path::Path;

/// Opens the viewer.
fn viewer() -> Option<Page> {
    let mut browser = Browser::find()?;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("viewer.html");
    let run = popliner(["--generate", "viewer"]);
    std::fs::write(&path, &run.exits(0).out).expect("a file");
    browser.open(&path, 390, "");
    Some(Page {
        browser,
        folder,
        path,
        report: Value::Null,
    })
}

/// Chooses files, and waits until the page shows this message.
fn choose(page: &mut Page, files: &[&Path], message: &str) {
    let document = page.browser.send("DOM.getDocument", json!({}));
    let query = json!({"nodeId": document["root"]["nodeId"], "selector": "#open"});
    let node = page.browser.send("DOM.querySelector", query);
    let files = json!({"files": files, "nodeId": node["nodeId"]});
    page.browser.send("DOM.setFileInputFiles", files);
    page.run(&format!(
        "new Promise((resolve) => {{
            const look = () => document.getElementById('opened').textContent.includes('{message}')
                ? resolve() : setTimeout(look, 5);
            look();
        }})"
    ));
}

#[test]
fn the_viewer_opens_a_report_and_compares_two() {
    let mut page = or_skip!(viewer());
    assert_eq!(page.count("#bar a"), 0);
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let bert = profile("popart-bert-inference");
    let [earlier, later] = [4, 3].map(|ipus| {
        let [_, json] = export(
            &bert,
            &format!("--solve --num-ipus={ipus}"),
            folders[ipus - 3].path(),
        );
        json
    });
    page.report = report(&earlier);

    choose(&mut page, &[&earlier], "This is");
    assert_eq!(page.text("h1"), page.report["heading"]);
    for view in ["split", "memory", "layers"] {
        page.show(view);
        assert!(page.check_numbers() > 20, "{view}");
    }

    choose(&mut page, &[&earlier, &later], "compared with");
    page.show("compare");
    let rows = "$$('#comparison tr').map((row) => [...row.children].map((one) => one.textContent))";
    let rows: Vec<Vec<String>> = page.value(rows);
    let peak = |report: &Value| split_of(report).1.expect("a number") as i64;
    let row = rows.iter().find(|row| row[0].starts_with("Peak memory"));
    let numbers = row.expect("a row")[1..].iter();
    let numbers = numbers.map(|cell| cell.replace([',', '+'], "").parse().expect("a number"));
    let (one, other) = (peak(&page.report), peak(&report(&later)));
    assert_eq!(numbers.collect::<Vec<i64>>(), [one, other, other - one]);
}

#[test]
fn what_is_no_report_is_refused() {
    let mut page = or_skip!(viewer());
    for (name, text, message) in [
        ("half.json", "{", "half.json cannot be shown"),
        ("other.json", "{}", "not a report of --export-json"),
    ] {
        let file = page.folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        choose(&mut page, &[&file], message);
    }
}
