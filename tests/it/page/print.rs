//! The page on paper: all views, unfolded, in light colours.

use super::browser::Browser;
use super::{NUMBERS, TOO_WIDE, check_number, export, no_errors};
use crate::support::profile;
use serde_json::json;

/// The width of an A4 sheet in the pixels of a browser.
const SHEET: u32 = 794;

#[test]
fn all_views_are_printed_and_then_the_chosen_one_is_back() {
    let mut browser = or_skip!(Browser::find());
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--solve", "--sweep", "--num-ipus=4"];
    let (page, report) = export(&profile("training-pipeline"), &options, folder.path());
    browser.open_at(&page, SHEET, "#view=time");
    let hidden = "[...document.getElementById('views').children].filter((one) => !one.checkVisibility()).map((one) => one.id)";
    let before = browser.value(hidden);
    assert!(
        before.as_array().is_some_and(|own| own.len() >= 5),
        "{before}"
    );

    // The browser announces that it is about to print, and then lays out the page for paper.
    browser.value("dispatchEvent(new Event('beforeprint'))");
    let features = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
    browser.send(
        "Emulation.setEmulatedMedia",
        json!({"media": "print", "features": features}),
    );
    browser.value("new Promise((resolve) => setTimeout(resolve, 300))");
    assert_eq!(browser.value(hidden), json!([]));
    assert_eq!(browser.value(TOO_WIDE), json!(false));
    let numbers = browser.value(NUMBERS);
    let numbers = numbers.as_array().expect("a list");
    assert!(numbers.len() > 400, "{}", numbers.len());
    numbers.iter().for_each(|own| check_number(own, &report));
    let seen = "['#bar', '.controls', '.tools', 'details:not([open])', 'figure svg.drawn', 'h2'].map((one) =>
        [...document.querySelectorAll(one)].some((own) => own.checkVisibility()))";
    assert_eq!(
        browser.value(seen),
        json!([false, false, false, false, true, true])
    );
    let paper = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(paper, json!("rgb(255, 255, 255)"));

    browser.send(
        "Emulation.setEmulatedMedia",
        json!({"media": "", "features": []}),
    );
    browser.value("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.value(hidden), before);
    let printed = browser.send("Page.printToPDF", json!({}));
    // `%PDF` in base 64.
    let is_pdf = printed["data"]
        .as_str()
        .is_some_and(|own| own.starts_with("JVBERi0"));
    assert!(is_pdf);
    no_errors(&browser, &page);
}
