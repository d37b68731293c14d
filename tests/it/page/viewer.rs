//! The page without a report (`--generate viewer`), which opens reports.

use super::browser::Browser;
use super::{check_number, export, no_errors, show};
use crate::support::{popliner, profile};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Writes the viewer to a file.
fn viewer(folder: &Path) -> PathBuf {
    let run = popliner(["--generate", "viewer"]);
    assert_eq!(run.code, 0, "{run:?}");
    let page = folder.join("viewer.html");
    std::fs::write(&page, run.out).expect("a file");
    page
}

/// Chooses files, and waits until the page shows this message.
fn choose(browser: &mut Browser, files: &[&Path], message: &str) {
    let document = browser.send("DOM.getDocument", json!({}));
    let query = json!({"nodeId": document["root"]["nodeId"], "selector": "#open"});
    let node = browser.send("DOM.querySelector", query);
    let files = json!({"files": files, "nodeId": node["nodeId"]});
    browser.send("DOM.setFileInputFiles", files);
    let wait = format!(
        "new Promise((resolve) => {{
            const look = () => document.getElementById('opened').textContent.includes('{message}')
                ? resolve() : setTimeout(look, 5);
            look();
        }})"
    );
    browser.value(&wait);
}

#[test]
fn the_viewer_opens_a_report_and_compares_two() {
    let mut browser = or_skip!(Browser::find());
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let options = [["--solve", "--num-ipus=4"], ["--solve", "--num-ipus=3"]];
    let [(_, before), (_, now)]: [(PathBuf, Value); 2] = std::array::from_fn(|place| {
        export(
            &profile("popart-bert-inference"),
            &options[place],
            folders[place].path(),
        )
    });
    let [earlier, later] = [0, 1].map(|place| folders[place].path().join("report.json"));
    let page = viewer(folders[0].path());
    browser.open(&page, 1440);
    assert_eq!(
        browser.value("document.querySelectorAll('#bar a').length"),
        json!(0)
    );

    choose(&mut browser, &[&earlier], "This is");
    let title = browser.value("document.querySelector('h1').textContent");
    assert_eq!(title, before["heading"]);
    for view in ["split", "memory", "layers"] {
        show(&mut browser, view);
        let numbers = browser.value(super::NUMBERS);
        let numbers = numbers.as_array().expect("a list");
        assert!(numbers.len() > 20, "{view}");
        numbers
            .iter()
            .for_each(|number| check_number(number, &before));
    }

    choose(&mut browser, &[&earlier, &later], "compared with");
    show(&mut browser, "compare");
    let rows = "[...document.querySelectorAll('#comparison tr')].map((row) => [...row.children].map((one) => one.textContent))";
    let rows: Vec<Vec<String>> = serde_json::from_value(browser.value(rows)).expect("rows");
    let peak = |report: &Value| {
        let stages = report["split"]["stages"].as_array().expect("stages");
        let bytes = stages
            .iter()
            .filter_map(|stage| stage["fullest_tile"]["bytes"].as_i64());
        bytes.max().expect("a number")
    };
    let plain = |text: &str| text.replace([',', '+'], "").parse::<i64>();
    let row = rows
        .iter()
        .find(|row| row[0].starts_with("Peak memory"))
        .expect("a row");
    let numbers: Vec<i64> = row[1..]
        .iter()
        .map(|cell| plain(cell).expect("a number"))
        .collect();
    let (one, other) = (peak(&before), peak(&now));
    assert_eq!(numbers, [one, other, other - one]);
    no_errors(&browser, &page);
}

#[test]
fn what_is_no_report_is_refused() {
    let mut browser = or_skip!(Browser::find());
    let folder = tempfile::tempdir().expect("a folder");
    let page = viewer(folder.path());
    browser.open(&page, 390);
    for (name, text, message) in [
        ("half.json", "{", "half.json cannot be shown"),
        ("other.json", "{}", "not a report of --export-json"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        choose(&mut browser, &[&file], message);
    }
    no_errors(&browser, &page);
}
