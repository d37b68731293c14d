//! What a report says in sentences and tables, as data: the page shows it, and the JSON
//! form has it, so that a viewer can.

use crate::report::fit::{sentences as fit_sentences, tables as fit_tables};
use crate::report::sentences::{self, Sentence, say};
use crate::report::table::Table;
use crate::report::{Report, plan, step, tables};
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the report for people: its sentences and tables.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Section {
    /// By which a program knows it.
    pub id: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Sentences without a full stop, each in phrases.
    pub(in crate::report) sentences: Vec<Sentence>,
    /// Rows under typed columns.
    pub tables: Vec<Table>,
}

/// All parts that the report has something for, in order.
pub(in crate::report) fn sections(report: &Report) -> Vec<Section> {
    let all = [
        ("verdict", "Verdict", verdict(report), Vec::new()),
        (
            "refusal",
            "Why it does not fit",
            refusal(report),
            Vec::new(),
        ),
        ("help", "What would help", help(report), Vec::new()),
        ("given", "Beside the best", given(report), Vec::new()),
        ("ipus", "IPUs", ipus(report), ipu_tables(report)),
        (
            "against",
            "Against the prediction",
            against(report),
            against_tables(report),
        ),
        ("stages", "Stages", stages(report), stage_tables(report)),
        ("cuts", "Cuts", Vec::new(), cut_tables(report)),
        (
            "tied-weights",
            "Tied weights",
            tied_weights(report),
            Vec::new(),
        ),
        ("proof", "Proof", proof(report), Vec::new()),
        ("sweep", "Numbers of IPUs", Vec::new(), sweep_tables(report)),
        (
            "plan",
            "Configurations that fit",
            plan::sentences(report),
            plan_tables(report),
        ),
        ("step", "A step", step::sentences(report), Vec::new()),
        ("layers", "Layers", Vec::new(), layer_tables(report)),
        ("coverage", "Coverage", coverage(report), Vec::new()),
        ("warnings", "Warnings", warnings(report), Vec::new()),
    ];
    let section = |(id, title, sentences, tables): (_, _, Vec<Sentence>, Vec<Table>)| Section {
        id,
        title,
        sentences: sentences.into_iter().map(Sentence::capital).collect(),
        tables: tables
            .into_iter()
            .filter(|own| !own.rows.is_empty())
            .collect(),
    };
    let has_some = |own: &Section| !own.sentences.is_empty() || !own.tables.is_empty();
    all.into_iter().map(section).filter(has_some).collect()
}

fn verdict(report: &Report) -> Vec<Sentence> {
    let split = sentences::unplaced(report).into_iter();
    let lines = split.chain(sentences::too_large(report));
    [say(report.heading())].into_iter().chain(lines).collect()
}

fn refusal(report: &Report) -> Vec<Sentence> {
    let Some(refusal) = &report.refusal else {
        return Vec::new();
    };
    let obstacles = sentences::refusal(refusal);
    let proves = [obstacles.proves].into_iter();
    proves
        .chain(obstacles.ranges)
        .chain(obstacles.others)
        .collect()
}

fn help(report: &Report) -> Vec<Sentence> {
    let refusal = report.refusal.as_ref();
    refusal.map_or(Vec::new(), |own| sentences::help(report, own))
}

fn given(report: &Report) -> Vec<Sentence> {
    let broken = report.given.iter().flat_map(|own| &own.broken_constraints);
    let broken = broken.map(|own| say("the split breaks ").name(own));
    broken.chain(sentences::given(report)).collect()
}

fn ipus(report: &Report) -> Vec<Sentence> {
    (report.fit.as_ref()).map_or(Vec::new(), fit_sentences::lines)
}

fn ipu_tables(report: &Report) -> Vec<Table> {
    let tables = report.fit.iter().flat_map(|fit| {
        let empty = ["Layers", "Overflowed", "All stashed", "All restored"];
        [
            fit_tables::ipus(fit).without_zeros(&empty),
            fit_tables::categories(fit),
        ]
    });
    tables.collect()
}

fn against(report: &Report) -> Vec<Sentence> {
    let against = report.fit.as_ref().and_then(|own| own.against.as_ref());
    against.map_or(Vec::new(), fit_sentences::against)
}

fn against_tables(report: &Report) -> Vec<Table> {
    let against = report.fit.as_ref().and_then(|own| own.against.as_ref());
    // Of other cuts, what differs says nothing.
    let against = against.filter(|own| own.cut_elsewhere.is_none());
    against.map_or(Vec::new(), |own| {
        let stages = fit_tables::stages(own, report.pseudo_layers);
        vec![stages, fit_tables::parts(own)]
    })
}

fn stages(report: &Report) -> Vec<Sentence> {
    if report.split.is_none() {
        return Vec::new();
    }
    let lines = sentences::pipeline(report).into_iter();
    let alternatives = report.pipeline.iter().filter(|_| report.refusal.is_none());
    lines
        .chain(sentences::learnt(report))
        .chain(alternatives.flat_map(sentences::alternatives))
        .collect()
}

fn stage_tables(report: &Report) -> Vec<Table> {
    vec![tables::stages(report).without_zeros(&tables::ADDED)]
}

fn cut_tables(report: &Report) -> Vec<Table> {
    vec![tables::cuts(report)]
}

fn tied_weights(report: &Report) -> Vec<Sentence> {
    let tied = report.tied_weights.iter();
    tied.map(|own| sentences::tied_weight(own, report.pseudo_layers))
        .collect()
}

fn proof(report: &Report) -> Vec<Sentence> {
    let Some(proof) = &report.proof else {
        return Vec::new();
    };
    let nothing = "nothing shows that this split is the best: it was given, none fits, or the \
                   search proves nothing";
    let line = sentences::proof(proof).unwrap_or_else(|| say(nothing));
    vec![say("the objective was ").code(&*proof.objective), line]
}

fn sweep_tables(report: &Report) -> Vec<Table> {
    let sweep = report.sweep.iter();
    sweep
        .map(|own| tables::sweep(own, report.pseudo_layers))
        .collect()
}

fn plan_tables(report: &Report) -> Vec<Table> {
    let plan = report.plan.iter();
    plan.map(|own| plan::table(own, report.pseudo_layers))
        .collect()
}

fn layer_tables(report: &Report) -> Vec<Table> {
    let layers = tables::layers(report);
    vec![layers.without_zeros(&["Cycles", "Stage"])]
}

fn coverage(report: &Report) -> Vec<Sentence> {
    let coverage = report.memory.coverage.iter();
    coverage.map(sentences::coverage).collect()
}

fn warnings(report: &Report) -> Vec<Sentence> {
    let warnings = report.warnings_for_people().into_iter();
    warnings.map(|own| Sentence::default().name(own)).collect()
}
