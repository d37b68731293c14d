//! Weights that several layers share: answers of the command, against all splits tried one by one.

use std::path::PathBuf;

use crate::search::facts::{Facts, printed};
use crate::support::models::{generate, share};
use crate::support::{Run, popliner};
use popliner::model::{OutOn, PlacementOptions, Untied};
use serde_json::Value;
use tempfile::TempDir;

/// A model in which some places share a weight.
struct Tied {
    _folder: TempDir,
    files: [PathBuf; 2],
}

impl Tied {
    /// Generates the model; `places` are the places that the generator ties.
    fn new(places: &str, framework: &str, seed: u64) -> Self {
        let options = format!(
            "--framework {framework} --tied {places} --ends large --layers 5 --tiles 8 \
             --bytes-per-layer-tile 30000 --page-size 1024 --mode training --seed {seed}"
        );
        let options: Vec<String> = options.split(' ').map(String::from).collect();
        let folder = TempDir::new().expect("a folder");
        let files = generate(folder.path(), &options);
        Self {
            _folder: folder,
            files,
        }
    }

    fn facts(&self, options: &PlacementOptions) -> Facts {
        Facts::of(&self.files[0], &self.files[1], options)
    }

    fn run(&self, options: &[&str]) -> Run {
        let profile = self.files[0].to_str().expect("a plain path");
        let fixed = [profile, "--layer-order=steps", "--schedule=none"];
        let objective = options
            .iter()
            .any(|option| option.starts_with("--objective"));
        let peak = (!objective).then_some(&"--objective=peak");
        popliner(fixed.iter().chain(options).chain(peak))
    }

    /// Returns the stages and the report of a search.
    fn solved(&self, facts: &Facts, options: &[&str]) -> (Vec<usize>, Value, Run) {
        let solve = ["--solve", "--export-json=-", "--num-ipus=4"];
        let run = self.run(&[&solve, options].concat());
        let (_, rest) = run.out.split_once("# solve\n").expect("stages");
        let (stages, json) = rest.split_once("# export-json\n").expect("a report");
        let report = serde_json::from_str(json).expect("JSON");
        (printed(facts, stages), report, run)
    }
}

/// Checks models of each framework whose contexts tell weights.
fn each(places: &str, check: impl Fn(&Tied)) {
    let models = [("popart", 1), ("popart", 3), ("poptorch", 2)];
    for (framework, seed) in models.into_iter().step_by(share(2)) {
        check(&Tied::new(places, framework, seed));
    }
}

fn untied() -> PlacementOptions {
    PlacementOptions {
        untie: Untied::All,
        ..PlacementOptions::default()
    }
}

#[test]
fn embedding_and_head_that_share_a_weight_are_on_the_first_ipu() {
    each("ends", |tied| {
        let facts = tied.facts(&PlacementOptions::default());
        assert!(facts.positions.out_is_first());
        for objective in ["peak", "fewest", "communication"] {
            let option = format!("--objective={objective}");
            let (ends, report, run) = tied.solved(&facts, &[&option]);
            let best = facts.best(objective, &[facts.limit; 4], |_| true);
            assert_eq!(Some(ends), best, "{run:?}");
            let weight = &report["tied_weights"][0];
            assert_eq!(weight["layers"], serde_json::json!([null, "Out"]));
            assert_eq!(weight["stages"], serde_json::json!([0]));
            assert_eq!(weight["untied"], false);
            assert!(run.err.contains(" of In and Out: on IPU 0\n"), "{run:?}");
        }
    });
}

#[test]
fn untied_weights_are_free() {
    each("ends", |tied| {
        let facts = tied.facts(&untied());
        assert!(facts.ties.is_empty() && facts.positions.out().is_some());
        let best = facts.best("peak", &[facts.limit; 4], |_| true);
        let (ends, report, _) = tied.solved(&facts, &["--untie=all"]);
        assert_eq!(Some(&ends), best.as_ref());
        let weight = &report["tied_weights"][0];
        assert_eq!(weight["untied"], true);
        let stages = [0, ends.len() - 1];
        assert_eq!(weight["stages"], serde_json::json!(stages));
        let name = weight["weight"].as_str().expect("a name");
        let by_name = format!("--untie={name}");
        assert_eq!(tied.solved(&facts, &[&by_name]).0, ends);
        let wrong = tied.run(&["--solve", "--untie=none of these"]);
        assert_eq!(wrong.code, 2, "{wrong:?}");
        let expected =
            format!("--untie: there is no tied weight none of these; name one of {name}");
        assert!(wrong.err.contains(&expected), "{wrong:?}");
    });
}

#[test]
fn out_on_the_last_ipu_with_the_weight_of_in_leaves_one_stage() {
    each("ends", |tied| {
        let last = PlacementOptions {
            out_on: OutOn::Last,
            ..PlacementOptions::default()
        };
        let facts = tied.facts(&last);
        let whole = facts.positions.len();
        assert_eq!(facts.ties, [(0, whole - 1)]);
        let free = tied.facts(&untied());
        let needed = free.best("peak", &[u64::MAX; 4], |_| true).unwrap();
        let peak = free.rank("peak", &needed).0[0] as u64;
        assert!(peak < facts.peaks[&(0, whole)]);
        let memory = format!("--mem-per-tile={peak}");
        let (ends, report, run) = tied.solved(&facts, &["--out-on=last", &memory]);
        assert_eq!((run.code, ends), (1, vec![whole]), "{run:?}");
        let refusal = &report["refusal"];
        let name = report["tied_weights"][0]["weight"].as_str().unwrap();
        let kept = refusal["kept_together"][0].as_str().unwrap();
        assert!(kept.starts_with(&format!("weight {name} (")), "{kept}");
        let ways_out = "a weight is on one IPU, unless --out-on first or --untie ";
        assert!(kept.contains(ways_out), "{kept}");
        assert!(run.err.contains(ways_out), "{}", run.err);
        let relaxation = &refusal["relaxations"][0];
        assert_eq!(relaxation["weights"], serde_json::json!([name]));
        let stages = relaxation["stages"].as_array().unwrap();
        let stages: Vec<usize> = stages.iter().map(|stage| free.last(stage) + 1).collect();
        assert_eq!(stages, needed);
        let clash = tied.run(&["--solve", "--out-on=last", "--cut-after=2"]);
        assert_eq!(clash.code, 2, "{clash:?}");
        let begin = format!("--cut-after 2 clashes with weight {name} (");
        assert!(clash.err.contains(&begin), "{}", clash.err);
        assert!(clash.err.contains(ways_out), "{}", clash.err);
    });
}

#[test]
fn layers_that_share_a_weight_stay_together() {
    each("layers", |tied| {
        let facts = tied.facts(&PlacementOptions::default());
        let free = tied.facts(&untied());
        let [(first, last)] = facts.ties[..] else {
            panic!("{:?}", facts.ties);
        };
        let names = [first, last].map(|at| facts.positions.name(at).to_string());
        let between = format!("--cut-after={}", names[0]);
        for ipus in [2, 4] {
            let limits = vec![facts.limit; ipus];
            let option = format!("--num-ipus={ipus}");
            let run = tied.run(&["--solve", &option]);
            let best = facts.best("peak", &limits, |_| true);
            assert_eq!(Some(printed(&facts, &run.out)), best, "{run:?}");
            let free = free.best("peak", &limits, |_| true);
            let run = tied.run(&["--solve", &option, "--untie=all"]);
            assert_eq!(Some(printed(&facts, &run.out)), free, "{run:?}");
        }
        let clash = tied.run(&["--solve", &between]);
        assert_eq!(clash.code, 2, "{clash:?}");
        let users = format!(" bytes) of {} and {}:", names[0], names[1]);
        assert!(clash.err.contains(&users), "{}", clash.err);
        assert!(clash.err.contains("unless --untie "), "{}", clash.err);
        let torn = format!("--check-splits={}", names[0]);
        let torn = tied.run(&["--solve", &torn]);
        assert_eq!(torn.code, 1, "{torn:?}");
        assert!(torn.err.contains("breaks the tie of weight "), "{torn:?}");
        assert!(torn.err.contains(", which no framework runs"), "{torn:?}");
    });
}

/// The memory is enough without the tie, and too little with it.
#[test]
fn a_weight_that_stands_in_the_way_is_named() {
    each("layers", |tied| {
        let facts = tied.facts(&PlacementOptions::default());
        let free = tied.facts(&untied());
        let ipus = facts.positions.len();
        let needed = free.best("peak", &vec![u64::MAX; ipus], |_| true).unwrap();
        let peak = free.rank("peak", &needed).0[0] as u64;
        let (first, last) = facts.ties[0];
        assert!(facts.peaks[&(first, last + 1)] > peak, "the tie is free");
        let options = [
            format!("--num-ipus={ipus}"),
            format!("--mem-per-tile={peak}"),
            "--solve".into(),
            "--export-json=-".into(),
        ];
        let run = tied.run(&options.each_ref().map(String::as_str));
        assert_eq!(run.code, 1, "{run:?}");
        let json = run.out.split("# export-json\n").nth(1).expect("a report");
        let report: Value = serde_json::from_str(json).expect("JSON");
        let refusal = &report["refusal"];
        assert_eq!(refusal["reason"], "too-large", "{refusal}");
        let range = &refusal["ranges"][0]["layers"];
        assert_eq!(facts.position(&range[0]), first);
        assert_eq!(facts.last(range), last);
        assert_eq!(refusal["kept_together"].as_array().unwrap().len(), 1);
        let relaxations = refusal["relaxations"].as_array().unwrap();
        assert_eq!(relaxations.len(), 1, "{refusal}");
        let name = &report["tied_weights"][0]["weight"];
        assert_eq!(relaxations[0]["weights"][0], *name);
        let message = format!(
            "With {} untied (--untie) it fits: [ ",
            name.as_str().unwrap()
        );
        assert!(run.err.contains(&message), "{}", run.err);
    });
}

#[test]
fn the_greedy_search_and_the_classic_model_know_no_ties() {
    let tied = Tied::new("layers", "popart", 1);
    let greedy = tied.run(&["--solve", "--solver=greedy", "--mem-per-tile=60000"]);
    let classic = tied.run(&["--solve", "--memory-model=classic", "--untie=all"]);
    assert_eq!(classic.code, 0, "{classic:?}");
    assert!(!classic.err.contains("Tied weight"), "{classic:?}");
    assert!(greedy.err.contains("Tied weight "), "{greedy:?}");
    let run = tied.run(&["--solve", "--out-on=first", "--memory-model=classic"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("--out-on needs"), "{run:?}");
    let unknown = tied.run(&["--solve", "--memory-model=classic", "--untie=x"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown.err.contains("no weight of this model is tied"),
        "{unknown:?}"
    );
}
