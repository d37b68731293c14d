//! Writes the report as Markdown, for a pull request or an issue.

use super::{Block, Cell, Form, Phrase, Report, Sentence, Table, sections::blocks};
use crate::{
    escape::markdown,
    wording::{Units, displayed, grouped},
};

/// Returns the report as Markdown text: a heading, the sections that Markdown shows, and a footer.
pub fn text(report: &Report) -> String {
    let mut text = heading(report);
    // The section whose Markdown list is still open because its last block was a list item.
    let mut list = None;
    let mut marks = ['-', '*'];
    for (section, block) in blocks(report, Form::Markdown, |_| true) {
        let item = matches!(block, Block::Line(_) | Block::Under(_)).then_some(section.id);
        if item.is_some() && item != list {
            // Markdown joins two adjacent lists that begin with the same bullet, so the lists of
            // two sections alternate between `-` and `*`.
            if list.is_some() {
                marks.reverse();
            }
            text.push('\n');
        }
        list = item;
        text += &match block {
            // The verdict (whether the model fits) is not printed here, since it is the heading of
            // the Markdown document.
            Block::Verdict(..) => String::new(),
            Block::Line(line) | Block::Under(line) => {
                format!("{} {}\n", marks[0], formatted(report, line))
            }
            Block::Paragraph(sentence) => format!("\n{}.\n", formatted(report, sentence)),
            Block::Label(label) => format!("\n{label}:\n"),
            Block::Table(rows) => table(&rows),
        };
    }
    text + &footer(report)
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
    let made = &report.provenance;
    let model = match report.fit {
        Some(_) => ", as it was recorded".to_string(),
        None => format!(", in the {} memory model", markdown(&made.memory_model)),
    };
    format!(
        "\nMade by popliner {} from {}{model}.\n",
        markdown(&made.popliner),
        markdown(&made.files.profile),
    )
}

fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = table.columns.iter().map(|column| column.name.to_string());
    let rules = table
        .columns
        .iter()
        .map(|column| if column.is_number() { "---:" } else { "---" }.to_string());
    let mut text = format!("\n{}{}", line(names.collect()), line(rules.collect()));
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| {
            let text = cell.displayed(table.pseudo_layers);
            let is_name = matches!(
                cell,
                Cell::Text(_) | Cell::Layer(_) | Cell::Layers(_) | Cell::Stages(_)
            );
            if is_name { markdown(&text) } else { text }
        });
        text += &line(cells.collect());
    }
    text
}

fn formatted(report: &Report, sentence: Sentence) -> String {
    sentence
        .capital()
        .0
        .iter()
        .map(|phrase| match phrase {
            Phrase::Name(name) | Phrase::Code(name) => markdown(&displayed(name)),
            Phrase::List(list) => markdown(list),
            Phrase::Layers(layers) => markdown(&report.pseudo_layers.displayed_list(layers)),
            Phrase::Stages(stages) => markdown(&report.pseudo_layers.displayed_stages(stages)),
            number_or_text => number_or_text.plain(Units::Bytes, report.pseudo_layers),
        })
        .collect()
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
    fn lists_of_two_sections_are_two() {
        let shown = text(&report());
        let lines: Vec<&str> = shown.lines().collect();
        let mark = |line: &str| line.starts_with(['-', '*']).then(|| line[..1].to_string());
        let beside = lines.windows(3).filter(|lines| lines[1].is_empty());
        let pairs = beside.filter_map(|lines| mark(lines[0]).zip(mark(lines[2])));
        let pairs: Vec<_> = pairs.collect();
        assert!(!pairs.is_empty(), "{shown}");
        assert!(pairs.iter().all(|(one, next)| one != next), "{shown}");
    }

    #[test]
    fn tables_keep_their_columns_whatever_the_names() {
        let mut report = report();
        let hostile = Some("a|b`c\nd".to_string());
        report.layers[1].name = hostile.clone();
        let split = report.split.as_mut().unwrap();
        split.stages[0].layers[1] = hostile.clone();
        split.too_large[0].name = hostile;
        let document = text(&report);
        let mut columns = 0;
        for line in document.lines() {
            let bars = line.matches('|').count();
            if line.starts_with('|') {
                assert!(columns == 0 || columns == bars, "{line}");
            } else {
                assert_eq!(bars, 0, "{line}");
            }
            columns = bars;
        }
        assert!(
            document.starts_with("## The model does not fit on 2 IPUs\n"),
            "{document}"
        );
        assert!(
            document.contains("Constraints: <code>--cut-before 1</code>, "),
            "{document}"
        );
        assert!(document.contains("needs 700,024 bytes on tile 1, 61,048 over the limit"));
        // After this change, the report has no single layer that is over the limit, so the Markdown
        // document mentions the ranges of several layers that are.
        report.split.as_mut().unwrap().too_large.clear();
        let document = text(&report);
        let proves =
            "\nThese layers need at least 3 stages in this pipeline: 2 ranges of layers are over ";
        assert!(document.contains(proves), "{document}");
    }
}
