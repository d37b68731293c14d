//! Cycles as a strip of boxes: all of them, below them the stages, below each stage its
//! layers, every box as wide as its cycles and divided into compute and exchange.
//!
//! Each stage is a drawing of its own in which its layers stand in per cent, so that
//! the script shows one over the whole width by changing that drawing alone.

use super::short;
use super::widgets::{percent, starts};
use crate::report::text::{grouped, share, shown};
use crate::report::{Execution, Report};
use maud::{Markup, html};
use std::ops::Range;

/// Height of a box, and of it and the gap below, in pixels.
const BOX: u32 = 38;
const ROW: u32 = BOX + 4;
/// Where the part that is divided into compute and exchange begins, and its height.
const BAR: (u32, u32) = (19, 16);
/// The narrowest drawing, the widest, and how much of it a letter takes, in pixels.
const PHONE: f64 = 300.0;
const DESK: f64 = 1200.0;
const LETTER: f64 = 6.8;

/// Cycles, and what they consist of where it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// All.
    pub(super) cycles: u64,
    /// Those of exchanges among them.
    pub(super) exchange: Option<u64>,
    /// Those that are neither of exchanges nor of compute sets.
    neither: u64,
}

impl Amount {
    /// Compute and exchange. A damaged report may have more exchange than there is of
    /// all.
    pub(super) fn new(cycles: u64, exchange: Option<u64>) -> Self {
        Self {
            cycles,
            exchange: exchange.map(|own| own.min(cycles)),
            neither: 0,
        }
    }

    fn neither(cycles: u64) -> Self {
        Self {
            cycles,
            exchange: Some(0),
            neither: cycles,
        }
    }

    /// The sum; exchanges of it are known where they are of each.
    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::neither(0), |sum, own| Self {
            cycles: sum.cycles.saturating_add(own.cycles),
            exchange: (sum.exchange.zip(own.exchange)).map(|(a, b)| a.saturating_add(b)),
            neither: sum.neither.saturating_add(own.neither),
        })
    }

    pub(super) fn compute(self) -> Option<u64> {
        let rest = self.cycles.saturating_sub(self.exchange?);
        Some(rest.saturating_sub(self.neither))
    }

    /// Parts of a bar: class of the colour, name, cycles.
    pub(super) fn parts(self) -> Vec<(&'static str, &'static str, u64)> {
        let (Some(compute), Some(exchange)) = (self.compute(), self.exchange) else {
            return vec![("compute", "all", self.cycles)];
        };
        vec![
            ("compute", "compute", compute),
            ("exchange", "exchange", exchange),
            ("overhead", "neither", self.neither),
        ]
    }
}

/// A box of the strip.
struct Boxed {
    /// Where it is in the JSON form; empty where it is not there.
    at: String,
    name: String,
    /// A shorter name, for where there is less room.
    short: String,
    amount: Amount,
    /// The other tint, in turns.
    other: bool,
}

/// Neighbouring layers of one stage, or of none.
struct Group {
    stage: Option<Boxed>,
    layers: Vec<Boxed>,
    cycles: u64,
}

/// All boxes.
pub(super) struct Strip {
    whole: Boxed,
    groups: Vec<Group>,
    /// What is in no layer.
    beside: Vec<Boxed>,
}

impl Strip {
    pub(super) fn new(report: &Report, execution: &Execution) -> Self {
        let groups: Vec<Group> = runs_of_stages(report, execution)
            .into_iter()
            .enumerate()
            .map(|(place, (stage, layers))| Group::new(report, execution, place, stage, layers))
            .collect();
        let in_layers = amounts(execution, 0..execution.layers.len());
        let beside = beside(execution, in_layers.cycles);
        let all = beside.iter().map(|own| own.amount);
        let whole = Boxed {
            at: "/execution".into(),
            name: "All".into(),
            short: "All".into(),
            amount: Amount::sum([in_layers].into_iter().chain(all)),
            other: false,
        };
        Self {
            whole,
            groups,
            beside,
        }
    }

    /// Is anything in it neither of compute sets nor of exchanges?
    pub(super) fn has_neither(&self) -> bool {
        self.whole.amount.neither > 0
    }

    /// Are there stages between the whole and the layers?
    fn has_stages(&self) -> bool {
        self.groups.iter().any(|group| group.stage.is_some())
    }

    pub(super) fn drawing(&self) -> Markup {
        let rows = if self.has_stages() { 3 } else { 2 };
        let label = if self.has_stages() {
            "Cycles: all, below them those of each stage, below each stage its layers"
        } else {
            "Cycles: all, and below them those of each layer"
        };
        let whole = self.whole.amount.cycles;
        let mut next = starts();
        html! {
            svg.flame id="execution-strip" height=(rows * ROW) role="img" aria-label=(label) {
                (hatch())
                (self.whole.drawing(0, 0, whole, whole))
                @for group in &self.groups {
                    (group.drawing(next(group.cycles), whole, rows))
                }
                @for own in &self.beside {
                    g.beside { (own.drawing(ROW, next(own.amount.cycles), whole, whole)) }
                }
            }
        }
    }
}

/// The layers of each stage, as far as they are neighbours.
fn runs_of_stages(report: &Report, execution: &Execution) -> Vec<(Option<u32>, Range<usize>)> {
    let mut runs: Vec<(Option<u32>, Range<usize>)> = Vec::new();
    for place in 0..execution.layers.len() {
        let stage = report.stage_of(place);
        match runs.last_mut() {
            Some((last, layers)) if *last == stage => layers.end = place + 1,
            _ => runs.push((stage, place..place + 1)),
        }
    }
    runs
}

/// The cycles of neighbouring layers.
fn amounts(execution: &Execution, layers: Range<usize>) -> Amount {
    let layers = execution.layers.get(layers).unwrap_or_default().iter();
    Amount::sum(layers.map(|own| Amount::new(own.cycles, own.exchange)))
}

/// What is in no layer: what the report says of it, and what its total has beyond that.
fn beside(execution: &Execution, in_layers: u64) -> Vec<Boxed> {
    let unplaced = execution.unplaced.unwrap_or(0);
    let other = execution.other.unwrap_or(0);
    let total = execution.total.unwrap_or(0);
    let rest = [in_layers, unplaced, other]
        .into_iter()
        .fold(total, u64::saturating_sub);
    let named = [
        (
            "/execution/unplaced",
            "In no layer",
            Amount::new(unplaced, execution.unplaced_exchange),
        ),
        (
            "/execution/other",
            "Stream copies, syncs and control flow",
            Amount::neither(other),
        ),
        ("", "In none of these", Amount::neither(rest)),
    ];
    let boxed = named.map(|(at, name, amount)| Boxed {
        at: at.into(),
        name: name.into(),
        short: name.into(),
        amount,
        other: true,
    });
    boxed
        .into_iter()
        .filter(|own| own.amount.cycles > 0)
        .collect()
}

impl Group {
    fn new(
        report: &Report,
        execution: &Execution,
        place: usize,
        stage: Option<u32>,
        layers: Range<usize>,
    ) -> Self {
        let amount = amounts(execution, layers.clone());
        let other = place % 2 == 1;
        let layers = layers.filter_map(|place| {
            let own = execution.layers.get(place)?;
            Some(Boxed {
                at: format!("/execution/layers/{place}"),
                name: shown(&report.pseudo_layers.named(&own.name)),
                short: short(&report.pseudo_layers.shown(&own.name)),
                amount: Amount::new(own.cycles, own.exchange),
                other,
            })
        });
        let stage = stage.map(|stage| {
            let place = execution.stages.iter().position(|own| own.stage == stage);
            Boxed {
                at: place.map_or(String::new(), |own| format!("/execution/stages/{own}")),
                name: format!("IPU {stage}"),
                short: stage.to_string(),
                amount,
                other,
            }
        });
        Self {
            stage,
            layers: layers.collect(),
            cycles: amount.cycles,
        }
    }

    /// The stage with its layers, from `from` on; nothing where they take no cycles.
    fn drawing(&self, from: u64, whole: u64, rows: u32) -> Markup {
        let mut next = starts();
        html! {
            @if self.cycles > 0 {
                svg.group x=(percent(from, whole)) y=(ROW) width=(percent(self.cycles, whole))
                    height=((rows - 1) * ROW) {
                    @if let Some(stage) = &self.stage { (stage.drawing(0, 0, self.cycles, whole)) }
                    @for own in &self.layers {
                        (own.drawing((rows - 2) * ROW, next(own.amount.cycles), self.cycles, whole))
                    }
                }
            }
        }
    }
}

impl Boxed {
    /// A box `y` pixels down, from `from` on, as a part of `outer`, which is a part of
    /// `whole`; nothing where it takes no cycles.
    fn drawing(&self, y: u32, from: u64, outer: u64, whole: u64) -> Markup {
        let cycles = self.amount.cycles;
        let mut start = starts();
        let parts = self.amount.parts().into_iter();
        let parts = parts.filter(|own| own.2 > 0);
        let parts = parts.map(|(class, _, part)| (class, start(part), part));
        html! {
            @if cycles > 0 {
                svg.box data-box=(self.at) x=(percent(from, outer)) y=(y)
                    width=(percent(cycles, outer)) height=(BOX) {
                    rect.band.other[self.other] width="100%" height="100%" {}
                    @for (class, from, part) in parts {
                        rect class=(class) x=(percent(from, cycles)) y=(BAR.0)
                            width=(percent(part, cycles)) height=(BAR.1) {}
                    }
                    (self.label(outer, whole))
                    rect.edge width="100%" height="100%" data-tip=(self.tip(whole)) {}
                }
            }
        }
    }

    /// The name, where there is room for it; where there is only with the stage over
    /// the whole width, or on a wide page, the script shows it.
    fn label(&self, outer: u64, whole: u64) -> Markup {
        let share = |of: u64| self.amount.cycles as f64 / of.max(1) as f64;
        let takes = |name: &str| name.chars().count() as f64 * LETTER + 8.0;
        let names = [&self.name, &self.short];
        let fits = |name: &&String| takes(name) <= share(whole) * PHONE;
        let name = names.into_iter().find(fits);
        html! {
            @if let Some(name) = name {
                text.on x="4" y="14" { (name) }
            } @else if takes(&self.short) <= share(outer) * DESK {
                text.on.tight x="4" y="14" { (self.short) }
            }
        }
    }

    /// What the pointer shows.
    fn tip(&self, whole: u64) -> String {
        let cycles = self.amount.cycles;
        let parts = self.amount.parts().into_iter();
        let parts = parts.filter(|own| own.2 > 0 && self.amount.exchange.is_some());
        let divided = parts.map(|(_, name, part)| format!("\n{name}: {}", grouped(part)));
        let divided: String = divided.collect();
        format!(
            "{}\n{} cycles, {} of all{divided}",
            self.name,
            grouped(cycles),
            share(cycles, whole)
        )
    }
}

/// What exchange is filled with wherever it is drawn: not told by its colour alone.
fn hatch() -> Markup {
    html! {
        defs {
            pattern id="exchange-hatch" width="6" height="6" patternUnits="userSpaceOnUse"
                patternTransform="rotate(45)" {
                rect.exchange-code width="6" height="6" {}
                rect.hatch width="2" height="6" {}
            }
        }
    }
}
