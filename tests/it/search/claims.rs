//! Everything that a run says beside its answer is the answer to a changed request: the command of
//! each claim is run, and must give what is claimed, to the byte and the cycle.
//!
//! `SEEDS=0..300 cargo test --test it search::claims` draws other runs.

use super::number;
use crate::support::models::{Random, generate, seeds};
use crate::support::{ONE_IPU_FIXTURES, Run, each, popliner, root, split_of, typed};
use serde_json::Value;
use std::collections::BTreeMap;

/// Options that change the answer, which `/` separates; an empty one changes nothing.
const OPTIONS: &str = " / / --num-ipus=2 / --num-ipus=3 / --num-ipus=4 / --num-ipus=4 / \
    --num-ipus=6 / --num-ipus=8 / --num-ipus=auto / --objective=fewest / --objective=peak / \
    --replicas=2 / --optimizer-state=off-chip / --optimizer-state=sharded / \
    --streaming-bandwidth=20 / --schedule=sequential / --schedule=none / --recompute=none / \
    --recompute=stage / --recompute=layer / --pin=1=0 / --cut-before=1 / --together=0,1 / \
    --out-on=first / --reserve=5% / --micro-batches=4 / --micro-batch=2 / \
    --layer-name-regex=auto / --splits=1";

/// Limits of a tile, in shares of the recorded bytes of the fullest tile.
const SHARES: [f64; 8] = [0.15, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5];

/// How often each kind of claim was met.
type Kinds = BTreeMap<&'static str, usize>;

/// A run whose claims are tried: the arguments that name its model, and its other options.
struct Case {
    of: String,
    model: Vec<String>,
    options: Vec<String>,
    /// Bytes that the profile records on the fullest tile.
    recorded: u64,
}

impl Case {
    /// Runs the case with other options in place of those of the same name.
    fn run(&self, others: &[String]) -> Run {
        let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
        let others_names: Vec<String> = others.iter().map(|other| name(other)).collect();
        let kept = self.options.iter();
        let kept = kept.filter(|option| !others_names.contains(&name(option)));
        let results = ["--solve", "--export-json=-", "-q"].map(str::to_owned);
        let words = self.model.iter().chain(kept).chain(others).chain(&results);
        Run {
            of: self.of.clone(),
            ..popliner(words.map(String::as_str))
        }
    }

    fn fits(&self, others: &[String]) -> bool {
        let run = self.run(others);
        assert!(run.code <= 1, "{}: {others:?}: {run:?}", self.of);
        run.code == 0
    }
}

/// Draws a run of a fixture, or of a model that is written into `folder`.
fn drawn(seed: u64, folder: &std::path::Path) -> Case {
    let mut random = Random(seed);
    let model = match seed % 3 {
        0 => format!("fixtures/{}", random.one_of(&ONE_IPU_FIXTURES)),
        _ => {
            let framework = random.one_of(&["popart", "poptorch", "tensorflow"]);
            let mode = random.one_of(&["training", "training", "inference"]);
            let (layers, tiles) = (2 + random.below(4), 4 + random.below(4));
            let more = random.one_of(&["", "--optimiser adam-each --accumulation", "--execution"]);
            let options = format!(
                "--framework {framework} --mode {mode} --layers {layers} --tiles {tiles} --seed \
                 {seed} --page-size 1024 --overflow {more}"
            );
            let _ = generate(folder, &options);
            folder.display().to_string()
        }
    };
    let all: Vec<&str> = OPTIONS.split(" / ").map(str::trim).collect();
    let mut options: Vec<String> = Vec::new();
    for _ in 0..3 {
        let option = random.one_of(&all).to_owned();
        let name = option.split('=').next().unwrap_or_default();
        if !option.is_empty() && !options.iter().any(|other| other.starts_with(name)) {
            options.push(option);
        }
    }
    let case = Case {
        of: format!("SEEDS={seed}..{}: {model} {}", seed + 1, options.join(" ")),
        model: vec![model],
        options,
        recorded: 500_000,
    };
    let recorded = case.run(&["--mem-per-tile=100000000".to_owned()]);
    if recorded.code > 1 {
        return case;
    }
    let report = recorded.report();
    let tiles = report["memory"]["tiles"]["total"].as_array();
    let most = tiles.into_iter().flatten().filter_map(Value::as_u64).max();
    let recorded = most.unwrap_or(case.recorded);
    let limit = (recorded as f64 * random.one_of(&SHARES)) as u64;
    let mut options = case.options.clone();
    let mut memory = format!("--mem-per-tile={limit}");
    if random.once_in(6) {
        options.retain(|option| !option.starts_with("--num-ipus"));
        memory += &format!(",{},{limit}", limit * 9 / 10);
    }
    options.push(memory);
    Case {
        of: format!("{} {}", case.of, options.last().expect("one")),
        options,
        recorded,
        ..case
    }
}

/// Checks that the command of `claim` gives what it claims.
fn check(case: &Case, kind: &'static str, claim: &Value, kinds: &mut Kinds) {
    if claim.is_null() {
        return;
    }
    *kinds.entry(kind).or_default() += 1;
    let command = claim["command"].as_str().expect("a command");
    let again = typed(&format!("{command} --export-json=- -q"), root());
    let of = format!("{}\n{kind}: {command}", case.of);
    assert_eq!(claim["fits"] == true, again.code == 0, "{of}: {claim}");
    let found = again.report();
    let (layers, peak) = split_of(&found);
    assert_eq!(peak, claim["fullest_tile_bytes"].as_u64(), "{of}");
    assert_eq!(layers, claim["stages"], "{of}");
    for key in ["micro_batches", "cycles", "samples_per_second"] {
        assert_eq!(found["step"][key], claim["step"][key], "{of}: {key}");
    }
    for key in ["schedule", "recompute", "state"] {
        let own = &found["pipeline"][key];
        let is_same = own.is_null() || *own == claim[key];
        assert!(is_same, "{of}: {key} {own} {claim}");
    }
}

/// Checks all claims of a run's report.
fn check_all(case: &Case, report: &Value) -> Kinds {
    let mut kinds = Kinds::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (refusal, pipeline) = (&report["refusal"], &report["pipeline"]);
    for claim in list(&pipeline["alternatives"]) {
        check(case, "option", &claim, &mut kinds);
    }
    for row in list(&report["sweep"]["rows"]) {
        check(case, "sweep", &row, &mut kinds);
    }
    let rows = list(&report["plan"]["rows"]);
    assert!(rows.len() <= 8, "{}", case.of);
    for row in &rows {
        assert!(row["fits"] == true, "{}: {row}", case.of);
        check(case, "plan", row, &mut kinds);
    }
    for relaxed in list(&refusal["relaxations"]) {
        check(case, "relaxation", &relaxed["answer"], &mut kinds);
    }
    check(case, "memory", &refusal["with_memory"], &mut kinds);
    check(case, "more IPUs", &refusal["on_more_ipus"], &mut kinds);
    check(case, "replicas", &pipeline["with_replicas"], &mut kinds);
    check(case, "best", &report["given"]["best"], &mut kinds);
    check(case, "counts", &report["split"]["by_counts"], &mut kinds);
    check_bounds(case, report, &mut kinds);
    kinds
}

/// Checks the claims that less is not enough; PopTorch takes powers of 2.
fn check_bounds(case: &Case, report: &Value, kinds: &mut Kinds) {
    let refusal = &report["refusal"];
    let ipus = |count: u64| vec![format!("--num-ipus={count}")];
    let is_list = case.options.iter().any(|option| option.contains(','));
    let halves = report["pipeline"]["recording"]["framework"] == "poptorch";
    let fewer = |ipus: u64| if halves { ipus / 2 } else { ipus - 1 };
    if let Some(memory) = refusal["smallest_tile_memory"].as_u64() {
        *kinds.entry("smallest memory").or_default() += 1;
        let less = vec![format!("--mem-per-tile={}", memory - 1)];
        let more = if is_list { ipus(3) } else { Vec::new() };
        assert!(!case.fits(&[less, more].concat()), "{}: {memory}", case.of);
    }
    let now = number(&report["split"]["max_stages"]) * number(&report["split"]["replicas"]);
    match ["fewest_ipus", "ipus_tried"].map(|name| refusal[name].as_u64()) {
        [Some(fewest), _] if fewer(fewest) > now => {
            *kinds.entry("at least").or_default() += 1;
            assert!(!case.fits(&ipus(fewer(fewest))), "{}: {fewest}", case.of);
        }
        [None, Some(tried)] => {
            *kinds.entry("no number").or_default() += 1;
            assert!(!case.fits(&ipus(tried)), "{}: {tried}", case.of);
        }
        _ => {}
    }
    let least = report["split"]["fewest_ipus"].as_u64();
    if let Some(least) = least.filter(|&least| least < now) {
        *kinds.entry("fewer IPUs").or_default() += 1;
        assert!(is_list || case.fits(&ipus(least)), "{}: {least}", case.of);
    }
}

#[test]
fn each_claim_is_what_its_command_gives() {
    // These twelve runs have nearly every kind of claim.
    let is_chosen = std::env::var("SEEDS").is_ok();
    let first = if is_chosen { 0 } else { 12 };
    let seeds: Vec<u64> = seeds(8).map(|seed| first + seed).collect();
    let met = each(&seeds, |&seed| {
        let folder = tempfile::tempdir().expect("a folder");
        let case = drawn(seed, folder.path());
        let results = ["--explain", "--sweep", "--plan", "--emit=optimum"].map(str::to_owned);
        let run = case.run(&results);
        if run.code > 1 {
            return Kinds::new();
        }
        check_all(&case, &run.report())
    });
    let mut kinds = Kinds::new();
    for (kind, count) in met.into_iter().flatten() {
        *kinds.entry(kind).or_default() += count;
    }
    println!("{kinds:?}");
    assert!(kinds.len() >= 10 || is_chosen, "{kinds:?}");
}

/// Returns whether the model of `case` fits on each number of IPUs of a sweep up to 8, with `limit`
/// bytes on each tile; `None` if its options contradict each other on 8 IPUs.
fn fits_by_ipus(case: &Case, limit: u64) -> Option<Vec<bool>> {
    let memory = format!("--mem-per-tile={limit}");
    let run = case.run(&[memory, "--num-ipus=8".to_owned(), "--sweep".to_owned()]);
    let report = (run.code <= 1).then(|| run.report())?;
    let rows = report["sweep"]["rows"].as_array().expect("a sweep");
    Some(rows.iter().map(|row| row["fits"] == true).collect())
}

/// `SEEDS=0..300 cargo test --test it search::claims::more` draws other models.
#[test]
fn more_ipus_or_more_memory_never_turn_a_fit_into_a_failure() {
    let seeds: Vec<u64> = seeds(6).collect();
    let steps = each(&seeds, |&seed| {
        let folder = tempfile::tempdir().expect("a folder");
        let case = drawn(seed, folder.path());
        let (mut before, mut steps): (Option<Vec<bool>>, _) = (None, 0);
        for share in SHARES {
            let limit = (case.recorded as f64 * share) as u64;
            let Some(fits) = fits_by_ipus(&case, limit) else {
                return 0;
            };
            assert!(fits.is_sorted(), "{}: {limit}: {fits:?}", case.of);
            for (ipus, fitted) in before.iter().flatten().enumerate() {
                assert!(*fitted <= fits[ipus], "{}: {limit}: {fits:?}", case.of);
            }
            steps += usize::from(before.is_some_and(|before| before != fits));
            before = Some(fits);
        }
        steps
    });
    // Where limits change nothing, nothing is tested.
    assert!(steps.iter().sum::<usize>() >= seeds.len(), "{steps:?}");
}
