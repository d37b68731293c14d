//! The report as Markdown, to be posted in a pull request or an issue.

use super::fit::{sentences as fit_sentences, tables as fit_tables};
use super::sentences::{self, Phrase, Sentence};
use super::table::{Cell, Table};
use super::text::{capital, grouped, shown};
use super::{Report, plan, step, tables};
use crate::escape::markdown;
use std::fmt::Write;

/// The maximum number of layers that are named, the largest first.
const LARGEST: usize = 5;

/// The maximum number of tied weights that are named.
const MAX_TIED: usize = 20;

/// The verdict, why nothing fits, the stages, the cuts, the best split beside
/// one that was given, the numbers of IPUs, the largest layers, coverage and
/// warnings.
pub fn text(report: &Report) -> String {
    let mut text = heading(report);
    if let Some(refusal) = &report.refusal {
        let obstacles = sentences::refusal(refusal);
        text += &paragraph(report, &obstacles.proves);
        let lines = obstacles.ranges.iter().chain(&obstacles.others);
        text += &list(lines.map(|line| said(report, line)));
        let help = sentences::help(report, refusal);
        text += &list(help.iter().map(|line| said(report, line)));
    }
    text += &given(report);
    if !report.constraints.is_empty() {
        let _ = writeln!(text, "\nConstraints: {}.", names(&report.constraints));
    }
    let tied = report.tied_weights.iter().take(MAX_TIED);
    let tied = tied.map(|own| sentences::tied_weight(own, report.pseudo_layers));
    text += &list(tied.map(|line| said(report, &line)));
    text += &compiled(report);
    if report.split.is_some() {
        let lines = sentences::pipeline(report).into_iter();
        let lines = lines.chain(sentences::learnt(report));
        text += &list(lines.map(|line| said(report, &line)));
        let stages = tables::stages(report).only(&STAGES);
        text += &table(stages.without_zeros(&tables::ADDED));
        text += &table(tables::cuts(report).only(&CUTS));
        text += &list(
            step::sentences(report)
                .iter()
                .map(|line| said(report, line)),
        );
        for line in sentences::too_large(report) {
            text += &paragraph(report, &line);
        }
    }
    if let Some(sweep) = &report.sweep {
        let sweep = tables::sweep(sweep, report.pseudo_layers);
        text += &table(sweep.without("Stages").without("Of the limit"));
    }
    if let Some(plan) = &report.plan {
        text += &list(
            plan::sentences(report)
                .iter()
                .map(|line| said(report, line)),
        );
        text += &table(plan::table(plan, report.pseudo_layers).without("Command"));
    }
    text += &largest_layers(report);
    if let Some(coverage) = &report.memory.coverage {
        text += &paragraph(report, &sentences::coverage(coverage));
    }
    let warnings = report.warnings_for_people();
    if !warnings.is_empty() {
        text += "\nWarnings:\n";
        text += &list(warnings.iter().map(|own| markdown(own)));
    }
    text + &footer(report)
}

const STAGES: [&str; 14] = [
    "Stage",
    "Layers",
    "Tile",
    "Peak memory",
    "Of the limit",
    "Free",
    "Median tile",
    "Recomputed",
    "Stash",
    "Accumulators",
    "Waiting",
    "Passing through",
    tables::LEARNT,
    "Cycles",
];
const IPUS: [&str; 10] = [
    "IPU",
    "Layers",
    "Fits",
    "Tile",
    "Peak memory",
    "Of the limit",
    "Free",
    "Tiles over",
    "Overflowed",
    "Median tile",
];
const CUTS: [&str; 3] = ["Cut", "Between the layers", "Over it"];

/// Whether a compilation fits, IPU by IPU, and how far it is from what was predicted.
fn compiled(report: &Report) -> String {
    let Some(fit) = &report.fit else {
        return String::new();
    };
    let lines = fit_sentences::lines(fit);
    let mut text = list(lines.iter().map(|line| said(report, line)));
    let ipus = fit_tables::ipus(fit).only(&IPUS);
    text += &table(ipus.without_zeros(&["Layers", "Overflowed"]));
    if let Some(against) = &fit.against {
        text += "\nAgainst the prediction:\n";
        let lines = fit_sentences::against(against);
        text += &list(lines.iter().map(|line| said(report, line)));
        // Of other cuts, what differs says nothing.
        if against.cut_elsewhere.is_none() {
            let stages = fit_tables::stages(against, report.pseudo_layers);
            text += &table(stages.only(&fit_tables::FOR_PEOPLE));
            text += &table(fit_tables::parts(against));
        }
    }
    text
}

fn heading(report: &Report) -> String {
    let target = &report.provenance.target;
    format!(
        "## {}\n\nLimit: {} bytes on each of {} tiles of {} ({} bytes each).\n",
        report.heading(),
        grouped(report.memory.limit),
        grouped(u64::from(target.tiles)),
        markdown(&target.architecture),
        grouped(target.bytes_per_tile)
    )
}

fn footer(report: &Report) -> String {
    let own = &report.provenance;
    let model = match report.fit {
        Some(_) => ", as it was recorded".to_string(),
        None => format!(", in the {} memory model", markdown(&own.memory_model)),
    };
    format!(
        "\nMade by popliner {} from {}{model}.\n",
        markdown(&own.popliner),
        markdown(&own.files.profile),
    )
}

/// How a split that was given compares with the best.
fn given(report: &Report) -> String {
    let Some(given) = &report.given else {
        return String::new();
    };
    let best = sentences::given(report);
    let mut text = best.map_or(String::new(), |own| paragraph(report, &own));
    if !given.broken_constraints.is_empty() {
        let _ = writeln!(text, "It breaks: {}.", names(&given.broken_constraints));
    }
    text
}

fn largest_layers(report: &Report) -> String {
    let columns = ["Layer", "Tile", "Peak memory", "Of the limit", "All tiles"];
    let mut layers = tables::layers(report);
    let bytes = |place: usize| report.layers[place].fullest_tile_bytes;
    let mut largest: Vec<usize> = (0..report.layers.len()).collect();
    largest.retain(|&place| report.layers[place].total > 0);
    largest.sort_by_key(|&place| std::cmp::Reverse(bytes(place)));
    largest.truncate(LARGEST);
    layers.rows = largest
        .iter()
        .map(|&place| layers.rows[place].clone())
        .collect();
    table(layers.only(&columns))
}

/// A table with its numbers on the right; nothing without rows.
fn table(table: Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = table.columns.iter().map(|column| column.name.to_string());
    let rules = table.columns.iter().map(|column| {
        let rule = if column.is_number() { "---:" } else { "---" };
        rule.to_string()
    });
    let mut text = format!("\n{}{}", line(names.collect()), line(rules.collect()));
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| match cell {
            Cell::Text(_) | Cell::Layer(_) | Cell::Layers(_) | Cell::Stages(_) => {
                markdown(&table.shown(cell))
            }
            other => table.shown(other),
        });
        text += &line(cells.collect());
    }
    text
}

/// A sentence as a paragraph of its own.
fn paragraph(report: &Report, sentence: &Sentence) -> String {
    format!("\n{}.\n", said(report, sentence))
}

/// Nothing without items.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("- {item}\n")).collect();
    if items.is_empty() {
        items
    } else {
        format!("\n{items}")
    }
}

/// A sentence that begins with a capital letter.
fn said(report: &Report, sentence: &Sentence) -> String {
    let phrase = |(place, phrase): (usize, &Phrase)| match phrase {
        Phrase::Text(text) => text.clone(),
        Phrase::Amount { bytes, .. } => format!("{} bytes", grouped(*bytes)),
        Phrase::Bytes { bytes: number, .. } | Phrase::Count { count: number, .. } => {
            grouped(*number)
        }
        Phrase::Name(name) if place == 0 => markdown(&capital(&shown(name))),
        Phrase::Name(name) | Phrase::Code(name) => markdown(&shown(name)),
        Phrase::List(list) => markdown(list),
        Phrase::Layers(layers) => markdown(&report.pseudo_layers.shown_list(layers)),
        Phrase::Stages(stages) => markdown(&report.pseudo_layers.shown_stages(stages)),
    };
    let sentence = sentence.clone().capital();
    sentence.phrases.iter().enumerate().map(phrase).collect()
}

fn names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|own| markdown(&shown(own))).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::report;

    #[test]
    fn names_in_a_list_are_cut_short_each_by_itself() {
        let mut report = report();
        let long = |letter: &str| letter.repeat(100);
        let users = ["a", "b", "c"].map(|letter| Some(long(letter)));
        report.tied_weights[0].layers = users.to_vec();
        let text = text(&report);
        for letter in ["a", "b", "c"] {
            assert!(text.contains(&long(letter)), "{letter} in {text}");
        }
    }

    #[test]
    fn tables_keep_their_columns_whatever_the_names() {
        let mut report = report();
        let hostile = Some("a|b`c\nd".to_string());
        report.layers[1].name = hostile.clone();
        let split = report.split.as_mut().unwrap();
        split.stages[0].layers[1] = hostile.clone();
        split.too_large[0].name = hostile;
        let text = text(&report);
        let mut columns = 0;
        for line in text.lines() {
            let bars = line.matches('|').count();
            if line.starts_with('|') {
                assert!(columns == 0 || columns == bars, "{line}");
            } else {
                assert_eq!(bars, 0, "{line}");
            }
            columns = bars;
        }
        assert!(
            text.starts_with("## The model does not fit on 2 IPUs\n"),
            "{text}"
        );
        assert!(text.contains("\nAt least 3 IPUs are needed: 2 ranges of layers are over "));
        assert!(
            text.contains("Constraints: <code>--cut-after 0</code>, "),
            "{text}"
        );
        assert!(text.contains("needs 700,024 bytes on tile 1, 61,048 over the limit"));
    }
}
