//! Every command that a run prints can be run, and its split fits if the run says so.
//! `search::claims` runs the commands in reports.
//!
//! `SEEDS=0..1000 cargo test --test it cli::printed` draws other runs.

use crate::support::models::{Random, seeds};
use crate::support::{ONE_IPU_FIXTURES, Run, each, root, run_fixture, typed};
use std::collections::BTreeSet;

/// Options to draw from, separated by `/`.
const OPTIONS: &str = "--plan / --solve / --sweep / --explain / --num-ipus=2 / --num-ipus=4 / \
    --num-ipus=8 / --num-ipus=auto / --objective=fewest / --objective=time / --objective=peak / \
    --replicas=2 / --micro-batch=4 / --memory-model=classic / --solver=greedy / \
    --optimizer-state=off-chip / --optimizer-state=sharded-off-chip / --streaming-bandwidth=5 / \
    --pin=1=0 / --cut-before=2 / --together=1,2 / --together=0,1 / --mem-per-tile=200000 / \
    --mem-per-tile=600000 / --mem-per-tile=1500000 / --reserve=5% / --micro-batches=30 / \
    --untie=all / --layer-name-regex=auto / --layer-order=natural / \
    --schedule=popart / --schedule=sequential / --recompute=none / --recompute=layer / \
    --splits=2";

/// Maximum number of printed commands that are tried for each run.
const TRIED: usize = 4;

/// Runs a fixture with up to three random options, which may contradict each other.
fn drawn(seed: u64) -> Run {
    let mut random = Random(seed);
    let all: Vec<&str> = OPTIONS.split(" / ").collect();
    let fixture = random.one_of(&ONE_IPU_FIXTURES);
    let mut options = String::new();
    for _ in 0..random.below(4) {
        options += &format!(" {}", random.one_of(&all));
    }
    let of = format!("SEEDS={seed}..{}: {fixture}{options}", seed + 1);
    Run {
        of,
        ..run_fixture(fixture, &options)
    }
}

/// Returns the commands in the output of a run, up to the end of a line or cell, each with the highest
/// exit code that it may have.
fn commands(run: &Run) -> BTreeSet<(i32, &str)> {
    let lines = run.out.lines().chain(run.err.lines());
    let cells = lines.flat_map(|line| line.split('\t'));
    let commands = cells.filter_map(|cell| {
        let (before, _) = cell.split_once("popliner fixtures")?;
        let may_fail = !before.contains("this fits:");
        Some((i32::from(may_fail), &cell[before.len()..]))
    });
    commands.collect()
}

#[test]
fn printed_commands_run() {
    let seeds: Vec<u64> = seeds(9).collect();
    let tried = each(&seeds, |&seed| {
        let run = drawn(seed);
        if run.code > 1 {
            return 0;
        }
        let commands = commands(&run);
        for (most, command) in commands.iter().take(TRIED) {
            let folder = tempfile::tempdir().expect("a folder");
            let page = folder.path().join("page.html").display().to_string();
            let again = typed(&command.replace("report.html", &page), root());
            assert!(again.code <= *most, "{run:?}\n{command}\n{again:?}");
        }
        commands.len().min(TRIED)
    });
    let tried: usize = tried.into_iter().sum();
    let is_chosen = std::env::var("SEEDS").is_ok();
    assert!(tried > 15 || is_chosen, "{tried} commands");
}
