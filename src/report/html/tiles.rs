//! The bytes of tiles side by side, as a drawing.

use super::chart_data::{Chart, Charts};
use super::widgets::{percent, rounded, scale, ticks};
use crate::report::TileTotals;
use crate::report::text::grouped;
use maud::{Markup, html};
use std::fmt::Write;
use std::ops::Range;

/// Tiles that are drawn, in blocks one after the other.
pub(super) struct TileDrawing<'a> {
    pub(super) tiles: &'a TileTotals,
    pub(super) blocks: Vec<Block>,
    /// What the limit is called.
    pub(super) limit: &'static str,
    /// What is drawn, for those who cannot see it.
    pub(super) label: String,
}

/// Tiles with one limit.
#[derive(Clone)]
pub(super) struct Block {
    /// The IPU that is marked, with a link to its own drawing.
    pub(super) ipu: Option<u32>,
    pub(super) tiles: Range<usize>,
    pub(super) limit: u64,
}

const HEIGHT: u32 = 200;
const ABOVE: u32 = 16;
const BELOW: u32 = 20;

/// The maximum number of columns: more could not be told apart. Where there are more
/// tiles, a column is as high as the fullest of those that it is of.
const COLUMNS: usize = 3000;

impl TileDrawing<'_> {
    /// The drawing with its scale.
    pub(super) fn drawing(&self, charts: &mut Charts) -> Markup {
        let number = charts.add(self.hover());
        let (most, first) = (self.most(), self.first());
        let room = HEIGHT - ABOVE - BELOW;
        html! {
            div.plot {
            (scale(HEIGHT, ticks(most).into_iter().map(|tick| (tick, self.y(tick)))))
            // What has links in it is no picture.
            svg height=(HEIGHT) role=(if self.has_links() { "group" } else { "img" }) aria-label=(self.label) data-chart=(number) {
                (self.block_drawings())
                @for tick in ticks(most) { line.grid x1="0" x2="100%" y1=(self.y(tick)) y2=(self.y(tick)) {} }
                svg y=(ABOVE) width="100%" height=(room) preserveAspectRatio="none"
                    viewBox=(format!("0 0 {} 1000", self.count())) {
                    @if let Some(with_gaps) = &self.tiles.with_gaps { path.gaps d=(self.outline(with_gaps)) {} }
                    path.variables d=(self.outline(&self.tiles.total)) {}
                }
                (self.borders())
                (self.limits())
                text.axis x="0" y=(HEIGHT - 5) { "tile " (grouped(first as u64)) }
                text.axis x="100%" y=(HEIGHT - 5) text-anchor="end" { (grouped(self.last() as u64)) }
                line.cursor x1="0" x2="0" y1=(ABOVE) y2=(HEIGHT - BELOW) {}
            }
            }
        }
    }

    fn has_links(&self) -> bool {
        self.blocks.iter().any(|own| own.ipu.is_some())
    }

    /// Are there columns of several tiles?
    pub(super) fn is_thinned(&self) -> bool {
        self.count() > COLUMNS
    }

    fn first(&self) -> usize {
        self.blocks.first().map_or(0, |own| own.tiles.start)
    }

    fn last(&self) -> usize {
        (self.first() + self.count()).saturating_sub(1)
    }

    /// How many tiles are drawn.
    fn count(&self) -> usize {
        let end = self.blocks.last().map_or(0, |own| own.tiles.end);
        end.saturating_sub(self.first())
    }

    /// The bytes of the whole height.
    fn most(&self) -> u64 {
        let drawn = self.first()..self.first() + self.count();
        let all = [Some(&self.tiles.total), self.tiles.with_gaps.as_ref()];
        let of_tiles = all.into_iter().flatten();
        let of_tiles = of_tiles
            .filter_map(|bytes| bytes.get(drawn.clone()))
            .flatten();
        let limits = self.blocks.iter().map(|own| own.limit);
        let most = of_tiles.copied().chain(limits).max().unwrap_or(0).max(1);
        most.saturating_add(most / 8)
    }

    /// The pixel from the top for this number of bytes.
    fn y(&self, bytes: u64) -> f64 {
        let room = f64::from(HEIGHT - ABOVE - BELOW);
        let y = f64::from(ABOVE) + room * (1.0 - bytes as f64 / self.most() as f64);
        (y * 10.0).round() / 10.0
    }

    /// Where a tile begins, from the left.
    fn x(&self, tile: usize) -> String {
        percent((tile - self.first()) as u64, self.count() as u64)
    }

    /// The tiles of each column. None has tiles of two blocks.
    fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        let width = self.count().div_ceil(COLUMNS).max(1);
        let columns = move |own: &Block| {
            let end = own.tiles.end;
            let starts = own.tiles.clone().step_by(width);
            starts.map(move |start| start..(start + width).min(end))
        };
        self.blocks.iter().flat_map(columns)
    }

    /// The bytes of each column.
    fn highest(&self, bytes: &[u64]) -> Vec<u64> {
        let of_tiles = |tiles: Range<usize>| bytes.get(tiles).into_iter().flatten().copied();
        let columns = self.columns();
        columns
            .map(|tiles| of_tiles(tiles).max().unwrap_or(0))
            .collect()
    }

    /// The outline over all columns.
    fn outline(&self, bytes: &[u64]) -> String {
        let most = self.most() as f64;
        let mut path = String::from("M0 1000");
        let mut last = 1000;
        for (tiles, bytes) in self.columns().zip(self.highest(bytes)) {
            let next = (1000.0 * (1.0 - bytes as f64 / most)).round() as i64;
            if next != last {
                let _ = write!(path, "H{}V{next}", tiles.start - self.first());
                last = next;
            }
        }
        let _ = write!(path, "H{}V1000Z", self.count());
        path
    }

    /// What the tiles have, under the pointer.
    fn hover(&self) -> Chart {
        let tiles = self.tiles;
        let mut series = vec![
            ("bytes in use", self.highest(&tiles.total)),
            ("always live", self.highest(&tiles.always_live)),
            ("most of others", self.highest(&tiles.not_always_live)),
        ];
        let with_gaps = tiles.with_gaps.as_ref();
        series.extend(with_gaps.map(|bytes| ("with gaps", self.highest(bytes))));
        Chart {
            what: if self.is_thinned() {
                "at most around tile"
            } else {
                "tile"
            },
            first: self.first() as u32,
            last: self.last() as u32,
            at: self.columns().map(|tiles| tiles.start as u32).collect(),
            fixed: Vec::new(),
            series,
            adds: false,
            banded: false,
        }
    }

    /// The numbers of IPUs, as many as there is room for, and every other one tinted.
    fn block_drawings(&self) -> Markup {
        // On a phone.
        const MOST: usize = 16;
        let every = self.blocks.len().div_ceil(MOST).max(1);
        let marked = self.blocks.iter().enumerate();
        let marked = marked.filter_map(|(place, own)| Some((place, own, own.ipu?)));
        html! {
            @for (place, own, ipu) in marked {
                @let width = percent(own.tiles.len() as u64, self.count() as u64);
                rect.band.other[place % 2 == 1] x=(self.x(own.tiles.start)) width=(width)
                    y=(ABOVE) height=(HEIGHT - ABOVE - BELOW) {}
                @if place % every == 0 {
                    a href=(format!("#ipu-{ipu}")) aria-label=(format!("IPU {ipu}")) {
                        text.axis x=(self.x(own.tiles.start)) y=(ABOVE - 5) dx="1" {
                            @if self.blocks.len() <= 4 { "IPU " } (ipu)
                        }
                    }
                }
            }
        }
    }

    /// A line between each two blocks.
    fn borders(&self) -> Markup {
        html! {
            @for own in self.blocks.iter().skip(1) {
                @let x = self.x(own.tiles.start);
                line.mark x1=(x) x2=(x) y1=(ABOVE) y2=(HEIGHT - BELOW) {}
            }
        }
    }

    /// A line at each limit, with its name where there is but one.
    fn limits(&self) -> Markup {
        let last = self.blocks.last().map_or(0, |own| own.limit);
        let is_same = self.blocks.iter().all(|own| own.limit == last);
        html! {
            @for own in &self.blocks {
                @let y = self.y(own.limit);
                line.limit x1=(self.x(own.tiles.start)) x2=(self.x(own.tiles.end)) y1=(y) y2=(y) {}
            }
            @if is_same {
                text.limit-text.halo x="100%" y=(self.y(last) - 4.0) text-anchor="end" { (self.limit) " " (rounded(last)) }
            }
        }
    }
}
