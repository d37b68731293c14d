//! Pages of generated models.

use super::Page;
use crate::support::models;
use serde_json::json;

/// A stage with only frozen layers recomputes nothing; frozen layers beside others do.
#[test]
fn frozen_layers_run_again_where_others_of_their_stage_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = "--framework poptorch --mode training --frozen --layers 6 --tiles 4";
    let options: Vec<String> = options.split(' ').map(String::from).collect();
    let [profile, _] = models::generate(folder.path(), &options);
    let options = ["--solve", "--num-ipus=4", "--recompute=stage"];
    let mut page = or_skip!(Page::open(&profile, &options));
    let recomputes = &page.report["what_if"]["cycles"]["recomputes"];
    assert_eq!(recomputes[1], json!(false));
    assert_eq!(recomputes[5], json!(true));
    for cuts in ["3", "3,5", "5"] {
        page.value(&format!("choose({{ cuts: '{cuts}' }})"));
        page.check();
    }
}

/// 100 layers with up to 63 stages after them have too many ranges.
#[test]
fn a_large_model_has_the_ranges_around_the_best_cuts() {
    let folder = tempfile::tempdir().expect("a folder");
    let options =
        "--framework popart --mode training --layers 100 --tiles 4 --vars-per-layer-tile 1";
    let options: Vec<String> = options.split(' ').map(String::from).collect();
    let [profile, _] = models::generate(folder.path(), &options);
    let options = [
        "--solve",
        "--num-ipus=64",
        "--objective=fewest",
        "--mem-per-tile=1000000",
    ];
    let mut page = or_skip!(Page::open(&profile, &options));
    let boundaries = page.report["what_if"]["boundaries"].as_array();
    let count = boundaries.expect("boundaries").len() as u64;
    assert!(count <= page.positions(), "{count}");
    let note = "document.getElementById('what-if-some').checkVisibility()";
    assert_eq!(page.value(note), json!(true));
    page.press(0, "Home");
    // Each check is a search of seconds, so one check follows several changes.
    page.enter_unchecked("ipus", "9");
    page.click_unchecked("take");
    page.press(0, "ArrowLeft");
    page.check();
    let size = "document.documentElement.outerHTML.length";
    assert!(page.value(size).as_u64() < Some(2_000_000));
}
