//! Defects that users reported, each with a test.

use super::SPLIT;
use super::opened::{Page, page};
use crate::support::{DEFAULT_REGEX, profile};

/// Opens the page of a training model on a desktop.
fn desk(view: &str) -> Option<Page> {
    page("training-pipeline", SPLIT, view)
}

/// Opens the page of a training model on a phone.
fn phone(options: &str, view: &str) -> Option<Page> {
    Page::open(&profile("training-pipeline"), options, 390, view)
}

#[test]
fn the_cursor_stays_when_the_pointer_moves_and_the_page_scrolls() {
    let mut page = or_skip!(desk("#view=memory&step=100"));
    page.browser.mouse("mouseMoved", [400.0, 500.0], 0);
    page.run("scrollBy(0, 300)");
    page.run("new Promise(requestAnimationFrame)");
    let visible = "getComputedStyle($('#live-steps-chart .cursor')).visibility === 'visible'";
    assert!(page.is(visible));
}

#[test]
fn labels_of_stages_are_not_struck_through() {
    let mut page = or_skip!(desk("#view=split"));
    let apart = "$$('.stage').every((one) => {
        const label = one.querySelector('span').getBoundingClientRect();
        return label.height > 0 && label.bottom <= one.querySelector('.level').getBoundingClientRect().top + 1;
    })";
    assert!(page.is(apart));
}

#[test]
fn a_table_that_goes_on_says_so() {
    let mut page = or_skip!(phone(SPLIT, "#view=split"));
    page.pause(100);
    let says_so = "$$('.scroll').filter((one) => one.checkVisibility())
        .map((one) => (one.scrollWidth - one.clientWidth > 2) === one.classList.contains('goes-right'))";
    let says_so: Vec<bool> = page.value(says_so);
    assert!(
        !says_so.is_empty() && !says_so.contains(&false),
        "{says_so:?}"
    );
    assert!(page.count(".goes-right") > 0);
}

#[test]
fn shares_of_one_whole_are_a_hundred_per_cent() {
    let mut page = or_skip!(desk("#view=memory"));
    for parts in ["[764, 236, 1]", "[1, 1, 1]", "[5]", "[0, 3, 0, 4]"] {
        let sum = "reduce((sum, own) => sum + Math.round(parseFloat(own) * 10), 0)";
        assert!(
            page.is(&format!("shares({parts}).{sum} === 1000")),
            "{parts}"
        );
    }
    let nothing: [String; 2] = page.value("shares([0, 0])");
    assert_eq!(nothing, ["0.0 %", "0.0 %"]);
}

/// Not sorted as text, by which 8.5 % would be more than 75.8 %.
#[test]
fn shares_are_sorted_by_how_large_they_are() {
    let mut page = or_skip!(desk("#view=memory"));
    page.run("$$('#live-steps-sums table .sort')[2].click()");
    let shares = "[...$('#live-steps-sums table').querySelectorAll('tbody tr')]
        .map((row) => parseFloat(row.lastChild.textContent))";
    let shares: Vec<f64> = page.value(shares);
    assert!(
        shares.len() > 3 && shares.is_sorted_by(|a, b| a >= b),
        "{shares:?}"
    );
}

/// Bytes over a limit are not shown as negative, and pasted text says that the model does not fit.
#[test]
fn the_head_of_a_model_that_does_not_fit_says_so_throughout() {
    let options = format!("{SPLIT} {DEFAULT_REGEX}");
    let mut page = or_skip!(page("impossible", &options, "#view=split"));
    let head: String = page.value("$('#head').innerText");
    for part in [
        "Furthest over its limit",
        "Over the limit by\n215,825",
        "To paste (popart), which does not fit:",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
}

/// Samples of colours beside the name of a category, on all views.
#[test]
fn a_category_has_one_colour_on_all_pages() {
    let mut colours = std::collections::BTreeMap::new();
    for (fixture, options) in [
        ("training-pipeline", SPLIT),
        ("popart-bert-inference", SPLIT),
        ("training-pipelined", "--fit"),
    ] {
        or_skip!(page(fixture, options, "")).in_each_view(|page, _| {
            let found = "$$('td, th').filter((one) => one.querySelector('.swatch'))
                .map((one) => [one.textContent, one.querySelector('.swatch rect').getAttribute('class')])";
            for (name, look) in page.value::<Vec<(String, String)>>(found) {
                let first = colours.entry(name.clone()).or_insert_with(|| look.clone());
                assert_eq!(*first, look, "{name}");
            }
        });
    }
    assert!(colours.len() > 12, "{colours:?}");
    // A part of a stage has the colour of its category.
    assert_eq!(colours["Variables"], colours["variable"]);
    assert_eq!(colours["Vertex code"], colours["vertexCode"]);
}

/// The memory that a pipeline adds cannot be proven by ranges of layers.
#[test]
fn a_refusal_shows_no_certificate_that_proves_nothing() {
    let options = format!("{SPLIT} --recompute=none");
    let mut page = or_skip!(page("training-pipeline", &options, "#view=split"));
    let message = page.text("#what-if .bad-list");
    assert!(
        message.contains("The layers by themselves would fit"),
        "{message}"
    );
    assert!(!message.contains(" on tile "), "{message}");
}

/// A compilation has code among its always-live bytes, so the page does not show code by itself.
#[test]
fn one_is_not_many_and_bytes_are_bytes() {
    for (fixture, options) in [
        ("popart-bert-inference", "--solve --num-ipus=1"),
        ("training-pipeline", "--solve --sweep --num-ipus=4"),
        ("poplar-mlp", "--fit"),
        ("training-pipelined", "--fit"),
    ] {
        let page = Page::open(&profile(fixture), options, 390, "");
        or_skip!(page).in_each_view(|page, view| {
            let text: String = page.value("document.body.innerText");
            for wrong in [
                "1 IPUs",
                "1 stages",
                "1 tiles ",
                " KiB",
                " MiB",
                " 0 are code",
                " 0 of code",
            ] {
                let is_number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
                let mut places = text.match_indices(wrong);
                let found = places.any(|(place, _)| !text[..place].ends_with(is_number));
                assert!(!found, "{fixture}, {view}: {wrong}");
            }
        });
    }
}

/// If the curve stays far below the limit, the axis ends below the limit.
#[test]
fn a_curve_is_no_flat_line() {
    let mut page = or_skip!(page("popart-bert-inference", SPLIT, "#view=split"));
    let high = "(() => {
        const [svg, curve] = ['', ' .curve'].map((one) => $('#stage-curve-chart' + one).getBoundingClientRect());
        return (curve.top - svg.top) / svg.height;
    })()";
    let high: f64 = page.value(high);
    assert!(high < 0.4, "{high}");
}

#[test]
fn links_and_cells_look_as_the_page_does() {
    let mut page = or_skip!(phone(SPLIT, "#view=split"));
    let blue = "$$('a, .link').filter((one) => one.checkVisibility())
        .some((one) => ['rgb(0, 0, 238)', 'rgb(85, 26, 139)'].includes(getComputedStyle(one).color))";
    assert!(!page.is(blue));
    // The last of an odd number of figures takes the whole width.
    let empty = "$$('.figures').filter((one) => one.checkVisibility()).map((own) => {
        const last = own.lastElementChild.getBoundingClientRect();
        return Math.round(own.getBoundingClientRect().right - last.right);
    })";
    let rests: Vec<f64> = page.value(empty);
    assert!(rests.iter().all(|&rest| rest < 4.0), "{rests:?}");
}

/// On a phone too, all links to views are visible.
#[test]
fn the_links_to_all_views_are_in_sight() {
    let mut page = or_skip!(phone(SPLIT, ""));
    let inside = "$$('#bar a').map((one) => one.getBoundingClientRect())
        .every((own) => own.left >= 0 && own.right <= innerWidth)";
    assert!(page.is(inside));
}

/// A piece of work that is no wider than its edges is drawn without edges.
#[test]
fn thin_pieces_of_work_are_seen() {
    let mut page = or_skip!(phone(&format!("{SPLIT} --micro-batches=64"), "#view=time"));
    let edges = "$$('#step-strip .work').some((own) => getComputedStyle(own).stroke !== 'none')";
    assert!(!page.is(edges));
    // Enlarged pieces have edges again.
    (0..6).for_each(|_| page.click("#step-strip-in"));
    assert!(page.is(edges));
}
