//! The content of each section of a report. A function makes the blocks of its section in a form of
//! output.

use super::fit::{sentences as of_fit, tables as fit_tables};
use super::phrases::{Phrase, Sentence, names, nearly_full};
use super::{Form, Table, sentences};
use super::{NO_VERDICT, Report, tables};
use serde::Serialize;

/// One piece of a section of the report, such as a sentence or a table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// Whether the model fits (`None` if the report has no verdict), and a sentence about it.
    /// Markdown leaves it out, since its heading says whether the model fits.
    Verdict(Option<bool>, Option<Sentence>),
    /// A sentence on a line of its own, one of several such lines.
    Line(Sentence),
    /// A sentence on a line that explains the line or paragraph before it, and is indented on a
    /// terminal.
    Under(Sentence),
    /// A sentence that is a paragraph.
    Paragraph(Sentence),
    /// A heading that names the subject of the next blocks. Only Markdown shows it.
    Label(&'static str),
    /// A table with typed columns.
    Table(Table),
}

/// Makes a block of each text.
pub fn each(block: fn(Sentence) -> Block, text: impl IntoIterator<Item = String>) -> Vec<Block> {
    text.into_iter().map(|text| block(text.into())).collect()
}

/// Makes a line of each text.
pub fn lines(text: impl IntoIterator<Item = String>) -> Vec<Block> {
    each(Block::Line, text)
}

/// Makes a block of a table if `is_there`; none otherwise.
pub fn table_if(is_there: bool, table: impl FnOnce() -> Table) -> Vec<Block> {
    Vec::from_iter(is_there.then(|| Block::Table(table())))
}

/// Makes the section that says whether the model or the compilation fits, which stage or IPU is
/// nearest to its limit or over it, and which layers fit on no number of IPUs.
pub fn verdict(report: &Report, _: Form) -> Vec<Block> {
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
            blocks.extend(each(Block::Under, sentences::too_large(report)));
        }
    }
    blocks
}

/// Makes the section that says which stage needs the most memory, how long a step takes, and
/// whether fewer IPUs would be enough.
pub fn step(report: &Report, _: Form) -> Vec<Block> {
    let fullest = report
        .fitting_split()
        .filter(|split| split.stages.len() > 1)
        .and_then(|split| Some(&split.nearest_to_limit()?.fullest_tile));
    let mut text = Vec::from_iter(sentences::most_memory(report));
    text.extend(fullest.and_then(|tile| nearly_full(tile.bytes, tile.limit)));
    text.extend(sentences::step(report));
    text.extend(sentences::fewer_ipus(report));
    lines(text)
}

/// Makes the section that compares the split of the user (`--splits`) with the best split;
/// empty if the report has no such split. Except on a terminal, which has them in the verdict, it
/// also names the constraints that the user's split breaks.
pub fn given(report: &Report, form: Form) -> Vec<Block> {
    let given = report.given.as_ref().filter(|_| form != Form::Terminal);
    let breaks = given.and_then(|given| names("it breaks: ", &given.broken_constraints));
    each(
        Block::Paragraph,
        sentences::given(report).into_iter().chain(breaks),
    )
}

/// Makes the section that says why nothing fits and what would help. Leaves out the reasons if
/// layers are too large by themselves, since the verdict names these layers.
pub fn refusal(report: &Report, _: Form) -> Vec<Block> {
    let mut blocks = Vec::new();
    let Some(refusal) = &report.refusal else {
        return blocks;
    };
    if report.split.iter().all(|split| split.too_large.is_empty()) {
        blocks.extend(each(Block::Paragraph, [sentences::why_none_fits(refusal)]));
        blocks.extend(each(Block::Under, sentences::obstacles(refusal)));
    }
    blocks.extend(lines(sentences::help(report, refusal)));
    let changes = sentences::advice(report);
    if !changes.is_empty() {
        let head = "changes that free memory where the most is missing, but may not be enough";
        blocks.extend(each(Block::Paragraph, [head.to_string()]));
        blocks.extend(each(Block::Under, changes));
    }
    blocks
}

/// Returns whether a form shows the differences of a compilation from its prediction, stage by
/// stage. If the pipeline was cut elsewhere than predicted, only CSV shows them.
fn shows_differences(report: &Report, form: Form) -> bool {
    report
        .comparison()
        .is_some_and(|own| form == Form::Csv || own.cut_elsewhere.is_none())
}

pub fn prediction(report: &Report, form: Form) -> Vec<Block> {
    let label = Block::Label("Compared with the prediction");
    let table = table_if(shows_differences(report, form), || {
        fit_tables::stages(report)
    });
    report
        .comparison()
        .map(|_| label)
        .into_iter()
        .chain(table)
        .collect()
}

/// Makes the table of predicted and recorded bytes by part, such as code or stash, of each stage.
/// Markdown has only the parts that differ.
pub fn parts(report: &Report, form: Form) -> Vec<Block> {
    let parts = match form {
        Form::Markdown => fit_tables::changed_parts,
        _ => fit_tables::parts,
    };
    table_if(shows_differences(report, form), || parts(report))
}

/// Makes the section with the configuration that `--plan` recommends: a verdict on a terminal, a
/// line elsewhere. Empty if none is recommended.
pub fn recommendation(report: &Report, form: Form) -> Vec<Block> {
    let fits = report.has_verdict().then_some(true);
    Vec::from_iter(sentences::recommended(report).map(|sentence| match form {
        Form::Terminal => Block::Verdict(fits, Some(sentence.into())),
        _ => Block::Line(format!("recommended: {sentence}").into()),
    }))
}

/// Makes the section of the configurations of `--plan`: sentences, and their table; empty if the
/// report has no plan. A terminal has the table on standard output, so it is left out there.
pub fn plan(report: &Report, form: Form) -> Vec<Block> {
    let mut blocks = lines(sentences::plan(report));
    blocks.extend(table_if(form != Form::Terminal, || {
        tables::plan_table(report)
    }));
    blocks
}

/// Makes the table of layers. Markdown has only the largest layers. Empty for a recorded
/// compilation.
pub fn layers(report: &Report, form: Form) -> Vec<Block> {
    let layers = match form {
        Form::Markdown => tables::largest_layers,
        _ => tables::layers,
    };
    table_if(report.fit.is_none(), || layers(report))
}

pub fn coverage(report: &Report, _: Form) -> Vec<Block> {
    let coverage = report.memory.coverage.iter();
    let known = coverage.filter(|coverage| coverage.recorded > 0);
    each(Block::Paragraph, known.map(sentences::coverage))
}

pub fn warnings(report: &Report, _: Form) -> Vec<Block> {
    let warnings = report.warnings_for_people();
    let label = (!warnings.is_empty()).then_some(Block::Label("Warnings"));
    let warnings = warnings
        .into_iter()
        .map(|own| Phrase::List(own).to_string());
    label.into_iter().chain(lines(warnings)).collect()
}

impl Report {
    /// Returns the heading of the report: whether the model, or its recorded compilation, fits.
    pub(super) fn heading(&self) -> String {
        match &self.fit {
            _ if !self.has_verdict() => NO_VERDICT.to_string(),
            Some(fit) => of_fit::verdict(fit),
            None => sentences::verdict(self),
        }
    }
}
