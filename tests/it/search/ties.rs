//! Weights that several layers share: answers of the command, against all splits tried one by one.

use std::path::PathBuf;

use super::facts::Facts;
use crate::oracle::search::Split;
use crate::support::models::{generate, share};
use crate::support::{DEFAULT_REGEX, Run, Words, root, run_on, typed};
use popliner::model::PlacementOptions;
use serde_json::{Value, json};
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
        let folder = TempDir::new().expect("a folder");
        Self {
            files: generate(folder.path(), &options),
            _folder: folder,
        }
    }

    /// Returns the facts with other options than the default.
    fn with(&self, options: PlacementOptions) -> Facts {
        Facts::of(&self.files[0], &self.files[1], &options)
    }

    fn tied(&self) -> Facts {
        self.with(PlacementOptions::default())
    }

    fn untied(&self) -> Facts {
        self.with(PlacementOptions {
            unties_all: true,
            ..PlacementOptions::default()
        })
    }

    fn run(&self, options: &(impl Words + ?Sized)) -> Run {
        let mut options = options.words();
        let mut given = options.iter();
        if !given.any(|option| option.starts_with("--objective")) {
            options.push("--objective=peak");
        }
        options.extend(["--layer-order=steps", "--schedule=none", "--solve"]);
        run_on(&self.files[0], &options)
    }

    /// Returns the stages and the report of a search.
    fn solved(&self, facts: &Facts, options: &(impl Words + ?Sized)) -> (Split, Value, Run) {
        let fixed = ["--export-json=-", "--num-ipus=4"];
        let run = self.run(&[&fixed, &options.words()[..]].concat());
        let report = run.report();
        (facts.stages(&report["split"]["stages"]), report, run)
    }
}

/// Checks models of each framework whose contexts identify weights.
fn each(places: &str, check: impl Fn(&Tied)) {
    let models = [("popart", 1), ("popart", 3), ("poptorch", 2)];
    for (framework, seed) in models.into_iter().step_by(share(2)) {
        check(&Tied::new(places, framework, seed));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn embedding_and_head_that_share_a_weight_are_on_the_first_ipu() {
    each("ends", |model| {
        let facts = model.tied();
        assert!(facts.positions.out_is_first());
        for objective in ["peak", "fewest", "communication"] {
            let option = format!("--objective={objective}");
            let (stages, report, run) = model.solved(&facts, &option);
            let best = facts.best(objective, &[facts.limit; 4]);
            assert_eq!(Some(stages), best, "{run:?}");
            let weight = &report["tied_weights"][0];
            assert_eq!(weight["layers"], json!([null, "Out"]));
            assert_eq!(weight["stages"], json!([0]));
            assert_eq!(weight["untied"], false);
            run.says(" of In and Out: on IPU 0\n");
        }
        let reason = "no stage can begin at Out, since Out runs on the first IPU, with In;";
        model.run("--splits=1,Out").exits(2).says(reason);
        let run = model.run("--splits=1,Out --out-on=last");
        run.exits(1).says(" breaks the tie of weight ");
    });
}

/// The accumulator and the moments of a shared weight are where the weight is, and no weights.
#[test]
fn state_of_a_shared_weight_is_no_weight() {
    for framework in ["popart", "tensorflow", "poplar"] {
        let folder = TempDir::new().expect("a folder");
        let options = "--tied ends --ends large --layers 5 --tiles 8 --page-size 1024 --mode training \
                       --accumulation --optimiser adam-each --framework";
        let [profile, _] = generate(folder.path(), &format!("{options} {framework}"));
        let report = run_on(&profile, "--export-json=- -q").report();
        let ties = report["tied_weights"].as_array().expect("a list");
        assert_eq!(ties.len(), 1, "{framework}: {ties:?}");
        let weight = text(&ties[0]["weight"]);
        assert!(!weight.to_lowercase().contains("accum"), "{weight}");
    }
}

#[test]
fn layers_that_share_a_weight_stay_together() {
    each("layers", |model| {
        let facts = model.tied();
        let [(first, last)] = facts.ties[..] else {
            panic!("{:?}", facts.ties);
        };
        for (facts, more) in [(&facts, ""), (&model.untied(), "--untie=all")] {
            for ipus in [2, 4] {
                let run = model.run(&format!("--num-ipus={ipus} {more}"));
                let best = facts.lowest(ipus, facts.limit);
                assert_eq!(Some(facts.stages(&run.report())), best, "{run:?}");
            }
        }
        let [first, second, last] =
            [first, first + 1, last].map(|at| facts.positions.name(at).to_string());
        let run = model.run(&[format!("--cut-before={second}")]);
        let layers = format!(" bytes) of {first} and {last}:");
        run.exits(2).says(&layers).says("unless --untie ");
        let run = model.run(&[format!("--splits={second}")]);
        run.exits(1).says("breaks the tie of weight ");
        run.says(", which no framework runs");
    });
}

/// The memory is enough if the weight is untied, and too little if layers share it.
#[test]
fn a_weight_that_stands_in_the_way_is_named() {
    each("layers", |model| {
        let (facts, free) = (model.tied(), model.untied());
        let ipus = facts.positions.len();
        let needed = free.lowest(ipus, u64::MAX).expect("a split");
        let peak = free.peak_of(&needed);
        let (first, last) = facts.ties[0];
        assert!(facts.peak(&(first..last + 1)) > peak, "the tie is free");
        // Finer layers are not tried, since the regex is given.
        let limits = format!("--num-ipus={ipus} --mem-per-tile={peak}");
        let run = model.run(&format!("{limits} --export-json=- {DEFAULT_REGEX}"));
        let report = run.exits(1).report();
        let refusal = &report["refusal"];
        assert_eq!(refusal["reason"], "too-large", "{refusal}");
        let range = &refusal["ranges"][0]["layers"];
        assert_eq!(facts.position(&range[0]), first);
        assert_eq!(facts.stages(&json!([range]))[0], 0..last + 1);
        let count = |name: &str| refusal[name].as_array().map(Vec::len);
        assert_eq!(["kept_together", "relaxations"].map(count), [Some(1); 2]);
        let name = text(&report["tied_weights"][0]["weight"]);
        assert_eq!(refusal["relaxations"][0]["weights"][0], name);
        run.says(&format!("With {name} untied (--untie) it fits: [ "));
    });
}

/// Returns a graph with two blocks of four modules, of which the first and the third share a
/// weight.
fn graph_of_blocks() -> Value {
    let in_block = |block| ["a", "b", "c", "d"].map(|module| format!("blocks.{block}.{module}"));
    let paths = ["embed".to_owned()].into_iter();
    let paths = paths.chain(in_block(0)).chain(in_block(1));
    let paths: Vec<String> = paths.chain(["head".to_owned()]).collect();
    let operation = |(at, path): (i64, &String)| {
        let (scope, weight) = (path.replace('.', "/"), format!("{path}.weight"));
        json!([scope, "MatMul", path, [weight], [at - 1], [at]])
    };
    let paths_of_blocks = paths[1..9].iter();
    let elements = paths_of_blocks.map(|path| (format!("{path}.weight"), 40_000_000.into()));
    let tied = [0, 1].map(|block| ["a", "c"].map(|end| format!("blocks.{block}.{end}.weight")));
    json!({
        "ops": (0..).zip(&paths).map(operation).collect::<Value>(),
        "tensors": vec![2000; paths.len()],
        "parameters": Value::Object(elements.collect()),
        "tied": tied,
    })
}

/// No two layers share a weight, but parts of a layer do. Untied, they make the model fit.
#[test]
fn a_weight_that_parts_of_a_layer_share_can_be_untied() {
    let folder = TempDir::new().expect("a folder");
    let graph = folder.path().join("graph.json");
    std::fs::write(&graph, graph_of_blocks().to_string()).expect("a graph");
    let options = format!("--graph {} --framework poptorch --tiles 4", graph.display());
    let model = Tied {
        files: generate(folder.path(), &options),
        _folder: folder,
    };
    let limits = "--num-ipus=10 --mem-per-tile=80000";
    let run = model.run(&format!("{limits} --export-json=-"));
    let report = run.exits(1).report();
    let relaxed = &report["refusal"]["relaxations"][0];
    let weights = ["blocks.0.a.weight", "blocks.1.a.weight"];
    assert_eq!(relaxed["weights"], json!(weights));
    assert!(report["constraints"].as_array().is_none_or(Vec::is_empty));
    run.says("unless --untie blocks.0.a.weight says otherwise");
    typed(text(&relaxed["answer"]["command"]), root()).exits(0);
    let other = model.run(&format!("{limits} --untie=blocks.0.b.weight"));
    other.refuses(2, &["no weight of this model is tied"]);
}

#[test]
fn the_greedy_search_and_the_classic_model_know_no_ties() {
    let tied = Tied::new("layers", "popart", 1);
    let greedy = tied.run("--solver=greedy --mem-per-tile=60000");
    greedy.says("Tied weight ");
    let classic = tied.run("--memory-model=classic --untie=all");
    assert!(!classic.exits(0).err.contains("Tied weight"), "{classic:?}");
    for (option, message) in [
        ("--out-on=first", "--out-on needs"),
        ("--untie=x", "no weight of this model is tied"),
    ] {
        tied.run(&["--memory-model=classic", option])
            .exits(2)
            .says(message);
    }
}
