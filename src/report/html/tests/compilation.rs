//! The page about a compilation.

use super::{compiled, hostile_compiled, report, text};
use crate::report::{CutElsewhere, IpuFit, Report, TileTotals};

/// The elements of the head and the sections that show a number of the JSON form:
/// where it is, and the number. Maud escapes what could be taken for a tag.
fn numbers(page: &str) -> Vec<(String, String)> {
    let [from, to] = ["<header>", "</main>"].map(|tag| page.find(tag).expect("a tag"));
    let mut around: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for tag in page[from..to].split('<').skip(1) {
        let (tag, after) = tag.split_once('>').expect("the end of a tag");
        if tag.starts_with('/') {
            around.pop();
            continue;
        }
        // It has no end.
        if tag.starts_with("input ") {
            continue;
        }
        let value = |name: &str| {
            let (_, value) = tag.split_once(&format!("{name}=\""))?;
            Some(value.split('"').next().expect("a value"))
        };
        if let Some(own) = value("data-json") {
            found.push((around.concat() + own, after.replace(',', "")));
        }
        around.push(value("data-at").unwrap_or_default().to_string());
    }
    // What is left is the main element itself.
    assert_eq!(around, [""]);
    found
}

/// All numbers of a page are those of the report as JSON.
fn check(report: &Report) -> usize {
    let json = serde_json::to_value(report).expect("JSON");
    let numbers = numbers(&text(report));
    for (place, shown) in &numbers {
        let expected = json.pointer(place).expect("a place");
        // Numbers that may be beyond 64 bits are text.
        let text = expected.as_str().map(String::from);
        let expected = text.unwrap_or_else(|| expected.to_string());
        assert_eq!(&expected, shown, "{place}");
    }
    numbers.len()
}

fn has(page: &str, id: &str) -> bool {
    page.contains(&format!("<section id=\"{id}\">"))
}

#[test]
fn the_sections_are_those_of_a_compilation() {
    let page = text(&compiled());
    let of_both = ["memory", "liveness", "execution", "summary", "made"];
    for id in ["ipus", "against"].iter().chain(&of_both) {
        assert!(has(&page, id), "{id}");
    }
    for id in ["split", "stages", "cuts", "proof", "sweep", "layers"] {
        assert!(!has(&page, id), "{id}");
    }
    for absent in ["whole model on one IPU", "Layers</dt>", "Memory model"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("bad\">The compiled model does not fit on 1 of 3 IPUs"));
    for id in ["ipus", "against"] {
        assert!(!has(&text(&report()), id), "{id}");
    }
}

#[test]
fn every_number_is_that_of_the_json_form() {
    assert!(check(&compiled()) > 200);
    check(&report());
}

#[test]
fn links_lead_to_the_tiles_of_each_ipu() {
    let page = text(&compiled());
    for ipu in 0..3 {
        // From the drawing and from the list.
        assert_eq!(page.matches(&format!("href=\"#ipu-{ipu}\"")).count(), 2);
        assert_eq!(page.matches(&format!("id=\"ipu-{ipu}\"")).count(), 1);
    }
}

/// Neither a curve, cycles, names nor a prediction.
#[test]
fn what_was_not_recorded_is_left_out() {
    let mut report = compiled();
    report.memory.tiles.as_mut().unwrap().with_gaps = None;
    let fit = report.fit.as_mut().unwrap();
    fit.against = None;
    fit.limits = None;
    fit.steps = None;
    fit.variables = None;
    for own in &mut fit.ipus {
        *own = IpuFit {
            layers: None,
            named: None,
            curve: None,
            cycles: None,
            categories: Vec::new(),
            ..own.clone()
        };
    }
    report.memory.categories.clear();
    check(&report);
    let page = text(&report);
    for id in ["against", "liveness", "execution"] {
        assert!(!has(&page, id), "{id}");
    }
    for absent in ["All stashed", "With gaps</th>", "By category"] {
        let sections = page.split("<section id=\"memory\">").nth(1).unwrap();
        assert!(!sections.contains(absent), "{absent}");
    }
    report.memory.tiles = None;
    assert!(!has(&text(&report), "memory"));
}

/// One IPU needs no borders and no drawing of its own.
#[test]
fn one_ipu_is_no_list_of_ipus() {
    let mut report = compiled();
    let fit = report.fit.as_mut().unwrap();
    fit.ipus.truncate(1);
    fit.against = None;
    fit.limits = None;
    fit.fits = true;
    check(&report);
    let page = text(&report);
    assert!(page.contains("good\">The compiled model fits on 1 IPU"));
    assert!(!page.contains("id=\"ipu-0\"") && !page.contains("By tile of each IPU"));
}

#[test]
fn other_cuts_than_predicted_are_not_drawn_as_stages() {
    let mut report = compiled();
    let against = report.fit.as_mut().unwrap().against.as_mut().unwrap();
    against.cut_elsewhere = Some(CutElsewhere {
        stages: vec![1],
        ..CutElsewhere::default()
    });
    check(&report);
    let page = text(&report);
    assert!(has(&page, "against") && !page.contains(", predicted</div>"));
}

#[test]
fn hostile_names_keep_the_numbers_in_place() {
    assert!(check(&hostile_compiled("<b data-json=\"/x\">' \"/><!--")) > 200);
}

/// A report of a damaged file may say that there are more tiles than it lists.
#[test]
fn tiles_that_are_not_listed_are_not_drawn() {
    let mut report = compiled();
    let fit = report.fit.as_mut().unwrap();
    fit.tiles_per_ipu = 7;
    fit.ipus[1].ipu = u32::MAX;
    assert!(has(&text(&report), "memory"));
    report.fit.as_mut().unwrap().tiles_per_ipu = 0;
    report.memory.tiles = Some(TileTotals::default());
    assert!(has(&text(&report), "memory"));
}

/// As many tiles and steps as four machines have.
fn large() -> Report {
    const IPUS: u32 = 16;
    const TILES: u32 = 1472;
    let mut report = compiled();
    let hashed = |number: u32| u64::from(number.wrapping_mul(2_654_435_761) >> 13);
    let tiles: Vec<u64> = (0..IPUS * TILES)
        .map(|tile| 100_000 + hashed(tile))
        .collect();
    let fit = report.fit.as_mut().unwrap();
    let like = fit.ipus[1].clone();
    let ipu = |ipu: u32| {
        let mut own = IpuFit {
            ipu,
            categories: vec![like.categories[0].clone(); 80],
            ..like.clone()
        };
        let curve = own.curve.as_mut().unwrap();
        curve.last_step = 19_999;
        curve.steps = (0..750).map(|step| step * 26).collect();
        curve.bytes = (0..750).map(|step| hashed(step + ipu)).collect();
        own
    };
    fit.ipus = (0..IPUS).map(ipu).collect();
    fit.tiles_per_ipu = TILES;
    let against = fit.against.as_mut().unwrap();
    against.stages = vec![against.stages[1].clone(); IPUS as usize];
    report.memory.categories = vec![report.memory.categories[0].clone(); 80];
    report.memory.tiles = Some(TileTotals {
        fullest: 0,
        total: tiles.clone(),
        with_gaps: Some(tiles.iter().map(|bytes| bytes + 1000).collect()),
        always_live: tiles.iter().map(|bytes| bytes / 2).collect(),
        not_always_live: tiles,
    });
    report
}

#[test]
fn sixteen_ipus_with_all_their_tiles_take_less_than_four_megabytes() {
    let size = text(&large()).len();
    assert!((1_000_000..4_000_000).contains(&size), "{size} bytes");
}
