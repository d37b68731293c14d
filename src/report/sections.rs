//! The sections of a report: their content, their order, and the forms that have them. The
//! terminal, Markdown and CSV walk this one table, so a new section is one line. The page has all
//! sections as data, and shows a section where a script asks for its name.

use super::fit::{sentences as of_fit, tables as fit_tables};
use super::phrases::names;
use super::section_blocks::{Block, each, lines, table_if};
use super::{Form, Report, section_blocks, sentences, tables};
use serde::Serialize;

/// A section of a report, which several forms of output can have.
#[derive(Debug)]
pub struct Section {
    /// The name of the section in one word, such as `tied-weights`.
    pub id: &'static str,
    /// The heading of the section.
    pub title: &'static str,
    /// The part of a terminal's output that contains the section.
    pub part: ScreenPart,
    forms: &'static [Form],
    blocks: fn(&Report, Form) -> Vec<Block>,
}

/// The parts of a terminal's output, which a run prints at different times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScreenPart {
    /// The sentence that says whether the model fits.
    Verdict,
    /// The table of the stages of a split, or of the IPUs of a compilation.
    Table,
    /// The sentences about the split or the compilation.
    Answer,
    /// The sentences that prove the split, which are printed only on request.
    Proof,
    /// The sentence that names the configuration that `--plan` recommends.
    Recommendation,
    /// The sentences about the fullest and the slowest stage of the configuration that `--plan`
    /// recommends. `--solve` has them among those of the split.
    Bottlenecks,
    /// The sentences about all configurations of `--plan`.
    Plan,
    /// The sentences of `--explain`: how each stage uses memory.
    Explanation,
    /// The sentence that says how much of the recorded memory the model explains, printed at the
    /// very end.
    Coverage,
    /// No part of a terminal's output: only documents, such as Markdown, show the section.
    Document,
}

const ALL: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page, Form::Csv];
const PEOPLE: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page];
const DOCUMENTS: &[Form] = &[Form::Markdown, Form::Page];
const PROGRAMS_TOO: &[Form] = &[Form::Markdown, Form::Page, Form::Csv];
const TERMINAL: &[Form] = &[Form::Terminal];
const SCREENS: &[Form] = &[Form::Terminal, Form::Page];
const CSV: &[Form] = &[Form::Csv];

/// Declares the sections. A line has a section's name, its heading, its part of a terminal's
/// output, the forms that have it, and the function that makes its content.
macro_rules! sections {
    ($($id:literal $title:literal $part:ident $forms:ident $blocks:expr;)*) => {
        [$(Section {
            id: $id,
            title: $title,
            part: ScreenPart::$part,
            forms: $forms,
            blocks: $blocks,
        }),*]
    };
}

/// All sections of a report, in the order in which forms show them.
pub static SECTIONS: [Section; 24] = sections![
    "verdict" "Verdict" Verdict PEOPLE section_blocks::verdict;
    "split" "Split" Table ALL |report, _| table_if(!report.stages().is_empty(), || tables::stages(report));
    "ipus" "IPUs" Table ALL |report, _| table_if(report.fit.is_some(), || fit_tables::ipus(report));
    "categories" "Categories" Document CSV |report, _| table_if(report.fit.is_some(), || fit_tables::categories(report));
    "step" "Step" Answer PEOPLE section_blocks::step;
    "pipeline" "Pipeline" Answer PEOPLE |report, _| lines(report.split.iter().flat_map(|_| sentences::pipeline(report)));
    "proof" "Proof" Proof SCREENS |report, _| lines(report.proof.as_ref().and_then(sentences::proof));
    "tied-weights" "Tied weights" Answer PEOPLE |report, _| lines(sentences::tied_weights(report));
    "given" "Beside the best" Answer PEOPLE section_blocks::given;
    "refusal" "Why it does not fit" Answer PEOPLE section_blocks::refusal;
    "constraints" "Constraints" Document DOCUMENTS |report, _| each(Block::Paragraph, names("constraints: ", &report.constraints));
    "prediction" "Compared with the prediction" Answer ALL section_blocks::prediction;
    "differences" "Differences" Answer PEOPLE |report, _| lines(report.comparison().into_iter().flat_map(of_fit::comparison));
    "parts" "Parts" Document PROGRAMS_TOO section_blocks::parts;
    "cuts" "Cuts" Document DOCUMENTS |report, _| vec![Block::Table(tables::cuts(report))];
    "sweep" "Numbers of IPUs" Document DOCUMENTS |report, _| vec![Block::Table(tables::sweep_table(report))];
    "recommendation" "Recommended" Recommendation PEOPLE section_blocks::recommendation;
    "bottlenecks" "Bottlenecks" Bottlenecks PEOPLE |report, _| lines(sentences::bottlenecks(report));
    "plan" "Plan" Plan PEOPLE section_blocks::plan;
    "tried" "Tried" Proof PEOPLE |report, _| lines(sentences::tried(report));
    "explanation" "Explanation" Explanation TERMINAL |report, _| lines(sentences::explain(report));
    "layers" "Layers" Document PROGRAMS_TOO section_blocks::layers;
    "coverage" "Coverage" Coverage PEOPLE section_blocks::coverage;
    "warnings" "Warnings" Document DOCUMENTS section_blocks::warnings;
];

impl Section {
    /// Returns whether a form of output has the section.
    pub(super) fn is_in(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    /// Returns the content of the section in a form of output; empty if the form or the report does
    /// not have the section. Documents leave out tables without rows.
    pub(super) fn blocks(&self, report: &Report, form: Form) -> Vec<Block> {
        if !self.is_in(form) {
            return Vec::new();
        }
        (self.blocks)(report, form)
            .into_iter()
            .filter_map(|block| match block {
                Block::Table(table) if table.rows.is_empty() && DOCUMENTS.contains(&form) => None,
                Block::Table(table) => Some(Block::Table(table.shown_in(form))),
                block => Some(block),
            })
            .collect()
    }
}

/// A section of a report as data, for the page and for other readers of the JSON form.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SectionData {
    /// The name of the section in one word, such as `tied-weights`.
    id: &'static str,
    /// The heading of the section.
    title: &'static str,
    /// The content of the section: sentences in phrases, and tables, in order.
    blocks: Vec<Block>,
}

/// Returns all sections of the report that have content for the page, in order.
pub fn for_page(report: &Report) -> Vec<SectionData> {
    SECTIONS
        .iter()
        .map(|section| SectionData {
            id: section.id,
            title: section.title,
            blocks: section.blocks(report, Form::Page),
        })
        .filter(|section| !section.blocks.is_empty())
        .collect()
}

/// Returns the content of the sections that `is_wanted` accepts, as one form of output has it, in
/// order. Each block comes with its section.
pub fn blocks(
    report: &Report,
    form: Form,
    is_wanted: impl Fn(&Section) -> bool,
) -> impl Iterator<Item = (&'static Section, Block)> {
    SECTIONS
        .iter()
        .filter(move |section| is_wanted(section))
        .flat_map(move |section| {
            section
                .blocks(report, form)
                .into_iter()
                .map(move |block| (section, block))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use std::collections::BTreeSet;

    #[test]
    fn people_are_shown_columns_that_there_are() {
        let reports = [testing::report(), testing::compiled()];
        let forms = [Form::Terminal, Form::Markdown, Form::Page, Form::Csv];
        let mut tables = BTreeSet::new();
        let all = reports
            .iter()
            .flat_map(|report| forms.map(|form| (report, form)));
        for (_, block) in all.flat_map(|(report, form)| blocks(report, form, |_| true)) {
            if let Block::Table(table) = block {
                assert!(!table.columns.is_empty(), "{}", table.name);
                tables.insert(table.name);
            }
        }
        assert!(tables.len() >= 9, "{tables:?}");
    }
}
