//! The page on paper: all views, unfolded, in light colours.

use super::TOO_WIDE;
use super::opened::Page;
use crate::support::profile;
use serde_json::{Value, json};

/// The width of an A4 sheet in the pixels of a browser.
const SHEET: u32 = 794;

#[test]
fn all_views_are_printed_and_then_the_chosen_one_is_back() {
    let options = "--solve --sweep --num-ipus=4";
    let profile = profile("training-pipeline");
    let mut page = or_skip!(Page::open(&profile, options, SHEET, "#view=time"));
    let hidden = "$$('#views > *').filter((one) => !one.checkVisibility()).map((one) => one.id)";
    let before: Vec<String> = page.value(hidden);
    assert!(before.len() >= 5, "{before:?}");

    // The browser announces that it is about to print, and then lays out the page for paper.
    page.run("dispatchEvent(new Event('beforeprint'))");
    page.media("print", "dark");
    page.pause(300);
    assert_eq!(page.value::<Vec<String>>(hidden), [""; 0]);
    assert!(!page.is(TOO_WIDE));
    let count = page.check_numbers();
    assert!(count > 400, "{count}");
    let seen = "['#bar', '.controls', '.tools', 'details:not([open])', 'figure svg.drawn', 'h2']
        .map((one) => $$(one).some((own) => own.checkVisibility()))";
    let seen: Value = page.value(seen);
    assert_eq!(seen, json!([false, false, false, false, true, true]));
    let paper: String = page.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(paper, "rgb(255, 255, 255)");

    page.media("", "");
    page.run("dispatchEvent(new Event('afterprint'))");
    assert_eq!(page.value::<Vec<String>>(hidden), before);
    let printed = page.browser.send("Page.printToPDF", json!({}));
    // `%PDF` in base 64.
    assert!(
        printed["data"]
            .as_str()
            .is_some_and(|own| own.starts_with("JVBERi0"))
    );
}
