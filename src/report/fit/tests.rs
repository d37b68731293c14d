//! Tests how predicted stages are matched with recorded IPUs, and how the differences between
//! prediction and recording are reported.

use super::{CutElsewhere, Fit, FitComparison, IpuFit, MatchedBy, StageComparison, TileParts};
use crate::{
    report::sections::blocks,
    report::terminal::{self, TextStyle},
    report::testing::{compiled, report},
    report::{Block, Form, LayerNames, Report, ScreenPart, Stage, Units},
};

/// Parses the names of layers in a text such as `- 0 1 Out`, in which `-` stands for In (the
/// operations before the layers).
fn names(layers: &str) -> LayerNames {
    let names = layers.split_whitespace();
    names
        .map(|name| (name != "-").then(|| name.to_string()))
        .collect()
}

/// Makes a prediction in which the fullest tile of the first stage has 1,000 bytes, that of the
/// second 2,000, and so on. `stages` has the layers of each stage.
fn prediction(stages: &[&str]) -> Report {
    let mut report = report();
    let split = report.split.as_mut().expect("a split");
    let stage = |(number, layers): (usize, &&str)| {
        let mut stage = Stage {
            stage: number as u32,
            layers: names(layers),
            has_out: layers.ends_with("Out"),
            ..Stage::default()
        };
        stage.fullest_tile.bytes = 1000 * (number as u64 + 1);
        stage.fullest_tile.parts.variables = stage.fullest_tile.bytes;
        stage
    };
    split.stages = stages.iter().enumerate().map(stage).collect();
    report
}

/// Makes a compilation whose IPUs run the given layers. The fullest tile of each IPU has 100 bytes
/// more than [`prediction`] gives the stage with the same index.
fn fit(ipus: &[Option<&str>]) -> Fit {
    let ipu = |(number, layers): (usize, &Option<&str>)| {
        let mut ipu = IpuFit {
            ipu: number as u32,
            fits: true,
            layers: layers.map(names),
            ..IpuFit::default()
        };
        ipu.fullest_tile.bytes = 1000 * (number as u64 + 1) + 100;
        ipu.fullest_tile.parts.variables = ipu.fullest_tile.bytes - 30;
        ipu.fullest_tile.parts.global_exchange_code = 30;
        ipu
    };
    Fit {
        listed_replicas: 1,
        ipus: ipus.iter().enumerate().map(ipu).collect(),
        ..Fit::default()
    }
}

fn comparison(stages: &[&str], ipus: &[Option<&str>]) -> FitComparison {
    FitComparison::new(&prediction(stages), &fit(ipus)).expect("a comparison")
}

fn pairs(comparison: &FitComparison) -> Vec<(u32, u32)> {
    comparison
        .stages
        .iter()
        .map(|stage| (stage.stage, stage.ipu))
        .collect()
}

#[test]
fn stages_are_where_their_layers_run() {
    let in_order = comparison(
        &["- 0", "1 2", "3 Out"],
        &[Some("0"), Some("1 2"), Some("3")],
    );
    assert_eq!(in_order.matched_by, MatchedBy::Layers);
    assert_eq!(pairs(&in_order), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(in_order.cut_elsewhere, None);
    let swapped = comparison(
        &["- 0", "1 2", "3 Out"],
        &[Some("0"), Some("3"), Some("1 2")],
    );
    assert_eq!(pairs(&swapped), [(0, 0), (1, 2), (2, 1)]);
    assert_eq!(swapped.cut_elsewhere, None);
    // Stages that have only In or only Out (the operations before and after the layers) have no
    // layers by which they could be matched with IPUs. They are matched, in order, with the IPUs
    // that no other stage is matched with.
    let alone = comparison(&["-", "0 1", "Out"], &[Some(""), Some("0 1"), Some("")]);
    assert_eq!(pairs(&alone), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(alone.cut_elsewhere, None);
    let with_in = comparison(&["- Out", "0", "1"], &[Some(""), Some("0"), Some("1")]);
    assert_eq!(
        (pairs(&with_in), with_in.cut_elsewhere),
        (vec![(0, 0), (1, 1), (2, 2)], None)
    );
}

#[test]
fn without_names_they_are_in_order() {
    for unknown in [None, Some(""), Some("other")] {
        let ipus = [unknown, unknown, unknown];
        let blind = comparison(&["- 0", "1 2", "3 Out"], &ipus);
        assert_eq!(blind.matched_by, MatchedBy::Order);
        assert_eq!(pairs(&blind), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(blind.cut_elsewhere, None);
    }
}

#[test]
fn other_cuts_are_seen() {
    let moved = comparison(
        &["- 0", "1 2", "3 Out"],
        &[Some("0 1"), Some("2"), Some("3")],
    );
    let cut = moved.cut_elsewhere.expect("other cuts");
    assert_eq!((cut.ipus, cut.stages), (None, vec![0, 1]));
    assert_eq!(cut.recorded, [names("0 1"), names("2"), names("3")]);
    let fewer = comparison(&["- 0", "1 2", "3 Out"], &[Some("0 1 2"), Some("3")]);
    assert_eq!(fewer.cut_elsewhere.expect("other cuts").ipus, Some(2));
    let blind = comparison(&["- 0", "1 2", "3 Out"], &[None, None]);
    assert_eq!(pairs(&blind), [(0, 0), (1, 1)]);
    assert_eq!(blind.cut_elsewhere.expect("other cuts").ipus, Some(2));
}

#[test]
fn of_replicas_the_first_is_compared() {
    let mut fit = fit(&[Some("0"), Some("1"), Some("0"), Some("1")]);
    fit.listed_replicas = 2;
    let comparison =
        FitComparison::new(&prediction(&["- 0", "1 Out"]), &fit).expect("a comparison");
    assert_eq!(
        (pairs(&comparison), comparison.cut_elsewhere),
        (vec![(0, 0), (1, 1)], None)
    );
}

#[test]
fn a_report_that_predicts_nothing_is_refused() {
    let mut nothing = prediction(&["- 0"]);
    nothing.split.as_mut().expect("a split").stages.clear();
    let fit = fit(&[None]);
    let error = |nothing: &Report| FitComparison::new(nothing, &fit).unwrap_err().to_string();
    assert!(error(&nothing).starts_with("its split has no stages"));
    nothing.split = None;
    assert!(error(&nothing).starts_with("it has no split"));
}

#[test]
fn the_reserve_is_what_the_worst_stage_lacks() {
    let recorded = [Some("0"), Some("1")];
    let reserves = |stages: &[StageComparison]| -> Vec<u64> {
        stages.iter().map(|stage| stage.reserve).collect()
    };
    let mut prediction = prediction(&["- 0", "1 Out"]);
    let compare =
        |prediction: &Report| FitComparison::new(prediction, &fit(&recorded)).expect("stages");
    let both = compare(&prediction);
    assert_eq!(
        (reserves(&both.stages), both.reserve),
        (vec![100, 100], Some(100))
    );
    let mut predict = |bytes: [u64; 2]| {
        let stages = &mut prediction.split.as_mut().expect("a split").stages;
        for (stage, bytes) in stages.iter_mut().zip(bytes) {
            stage.fullest_tile.bytes = bytes;
        }
        compare(&prediction)
    };
    let second = predict([5000, 2099]);
    assert_eq!(
        (reserves(&second.stages), second.reserve),
        (vec![0, 1], Some(1))
    );
    let enough = predict([1100, 2101]);
    assert_eq!(
        (reserves(&enough.stages), enough.reserve),
        (vec![0, 0], Some(0))
    );
    // If the compilation was cut at other layers than predicted, predicted stages and IPUs are not
    // comparable, so the report names no `--reserve` that would have covered the differences.
    assert_eq!(
        comparison(&["- 0", "1 Out"], &[Some("0 1"), Some("")]).reserve,
        None
    );
}

/// Changes the comparison of a stage: the recorded variables are `variables` bytes smaller than the
/// predicted ones, and the recorded exchange code is `exchange` bytes larger.
fn change(stage: &mut StageComparison, variables: u64, exchange: u64) {
    stage.predicted_parts = TileParts {
        variables: 10_000,
        ..TileParts::default()
    };
    stage.recorded_parts = TileParts {
        variables: 10_000 - variables,
        global_exchange_code: exchange,
        ..TileParts::default()
    };
    stage.predicted = 10_000;
    stage.difference = exchange as i64 - variables as i64;
}

#[test]
fn the_worst_part_is_off_the_same_way_as_the_tile() {
    let mut stage = comparison(&["0 Out"], &[Some("0")]).stages.remove(0);
    let worst_part = |stage: &StageComparison| {
        let worst = stage.worst_part();
        worst.map(|part| (part.name, part.difference))
    };
    assert_eq!(worst_part(&stage), Some(("variables", 70)));
    change(&mut stage, 648, 576);
    assert_eq!(worst_part(&stage), Some(("variables", -648)));
    change(&mut stage, 576, 648);
    assert_eq!(worst_part(&stage), Some(("global exchange code", 648)));
    // If the fullest tile is as full as predicted, there is no difference that a kind of contents
    // (such as code) could explain.
    change(&mut stage, 576, 576);
    assert_eq!(worst_part(&stage), None);
}

/// In this test, the fullest tile of a stage has fewer bytes of variables, and more bytes of
/// exchange code, than predicted. The terminal and the HTML page must name the variables as the
/// main cause if the tile has fewer bytes in all than predicted, and the exchange code if it has
/// more.
#[test]
fn less_than_predicted_is_not_most_of_all_more() {
    let look = TextStyle {
        units: Units::Bytes,
        ..TextStyle::default()
    };
    for (variables, exchange, said) in [
        (
            648,
            576,
            "72 bytes less than predicted (-0.72 %), most of all variables: 648 bytes less",
        ),
        (
            576,
            648,
            "72 bytes more than predicted (+0.72 %), most of all global exchange code: 648 bytes more",
        ),
    ] {
        let mut report = compiled();
        let fit = report.fit.as_mut().expect("a compilation");
        let comparison = fit.comparison.as_mut().expect("a comparison");
        change(&mut comparison.stages[0], variables, exchange);
        let terminal = terminal::text(&report, &look, &[ScreenPart::Answer]);
        assert!(terminal.contains(said), "{terminal}");
        let page = on_page(&report);
        assert!(page.iter().any(|own| own.ends_with(said)), "{page:?}");
    }
}

/// Returns the sentences that the HTML page shows, with phrases joined as the page's script joins
/// them.
fn on_page(report: &Report) -> Vec<String> {
    let json = crate::report::json(report).expect("memory");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let sections = json["sections"].as_array().expect("sections").iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().expect("blocks"));
    let phrase = |phrase: &serde_json::Value| match phrase["amount"].as_u64() {
        Some(bytes) => format!("{bytes} bytes"),
        None => phrase["text"].as_str().unwrap_or_default().to_string(),
    };
    let lines = blocks.filter_map(|block| block["line"].as_array());
    lines
        .map(|phrases| phrases.iter().map(phrase).collect())
        .collect()
}

#[test]
fn the_lines_for_people() {
    let look = TextStyle {
        units: Units::Bytes,
        screen: None,
        columns: None,
    };
    let lines = terminal::text(
        &compiled(),
        &look,
        &[ScreenPart::Verdict, ScreenPart::Table, ScreenPart::Answer],
    );
    let expected = "\
FAILURE: The compiled model does not fit on 1 of 3 IPUs
";
    assert!(lines.contains(expected), "{lines}");
    assert!(lines.contains("\nIPU 1 does not fit: tile "), "{lines}");
    assert!(
        lines.contains("\nStages and IPUs were matched by the layers"),
        "{lines}"
    );
    let mut cut = compiled();
    let fit = cut.fit.as_mut().expect("a compilation");
    let comparison = fit.comparison.as_mut().expect("a comparison");
    comparison.cut_elsewhere = Some(CutElsewhere {
        ipus: Some(3),
        stages: vec![1, 2],
        recorded: vec![names("0"), names("1 2"), names("3")],
    });
    comparison.predicted_stages = 2;
    let lines = terminal::text(
        &cut,
        &look,
        &[ScreenPart::Verdict, ScreenPart::Table, ScreenPart::Answer],
    );
    let expected = "The pipeline was cut elsewhere than predicted: it has 3 IPUs and the prediction 2 \
                    stages; the IPUs have the layers [ 0 | 1 2 | 3 ] (predict the split that was \
                    compiled, with --layers-per-ipu or --splits, and compare with that)";
    assert!(lines.ends_with(expected), "{lines}");
}

/// The section `parts` compares the fullest tile of each stage with the prediction, by kind of
/// contents, such as code. In Markdown, it has only the kinds whose bytes differ from the
/// prediction.
#[test]
fn parts_as_predicted_are_left_out_for_people() {
    let rows = |form| {
        blocks(&compiled(), form, |section| section.id == "parts")
            .find_map(|(_, block)| match block {
                Block::Table(table) => Some(table.plain_rows()),
                _ => None,
            })
            .expect("a table")
    };
    let (all, changed) = (rows(Form::Csv), rows(Form::Markdown));
    let differs = |row: &&Vec<String>| row.last().is_some_and(|last| last != "0");
    assert!(!changed.is_empty() && changed.len() < all.len(), "{all:?}");
    assert!(changed.iter().eq(all.iter().filter(differs)), "{changed:?}");
}
