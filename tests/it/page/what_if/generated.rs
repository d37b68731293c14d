//! Pages of generated models.

use super::Page;

/// A stage with only frozen layers recomputes nothing; frozen layers beside others do.
#[test]
fn frozen_layers_run_again_where_others_of_their_stage_do() {
    let model = "--framework poptorch --mode training --frozen --layers 6 --tiles 4";
    let mut page = or_skip!(Page::of_model(
        model,
        "--solve --num-ipus=4 --recompute=stage"
    ));
    let recomputes: Vec<bool> = page.at("/what_if/profiles/0/cycles/recomputes");
    assert!(!recomputes[1] && recomputes[5], "{recomputes:?}");
    for cuts in ["3", "3,5", "5"] {
        page.run(&format!("choose({{ cuts: '{cuts}' }})"));
        page.check();
    }
}

/// Each stage of a moved split has the proportion that the command finds for it.
#[test]
fn stages_of_moved_cuts_have_the_best_proportions() {
    let model = "--framework poptorch --mode training --layers 6 --tiles 4 --execution";
    for objective in ["cycles", "peak"] {
        let options = format!("--solve --num-ipus=4 --recompute=stage --objective={objective}");
        let mut page = or_skip!(Page::of_proportions(model, &options));
        page.check();
        for cuts in ["2,4,6", "3", "1,2", "none"] {
            page.run(&format!("choose({{ cuts: '{cuts}' }})"));
            page.check();
        }
    }
}

/// 100 layers with up to 63 stages after them have too many ranges.
#[test]
fn a_large_model_has_the_ranges_around_the_best_cuts() {
    let model = "--framework popart --mode training --layers 100 --tiles 4 --vars-per-layer-tile 1";
    let options = "--solve --num-ipus=64 --objective=fewest --mem-per-tile=1000000 \
                   --schedule=popart --recompute=stage";
    let mut page = or_skip!(Page::of_model(model, options));
    let count = page.at::<Vec<u64>>("/what_if/boundaries").len() as u64;
    assert!(count <= page.positions(), "{count}");
    assert!(page.is("$('#what-if-some').checkVisibility()"));
    page.press_cut(0, "Home");
    // Each check is a search of seconds, so one check follows several changes.
    page.fill_in("ipus", "9");
    page.click("#what-if-take");
    page.press_cut(0, "ArrowLeft");
    page.check();
    assert!(page.is("document.documentElement.outerHTML.length < 2_000_000"));
}
