//! Curves over the steps of the program, as drawings and as tables.

use super::chart_data::{Chart, Charts};
use super::widgets::{long, number, percent, rounded, scale, table, ticks};
use crate::model::PseudoLayers;
use crate::report::downsample::thin;
use crate::report::table::{Column, Kind, Table, cells};
use crate::report::text::grouped;
use crate::report::{Band, Curve};
use maud::{Markup, html};
use std::fmt::Write;

/// A curve and what is drawn with it.
pub(super) struct Drawing<'a> {
    pub(super) curve: &'a Curve,
    /// Where it is in the document, as a JSON pointer.
    pub(super) at: &'a str,
    /// The bands of layers, each with whether it has the other tint.
    pub(super) bands: &'a [(&'a Band, bool)],
    /// How the layers of bands are called.
    pub(super) pseudo_layers: PseudoLayers,
    pub(super) limit: Option<u64>,
    /// The first step of the backward pass, if there is one.
    pub(super) turn: Option<u32>,
    /// Height of the drawing in pixels.
    pub(super) height: u32,
    /// The maximum number of rows of its table, about.
    pub(super) rows: usize,
    /// What is drawn, for those who cannot see it.
    pub(super) label: &'a str,
}

const POINTS: [Column; 3] = [
    Column::new("From step", Kind::Count, ""),
    Column::new("Not always live", Kind::Bytes, ""),
    Column::new("All bytes", Kind::Bytes, ""),
];

/// Room above for the names of layers, and below for the steps.
const ABOVE: u32 = 20;
const BELOW: u32 = 20;

impl Drawing<'_> {
    /// The drawing, the numbers at its peak, and its table.
    pub(super) fn figure(&self, charts: &mut Charts) -> Markup {
        let Curve { peak, .. } = self.curve;
        html! {
            figure {
                (self.drawing(charts))
                figcaption {
                    "Peak of " (number(self.place("peak/bytes"), peak.bytes)) " bytes at step "
                    (number(self.place("peak/step"), u64::from(peak.step))) ": "
                    @if self.curve.fixed > 0 {
                        (number(self.place("fixed"), self.curve.fixed)) " of code and the like, "
                    }
                    (number(self.place("always_live"), self.curve.always_live))
                    " of variables that are always live, and others."
                }
            }
            (long("Table of the curve", self.table()))
        }
    }

    fn place(&self, field: &str) -> String {
        format!("{}/{field}", self.at)
    }

    /// The bytes of the whole height: the name of the peak has room above.
    fn most(&self) -> u64 {
        const NAME: u64 = 20;
        let most = self.curve.peak.bytes.max(self.limit.unwrap_or(0)).max(1);
        let room = u64::from(self.height - ABOVE - BELOW);
        let more = u128::from(most) * u128::from(NAME) / u128::from(room - NAME);
        most.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// The pixel from the top for this number of bytes.
    fn y(&self, bytes: u64) -> f64 {
        let room = f64::from(self.height - ABOVE - BELOW);
        let share = bytes as f64 / self.most() as f64;
        let y = f64::from(ABOVE) + room * (1.0 - share.min(1.0));
        (y * 10.0).round() / 10.0
    }

    /// How many steps there are.
    fn steps(&self) -> u64 {
        let Curve {
            first_step,
            last_step,
            ..
        } = self.curve;
        u64::from(last_step.saturating_sub(*first_step)) + 1
    }

    /// Where a step begins, from the left.
    fn x(&self, step: u32) -> String {
        let step = step.saturating_sub(self.curve.first_step);
        percent(u64::from(step).min(self.steps()), self.steps())
    }

    fn drawing(&self, charts: &mut Charts) -> Markup {
        let curve = self.curve;
        let room = self.height - ABOVE - BELOW;
        let base = f64::from(self.height - BELOW);
        let (fixed, always) = (
            self.y(curve.fixed),
            self.y(curve.fixed.saturating_add(curve.always_live)),
        );
        let number = charts.add(self.hover());
        let scale = scale(
            self.height,
            ticks(self.most())
                .into_iter()
                .map(|tick| (tick, self.y(tick))),
        );
        html! {
            div.plot {
            (scale)
            svg height=(self.height) role="img" aria-label=(self.label) data-chart=(number) {
                (self.band_drawings())
                @for tick in ticks(self.most()) {
                    line.grid x1="0" x2="100%" y1=(self.y(tick)) y2=(self.y(tick)) {}
                }
                rect.overhead width="100%" y=(fixed) height=(height(fixed, base)) {}
                rect.always width="100%" y=(always) height=(height(always, fixed)) {}
                svg y=(ABOVE) width="100%" height=(room) preserveAspectRatio="none"
                    viewBox=(format!("0 0 {} 1000", self.steps())) {
                    path.curve d=(self.path()) {}
                }
                (self.turn_drawing())
                (self.limit_drawing())
                (self.peak_drawing())
                text.axis x="0" y=(self.height - 5) { "step " (grouped(curve.first_step.into())) }
                text.axis x="100%" y=(self.height - 5) text-anchor="end" {
                    (grouped(curve.last_step.into()))
                }
                line.cursor x1="0" x2="0" y1=(ABOVE) y2=(self.height - BELOW) {}
            }
            }
        }
    }

    fn band_drawings(&self) -> Markup {
        let room = self.height - ABOVE - BELOW;
        let Curve {
            first_step,
            last_step,
            ..
        } = *self.curve;
        let inside = self.bands.iter().filter_map(|(band, other)| {
            let (from, to) = (band.from.max(first_step), band.to.min(last_step));
            (from <= to).then(|| (from, u64::from(to - from) + 1, *other, band))
        });
        html! {
            @for (from, steps, other, band) in inside {
                rect.band.other[other] x=(self.x(from)) width=(percent(steps, self.steps()))
                    y=(ABOVE) height=(room) {}
                @let name = self.pseudo_layers.shown(&band.layer);
                @if fits(&name, steps, self.steps()) {
                    text.axis x=(self.x(from)) y=(ABOVE - 5) dx="1" { (name) }
                }
            }
        }
    }

    /// Is the peak on the right?
    fn peaks_right(&self) -> bool {
        let step = self.curve.peak.step.saturating_sub(self.curve.first_step);
        u64::from(step) * 2 > self.steps()
    }

    /// A line where the backward pass begins, if that is inside.
    fn turn_drawing(&self) -> Markup {
        let Curve {
            first_step,
            last_step,
            ..
        } = *self.curve;
        let turn = self
            .turn
            .filter(|&turn| first_step < turn && turn <= last_step);
        html! {
            @if let Some(turn) = turn {
                @let x = self.x(turn);
                line.mark x1=(x) x2=(x) y1=(ABOVE) y2=(self.height - BELOW) {}
                text.axis.halo x=(x) y=(ABOVE + 12) dx="4" { "backward pass" }
            }
        }
    }

    /// The limit with its name on the side where the peak is not.
    fn limit_drawing(&self) -> Markup {
        let Some(limit) = self.limit else {
            return html! {};
        };
        let y = self.y(limit);
        let (anchor, x) = if self.peaks_right() {
            ("start", "2")
        } else {
            ("end", "100%")
        };
        html! {
            line.limit x1="0" x2="100%" y1=(y) y2=(y) {}
            text.limit-text.halo x=(x) y=(y - 5.0) text-anchor=(anchor) { "limit" }
        }
    }

    /// The peak with its name above it, where nothing is filled.
    fn peak_drawing(&self) -> Markup {
        let peak = self.curve.peak;
        let y = self.y(peak.bytes);
        let step = u64::from(peak.step.saturating_sub(self.curve.first_step));
        let (anchor, away) = if self.peaks_right() {
            ("end", "4")
        } else {
            ("start", "-4")
        };
        let x = percent(step * 2 + 1, self.steps() * 2);
        html! {
            line.mark x1=(x) x2=(x) y1=(y) y2=(self.height - BELOW) {}
            circle.dot cx=(x) cy=(y) r="3.5" {}
            text.on.halo x=(x) y=(y - 8.0) dx=(away) text-anchor=(anchor) {
                (rounded(peak.bytes)) " at step " (grouped(peak.step.into()))
            }
        }
    }

    /// The outline of all that is live, as steps.
    fn path(&self) -> String {
        let curve = self.curve;
        let below = curve.fixed.saturating_add(curve.always_live);
        let y = |bytes: u64| {
            let share = below.saturating_add(bytes) as f64 / self.most() as f64;
            (1000.0 * (1.0 - share)).round() as i64
        };
        let base = y(0);
        let mut path = format!("M0 {base}");
        let mut last = base;
        for (&step, &bytes) in curve.steps.iter().zip(&curve.bytes) {
            let next = y(bytes);
            // What changes by less than a pixel needs no corner.
            if next != last {
                let _ = write!(path, "H{}V{next}", step.saturating_sub(curve.first_step));
                last = next;
            }
        }
        let _ = write!(path, "H{}V{base}Z", self.steps());
        path
    }

    fn hover(&self) -> Chart {
        let curve = self.curve;
        let fixed = [
            ("code and the like", curve.fixed),
            ("always live", curve.always_live),
        ];
        Chart {
            what: "step",
            first: curve.first_step,
            last: curve.last_step,
            at: curve.steps.clone(),
            fixed: fixed.into_iter().filter(|own| own.1 > 0).collect(),
            series: vec![("others", curve.bytes.clone())],
            adds: true,
            banded: !self.bands.is_empty(),
        }
    }

    fn table(&self) -> Markup {
        let curve = self.curve;
        let points: Vec<(u32, u64)> = curve
            .steps
            .iter()
            .copied()
            .zip(curve.bytes.iter().copied())
            .collect();
        let fixed = curve.fixed.saturating_add(curve.always_live);
        let mut columns = POINTS;
        columns[0].at = self.place("steps/{}").into();
        columns[1].at = self.place("bytes/{}").into();
        let mut rows = Table::new("points", &columns);
        for place in thin(&points, self.rows) {
            let (step, bytes) = points[place];
            let cells = cells![step, bytes, fixed.saturating_add(bytes)];
            rows.row(place.to_string(), cells);
        }
        html! {
            @if points.len() > self.rows {
                p.soft { "The first, lowest, highest and last point of each of " (self.rows / 4)
                    " stretches; the JSON form of the report has more." }
            }
            (table("Points of the curve", &rows))
        }
    }
}

fn height(from: f64, to: f64) -> f64 {
    ((to - from).max(0.0) * 10.0).round() / 10.0
}

/// Has a name room in a band, even on a phone?
fn fits(name: &str, steps: u64, all: u64) -> bool {
    const PHONE: f64 = 270.0;
    const LETTER: f64 = 7.5;
    let room = steps as f64 / all as f64 * PHONE;
    name.chars().count() as f64 * LETTER <= room
}
