//! The sections of a report: their content, their order, and the forms that have them. The
//! terminal, Markdown and CSV walk this one table, so a new section is one line. The page has all
//! sections as data, and shows a section where a script asks for its name.

use super::section_blocks::Block;
use super::table::{Form, Table};
use super::{Report, section_blocks};
use schemars::JsonSchema;
use serde::Serialize;

/// A section of a report.
#[derive(Debug)]
pub struct Section {
    /// The section's name in one word.
    pub id: &'static str,
    /// The section's heading.
    pub title: &'static str,
    /// The part of a terminal's output in which the section is shown.
    pub part: Part,
    forms: &'static [Form],
    blocks: fn(&Report, Form) -> Vec<Block>,
}

/// The parts of a terminal's output, which are shown at different times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Whether the model fits.
    Verdict,
    /// The table of the split or the compilation.
    Table,
    /// Sentences about the split or the compilation.
    Answer,
    /// The proof of the split, which is optional.
    Proof,
    /// The recommended configuration.
    Recommendation,
    /// Whole configurations.
    Plan,
    /// How each stage uses memory.
    Explanation,
    /// How much of the recorded memory the model explains, at the very end.
    Coverage,
    /// Sections that only documents show.
    Document,
}

const ALL: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page, Form::Csv];
const PEOPLE: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page];
const DOCUMENTS: &[Form] = &[Form::Markdown, Form::Page];
const PROGRAMS_TOO: &[Form] = &[Form::Markdown, Form::Page, Form::Csv];
const TERMINAL: &[Form] = &[Form::Terminal];
const SCREENS: &[Form] = &[Form::Terminal, Form::Page];
const CSV: &[Form] = &[Form::Csv];

/// Declares the sections, each with its name, its heading, its part of a terminal's output, the forms
/// that have it, and the function of `section_blocks` that makes its blocks.
macro_rules! sections {
    ($($id:literal $title:literal $part:ident $forms:ident $blocks:ident;)*) => {
        [$(Section {
            id: $id,
            title: $title,
            part: Part::$part,
            forms: $forms,
            blocks: section_blocks::$blocks,
        }),*]
    };
}

/// All sections, in order.
pub(super) static SECTIONS: [Section; 24] = sections![
    "verdict" "Verdict" Verdict PEOPLE verdict;
    "split" "Split" Table ALL split;
    "ipus" "IPUs" Table ALL ipus;
    "categories" "Categories" Document CSV categories;
    "estimate" "Estimate" Answer PEOPLE estimate;
    "step" "Step" Answer PEOPLE step_of;
    "pipeline" "Pipeline" Answer PEOPLE pipeline;
    "proof" "Proof" Proof SCREENS proof;
    "tied-weights" "Tied weights" Answer PEOPLE tied_weights;
    "given" "Beside the best" Answer PEOPLE given;
    "refusal" "Why it does not fit" Answer PEOPLE refusal;
    "constraints" "Constraints" Document DOCUMENTS constraints;
    "against" "Against the prediction" Answer ALL against;
    "differences" "Differences" Answer PEOPLE differences;
    "parts" "Parts" Document PROGRAMS_TOO parts;
    "cuts" "Cuts" Document DOCUMENTS cuts;
    "sweep" "Numbers of IPUs" Document DOCUMENTS sweep;
    "recommendation" "Recommended" Recommendation PEOPLE recommendation;
    "plan" "Plan" Plan PEOPLE plan_of;
    "tried" "Tried" Proof PEOPLE tried;
    "explanation" "Explanation" Explanation TERMINAL explanation;
    "layers" "Layers" Document PROGRAMS_TOO layers;
    "coverage" "Coverage" Coverage PEOPLE coverage;
    "warnings" "Warnings" Document DOCUMENTS warnings;
];

impl Section {
    /// Does this form have the section?
    pub(super) fn is_in(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    /// Returns the section's blocks in a form; empty if the form or the report does not have it.
    pub(super) fn blocks(&self, report: &Report, form: Form) -> Vec<Block> {
        if !self.is_in(form) {
            return Vec::new();
        }
        let blocks = (self.blocks)(report, form).into_iter();
        let blocks = blocks.map(|block| match block {
            Block::Table(table) => Block::Table(table.shown_in(form)),
            block => block,
        });
        // Documents leave out empty tables.
        let is_empty = |block: &Block| matches!(block, Block::Table(own) if own.rows.is_empty());
        blocks
            .filter(|block| !is_empty(block) || !DOCUMENTS.contains(&form))
            .collect()
    }
}

/// A section as data, for the page and for other readers of the JSON form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct SectionData {
    /// The section's identifier.
    id: &'static str,
    /// The section's heading.
    title: &'static str,
    /// The section's sentences, each in phrases, and its tables.
    blocks: Vec<Block>,
}

/// Returns all sections of the page that have content, in order.
pub(super) fn for_page(report: &Report) -> Vec<SectionData> {
    let sections = SECTIONS.iter().map(|section| SectionData {
        id: section.id,
        title: section.title,
        blocks: section.blocks(report, Form::Page),
    });
    sections
        .filter(|section| !section.blocks.is_empty())
        .collect()
}

/// Returns the blocks of the wanted sections that a form has, in order, each with its section.
pub(super) fn blocks(
    report: &Report,
    form: Form,
    is_wanted: impl Fn(&Section) -> bool,
) -> impl Iterator<Item = (&'static Section, Block)> {
    let wanted = SECTIONS.iter().filter(move |section| is_wanted(section));
    wanted.flat_map(move |section| {
        let blocks = section.blocks(report, form).into_iter();
        blocks.map(move |block| (section, block))
    })
}

/// Returns the tables that a form has, in order.
pub fn tables_of(report: &Report, form: Form) -> Vec<Table> {
    let tables = blocks(report, form, |_| true).filter_map(|(_, block)| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    tables.collect()
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
        let all = reports.iter();
        let all = all.flat_map(|report| forms.map(|form| tables_of(report, form)));
        for table in all.flatten() {
            assert!(!table.columns.is_empty(), "{}", table.name);
            tables.insert(table.name);
        }
        assert!(tables.len() >= 9, "{tables:?}");
    }
}
