//! The split whose cuts the reader moves: the numbers for the script, and what it
//! fills in.

use super::chart_data::for_script;
use super::dense::{MAX_NUMBER, changes};
use crate::escape::is_obeyed;
use crate::model::PseudoLayers;
use crate::report::text::shown;
use crate::report::{BestSplit, CheckedConstraint, Report, Split, WhatIf};
use crate::time::PositionCycles;
use maud::{Markup, html};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;

/// The maximum of `--mem-per-tile`.
const MAX_MEMORY: u64 = 1 << 40;

/// What the script needs. It names the fields again.
#[derive(Serialize)]
struct WhatIfData<'a> {
    boundaries: &'a [u32],
    max_stages: u32,
    by_stages_after: bool,
    /// Packed ([`changes`]).
    bytes: String,
    cut_bytes: &'a [u64],
    cycles: Option<&'a PositionCycles>,
    layers: Vec<String>,
    command: Option<CommandLine<'a>>,
    ipus: u32,
    /// One for all IPUs, or one for each; less the reserves they are the limits.
    memories: Vec<u64>,
    reserves: Vec<u64>,
    /// Is the best split the one with the lowest peak?
    by_peak: bool,
    ends: Vec<u32>,
    best: &'a [BestSplit],
    constraints: Vec<CheckedConstraint>,
}

/// What a command line for another split is made of.
#[derive(Serialize)]
struct CommandLine<'a> {
    /// By position, as `--check-splits` reads them.
    names: Vec<String>,
    arguments: &'a [String],
}

/// What the script fills in; `None` where no split can be tried.
pub(super) fn section(report: &Report) -> Option<Markup> {
    let (what_if, split) = (report.what_if.as_ref()?, report.split.as_ref()?);
    let most = what_if.best.iter().map(|own| own.ipus).max();
    let most = most.unwrap_or(0).max(split.max_stages);
    Some(html! {
        p { "Move the cuts, and see what the split would need. Every number is exact: the bytes of all ranges of layers were weighed, and are only added up and compared here." }
        p.soft id="what-if-without" {
            "Cuts cannot be moved here: either the browser runs no scripts, or the numbers are too many or too large for a page. "
            code { "--check-splits" } " judges any split."
        }
        div id="what-if-tool" hidden {
            p.soft id="what-if-some" { "The model has too many ranges of layers for a page: cuts can be moved near those of the split and of the best splits only." }
            (controls(most))
            div id="what-if-strip" role="group" aria-label="Stages, and the cuts between them" {}
            div.controls {
                button type="button" id="what-if-add" { "Add a cut" }
                button type="button" id="what-if-remove" { "Remove this cut" }
                span.soft id="what-if-most" {}
            }
            p.soft.hint { "Drag a cut, or give it the focus and press the arrow keys, Page Up, Page Down, Home or End; Delete removes it. Double-click a stage, or give it the focus and press Enter, to cut it in two. A stage is filled as far as its fullest tile is." }
            p id="what-if-verdict" role="status" {}
            dl.figures id="what-if-totals" {}
            (stages(report))
            h3 { "The best split for this number of IPUs" }
            p { span id="what-if-best" {} " " button type="button" id="what-if-take" { "Show it" } }
            (command())
        }
    })
}

fn controls(most: u32) -> Markup {
    html! {
        div.controls {
            label { "IPUs " input id="what-if-ipus" type="number" min="1" max=(most) step="1"; }
            label { "Memory of a tile in bytes " input id="what-if-memory" type="number" min="1" max=(MAX_MEMORY) step="1"; }
            label { "Reserve in bytes " input id="what-if-reserve" type="number" min="0" max=(MAX_MEMORY) step="1"; }
            button type="button" id="what-if-reset" { "Reset" }
        }
    }
}

fn stages(report: &Report) -> Markup {
    let mut columns = vec!["Fullest tile", "Limit", "Of the limit", "Free there"];
    if report.execution.is_some() {
        columns.push("Cycles");
    }
    columns.push("Bytes over the cut after it");
    html! {
        div.scroll tabindex="0" role="group" aria-label="Stages of the split with moved cuts" {
            table {
                thead { tr {
                    th scope="col" { "Stage" }
                    th scope="col" { "Layers" }
                    @for name in &columns { th.n scope="col" { (name) } }
                } }
                tbody id="what-if-stages" {}
            }
        }
    }
}

fn command() -> Markup {
    html! {
        h3 { "The same on the command line" }
        div id="what-if-typed" {
            p { code id="what-if-command" {} }
            p.controls { button type="button" id="what-if-copy" { "Copy" } span id="what-if-copied" role="status" {} }
        }
        p.soft id="what-if-untyped" { "A command line cannot be shown: the report was not made by one, or a name in it cannot be typed." }
    }
}

/// The numbers for the script, fewer of them where all take more than `room` bytes.
pub(super) fn data(report: &Report, room: usize) -> Option<String> {
    let split = report.split.as_ref()?;
    let mut what_if = Cow::Borrowed(report.what_if.as_ref()?);
    if !is_exact(report, &what_if) {
        return None;
    }
    let ends: Vec<u32> = split.stages.iter().map(|own| own.positions.end).collect();
    loop {
        let text = for_script(&WhatIfData::new(report, split, &what_if, &ends)?);
        if text.len() <= room {
            return Some(text);
        }
        // Fewer with each turn.
        let most = what_if.bytes.len() * 9 / 10;
        let scaled = (what_if.bytes.len() as u128 * room as u128) / text.len() as u128;
        let most = most.min(usize::try_from(scaled).unwrap_or(most));
        what_if = Cow::Owned(what_if.narrowed(most, &ends)?);
    }
}

/// Can a browser add up all numbers exactly?
fn is_exact(report: &Report, what_if: &WhatIf) -> bool {
    let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
    let cycles = what_if.cycles.iter();
    let cycles = cycles.flat_map(|own| own.once.iter().chain(&own.recomputed));
    let split = report.split.iter();
    let highest = [
        what_if.bytes.iter().copied().max().unwrap_or(0),
        sum(&mut what_if.cut_bytes.iter().copied()),
        sum(&mut cycles.copied()),
        split.map(|own| own.limit).max().unwrap_or(0),
    ];
    highest.into_iter().all(|number| number < MAX_NUMBER)
}

impl<'a> WhatIfData<'a> {
    fn new(
        report: &'a Report,
        split: &'a Split,
        what_if: &'a WhatIf,
        ends: &[u32],
    ) -> Option<Self> {
        let layers = &report.layers;
        let positions = what_if.boundaries.last().copied()?;
        let (memories, reserves) = memories(split, what_if).into_iter().unzip();
        let named = layers
            .iter()
            .map(|own| report.pseudo_layers.shown(&own.name));
        (layers.len() == positions as usize).then(|| Self {
            boundaries: &what_if.boundaries,
            max_stages: what_if.max_stages,
            by_stages_after: what_if.by_stages_after,
            bytes: changes(what_if.bytes.iter().copied()),
            cut_bytes: &what_if.cut_bytes,
            cycles: what_if.cycles.as_ref(),
            layers: named.collect(),
            command: CommandLine::new(report, what_if),
            ipus: split.max_stages,
            memories,
            reserves,
            by_peak: (report.proof.as_ref()).is_some_and(|own| own.objective == "peak"),
            ends: ends.to_vec(),
            best: &what_if.best,
            constraints: what_if.constraints.iter().map(with_shown_name).collect(),
        })
    }
}

/// The memory of a tile and what is kept free of it, once or for each limit. Where the
/// report does not say them, or not those of its limits, nothing is kept free.
fn memories(split: &Split, what_if: &WhatIf) -> Vec<(u64, u64)> {
    let limits = (split.limits.as_deref()).unwrap_or(std::slice::from_ref(&split.limit));
    let said = what_if.memories.iter().zip(&what_if.reserves);
    let mut said: Vec<(u64, u64)> = said.map(|(&memory, &own)| (memory, own)).collect();
    if limits.len() == 1 {
        // The same for each IPU.
        said.dedup();
    }
    let is_exact = |&(memory, _): &(u64, u64)| memory < MAX_NUMBER;
    let rest = said.iter().map(|(memory, own)| memory.checked_sub(*own));
    if said.iter().all(is_exact) && rest.eq(limits.iter().map(|&limit| Some(limit))) {
        said
    } else {
        limits.iter().map(|&limit| (limit, 0)).collect()
    }
}

impl<'a> CommandLine<'a> {
    /// `None` where a command line cannot name every position, and where a terminal
    /// would obey something in it.
    fn new(report: &Report, what_if: &'a WhatIf) -> Option<Self> {
        let first = match report.pseudo_layers {
            PseudoLayers::NoneFirst => "None",
            PseudoLayers::InAndOut | PseudoLayers::OutWithIn => "In",
        };
        let names = report.layers.iter();
        let names: Vec<&str> = names
            .map(|own| own.name.as_deref().unwrap_or(first))
            .collect();
        let is_plain = |word: &str| !word.chars().any(|c| is_obeyed(c) || c == '\u{fffd}');
        let is_read_back = |name: &&str| !name.is_empty() && name.trim() == *name && is_plain(name);
        let distinct: HashSet<&str> = names.iter().copied().collect();
        let arguments = &what_if.arguments;
        let can_be_typed = distinct.len() == names.len()
            && names.iter().all(is_read_back)
            && !arguments.is_empty()
            && arguments.iter().all(|own| is_plain(own));
        let escaped = |name: &&str| name.replace('\\', "\\\\").replace(',', "\\,");
        can_be_typed.then(|| Self {
            names: names.iter().map(escaped).collect(),
            arguments,
        })
    }
}

/// A constraint by the name that is shown of it.
fn with_shown_name(constraint: &CheckedConstraint) -> CheckedConstraint {
    CheckedConstraint {
        name: shown(&constraint.name),
        ..constraint.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::dense::tests::read_changes;
    use crate::report::testing::report;

    #[test]
    fn the_script_gets_the_bytes_of_all_ranges() {
        let report = report();
        let data: serde_json::Value =
            serde_json::from_str(&data(&report, 1 << 20).unwrap()).unwrap();
        let expected = &report.what_if.as_ref().unwrap().bytes;
        assert_eq!(read_changes(data["bytes"].as_str().unwrap()), *expected);
        assert_eq!(data["ends"], serde_json::json!([2, 5]));
        assert_eq!(
            data["command"]["names"],
            serde_json::json!(["In", "0", "1", "2", "Out"])
        );
    }

    #[test]
    fn the_numbers_keep_to_their_room() {
        let report = report();
        let whole = data(&report, 1 << 20).unwrap();
        let less = data(&report, whole.len() - 1).unwrap();
        assert!(less.len() < whole.len());
        let less: serde_json::Value = serde_json::from_str(&less).unwrap();
        let boundaries = less["boundaries"].as_array().unwrap();
        assert!(
            boundaries.len() < 6 && boundaries.contains(&2.into()),
            "{boundaries:?}"
        );
        assert_eq!(data(&report, 100), None);
    }

    #[test]
    fn the_limits_are_memories_less_reserves() {
        let said = |memories: &[u64], reserves: &[u64], limits: Option<Vec<u64>>| {
            let mut report = report();
            let split = report.split.as_mut().unwrap();
            (split.limit, split.limits) = (900, limits);
            let what_if = report.what_if.as_mut().unwrap();
            (what_if.memories, what_if.reserves) = (memories.into(), reserves.into());
            memories_of(&report)
        };
        assert_eq!(said(&[1000], &[100], None), [(1000, 100)]);
        assert_eq!(said(&[1000; 2], &[100; 2], None), [(1000, 100)]);
        let several = Some(vec![900, 950]);
        let both = [(1000, 100), (1000, 50)];
        assert_eq!(said(&[1000; 2], &[100, 50], several.clone()), both);
        // Of reports that do not say it, or something else than their limits.
        for (memories, reserves) in [
            (vec![], vec![]),
            (vec![1000], vec![1001]),
            (vec![2000], vec![0]),
        ] {
            assert_eq!(said(&memories, &reserves, None), [(900, 0)]);
        }
        assert_eq!(said(&[1000], &[100], several), [(900, 0), (950, 0)]);
        let far = [MAX_NUMBER, MAX_NUMBER - 900];
        assert_eq!(said(&far[..1], &far[1..], None), [(900, 0)]);
    }

    fn memories_of(report: &Report) -> Vec<(u64, u64)> {
        memories(
            report.split.as_ref().unwrap(),
            report.what_if.as_ref().unwrap(),
        )
    }

    #[test]
    fn numbers_that_a_browser_does_not_hold_are_left_out() {
        let mut report = report();
        let what_if = report.what_if.as_mut().unwrap();
        what_if.cycles = Some(PositionCycles {
            once: vec![MAX_NUMBER],
            ..PositionCycles::default()
        });
        assert_eq!(data(&report, 1 << 20), None);
        assert!(section(&report).is_some());
    }

    #[test]
    fn a_command_line_has_no_names_that_cannot_be_typed() {
        let command = |name: &str, argument: &str| {
            let mut report = report();
            report.layers[1].name = Some(name.into());
            let mut what_if = report.what_if.clone().unwrap();
            what_if.arguments = vec![argument.into()];
            CommandLine::new(&report, &what_if).map(|own| own.names[1].clone())
        };
        assert_eq!(command(r"a,b\", "p.pop"), Some(r"a\,b\\".into()));
        for (name, argument) in [
            ("0 ", "p.pop"),
            ("", "p.pop"),
            ("In", "p.pop"),
            ("\u{1b}[201~", "p.pop"),
            ("0", "\u{202e}"),
            ("0", "\u{fffd}"),
        ] {
            assert_eq!(command(name, argument), None, "{name:?} {argument:?}");
        }
        let mut without = report();
        without.what_if.as_mut().unwrap().arguments.clear();
        let what_if = without.what_if.as_ref().unwrap();
        assert!(CommandLine::new(&without, what_if).is_none());
    }

    #[test]
    fn the_text_of_shown_names_stays_short() {
        let mut report = report();
        report.layers[1].name = Some("x".repeat(1000));
        let data = data(&report, 1 << 20).unwrap();
        let long = shown(&"x".repeat(1000));
        assert!(data.contains(&long), "{data}");
    }
}
