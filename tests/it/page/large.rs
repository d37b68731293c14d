//! The page of a model with many layers on many IPUs.

use super::check;
use super::opened::Page;

/// A model with 90 layers.
const MODEL: &str =
    "--framework popart --mode inference --layers 90 --tiles 4 --vars-per-layer-tile 1";

/// On 16 IPUs no labels overlap, nothing is wider than the page, and layers have labels over the
/// steps, though most of their names are wider than they are.
#[test]
fn ninety_layers_on_sixteen_ipus_are_readable() {
    let mut page = or_skip!(Page::of_model(MODEL, "--solve --num-ipus=16"));
    check(1, &mut page);
    page.show("memory");
    assert!(page.count("#live-steps-chart > .axis") > 20);
    page.show("split");
    assert_eq!(page.count(".handle"), 15);
}

/// The beginning of a long refusal and the ways out are visible, and the rest is folded.
#[test]
fn a_long_refusal_is_folded() {
    let mut page = or_skip!(Page::of_model(
        MODEL,
        "--solve --num-ipus=4 --mem-per-tile=120000"
    ));
    let sections = page.report["sections"].as_array().expect("sections");
    let refusal = sections.iter().find(|own| own["id"] == "refusal");
    let all = super::list(&refusal.expect("a refusal")["blocks"]).count();
    let seen = "$$('#what-if .bad-list li').filter((one) => one.checkVisibility()).length";
    assert_eq!(page.value::<usize>(seen), 10);
    let more = "#what-if .bad-list summary";
    assert_eq!(page.text(more), format!("{} more", all - 10));
    page.click(more);
    page.pause(100);
    assert_eq!(page.value::<usize>(seen), all);
}
