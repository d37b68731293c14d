//! The report as Markdown, to be posted in a pull request or an issue.

use super::document::{LayerMemory, OverLimit, RefusalReason, Report, SplitFacts};
use super::text::{grouped, grouped_signed, share, shown};
use super::tied_weights::{self, capital};
use crate::model::PseudoLayers;
use std::fmt::Write;

/// So many layers are named, the largest first.
const LARGEST: usize = 5;

/// So many tied weights are named.
const MAX_TIED: usize = 20;

/// The verdict, why nothing fits, the stages, the cuts, the best split beside
/// one that was given, the numbers of IPUs, the largest layers, coverage and
/// warnings.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    heading(report, &mut text);
    if let Some(split) = &report.split {
        refusal(report, split, &mut text);
        judged(report, split, &mut text);
        orders(report, &mut text);
        tied(report, &mut text);
        stages(report, split, &mut text);
        cuts(report, &mut text);
        too_large(report, split, &mut text);
    }
    sweep(report, &mut text);
    largest_layers(report, &mut text);
    coverage(report, &mut text);
    warnings(report, &mut text);
    let made = &report.made;
    let _ = writeln!(
        text,
        "\nMade by popliner {} from {}, in the {} memory model.",
        escaped(&made.popliner),
        escaped(&made.files.profile),
        escaped(&made.memory_model)
    );
    text
}

/// Makes the cells of a table's line.
fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table: the first columns are text, the others numbers.
fn head(columns: &[&str], texts: usize) -> String {
    let names = columns.iter().map(ToString::to_string);
    let rules = (0..columns.len()).map(|column| match column < texts {
        true => "---".to_string(),
        false => "---:".to_string(),
    });
    let (names, rules): (Vec<_>, Vec<_>) = (names.collect(), rules.collect());
    format!("\n{}{}", line(&names), line(&rules))
}

fn heading(report: &Report, text: &mut String) {
    let target = &report.made.target;
    match &report.split {
        Some(split) => {
            let _ = writeln!(text, "## {}\n", verdict(split));
        }
        None => text.push_str("## Memory of the model\n\n"),
    }
    let _ = writeln!(
        text,
        "Limit: {} bytes on each of {} tiles of {} ({} bytes each).",
        grouped(report.memory.limit),
        grouped(u64::from(target.tiles)),
        escaped(&target.architecture),
        grouped(target.bytes_per_tile)
    );
}

/// One sentence about whether it fits.
pub(super) fn verdict(split: &SplitFacts) -> String {
    let stages = split.stages.len();
    if split.fits {
        return format!("The model fits on {}", ipus(stages));
    }
    let most = ipus(split.max_stages as usize);
    if !split.unplaced.is_empty() {
        let unplaced = split.unplaced.len();
        return format!("The search found no room on {most} for {unplaced} of the layers");
    }
    if stages > split.max_stages as usize {
        return format!(
            "The split needs {}, and there are {}",
            ipus(stages),
            split.max_stages
        );
    }
    format!("The model does not fit on {most}")
}

fn ipus(count: usize) -> String {
    match count {
        1 => "1 IPU".to_string(),
        count => format!("{count} IPUs"),
    }
}

/// The ranges that prove it, and what would help.
fn refusal(report: &Report, split: &SplitFacts, text: &mut String) {
    let Some(refusal) = &report.refusal else {
        return;
    };
    let range = |range: &OverLimit| {
        let layers = escaped(&report.pseudo_layers.shown_list(&range.layers));
        format!("{layers} ({} bytes)", grouped(range.bytes))
    };
    let ranges: Vec<String> = refusal.ranges.iter().map(range).collect();
    let proves = match (refusal.reason, refusal.stages_needed) {
        (RefusalReason::TooFewIpus, Some(needed)) => format!("At least {needed} IPUs are needed"),
        (RefusalReason::PinsOrLimits, Some(needed)) => {
            format!("{needed} IPUs would be enough without pins and with the highest limit")
        }
        _ => "No number of IPUs is enough".to_string(),
    };
    let _ = write!(text, "\n{proves}");
    if !ranges.is_empty() {
        let _ = write!(
            text,
            "; over the limit by themselves are {}",
            ranges.join(", ")
        );
    }
    text.push_str(".\n");
    if let Some(memory) = refusal.smallest_tile_memory {
        let (memory, ipus) = (grouped(memory), ipus(split.max_stages as usize));
        let _ = writeln!(
            text,
            "With {memory} bytes on each tile it would fit on {ipus}."
        );
    }
    if let Some(fewest) = refusal.fewest_ipus {
        let _ = writeln!(text, "With {} it would fit.", ipus(fewest as usize));
    }
    if !refusal.kept_together.is_empty() {
        let kept = listed(&refusal.kept_together);
        let _ = writeln!(text, "Kept together by {kept}.");
    }
    for relaxation in &refusal.relaxations {
        let stages = escaped(&report.pseudo_layers.shown_stages(&relaxation.stages));
        let without = escaped(&capital(&tied_weights::without(relaxation)));
        let _ = writeln!(text, "{without} it fits: {stages}.");
    }
}

/// What the best split has, and which orders the given one breaks.
fn judged(report: &Report, split: &SplitFacts, text: &mut String) {
    let Some(judged) = &report.judged else {
        return;
    };
    let given = split.stages.iter().map(|stage| stage.fullest_tile.bytes);
    let either = match judged.best_fits {
        true => "",
        false => ", which does not fit either",
    };
    let _ = writeln!(
        text,
        "\nThe split was given, with {} bytes on the fullest tile. The best{either}: {}, with {}.",
        grouped(given.max().unwrap_or(0)),
        escaped(&report.pseudo_layers.shown_stages(&judged.best_stages)),
        grouped(judged.best_fullest_tile_bytes)
    );
    if !judged.broken_orders.is_empty() {
        let _ = writeln!(text, "It breaks: {}.", listed(&judged.broken_orders));
    }
}

fn orders(report: &Report, text: &mut String) {
    if !report.orders.is_empty() {
        let _ = writeln!(text, "\nOrders: {}.", listed(&report.orders));
    }
}

/// Weights that several layers use.
fn tied(report: &Report, text: &mut String) {
    if !report.tied_weights.is_empty() {
        text.push_str("\nTied weights:\n\n");
    }
    for tied in report.tied_weights.iter().take(MAX_TIED) {
        let sentence = tied_weights::sentence(tied, report.pseudo_layers);
        let _ = writeln!(text, "- {}", escaped(&sentence));
    }
}

fn listed(orders: &[String]) -> String {
    let orders: Vec<String> = orders.iter().map(|own| escaped(&shown(own))).collect();
    orders.join(", ")
}

/// The best split for each number of IPUs.
fn sweep(report: &Report, text: &mut String) {
    let Some(sweep) = &report.sweep else {
        return;
    };
    let columns = [
        "Layers of each IPU",
        "Note",
        "IPUs",
        "Fits",
        "Fullest tile",
        "Free there",
        "Over all cuts",
        "Slowest stage",
    ];
    text.push_str(&head(&columns, 2));
    for row in &sweep.rows {
        let cycles = row.slowest_stage_cycles.map(grouped);
        let note = row.hint.as_deref().map(|hint| escaped(&shown(hint)));
        text.push_str(&line(&[
            escaped(&report.pseudo_layers.shown_stages(&row.stages)),
            note.unwrap_or_default(),
            row.ipus.to_string(),
            if row.fits { "yes" } else { "no" }.to_string(),
            grouped(row.fullest_tile_bytes),
            grouped_signed(row.free),
            grouped(row.cut_bytes),
            cycles.map_or(String::new(), |cycles| format!("{cycles} cycles")),
        ]));
    }
}

fn stages(report: &Report, split: &SplitFacts, text: &mut String) {
    let columns = [
        "IPU",
        "Layers",
        "Fullest tile",
        "Bytes there",
        "Of the limit",
        "Free there",
        "Median tile",
    ];
    text.push_str(&head(&columns, 2));
    for stage in &split.stages {
        let fullest = &stage.fullest_tile;
        text.push_str(&line(&[
            stage.stage.to_string(),
            escaped(&report.pseudo_layers.shown_list(&stage.layers)),
            fullest.tile.to_string(),
            grouped(fullest.bytes),
            share(fullest.bytes, fullest.limit),
            grouped_signed(fullest.free),
            grouped(stage.tiles.median),
        ]));
    }
}

fn cuts(report: &Report, text: &mut String) {
    if report.cuts.is_empty() {
        return;
    }
    text.push_str(&head(&["Cut", "Between the layers", "Bytes over it"], 2));
    for cut in &report.cuts {
        let sides = [&cut.layer_before, &cut.layer_after];
        let sides = sides.map(|side| escaped(&report.pseudo_layers.shown(side)));
        text.push_str(&line(&[
            format!(
                "IPU {} to {}",
                cut.after_stage,
                u64::from(cut.after_stage) + 1
            ),
            format!("{} and {}", sides[0], sides[1]),
            grouped(cut.bytes),
        ]));
    }
}

fn too_large(report: &Report, split: &SplitFacts, text: &mut String) {
    for layer in &split.too_large {
        let over = layer.fullest_tile_bytes.saturating_sub(split.limit);
        let _ = writeln!(
            text,
            "\n**{} alone** needs {} bytes on tile {}, {} over the limit: more IPUs do not help.",
            alone(report.pseudo_layers, &layer.name),
            grouped(layer.fullest_tile_bytes),
            layer.fullest_tile,
            grouped(over)
        );
    }
}

/// One position at the start of a sentence.
fn alone(pseudo_layers: PseudoLayers, layer: &Option<String>) -> String {
    let described = pseudo_layers.described(layer);
    match described.strip_prefix("layer ") {
        Some(name) => format!("Layer {}", escaped(&shown(name))),
        None => described,
    }
}

fn largest_layers(report: &Report, text: &mut String) {
    let mut layers: Vec<&LayerMemory> = report.layers.iter().collect();
    layers.retain(|layer| layer.total > 0);
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.fullest_tile_bytes));
    layers.truncate(LARGEST);
    if layers.is_empty() {
        return;
    }
    let columns = [
        "Largest layers",
        "Fullest tile",
        "Bytes there",
        "Of the limit",
        "All tiles",
    ];
    text.push_str(&head(&columns, 1));
    for layer in layers {
        text.push_str(&line(&[
            escaped(&report.pseudo_layers.shown(&layer.name)),
            layer.fullest_tile.to_string(),
            grouped(layer.fullest_tile_bytes),
            share(layer.fullest_tile_bytes, report.memory.limit),
            grouped(layer.total),
        ]));
    }
}

fn coverage(report: &Report, text: &mut String) {
    let Some(coverage) = &report.memory.coverage else {
        return;
    };
    let by_touch = if coverage.by_touch > 0 {
        format!(
            " ({} in every place that touches it)",
            grouped(coverage.by_touch)
        )
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "\nOf the {} bytes that the compiler recorded for tile {}, the fullest, layers explain \
         {}, assigned {}{by_touch}, overhead {}; {} bytes are left.",
        grouped(coverage.recorded),
        coverage.tile,
        grouped(coverage.layers),
        grouped(coverage.assigned),
        grouped(coverage.overhead),
        grouped_signed(coverage.rest)
    );
}

fn warnings(report: &Report, text: &mut String) {
    if report.warnings.is_empty() {
        return;
    }
    text.push_str("\nWarnings:\n\n");
    for warning in &report.warnings {
        let _ = writeln!(text, "- {}", escaped(&shown(warning)));
    }
}

/// Text of which a reader of Markdown makes nothing but itself: no table cell,
/// link, HTML, or mention of a person. Letters, digits and spaces stay as they
/// are; else it becomes code in which all other signs are entities, which have
/// no meaning in Markdown.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    let text = super::printable(text);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    // Some readers make a link of what looks like a host.
    let harmless = match text.to_ascii_lowercase().contains("www.") {
        true => "/-,",
        false => "/-,.",
    };
    let mut code = String::from("<code>");
    for c in text.chars() {
        match is_plain(c) || !c.is_ascii() || harmless.contains(c) {
            true => code.push(c),
            false => {
                let _ = write!(code, "&#{};", u32::from(c));
            }
        }
    }
    code.push_str("</code>");
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::testing::report;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(escaped("Layer 3"), "Layer 3");
        assert_eq!(escaped("a/b_1"), "<code>a/b&#95;1</code>");
        let hostile = "|`<b>\n@all #1 [x](http://y) **z** \\";
        let text = escaped(hostile);
        for sign in "|`\n@[]()*\\:_".chars() {
            assert!(!text.contains(sign), "{sign:?} in {text}");
        }
        assert!(text.starts_with("<code>&#124;&#96;&#60;b&#62;&#92;n&#64;all &#35;1 "));
        assert_eq!(escaped("www.b.c"), "<code>www&#46;b&#46;c</code>");
        assert_eq!(escaped("0.1"), "<code>0.1</code>");
        assert_eq!(escaped(""), "<code></code>");
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
            match line.starts_with('|') {
                true => assert!(columns == 0 || columns == bars, "{line}"),
                false => assert_eq!(bars, 0, "{line}"),
            }
            columns = bars;
        }
        assert!(
            text.starts_with("## The model does not fit on 2 IPUs\n"),
            "{text}"
        );
        assert!(text.contains("At least 3 IPUs are needed; over the limit by themselves are "));
        assert!(
            text.contains("Orders: <code>--cut-after 0</code>, "),
            "{text}"
        );
        assert!(text.contains("needs 700,024 bytes on tile 1, 61,048 over the limit"));
    }
}
