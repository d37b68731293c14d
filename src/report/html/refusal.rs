//! Why nothing fits and what would help, and the best split beside one that
//! was given.

use super::widgets::{cell, number, table};
use crate::model::PseudoLayers;
use crate::report::document::{Judged, Refusal, RefusalReason, Report, SplitFacts};
use crate::report::text::{grouped, share, shown};
use crate::report::tied_weights;
use maud::{Markup, html};

/// What stands in the way; `None` when something fits.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let refusal = report.refusal.as_ref()?;
    Some(html! {
        (reason(refusal))
        (ranges(report.pseudo_layers, refusal))
        h3 { "What would help" }
        (help(report, refusal))
    })
}

fn reason(refusal: &Refusal) -> Markup {
    let needed = html! {
        @if let Some(needed) = refusal.stages_needed {
            (number("/refusal/stages_needed", needed.into()))
        }
    };
    html! {
        p {
            @match (refusal.reason, refusal.stages_needed) {
                (RefusalReason::TooFewIpus, Some(_)) => { "At least " (needed) " IPUs are needed." },
                (RefusalReason::PinsOrLimits, Some(_)) => {
                    (needed) " IPUs would be enough with the highest limit and without pins: \
                    these, or the lower limits of some IPUs, stand in the way."
                },
                _ => "No number of IPUs is enough: what is over the limit cannot be cut.",
            }
        }
    }
}

/// The ranges that are over the limit, and what they prove.
fn ranges(pseudo_layers: PseudoLayers, refusal: &Refusal) -> Markup {
    let rows = html! {
        @for (place, range) in refusal.ranges.iter().enumerate() {
            @let at = format!("/refusal/ranges/{place}");
            tr {
                td.name.list { (pseudo_layers.shown_list(&range.layers)) }
                (cell(format_args!("{at}/tile"), range.tile.into()))
                @match range.step {
                    Some(step) => (cell(format_args!("{at}/step"), step.into())),
                    None => td.n { "\u{2013}" },
                }
                (cell(format_args!("{at}/bytes"), range.bytes))
                td.n { (grouped(range.bytes.saturating_sub(refusal.limit))) }
            }
        }
    };
    let columns = [
        "Layers",
        "#Fullest tile",
        "#At step",
        "#Bytes there",
        "#Over the limit",
    ];
    html! {
        @if !refusal.ranges.is_empty() {
            p {
                "Each of these ranges of layers is over the limit of "
                (number("/refusal/limit", refusal.limit)) " bytes as one stage"
                @if refusal.stages_needed.is_some() {
                    ", so each must be cut somewhere inside. They meet only at their end layers, \
                    so that no cut serves two of them"
                }
                "."
            }
            (table("Layers over the limit", &columns, rows))
        }
        @for what in &refusal.kept_together {
            p { "Kept together by " span.name { (shown(what)) } }
        }
        @if !refusal.cuts_after.is_empty() {
            p { "A cut was ordered after each of " span.name { (pseudo_layers.shown_list(&refusal.cuts_after)) } ", which counts as well." }
        }
    }
}

fn help(report: &Report, refusal: &Refusal) -> Markup {
    let ipus = report.split.as_ref().map(|split| split.max_stages);
    html! {
        dl.figures {
            @if let Some(memory) = refusal.smallest_tile_memory {
                div {
                    dt { "More memory on each tile" }
                    dd {
                        (number("/refusal/smallest_tile_memory", memory))
                        small {
                            "bytes would be enough"
                            @if let Some(ipus) = ipus { " on " (ipus) (plural(ipus, " IPU", " IPUs")) }
                            @if let Some(limit) = refusal.smallest_limit.filter(|&limit| limit != memory) {
                                ", of which a stage takes " (number("/refusal/smallest_limit", limit))
                            }
                        }
                    }
                }
            }
            div {
                dt { "More IPUs" }
                @match refusal.fewest_ipus {
                    Some(ipus) => dd {
                        (number("/refusal/fewest_ipus", ipus.into()))
                        small { (plural(ipus, "IPU", "IPUs")) " would be enough for this limit" }
                    },
                    None => dd {
                        "None"
                        small {
                            "no number is enough for this limit"
                            @if !report.orders.is_empty() { " with these orders" }
                        }
                    },
                }
            }
        }
        @for relaxation in &refusal.relaxations {
            p {
                (tied_weights::capital(&tied_weights::without(relaxation))) " it fits: "
                span.name { (report.pseudo_layers.shown_stages(&relaxation.stages)) }
            }
        }
    }
}

fn plural(count: u32, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// The best split beside the one that was given; `None` when none was given.
pub(super) fn judged(report: &Report) -> Option<Markup> {
    let (judged, split) = (report.judged.as_ref()?, report.split.as_ref()?);
    let with_cycles = report.execution.is_some() || judged.best_slowest_stage_cycles.is_some();
    let mut columns = vec!["Split", "Fits", "#Fullest tile", "#Over all cuts"];
    if with_cycles {
        columns.push("#Cycles of the slowest stage");
    }
    columns.push("Layers of each stage");
    let rows = html! {
        (given_row(report, split, with_cycles))
        (best_row(report.pseudo_layers, judged, with_cycles))
    };
    Some(html! {
        @if !judged.broken_orders.is_empty() {
            div.notes.bad { ul {
                @for order in &judged.broken_orders { li.name { "The split breaks " code { (shown(order)) } } }
            } }
        }
        p { "The split that was given needs " (share(given_bytes(split), judged.best_fullest_tile_bytes))
            " of what the best has on its fullest tile." }
        (table("The given split and the best", &columns, rows))
    })
}

fn given_bytes(split: &SplitFacts) -> u64 {
    let bytes = split.stages.iter().map(|stage| stage.fullest_tile.bytes);
    bytes.max().unwrap_or(0)
}

fn given_row(report: &Report, split: &SplitFacts, with_cycles: bool) -> Markup {
    let fullest = (split.stages.iter().enumerate())
        .rev()
        .max_by_key(|(_, stage)| stage.fullest_tile.bytes);
    let stages = report.execution.iter().flat_map(|own| &own.stages);
    let slowest = stages.enumerate().max_by_key(|(_, stage)| stage.cycles);
    let cut_bytes = report.cuts.iter().map(|cut| u128::from(cut.bytes));
    let layers: Vec<_> = split.stages.iter().map(|one| one.layers.clone()).collect();
    html! {
        tr {
            td { "Given" }
            (fits(split.fits))
            @match fullest {
                Some((place, stage)) => (cell(format_args!("/split/stages/{place}/fullest_tile/bytes"), stage.fullest_tile.bytes)),
                None => td.n { "\u{2013}" },
            }
            td.n { (grouped(u64::try_from(cut_bytes.sum::<u128>()).unwrap_or(u64::MAX))) }
            @if with_cycles {
                @match slowest {
                    Some((place, stage)) => (cell(format_args!("/execution/stages/{place}/cycles"), stage.cycles)),
                    None => td.n { "\u{2013}" },
                }
            }
            td.name.list { (report.pseudo_layers.shown_stages(&layers)) }
        }
    }
}

fn best_row(pseudo_layers: PseudoLayers, judged: &Judged, with_cycles: bool) -> Markup {
    html! {
        tr {
            td { "Best" }
            (fits(judged.best_fits))
            (cell("/judged/best_fullest_tile_bytes", judged.best_fullest_tile_bytes))
            (cell("/judged/best_cut_bytes", judged.best_cut_bytes))
            @if with_cycles {
                @match judged.best_slowest_stage_cycles {
                    Some(cycles) => (cell("/judged/best_slowest_stage_cycles", cycles)),
                    None => td.n { "\u{2013}" },
                }
            }
            td.name.list { (pseudo_layers.shown_stages(&judged.best_stages)) }
        }
    }
}

/// The cell that says whether a split fits.
pub(super) fn fits(fits: bool) -> Markup {
    html! { td.good[fits].bad[!fits] { @if fits { "yes" } @else { "no" } } }
}
