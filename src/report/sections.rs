//! The sections of a report: their content, their order, and the forms of output that show them.
//! The code for the terminal, Markdown and CSV goes through the table [`SECTIONS`], so a new
//! section needs only one line there. The HTML page has all sections as data, and a script on the
//! page shows a section by its name.

use super::{
    Form, NO_VERDICT, Phrase, Report, Sentence, Table,
    fit::{sentences as of_fit, tables as fit_tables},
    phrases::{names, nearly_full},
    sentences, tables,
};
use serde::Serialize;

/// A section of a report, which is shown in one or several forms of output, such as Markdown.
#[derive(Debug)]
pub struct Section {
    /// The name of the section in one word, such as `tied-weights`, by which programs find the
    /// section.
    pub id: &'static str,
    /// The heading that people see above the section.
    pub title: &'static str,
    /// The part of a terminal's output that contains the section. A run prints the parts at
    /// different times.
    pub part: ScreenPart,
    pub(super) forms: &'static [Form],
    blocks: fn(&Report, Form) -> Vec<Block>,
}

/// The parts of a terminal's output, which a run prints at different times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScreenPart {
    /// The sentence (verdict) that says whether the model fits.
    Verdict,
    /// The table of the stages of a split, or of the IPUs of a compilation.
    Table,
    /// The sentences about the split of the model, such as its pipeline and the time of a step, or,
    /// with `--fit`, the comparison of the compilation with its prediction.
    Answer,
    /// The sentences that prove that the split is the best, or list what `--plan` tried. A run
    /// prints this part only on request.
    Proof,
    /// The sentence that names the configuration that `--plan` recommends.
    Recommendation,
    /// The sentences about the fullest and the slowest stage of the configuration that `--plan`
    /// recommends. With `--solve`, a run prints the sentences about the split
    /// ([`Answer`](Self::Answer)) instead.
    Bottlenecks,
    /// The table of the recorded sizes of a micro-batch, and the sentence that says which size to
    /// record next.
    Sizes,
    /// The sentences about all configurations of `--plan`.
    Plan,
    /// The sentences of `--explain`: how each stage uses memory.
    Explanation,
    /// The sentence that says how much of the recorded memory the memory model explains. A run
    /// prints this sentence last.
    Coverage,
    /// The sections that a terminal does not show, but other forms of output do, such as Markdown
    /// or CSV.
    Document,
}

const ALL: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page, Form::Csv];
const PEOPLE: &[Form] = &[Form::Terminal, Form::Markdown, Form::Page];
const DOCUMENTS: &[Form] = &[Form::Markdown, Form::Page];
const PROGRAMS_TOO: &[Form] = &[Form::Markdown, Form::Page, Form::Csv];
const TERMINAL: &[Form] = &[Form::Terminal];
const SCREENS: &[Form] = &[Form::Terminal, Form::Page];
const CSV: &[Form] = &[Form::Csv];

/// Declares the sections of a report. Each line has the name of a section, its heading, the part of
/// a terminal's output that contains the section, the forms of output that show it, and the
/// function that makes its content.
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

/// All sections of a report, in the order in which Markdown and CSV show them.
pub static SECTIONS: [Section; 25] = sections![
    "verdict" "Verdict" Verdict PEOPLE verdict;
    "split" "Split" Table ALL |report, _| table_if(!report.stages().is_empty(), || tables::stages(report));
    "ipus" "IPUs" Table ALL |report, _| table_if(report.fit.is_some(), || fit_tables::ipus(report));
    "categories" "Categories" Document CSV |report, _| table_if(report.fit.is_some(), || fit_tables::categories(report));
    "step" "Step" Answer PEOPLE step;
    "pipeline" "Pipeline" Answer PEOPLE |report, _| lines(report.split.iter().flat_map(|_| sentences::pipeline(report)));
    "proof" "Proof" Proof SCREENS |report, _| lines(report.proof.as_ref().and_then(sentences::proof));
    "tied-weights" "Tied weights" Answer PEOPLE |report, _| lines(sentences::tied_weights(report));
    "given" "Beside the best" Answer PEOPLE given;
    "refusal" "Why it does not fit" Answer PEOPLE refusal;
    "constraints" "Constraints" Document DOCUMENTS |report, _| each(Block::Paragraph, names("constraints: ", &report.constraints));
    "prediction" "Compared with the prediction" Answer ALL prediction;
    "differences" "Differences" Answer PEOPLE |report, _| lines(report.comparison().into_iter().flat_map(of_fit::comparison));
    "sizes" "Micro-batches" Sizes PEOPLE sizes;
    "parts" "Parts" Document PROGRAMS_TOO parts;
    "cuts" "Cuts" Document DOCUMENTS |report, _| vec![Block::Table(tables::cuts(report))];
    "sweep" "Numbers of IPUs" Document DOCUMENTS |report, _| vec![Block::Table(tables::sweep_table(report))];
    "recommendation" "Recommended" Recommendation PEOPLE recommendation;
    "bottlenecks" "Bottlenecks" Bottlenecks PEOPLE |report, _| lines(sentences::bottlenecks(report));
    "plan" "Plan" Plan PEOPLE plan;
    "tried" "Tried" Proof PEOPLE |report, _| lines(sentences::tried(report));
    "explanation" "Explanation" Explanation TERMINAL |report, _| lines(sentences::explain(report));
    "layers" "Layers" Document PROGRAMS_TOO layers;
    "coverage" "Coverage" Coverage PEOPLE coverage;
    "warnings" "Warnings" Document DOCUMENTS warnings;
];

impl Section {
    /// Returns the content of the section as the form of output `form` shows it. The list is empty
    /// if the form does not show the section, or if the report has no content for it. Markdown and
    /// the HTML page leave out tables without rows.
    pub(super) fn blocks(&self, report: &Report, form: Form) -> Vec<Block> {
        if !self.forms.contains(&form) {
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

/// A section of a report as data, for the HTML page and for other readers of the JSON document.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SectionData {
    /// The name of the section in one word, such as `tied-weights`, by which an HTML page finds
    /// the section.
    id: &'static str,
    /// The heading that people see above the section.
    title: &'static str,
    /// The blocks of the section, in order: tables and sentences. A sentence is a list of fixed
    /// texts and values.
    blocks: Vec<Block>,
}

/// One piece of a section of the report, such as a sentence or a table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// Whether the model fits (`None` if the report has no verdict), and a sentence about it.
    /// Markdown leaves out this block, since the report's heading says whether the model fits, but
    /// prints the other blocks of the section.
    Verdict(Option<bool>, Option<Sentence>),
    /// A sentence on a line of its own, such as an item of a list.
    Line(Sentence),
    /// A sentence that explains the sentence before it; a terminal indents the line.
    Under(Sentence),
    /// A sentence that is a paragraph of its own.
    Paragraph(Sentence),
    /// A heading that names the subject of the blocks after it. Only Markdown shows the
    /// heading.
    Label(&'static str),
    /// A table with typed columns.
    Table(Table),
}

/// Returns the sections of the report that the HTML page shows, in order. Sections without content
/// are left out.
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

/// Returns the content of all sections that `is_wanted` accepts, as the form of output `form` shows
/// it. Each block (a sentence or a table) comes with the section that it belongs to.
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

/// Makes a block of a section from each sentence of `text`. The function `block` chooses the kind
/// of block, such as a line or a paragraph.
fn each(block: fn(Sentence) -> Block, text: impl IntoIterator<Item = String>) -> Vec<Block> {
    text.into_iter().map(|text| block(text.into())).collect()
}

fn lines(text: impl IntoIterator<Item = String>) -> Vec<Block> {
    each(Block::Line, text)
}

/// Returns the content of a section that has only a table. If `is_there` is true, this is the table
/// that `table` makes; otherwise, the section is empty.
fn table_if(is_there: bool, table: impl FnOnce() -> Table) -> Vec<Block> {
    Vec::from_iter(is_there.then(|| Block::Table(table())))
}

/// Makes the section about a model that was recorded with several micro-batch sizes: a table of the
/// best split for each size, and a sentence about the largest size that fits and the next to
/// record.
fn sizes(report: &Report, _: Form) -> Vec<Block> {
    let mut blocks = table_if(!report.sizes.is_empty(), || tables::sizes(report));
    blocks.extend(lines(sentences::next_size(report)));
    blocks
}

/// Makes the section that says whether the model or the compilation fits, which stage or IPU is
/// nearest to its limit or over it, and which layers exceed the limit even as a stage of their own.
fn verdict(report: &Report, _: Form) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(fit) = &report.fit {
        let fits = report.has_verdict().then_some(fit.fits);
        blocks.push(Block::Verdict(
            fits,
            fits.map(|_| of_fit::verdict(fit).into()),
        ));
        blocks.extend(lines(of_fit::lines(fit)));
    }
    if let Some(split) = &report.split {
        let fits = report.has_verdict().then_some(split.fits);
        blocks.push(Block::Verdict(
            fits,
            Some(sentences::split(report, split, fits).into()),
        ));
        if fits == Some(false) {
            blocks.extend(each(Block::Under, sentences::missing_memory(report)));
            blocks.extend(each(Block::Under, sentences::too_large(report, split)));
        }
    }
    blocks
}

/// Makes the section that says which stage needs the most memory, how long a step takes, and
/// whether fewer IPUs would be enough.
fn step(report: &Report, _: Form) -> Vec<Block> {
    let pipeline = report
        .fitting_split()
        .filter(|split| split.stages.len() > 1);
    let mut text = Vec::from_iter(sentences::most_memory(report));
    text.extend(pipeline.and_then(|split| {
        let tile = &split.nearest_to_limit()?.fullest_tile;
        nearly_full(tile.bytes, tile.limit)
    }));
    text.extend(sentences::step(report));
    text.extend(sentences::fewer_ipus(report));
    lines(text)
}

/// Makes the section that compares the user's split (`--splits`) with the best split; empty without
/// a user's split. The section names the constraints that the user's split breaks, except on a
/// terminal, whose verdict already names them.
fn given(report: &Report, form: Form) -> Vec<Block> {
    let given = report.given.as_ref().filter(|_| form != Form::Terminal);
    let breaks = given.and_then(|given| names("it breaks: ", &given.broken_constraints));
    each(
        Block::Paragraph,
        sentences::given(report).into_iter().chain(breaks),
    )
}

/// Makes the section that says why no split fits and what would help. If single layers exceed the
/// limit, the section gives no reason, since the verdict already names these layers.
fn refusal(report: &Report, _: Form) -> Vec<Block> {
    let mut blocks = Vec::new();
    let Some(refusal) = &report.refusal else {
        return blocks;
    };
    if report.split.iter().all(|split| split.too_large.is_empty()) {
        blocks.extend(each(Block::Paragraph, [sentences::why_none_fits(refusal)]));
        blocks.extend(each(Block::Under, sentences::obstacles(refusal)));
    }
    blocks.extend(lines(sentences::help(report, refusal)));
    if !refusal.advice.is_empty() {
        let head = "changes that free memory where the most is missing, but may not be enough";
        blocks.extend(each(Block::Paragraph, [head.to_string()]));
        blocks.extend(each(
            Block::Under,
            refusal.advice.iter().map(sentences::advice),
        ));
    }
    blocks
}

/// Returns whether the form of output `form` compares a compilation with its prediction stage by
/// stage. If the pipeline was cut at other layers than predicted, the stages differ, and only CSV
/// compares them.
fn shows_differences(report: &Report, form: Form) -> bool {
    report
        .comparison()
        .is_some_and(|own| form == Form::Csv || own.cut_elsewhere.is_none())
}

fn prediction(report: &Report, form: Form) -> Vec<Block> {
    let label = Block::Label("Compared with the prediction");
    let mut blocks = Vec::from_iter(report.comparison().map(|_| label));
    blocks.extend(table_if(shows_differences(report, form), || {
        fit_tables::stages(report)
    }));
    blocks
}

/// Makes the table that compares the predicted and the recorded bytes of each stage by part, such
/// as code or stash. In Markdown, the table has only the parts whose bytes differ.
fn parts(report: &Report, form: Form) -> Vec<Block> {
    table_if(shows_differences(report, form), || {
        fit_tables::parts(report, |part| match form {
            Form::Markdown => part.difference != 0,
            _ => part.predicted.max(part.recorded) > 0,
        })
    })
}

/// Makes the section with the configuration that `--plan` recommends, as one sentence. A terminal
/// shows the sentence after a word such as `SUCCESS:`, and other forms of output after
/// `recommended:`. The section is empty if no configuration is recommended.
fn recommendation(report: &Report, form: Form) -> Vec<Block> {
    let fits = report.has_verdict().then_some(true);
    Vec::from_iter(sentences::recommended(report).map(|sentence| match form {
        Form::Terminal => Block::Verdict(fits, Some(sentence.into())),
        _ => Block::Line(format!("recommended: {sentence}").into()),
    }))
}

/// Makes the section about the configurations of `--plan`: sentences and a table. On a terminal,
/// the section has only sentences, since the run prints the table on standard output.
fn plan(report: &Report, form: Form) -> Vec<Block> {
    let mut blocks = lines(sentences::plan(report));
    blocks.extend(table_if(form != Form::Terminal, || {
        tables::plan_table(report)
    }));
    blocks
}

/// Makes the table of layers; Markdown shows only the largest layers. A report on a recorded
/// compilation (`fit`) has no such table.
fn layers(report: &Report, form: Form) -> Vec<Block> {
    let layers = match form {
        Form::Markdown => tables::largest_layers,
        _ => tables::layers,
    };
    table_if(report.fit.is_none(), || layers(report))
}

fn coverage(report: &Report, _: Form) -> Vec<Block> {
    let known = report
        .memory
        .coverage
        .iter()
        .filter(|coverage| coverage.recorded > 0);
    each(Block::Paragraph, known.map(sentences::coverage))
}

fn warnings(report: &Report, _: Form) -> Vec<Block> {
    let warnings = report.warnings_for_people();
    let label = (!warnings.is_empty()).then_some(Block::Label("Warnings"));
    let warnings = warnings.into_iter().map(Phrase::List);
    label
        .into_iter()
        .chain(lines(warnings.map(|own| own.to_string())))
        .collect()
}

impl Report {
    /// Returns the heading of the report, which says whether the model or, with `--fit`, its
    /// compilation fits.
    pub(super) fn heading(&self) -> String {
        match &self.fit {
            _ if !self.has_verdict() => NO_VERDICT.to_string(),
            Some(fit) => of_fit::verdict(fit),
            None => sentences::verdict(self),
        }
    }
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
