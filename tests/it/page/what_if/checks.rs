//! The split that the page shows, against the report of its command line.

use crate::page::{
    list, number,
    opened::{Page, plain, report},
};
use crate::support::{root, typed};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The split that the reader tries, as the page shows it.
const SHOWN: &str = "(() => {
    const part = (name) => document.getElementById('what-if-' + name);
    const texts = (all) => all.map((one) => one.textContent);
    const now = $$('[data-now]').map((one) => [one.dataset.now, one.textContent]);
    return {
        now,
        shares: texts($$('#what-if-stages td:nth-child(5)')),
        totals: texts($$('#what-if-totals dd')),
        fits: part('verdict').dataset.fits === 'true',
        verdict: part('verdict').textContent,
        looks_good: $('#answer h1').className === 'good',
        has_step: now.some(([place]) => place === '/step/cycles'),
        best_fits: part('best').dataset.fits === 'true',
        command: part('command').textContent,
        cuts: $$('.handle').map((one) => +one.ariaValueNow),
    };
})()";

/// The result of [`SHOWN`].
#[derive(Deserialize)]
pub struct Shown {
    /// Paths in the report of the command line, each with the number that the page shows.
    now: Vec<[String; 2]>,
    shares: Vec<String>,
    totals: Vec<String>,
    fits: bool,
    pub verdict: String,
    looks_good: bool,
    has_step: bool,
    best_fits: bool,
    pub command: String,
    pub cuts: Vec<u64>,
}

impl Page {
    pub fn shown(&mut self) -> Shown {
        self.value(SHOWN)
    }

    /// Compares everything that the page shows with the report of its command line.
    pub fn check(&mut self) {
        let shown = self.shown();
        let command = &shown.command;
        let judged = judged(command, self.folder.path());
        let stages: Vec<&Value> = list(&judged["split"]["stages"]).collect();
        assert!(shown.now.len() > stages.len() * 4, "{command}");
        let has_page_layers = best_has_layers_of_page(&judged);
        if !has_page_layers {
            // Whole layers do not fit, so the best split cuts them.
            assert!(!shown.best_fits, "{command}");
        }
        for [place, number] in &shown.now {
            if place.starts_with("/given/best") && !has_page_layers {
                continue;
            }
            let expected = judged
                .pointer(place)
                .unwrap_or_else(|| panic!("no {place}"));
            assert_eq!(
                number.replace(',', ""),
                plain(expected),
                "{command}: {place}"
            );
        }
        let starts = stages
            .iter()
            .map(|stage| number(&stage["positions"]["start"]));
        assert!(starts.skip(1).eq(shown.cuts.iter().copied()), "{command}");
        check_verdict(&shown, &judged, has_page_layers);
        // The head and the figures have the step, unless Out runs on the first IPU.
        let has_step = judged["step"].is_object() && judged["pseudo_layers"] != "out-with-in";
        assert_eq!(shown.has_step, has_step, "{command}");
        check_totals(&shown, &judged);
    }
}

/// Returns the report of a command line that a page shows.
fn judged(command: &str, folder: &std::path::Path) -> Value {
    static JUDGED: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    if let Some(report) = JUDGED.lock().expect("reports").get(command) {
        return report.clone();
    }
    let json = folder.join("judged.json");
    let run = typed(
        &format!("{command} -q --export-json='{}'", json.display()),
        root(),
    );
    assert!(run.code < 2, "{command}: {run:?}");
    let report = report(&json);
    JUDGED
        .lock()
        .expect("reports")
        .insert(command.to_owned(), report.clone());
    report
}

/// Returns whether the best split has only layers that the page shows.
fn best_has_layers_of_page(judged: &Value) -> bool {
    let names: Vec<&Value> = list(&judged["layers"])
        .map(|layer| &layer["name"])
        .collect();
    list(&judged["given"]["best"]["stages"])
        .flat_map(list)
        .all(|name| names.contains(&name))
}

fn check_verdict(shown: &Shown, judged: &Value, has_page_layers: bool) {
    let Shown {
        command, verdict, ..
    } = shown;
    let (split, best) = (&judged["split"]["fits"], &judged["given"]["best"]["fits"]);
    assert_eq!(
        [shown.fits, shown.looks_good].map(Value::from),
        [split, split].map(Value::clone),
        "{command}"
    );
    assert!(!has_page_layers || *best == shown.best_fits, "{command}");
    let broken: Vec<&Value> = list(&judged["given"]["broken_constraints"]).collect();
    assert_eq!(
        verdict.matches("it breaks ").count(),
        broken.len(),
        "{command}"
    );
    for name in broken.into_iter().map(plain) {
        assert!(verdict.contains(&format!("it breaks {name}")), "{verdict}");
    }
}

fn check_totals(shown: &Shown, judged: &Value) {
    let command = &shown.command;
    let numbers = |rows: &Value, at: &str| -> Vec<u64> {
        let rows = list(rows).map(|row| row.pointer(at).and_then(Value::as_u64));
        rows.map(|number| number.expect("a number")).collect()
    };
    let stages = &judged["split"]["stages"];
    let bytes = numbers(stages, "/fullest_tile/bytes");
    let limits = numbers(stages, "/fullest_tile/limit");
    let sent: u64 = numbers(&judged["cuts"], "/bytes").iter().sum();
    let highest = |all: &[u64]| *all.iter().max().expect("a number");
    let mut expected = vec![format!("{}bytes", highest(&bytes)), format!("{sent}bytes")];
    if !judged["execution"].is_null() {
        let cycles = numbers(&judged["execution"]["stages"], "/micro_batch_cycles");
        expected.push(format!("{}cycles", highest(&cycles)));
    }
    let totals = shown.totals.iter().map(|total| total.replace(',', ""));
    let mut totals: Vec<String> = totals.collect();
    if shown.has_step {
        let cycles = format!("{} cycles", judged["step"]["cycles"]);
        assert!(
            totals.pop().expect("a step").ends_with(&cycles),
            "{command}"
        );
    }
    assert_eq!(totals, expected, "{command}");
    // Shares are in tenths of a per cent, rounded up.
    let shares = bytes.iter().zip(limits).map(|(&bytes, limit)| {
        let tenths = (bytes * 1000).div_ceil(limit);
        format!("{}.{} %", tenths / 10, tenths % 10)
    });
    assert_eq!(shown.shares, shares.collect::<Vec<_>>(), "{command}");
}
