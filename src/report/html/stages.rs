//! Each stage alone: how full its tiles are, and its bytes over the steps.

use super::chart_data::Charts;
use super::columns::{Bar, Columns};
use super::curve::Drawing;
use super::liveness::{colours, variables};
use super::tints;
use super::widgets::{folded, number, sentence, signed, table};
use crate::report::sentences;
use crate::report::table::{Column, Kind, Table, cells};
use crate::report::text::{grouped, share};
use crate::report::{Band, Bucket, Fullness, Report, Split, Stage};
use maud::{Markup, html};

/// A card for each stage.
pub(super) fn section(report: &Report, charts: &mut Charts) -> Option<Markup> {
    let split = report.split.as_ref()?;
    let cards: Vec<Markup> = split
        .stages
        .iter()
        .map(|stage| card(report, split, stage, charts))
        .collect();
    Some(html! {
        p { "How full the tiles of each stage are, each at its own peak, and what is live on the fullest tile step by step. Tinted are the steps of the stage's own layers." }
        @if !CardSize::of(split).all_tiles {
            p.soft { "With this many stages, the curves of all tiles together are in the JSON form of the report alone." }
        }
        (colours())
        div.cards { @for card in &cards { (card) } }
    })
}

/// How much the card of a stage shows.
#[derive(Clone, Copy)]
struct CardSize {
    /// Rows of the table of a curve.
    rows: usize,
    /// Variables that are named.
    variables: usize,
    /// Is the curve of all tiles drawn?
    all_tiles: bool,
}

impl CardSize {
    /// With many stages the page must stay small; the JSON form has the rest.
    fn of(split: &Split) -> Self {
        let (rows, variables, all_tiles) = match split.stages.len() {
            0..=16 => (40, 20, true),
            17..=32 => (8, 6, true),
            _ => (4, 3, false),
        };
        Self {
            rows,
            variables,
            all_tiles,
        }
    }
}

fn card(report: &Report, split: &Split, stage: &Stage, charts: &mut Charts) -> Markup {
    let detail = CardSize::of(split);
    let tile = &stage.fullest_tile;
    html! {
        article.card data-at=(format_args!("/split/stages/{}", stage.stage)) {
            h3 { "IPU " (stage.stage) }
            p.soft.name { "Layers " (report.pseudo_layers.shown_list(&stage.layers)) }
            p {
                "Tile " (tile.tile) " is the fullest with "
                (number("/fullest_tile/bytes", tile.bytes)) " bytes, "
                span.bad[tile.is_over()] { (share(tile.bytes, tile.limit)) } " of the limit"
                @if split.limits.is_some() { " of " (number("/fullest_tile/limit", tile.limit)) } "; free are "
                (signed("/fullest_tile/free", tile.free)) ". All tiles together, each at its own peak: "
                (number("/total", stage.total)) " bytes."
            }
            @for line in sentences::of_pipeline(stage, report.pseudo_layers) { p.soft { (sentence(report, &line)) } }
            h4 { "Tiles by how full they are, of the limit" }
            (histogram(&stage.tiles, tile.limit))
            (curves(report, stage, detail, charts))
            @if let Some(live) = &stage.peak_variables {
                (folded("Variables that are live at the peak",
                    variables(report.pseudo_layers, live, "/peak_variables", detail.variables)))
            }
        }
    }
}

const BUCKETS: [Column; 3] = [
    Column::new("From", Kind::Bytes, "/from"),
    Column::new("To", Kind::Bytes, "/to"),
    Column::new("Tiles", Kind::Count, "/tiles"),
];

fn histogram(tiles: &Fullness, limit: u64) -> Markup {
    let column = |(place, bucket): (usize, &Bucket)| Bar {
        height: bucket.tiles.into(),
        class: if bucket.from > limit {
            "over"
        } else {
            "variables"
        },
        // 20 buckets reach up to the limit.
        name: match place % 5 {
            _ if bucket.from > limit => String::new(),
            0 => format!("{}\u{a0}%", place * 5),
            _ => String::new(),
        },
        tip: format!(
            "{} tiles\nwith {} to {} bytes",
            grouped(bucket.tiles.into()),
            grouped(bucket.from),
            grouped(bucket.to)
        ),
    };
    let drawing = Columns {
        columns: tiles.histogram.iter().enumerate().map(column).collect(),
        groups: Vec::new(),
        limit: None,
        on_edges: true,
        in_bytes: false,
        height: 110,
        label: "Number of tiles by their bytes",
    };
    let mut buckets = Table::new("buckets", &BUCKETS);
    let filled = tiles.histogram.iter().enumerate();
    for (place, own) in filled.filter(|(_, own)| own.tiles > 0) {
        let cells = cells![own.from, own.to, own.tiles];
        buckets.row(format!("/tiles/histogram/{place}"), cells);
    }
    html! {
        figure {
            (drawing.drawing())
            figcaption {
                "Half of the tiles have at most " (number("/tiles/median", tiles.median))
                " bytes, 95 % at most " (number("/tiles/percentile_95", tiles.percentile_95)) "."
            }
        }
        (folded("Table of the tiles", table("Tiles by their bytes", &buckets)))
    }
}

fn curves(report: &Report, stage: &Stage, detail: CardSize, charts: &mut Charts) -> Markup {
    let bands = report.liveness.iter().flat_map(|liveness| &liveness.bands);
    let own = |band: &&Band| stage.layers.contains(&band.layer);
    let bands = tints(report, bands.filter(own));
    let drawings = [
        (
            "Bytes on the fullest tile over the steps",
            "fullest_tile_curve",
            stage.fullest_tile_curve.as_ref(),
            Some(stage.fullest_tile.limit),
            180,
        ),
        (
            "Bytes of all tiles over the steps",
            "all_tiles_curve",
            stage.all_tiles_curve.as_ref().filter(|_| detail.all_tiles),
            None,
            140,
        ),
    ];
    let drawings = drawings.map(|(label, field, curve, limit, height)| {
        let drawing = curve.map(|curve| {
            let at = &format!("/{field}");
            let bands = &bands;
            Drawing {
                curve,
                at,
                bands,
                pseudo_layers: report.pseudo_layers,
                limit,
                turn: report.liveness.as_ref().and_then(|own| own.turn),
                height,
                rows: detail.rows,
                label,
            }
            .figure(charts)
        });
        (label, drawing)
    });
    html! {
        @for (label, drawing) in &drawings {
            @if let Some(drawing) = drawing {
                h4 { (label) }
                (drawing)
            }
        }
    }
}
