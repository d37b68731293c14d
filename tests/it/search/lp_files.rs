//! The integer programs that are written out, solved by HiGHS: the optimum must
//! be that of the plan that was found. Needs a python3 with highspy on the path;
//! see `tests/lp/check_with_highs.py`.

use popliner::debug_info::DebugInfo;
use popliner::memory::{MemoryModel, RangeCosts};
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model, Placement,
};
use popliner::profile::Profile;
use popliner::solve::{Constraint, Goal, Limits, Problem, Rule, SolveError, lp, solve};
use popliner::time::StageTimes;
use regex::Regex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::support::{FIXTURES, debug, finish, piped, profile, root, skip, try_finish};

const SCRIPT: &str = "tests/lp/check_with_highs.py";

/// Whether python3 can import highspy. It says so when it cannot.
#[track_caller]
fn has_highs() -> bool {
    let import = try_finish(piped("python3").args(["-c", "import highspy"]));
    let found = import.is_some_and(|run| run.code == 0);
    if !found {
        skip(&format!(
            "no python3 on the path can import highspy, see {SCRIPT}"
        ));
    }
    found
}

/// Programs to be solved, with what is expected of each.
struct Programs {
    folder: tempfile::TempDir,
    expected: HashMap<PathBuf, (String, Option<u128>)>,
}

impl Programs {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            expected: HashMap::new(),
        }
    }

    /// Writes the program and solves the problem; constraints that contradict each
    /// other are left out.
    fn add(&mut self, name: String, problem: &Problem<'_>) {
        let solution = match solve(problem) {
            Err(SolveError::Contradiction(_)) => return,
            solution => solution.unwrap(),
        };
        let optimum = solution.map(|solution| solution.proofs[0].integer_program);
        let path = self
            .folder
            .path()
            .join(format!("{}.lp", self.expected.len()));
        std::fs::write(&path, lp(problem, &[]).unwrap()).unwrap();
        self.expected.insert(path, (name, optimum));
    }

    /// Has HiGHS solve them all, and compares.
    fn check(&self) {
        let mut python = piped("python3");
        python.arg(SCRIPT).args(self.expected.keys());
        let run = finish(python.current_dir(root()));
        assert_eq!(run.code, 0, "{}", run.err);
        let mut checked = 0;
        for line in run.out.lines() {
            let (path, found) = line.rsplit_once('\t').unwrap();
            let (name, expected) = &self.expected[Path::new(path)];
            match expected {
                None => assert_eq!(found, "infeasible", "{name}"),
                Some(expected) => {
                    let found: f64 = found.parse().unwrap_or_else(|_| panic!("{name}: {found}"));
                    let off = (found - *expected as f64).abs();
                    assert!(off < 0.5, "{name}: {found} for {expected}");
                }
            }
            checked += 1;
        }
        assert_eq!(checked, self.expected.len());
    }
}

/// Some number below `below`, another one each time.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)) % below
}

/// Costs on two tiles with bytes of each position's own.
fn costs(state: &mut u64, layers: usize) -> RangeCosts {
    let bytes: Vec<[u64; 2]> = (0..layers)
        .map(|_| [0; 2].map(|_: u64| random(state, 100)))
        .collect();
    let row = |from: usize| {
        let mut tiles = [0; 2];
        let grow = bytes[from..].iter().map(|tiles_of_layer| {
            tiles[0] += tiles_of_layer[0];
            tiles[1] += tiles_of_layer[1];
            tiles[0].max(tiles[1])
        });
        grow.collect()
    };
    RangeCosts::new((0..layers).map(row).collect())
}

fn option(state: &mut u64, layers: u64, ipus: u64) -> Constraint {
    let kind = random(state, 4);
    let first = random(state, layers) as usize;
    let last = random(state, layers) as usize;
    let rule = match kind {
        0 => Rule::Pin {
            position: first,
            ipu: random(state, ipus.min(first as u64 + 1)) as usize,
        },
        1 => Rule::Together { first, last },
        2 => Rule::CutAfter {
            position: first.min(layers as usize - 2),
        },
        _ => Rule::NoCutAfter {
            position: first.min(layers as usize - 2),
        },
    };
    Constraint::option(rule, format!("{rule:?}"))
}

#[test]
fn highs_finds_the_same_optimum_for_random_problems() {
    if !has_highs() {
        return;
    }
    let mut programs = Programs::new();
    let mut seed = 6;
    let state = &mut seed;
    for n in 0..400 {
        let layers = 2 + random(state, 9);
        let ipus = 1 + random(state, 5);
        let costs = costs(state, layers as usize);
        let cut_bytes: Vec<u64> = (1..layers).map(|_| random(state, 1000)).collect();
        let cycles: Vec<u64> = (0..layers).map(|_| random(state, 1000)).collect();
        let times = StageTimes::of_cycles(&cycles);
        let constraints = random(state, 4);
        let constraints: Vec<Constraint> = (0..constraints)
            .map(|_| option(state, layers, ipus))
            .collect();
        let limits: Vec<u64> = (0..ipus).map(|_| 50 + random(state, 400)).collect();
        let problem = Problem {
            times: Some(&times),
            limits: match n % 2 {
                0 => Limits::Same(limits[0]),
                _ => Limits::ByIpu(&limits),
            },
            constraints: &constraints,
            goal: Goal::ALL[n % 8 / 2],
            ..Problem::new(&costs, &cut_bytes, ipus as usize, 0)
        };
        programs.add(format!("{problem:?}"), &problem);
    }
    assert!(programs.expected.len() > 200, "few problems were left");
    let feasible = programs
        .expected
        .values()
        .filter(|(_, optimum)| optimum.is_some());
    assert!(feasible.count() > 100, "few problems had a split");
    programs.check();
}

fn model(fixture: &str) -> (Model, Layering) {
    let profile = Profile::read(&root().join(profile(fixture))).unwrap();
    let debug_info = DebugInfo::read(&root().join(debug(fixture))).unwrap();
    let model = Model::build(profile, &debug_info, false).unwrap();
    let options = LayerOptions {
        layer_regex: Regex::new(DEFAULT_LAYER_REGEX).unwrap(),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).unwrap(),
        order: LayerOrder::Natural,
    };
    let layering = Layering::new(&model.operations, &options);
    (model, layering)
}

#[test]
fn highs_finds_the_same_optimum_for_the_fixtures() {
    if !has_highs() {
        return;
    }
    let mut programs = Programs::new();
    for fixture in FIXTURES {
        let (model, layering) = model(fixture);
        let limit = model.target.bytes_per_tile;
        let placement = Placement::classic(&model, &layering).unwrap();
        let memory = MemoryModel::new(&model, &placement).unwrap();
        let costs = memory.range_costs(limit).unwrap();
        let cut_bytes = memory.cut_bytes();
        for goal in [Goal::Peak, Goal::Fewest, Goal::Communication] {
            for ipus in [2, 4] {
                let plain = Problem::new(&costs, &cut_bytes, ipus, limit);
                let problem = Problem { goal, ..plain };
                programs.add(format!("{fixture}, {ipus} IPUs, {goal:?}"), &problem);
                let mut limits = vec![limit; ipus];
                limits[0] = limit / 10 * 9;
                let by_ipu = Limits::ByIpu(&limits);
                let problem = Problem {
                    limits: by_ipu,
                    ..problem
                };
                programs.add(format!("{fixture}, {limits:?}, {goal:?}"), &problem);
            }
        }
    }
    programs.check();
}
