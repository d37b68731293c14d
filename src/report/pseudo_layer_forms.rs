//! Tests of every form with each kind of pseudo-layers.

use super::Part;
use super::terminal::{self, TextStyle};
use super::{Report, testing::report};
use super::{csv, html, markdown, tables};
use crate::model::PseudoLayers;

/// Returns the report with In and Out in one position, or with None in place of both.
fn with(pseudo_layers: PseudoLayers) -> Report {
    let mut report = report();
    report.pseudo_layers = pseudo_layers;
    report.layers.pop();
    let named = |names: &[Option<&str>]| -> Vec<Option<String>> {
        names.iter().map(|name| name.map(String::from)).collect()
    };
    let first: &[Option<&str>] = match pseudo_layers {
        PseudoLayers::OutWithIn => &[None, Some("0"), Some("Out")],
        _ => &[None, Some("0")],
    };
    let split = report.split.as_mut().unwrap();
    split.stages[0].layers = named(first);
    split.stages[1].layers = named(&[Some("1"), Some("2")]);
    split.stages[1].positions = 2..4;
    split.stages[1].layer_to = Some("2".into());
    report.sweep.as_mut().unwrap().rows[0].stages = vec![named(first)];
    report
}

/// Returns all forms for people, each with its name.
fn forms(report: &Report) -> [(&'static str, String); 5] {
    let mut written = Vec::new();
    csv::write(report, &mut written).unwrap();
    let mut tsv = Vec::new();
    let table = tables::sweep(report);
    table.write(Default::default(), &mut tsv).unwrap();
    [
        ("csv", String::from_utf8(written).unwrap()),
        ("sweep", String::from_utf8(tsv).unwrap()),
        ("markdown", markdown::text(report)),
        (
            "explain",
            terminal::text(report, &TextStyle::default(), &[Part::Explanation]),
        ),
        ("page", html::text(report)),
    ]
}

fn has(report: &Report, parts: [&str; 5]) {
    for ((form, text), part) in forms(report).iter().zip(parts) {
        assert!(text.contains(part), "{form}: {part} in {text}");
    }
}

#[test]
fn in_first_and_out_last() {
    let parts = [
        "\n0,In,0,In 0,",
        "\tIn 0\t",
        "| In 0 |",
        "Stage 1, layers 1 2 Out: ",
        "  1 2 Out  ",
    ];
    has(&report(), parts);
    for (form, text) in forms(&report()) {
        assert!(!text.contains("None 0"), "{form}: {text}");
    }
}

#[test]
fn out_with_in_on_the_first_ipu() {
    let parts = [
        "\n0,In Out,0,In 0 Out,",
        "\tIn 0 Out\t",
        "| In 0 Out |",
        "Stage 0, layers In 0 Out: ",
        "  In 0 Out  ",
    ];
    has(&with(PseudoLayers::OutWithIn), parts);
}

#[test]
fn none_in_the_classic_model() {
    let parts = [
        "\n0,None,0,None 0,",
        "\tNone 0\t",
        "| None 0 |",
        "Stage 0, layers None 0: ",
        "  None 0  ",
    ];
    has(&with(PseudoLayers::NoneFirst), parts);
}
