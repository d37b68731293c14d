//! The page of a model with many layers on many IPUs.

use super::browser::Browser;
use super::{check, export, show};
use crate::support::models;
use serde_json::json;

fn generated(folder: &std::path::Path) -> std::path::PathBuf {
    let options =
        "--framework popart --mode inference --layers 90 --tiles 4 --vars-per-layer-tile 1";
    let options: Vec<String> = options.split(' ').map(String::from).collect();
    let [profile, _] = models::generate(folder, &options);
    profile
}

/// On 16 IPUs no labels overlap, nothing is wider than the page, and layers have labels over the
/// steps, though most of their names are wider than they are.
#[test]
fn ninety_layers_on_sixteen_ipus_are_readable() {
    let mut browser = or_skip!(Browser::find());
    let folder = tempfile::tempdir().expect("a folder");
    let profile = generated(folder.path());
    let (page, report) = export(&profile, &["--solve", "--num-ipus=16"], folder.path());
    check(1, &mut browser, &page, &report);
    show(&mut browser, "memory");
    let labels = "[...document.querySelectorAll('#live-steps-chart > .axis')].length";
    assert!(browser.value(labels).as_u64() > Some(20));
    show(&mut browser, "split");
    let handles = browser.value("document.querySelectorAll('.handle').length");
    assert_eq!(handles, json!(15));
}

/// The beginning of a long refusal and the ways out are visible, and the rest is folded.
#[test]
fn a_long_refusal_is_folded() {
    let mut browser = or_skip!(Browser::find());
    let folder = tempfile::tempdir().expect("a folder");
    let profile = generated(folder.path());
    let options = ["--solve", "--num-ipus=4", "--mem-per-tile=120000"];
    let (page, report) = export(&profile, &options, folder.path());
    browser.open_at(&page, 1440, "#view=split");
    let sentences = report["sections"].as_array().expect("sections").iter();
    let mut refusals = sentences.filter(|own| own["id"] == "refusal");
    let all = refusals
        .next()
        .and_then(|own| own["blocks"].as_array())
        .expect("a refusal")
        .len();
    let seen = "[...document.querySelectorAll('#what-if .bad-list li')].filter((one) => one.checkVisibility()).length";
    assert_eq!(browser.value(seen), json!(10));
    let name = browser.value("document.querySelector('#what-if .bad-list summary').textContent");
    assert_eq!(name, json!(format!("{} more", all - 10)));
    browser.value("document.querySelector('#what-if .bad-list summary').click()");
    browser.value("new Promise((resolve) => setTimeout(resolve, 100))");
    assert_eq!(browser.value(seen), json!(all));
}
