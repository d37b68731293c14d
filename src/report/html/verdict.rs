//! The head of the page, and the split at a glance.

use super::columns::{Bar, Columns};
use super::widgets::{limits, number, parts_legend, sentence, signed, stacked, table};
use super::{fit, short};
use crate::memory::Parts;
use crate::model::PseudoLayers;
use crate::report::tables::bar;
use crate::report::text::{grouped, share, shown};
use crate::report::{FullestTile, LayerMemory, Report, Split, sentences, tables};
use maud::{Markup, html};

/// The verdict with the figures that matter most, and warnings.
pub(super) fn header(report: &Report, title: &str) -> Markup {
    let fits = match &report.fit {
        _ if !report.has_verdict() => Some(false),
        Some(fit) => Some(fit.fits),
        None => report.split.as_ref().map(|split| split.fits),
    };
    html! {
        header {
            p.eyebrow { "PopLiner report on " span.name { (shown(&report.provenance.files.profile)) } }
            h1.good[fits == Some(true)].bad[fits == Some(false)] { (title) }
            @match (&report.fit, &report.split) {
                (Some(fit), _) => (fit::figures(report, fit)),
                (None, Some(split)) => (of_split(report, split)),
                (None, None) => (of_model(report)),
            }
            (warnings(report))
        }
    }
}

fn of_split(report: &Report, split: &Split) -> Markup {
    // With several limits the fullest is not always the one that decides.
    let fullest = split.nearest_to_limit();
    let cut_bytes: u128 = report.cuts.iter().map(|cut| u128::from(cut.bytes)).sum();
    html! {
        dl.figures {
            @if let Some(stage) = fullest {
                @let at = format!("/split/stages/{}/fullest_tile", stage.stage);
                @let tile = &stage.fullest_tile;
                div {
                    dt { @if split.limits.is_some() { "Tile nearest to its limit" } @else { "Fullest tile of any stage" } }
                    dd {
                        (number(format_args!("{at}/bytes"), tile.bytes))
                        small { "bytes, " (share(tile.bytes, tile.limit)) " of the limit; tile "
                            (tile.tile) " of IPU " (stage.stage) }
                    }
                }
                div {
                    dt { "Free there" }
                    dd.bad[tile.free < 0] {
                        (signed(format_args!("{at}/free"), tile.free))
                        small { "bytes of " (number(format_args!("{at}/limit"), tile.limit)) }
                    }
                }
            }
            div {
                dt { "Stages" }
                dd { (split.stages.len()) small { "of at most " (number("/split/max_stages", split.max_stages.into())) } }
            }
            div {
                dt { "Over all cuts" }
                dd { (u64::try_from(cut_bytes).map_or_else(|_| cut_bytes.to_string(), grouped)) small { "bytes" } }
            }
        }
        (too_large(report))
    }
}

fn of_model(report: &Report) -> Markup {
    html! {
        dl.figures {
            @if let Some(tiles) = &report.memory.tiles {
                @if let Some(&bytes) = tiles.total.get(tiles.fullest as usize) {
                    div {
                        dt { "Fullest tile" }
                        dd {
                            (number(format_args!("/memory/tiles/total/{}", tiles.fullest), bytes))
                            small { "bytes on tile " (tiles.fullest) }
                        }
                    }
                }
            }
            div {
                dt { "Limit of a tile" }
                dd { (number("/memory/limit", report.memory.limit)) small { "bytes" } }
            }
            div { dt { "Layers" } dd { (layer_count(report)) } }
            @if let Some(liveness) = &report.liveness {
                div { dt { "Steps" } dd { (number("/liveness/steps", liveness.steps.into())) } }
            }
        }
    }
}

fn too_large(report: &Report) -> Markup {
    let unplaced = sentences::unplaced(report).into_iter();
    let lines: Vec<_> = unplaced.chain(sentences::too_large(report)).collect();
    html! {
        @if !lines.is_empty() {
            div.notes.bad { ul { @for line in &lines { li { (sentence(report, line)) } } } }
        }
    }
}

fn warnings(report: &Report) -> Markup {
    let warnings = report.warnings_for_people();
    html! {
        @if !warnings.is_empty() {
            div.notes {
                ul { @for warning in &warnings { li.name { (warning) } } }
            }
        }
    }
}

/// The layers over the IPUs, and the memory of each stage against the limit.
pub(super) fn split(report: &Report) -> Option<Markup> {
    let split = report.split.as_ref()?;
    let mut sums = Parts::default();
    split
        .stages
        .iter()
        .for_each(|stage| sums.add(&stage.fullest_tile.parts));
    Some(html! {
        p { "Which layers each IPU gets. A column is as high as the layer has bytes, summed over all tiles." }
        figure { (layer_columns(report).drawing()) }
        @for line in sentences::pipeline(report) { p { (sentence(report, &line)) } }
        h3 { "Memory on the fullest tile of each stage" }
        (parts_legend(&sums))
        figure { (stage_bars(split)) }
        @if let Some(line) = sentences::learnt(report) { p { (sentence(report, &line)) } }
        (stage_table(report, split))
    })
}

/// The columns of the layers, grouped by stage.
fn layer_columns<'a>(report: &Report) -> Columns<'a> {
    // None takes no room when it has nothing.
    let is_empty = report.layers.first().is_some_and(|none| none.total == 0);
    let hide = usize::from(is_empty && report.pseudo_layers == PseudoLayers::NoneFirst);
    let groups = super::stage_groups(report).into_iter().enumerate().map(
        |(number, (long, short, layers))| {
            let hidden = if number == 0 { hide } else { 0 };
            (long, short, layers.saturating_sub(hidden))
        },
    );
    let columns = report.layers.iter().skip(hide);
    let columns = columns.map(|layer| layer_column(report.pseudo_layers, layer));
    Columns {
        columns: columns.collect(),
        groups: groups.collect(),
        limit: None,
        on_edges: false,
        in_bytes: false,
        height: 150,
        label: "The layers of each IPU",
    }
}

/// How many layers the model has, without pseudo-layers.
fn layer_count(report: &Report) -> usize {
    let pseudo_layers = match report.pseudo_layers {
        PseudoLayers::InAndOut => 2,
        PseudoLayers::NoneFirst | PseudoLayers::OutWithIn => 1,
    };
    report.layers.len().saturating_sub(pseudo_layers)
}

fn layer_column(pseudo_layers: PseudoLayers, layer: &LayerMemory) -> Bar {
    let name = pseudo_layers.shown(&layer.name);
    Bar {
        height: layer.total,
        class: "variables",
        name: short(&name),
        tip: format!(
            "{}\n{} bytes over all tiles\n{} on its fullest, tile {}",
            shown(&pseudo_layers.named(&layer.name)),
            grouped(layer.total),
            grouped(layer.fullest_tile_bytes),
            layer.fullest_tile
        ),
    }
}

fn stage_bars(split: &Split) -> Markup {
    let fullest = split.stages.iter().map(|stage| &stage.fullest_tile);
    let widest = |tile: &FullestTile| tile.bytes.max(tile.limit).max(tile.parts.total());
    let most = fullest.map(widest).max();
    let most = most.unwrap_or(0).max(1);
    html! {
        div.bars {
            @for stage in &split.stages {
                @let tile = &stage.fullest_tile;
                div.label { "IPU " (stage.stage) }
                (stacked(&bar(&tile.parts), most, Some(tile.limit), 20))
                div.value.bad[tile.is_over()] { (share(tile.bytes, tile.limit)) }
            }
        }
        figcaption {
            (limits("/split", split.limit, &split.limits))
            @if split.is_calibrated { " Drawn is what was predicted, without what was learnt from compiled pipelines." }
        }
    }
}

const STAGE_COLUMNS: [&str; 21] = [
    "Stage",
    "Layers",
    "Fullest tile",
    "Bytes there",
    "Limit",
    "Free there",
    "Of the limit",
    "Variables",
    "Vertex code",
    "Vertex state",
    "Exchange code",
    "Control code",
    "Overhead",
    "Gaps",
    "Pipeline stages after it",
    "Copies",
    "Stash",
    "Accumulators",
    "Waiting",
    "Passing through",
    "Learnt",
];

fn stage_table(report: &Report, split: &Split) -> Markup {
    let stages = tables::stages(report).only(&STAGE_COLUMNS);
    let stages = stages.without_zeros();
    // A limit that is the same for all takes room and says nothing.
    let stages = if split.limits.is_none() {
        stages.without("Limit")
    } else {
        stages
    };
    table("Stages", &stages)
}
