//! Defects that users reported, each with a test.

use super::SPLIT;
use super::opened::{Page, page};
use crate::support::{DEFAULT_REGEX, cases, profile};

/// Facts that hold on pages. The first line of each has a name, the width of the window in pixels,
/// a fixture, options and a view; the lines below it are an expression that is true there.
const FACTS: &str = "
    labels of stages are not struck through: 1440 training-pipeline SPLIT #view=split
        $$('.stage').every((one) => {
            const label = one.querySelector('span').getBoundingClientRect();
            const level = one.querySelector('.level').getBoundingClientRect();
            return label.height > 0 && label.bottom <= level.top + 1;
        })
    shares of one whole are a hundred per cent: 1440 training-pipeline SPLIT #view=memory
        [[764, 236, 1], [1, 1, 1], [5], [0, 3, 0, 4]].every((parts) =>
            shares(parts).reduce((sum, own) => sum + Math.round(parseFloat(own) * 10), 0) === 1000)
            && shares([0, 0]).join() === '0.0 %,0.0 %'
    8.5 % is sorted below 75.8 %: 1440 training-pipeline SPLIT #view=memory
        (() => {
            $$('#live-steps-sums table .sort')[2].click();
            const rows = [...$('#live-steps-sums table').querySelectorAll('tbody tr')];
            const shares = rows.map((row) => parseFloat(row.lastChild.textContent));
            return shares.length > 3 && shares.every((own, at) => at === 0 || shares[at - 1] >= own);
        })()
    bytes over the limit are not negative, and pasted text says that nothing fits: 1440 impossible SPLIT REGEX #view=split
        ['Furthest over its limit', 'Over the limit by\\n215,729', 'To paste (popart), which does not fit:']
            .every((part) => $('#head').innerText.includes(part))
    ranges of layers prove nothing of the memory that a pipeline adds: 1440 training-pipeline SPLIT --recompute=none --optimizer-state=on-chip #view=split
        $('#what-if .bad-list').textContent.includes('The layers by themselves would fit')
            && !$('#what-if .bad-list').textContent.includes(' on tile ')
    the axis of a curve far below the limit ends below it: 1440 popart-bert-inference SPLIT #view=split
        (() => {
            const place = (one) => $('#stage-curve-chart' + one).getBoundingClientRect();
            return (place(' .curve').top - place('').top) / place('').height < 0.4;
        })()
    no link is blue: 390 training-pipeline SPLIT #view=split
        !$$('a, .link').filter((one) => one.checkVisibility())
            .some((one) => ['rgb(0, 0, 238)', 'rgb(85, 26, 139)'].includes(getComputedStyle(one).color))
    the last of an odd number of figures takes the whole width: 390 training-pipeline SPLIT #view=split
        $$('.figures').filter((one) => one.checkVisibility()).every((own) => {
            const last = own.lastElementChild.getBoundingClientRect();
            return own.getBoundingClientRect().right - last.right < 4;
        })
    the links to all views are in sight on a phone: 390 training-pipeline SPLIT
        $$('#bar a').map((one) => one.getBoundingClientRect())
            .every((own) => own.left >= 0 && own.right <= innerWidth)
    a piece of work as thin as its edges has none until it is enlarged: 390 training-pipeline SPLIT --micro-batches=64 #view=time
        (() => {
            const edges = () => $$('#step-strip .work').some((own) => getComputedStyle(own).stroke !== 'none');
            const before = edges();
            for (let count = 0; count < 6; count++) $('#step-strip-in').click();
            return !before && edges();
        })()
    a table that goes on says so: 390 training-pipeline SPLIT #view=split
        (async () => {
            const tables = $$('.scroll').filter((one) => one.checkVisibility());
            await new Promise((resolve) => setTimeout(resolve, 100));
            const says = tables.map((one) => one.classList.contains('goes-right'));
            return says.includes(true) && tables.every((one, at) =>
                (one.scrollWidth - one.clientWidth > 2) === says[at]);
        })()
";

#[test]
fn what_was_wrong_is_right() {
    for (head, expression) in cases(FACTS) {
        let (name, page) = head.split_once(": ").expect("a page");
        let page = page.replace("SPLIT", SPLIT).replace("REGEX", DEFAULT_REGEX);
        let (page, view) = page.split_once('#').unwrap_or((&page, ""));
        let mut words = page.splitn(3, ' ');
        let width = words.next().and_then(|width| width.parse().ok());
        let fixture = profile(words.next().expect("a fixture"));
        let options = words.next().expect("options");
        let hash = format!("#{view}");
        let page = Page::open(&fixture, options, width.expect("a width"), &hash);
        assert!(or_skip!(page).is(&expression.join("\n")), "{name}");
    }
}

#[test]
fn the_cursor_stays_when_the_pointer_moves_and_the_page_scrolls() {
    let mut page = or_skip!(page("training-pipeline", SPLIT, "#view=memory&step=100"));
    page.browser.mouse("mouseMoved", [400.0, 500.0], 0);
    page.run("scrollBy(0, 300)");
    page.run("new Promise(requestAnimationFrame)");
    let visible = "getComputedStyle($('#live-steps-chart .cursor')).visibility === 'visible'";
    assert!(page.is(visible));
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
