//! The recorded memory of all IPUs: by tile and by category.

use super::super::chart_data::Charts;
use super::super::memory::{fullest_of_all, largest_first, sums, tile_table, tiles_legend};
use super::super::tile_map;
use super::super::tiles::{Block, TileDrawing};
use super::super::widgets::{folded, number, table};
use crate::report::table::{Cell, Column, Kind, Table};
use crate::report::text::{grouped, share};
use crate::report::{CategoryBytes, Fit, IpuFit, Report, TileTotals};
use maud::{Markup, html};

/// What was recorded of all tiles, of those of each IPU, and of categories; `None`
/// without a compilation, or where there is nothing of it.
pub(in crate::report::html) fn section(report: &Report, charts: &mut Charts) -> Option<Markup> {
    let fit = report.fit.as_ref()?;
    let tiles = report.memory.tiles.as_ref();
    let tiles = tiles.map(|tiles| (tiles, blocks(fit, tiles.total.len())));
    let tiles = tiles.filter(|(_, blocks)| !blocks.is_empty());
    let categories = &report.memory.categories;
    if tiles.is_none() && categories.is_empty() {
        return None;
    }
    Some(html! {
        p {
            "What the compiler recorded of all "
            @if fit.ipus.len() > 1 { (fit.ipus.len()) " IPUs. " } @else { "tiles. " }
            "Tiles are numbered through: each IPU has " (number("/fit/tiles_per_ipu", fit.tiles_per_ipu.into())) "."
        }
        @if let Some((tiles, blocks)) = &tiles { (by_tile(fit, tiles, blocks, charts)) }
        @if let Some(map) = tile_map::part(report) { (map) }
        @if !categories.is_empty() { (by_category(fit, categories)) }
    })
}

/// The tiles of each IPU that has some among as many as were recorded.
pub(in crate::report::html) fn blocks(fit: &Fit, recorded: usize) -> Vec<Block> {
    let per_ipu = fit.tiles_per_ipu as usize;
    let block = |own: &IpuFit| {
        let start = (own.ipu as usize).saturating_mul(per_ipu).min(recorded);
        Block {
            ipu: Some(own.ipu),
            tiles: start..start.saturating_add(per_ipu).min(recorded),
            limit: own.fullest_tile.limit,
        }
    };
    let blocks = fit.ipus.iter().map(block);
    blocks.filter(|own| !own.tiles.is_empty()).collect()
}

fn by_tile(fit: &Fit, tiles: &TileTotals, blocks: &[Block], charts: &mut Charts) -> Markup {
    let all = TileDrawing {
        tiles,
        blocks: blocks.to_vec(),
        limit: "limit",
        label: "Bytes of each tile of all IPUs".into(),
    };
    html! {
        h3 { "By tile" }
        (tiles_legend(tiles))
        figure {
            (all.drawing(charts))
            figcaption {
                (fullest_of_all(tiles)) " Dashed across is what a tile may take"
                @if blocks.len() > 1 { ", dashed from top to bottom are the borders of IPUs" }
                ". "
                @if all.is_thinned() { "Where tiles stand too close to tell them apart, the fullest of them is drawn. " }
                (sums(tiles))
            }
        }
        (folded("Table of the fullest tiles", tile_table(tiles, Some(fit.tiles_per_ipu))))
        @if blocks.len() > 1 { (zooms(fit, tiles, blocks, charts)) }
    }
}

/// The tiles of each IPU in a drawing of their own. A link to what is folded away
/// unfolds it.
fn zooms(fit: &Fit, tiles: &TileTotals, blocks: &[Block], charts: &mut Charts) -> Markup {
    let numbered = blocks.iter().filter_map(|own| Some((own, own.ipu?)));
    let ipus = numbered.clone().map(|(_, ipu)| ipu);
    let own = |ipu: u32| fit.ipus.iter().find(|own| own.ipu == ipu);
    html! {
        h3 { "By tile of each IPU" }
        p {
            "Look closer at IPU"
            @for ipu in ipus { " " a href=(format!("#ipu-{ipu}")) { (ipu) } }
        }
        @for (block, ipu) in numbered {
            @if let Some(own) = own(ipu) {
                (folded(&summary(own, block), html! {
                    figure id=(format!("ipu-{ipu}")) { (zoom(tiles, own, block, charts)) }
                }))
            }
        }
    }
}

fn summary(own: &IpuFit, block: &Block) -> String {
    let [first, last] = [block.tiles.start, block.tiles.end - 1].map(|tile| grouped(tile as u64));
    let full = share(own.fullest_tile.bytes, own.fullest_tile.limit);
    format!(
        "IPU {}: tiles {first} to {last}, the fullest at {full} of the limit",
        own.ipu
    )
}

fn zoom(tiles: &TileTotals, own: &IpuFit, block: &Block, charts: &mut Charts) -> Markup {
    let drawing = TileDrawing {
        tiles,
        blocks: vec![Block {
            ipu: None,
            ..block.clone()
        }],
        limit: "limit",
        label: format!("Bytes of each tile of IPU {}", own.ipu),
    };
    let at = format!("/fit/ipus/{}", own.ipu);
    let tile = &own.fullest_tile;
    html! {
        (drawing.drawing(charts))
        figcaption {
            "Tile " (number(format_args!("{at}/fullest_tile/tile"), tile.tile.into()))
            " is the fullest of IPU " (number(format_args!("{at}/ipu"), own.ipu.into())) ", with "
            (number(format_args!("{at}/fullest_tile/bytes"), tile.bytes)) " bytes of "
            (number(format_args!("{at}/fullest_tile/limit"), tile.limit)) ". All its tiles together have "
            (number(format_args!("{at}/total"), own.total)) " bytes without gaps."
        }
    }
}

fn by_category(fit: &Fit, categories: &[CategoryBytes]) -> Markup {
    let all_tiles = |own: &CategoryBytes| Some(own.all_tiles);
    let all = category_table(fit, categories, "all_tiles", all_tiles);
    let fullest = category_table(fit, categories, "fullest_tile", |own| own.fullest_tile);
    html! {
        h3 { "By category" }
        p.soft { "Summed over all tiles of each IPU. Variables that share memory at different steps all count here, so the categories of a tile can add up to more than it has in use." }
        (table("Categories by IPU", &all))
        (folded("Table of the fullest tile of each IPU", html! {
            p.soft { "The last column is the fullest tile of all." }
            (table("Categories on the fullest tile of each IPU", &fullest))
        }))
    }
}

/// A row for each category that has bytes, most first, and a column for each IPU.
fn category_table(
    fit: &Fit,
    categories: &[CategoryBytes],
    field: &str,
    bytes: impl Fn(&CategoryBytes) -> Option<u64>,
) -> Table {
    let column = |name: String, at: String| Column {
        name: name.into(),
        at: at.into(),
        ..Column::new("", Kind::Bytes, "")
    };
    let of_ipu = |own: &IpuFit| {
        let at = format!("/fit/ipus/{}/categories/{{}}/{field}", own.ipu);
        column(format!("IPU {}", own.ipu), at)
    };
    let mut columns = vec![Column::text("Category")];
    columns.extend(fit.ipus.iter().map(of_ipu));
    columns.push(column(
        "All".into(),
        format!("/memory/categories/{{}}/{field}"),
    ));
    let mut rows = Table::new("categories-by-ipu", &columns);
    for place in largest_first(categories) {
        let own = &categories[place];
        // All have the same in the same order, but in a damaged report.
        let of_ipu = |ipu: &IpuFit| {
            let same = ipu.categories.get(place);
            Cell::from(same.filter(|same| same.name == own.name).and_then(&bytes))
        };
        let mut cells = vec![Cell::from(&*own.name)];
        cells.extend(fit.ipus.iter().map(of_ipu));
        cells.push(bytes(own).into());
        rows.row(place.to_string(), cells);
    }
    rows
}
