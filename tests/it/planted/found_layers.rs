//! Layers are found by themselves, whatever they are called.

use std::path::Path;

use crate::support::each;
use crate::support::models::{Random, generate, seeds};
use crate::support::{ONE_IPU_FIXTURES, change_texts, debug, profile, root, sample_pair};
use ciborium::Value;
use popliner::debug_info::DebugInfo;
use popliner::model::{LayerCandidate, LayerOptions, Layering, Model, NO_LAYER, Note};
use popliner::profile::Profile;
use regex::{Captures, Regex};
use tempfile::TempDir;

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

/// What the generator calls a layer.
const PLANTED: &str =
    r"(?:Layer|bert/encoder/layer/|bert\.encoder\.layer\.|model/blocks/|model\.blocks\.)(\d+)";

/// What a layer is called, by its number and how many there are.
type LayerName = fn(usize, usize) -> String;

const LAYERS: [LayerName; 17] = [
    |n, _| format!("net/unit{n}"),
    |n, _| format!("tower_0/h_{n:03}"),
    |n, _| format!("trunk.{}", n + 1),
    |n, _| format!("stage{}/block{}", n / 2 + 1, n % 2),
    |n, _| format!("model/layers.{}", 2 * n + usize::from(n > 2)),
    |n, _| format!("conv_res_block{}.res{}", n / 2, n % 2 + 1),
    |n, _| format!("IO in CS {n}"),
    |n, _| format!("fc{}", n + 1),
    |n, _| format!("layer{}/{}", n / 2 + 1, n % 2),
    |n, _| format!("{n}/sequential"),
    |n, all| {
        format!(
            "{}/layer/{}",
            ["enc", "dec"][2 * n / all],
            n % all.div_ceil(2)
        )
    },
    |n, _| format!("transformer-block-{n}"),
    |n, _| format!("Stack_{n}_0"),
    |n, _| format!("transformer/h/{n}"),
    |n, _| format!("conv2_block{}_2", n + 1),
    |n, _| format!("features/{}/unit", 3 * n),
    |n, _| format!("res2net50/x{:02}", n + 8),
];

/// What is before the name of a layer: dates, versions, steps.
const BEFORE: [&str; 6] = [
    "",
    "run_2023_11_05/",
    "v1.2.3/model_2/",
    "step_1200/",
    "tower_1/mb0/",
    "20231105/",
];

/// What the name of an operation says besides: nothing, a number of its own, a head,
/// one of many heads, or parts with a number.
const DECOYS: usize = 5;

/// How names are changed.
struct Naming {
    layer: LayerName,
    before: &'static str,
    decoy: usize,
    layers: usize,
    planted: Regex,
}

impl Naming {
    fn of_seed(seed: u64, layers: usize) -> Self {
        let mut random = Random(seed);
        Self {
            layer: LAYERS[seed as usize % LAYERS.len()],
            before: random.one_of(&BEFORE),
            decoy: random.below(DECOYS),
            layers,
            planted: Regex::new(PLANTED).expect("a regex"),
        }
    }

    /// The new text in place of the text with this number.
    fn renamed(&self, text: &str, number: usize) -> String {
        if !self.planted.is_match(text) {
            return text.to_string();
        }
        let dotted = text.contains(".layer.") || text.contains(".blocks.");
        let layer = |found: &Captures<'_>| {
            let layer = found[1].parse().expect("a number");
            let name = (self.layer)(layer, self.layers);
            let name = format!("{}{name}", self.before);
            if dotted { name.replace('/', ".") } else { name }
        };
        let text = self.planted.replace(text, layer).into_owned();
        match self.decoy {
            1 => format!("{text}_{number}"),
            2 => text.replace("Softmax", "head_12/Softmax"),
            3 => text.replace("Softmax", &format!("head_{}/Softmax", number % 12)),
            4 => text
                .replace("/MatMul", "/part_3/MatMul")
                .replace("relu", "relu7"),
            _ => text,
        }
    }
}

fn model(profile: &Path, contexts: &[u8]) -> Model {
    let profile = Profile::read(profile).expect("a profile");
    let contexts = DebugInfo::from_reader(contexts).expect("contexts");
    Model::build(profile, &contexts, false).expect("a model")
}

/// Does `found` tell the same layers apart as `planted` by the names of operations?
fn agree(planted: &Layering, found: &Layering) -> bool {
    let all = (0..planted.layers.len()).filter(|&number| planted.notes[number] == Note::Name);
    let planted_layers = all.filter(|&number| planted.layers[number] != NO_LAYER);
    let mut pairs: Vec<(u32, u32)> = planted_layers
        .map(|number| (planted.layers[number], found.layers[number]))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut others: Vec<u32> = pairs.iter().map(|&(_, found)| found).collect();
    others.sort_unstable();
    others.dedup();
    pairs.len() == planted.len() - 1 && others.len() == pairs.len() && others[0] != NO_LAYER
}

/// The layers that a candidate finds.
fn layering(model: &Model, candidate: &LayerCandidate) -> Layering {
    let options = LayerOptions {
        layer_regex: candidate.regex.clone(),
        ..LayerOptions::default()
    };
    Layering::new(&model.operations, &options)
}

/// The place of the planted layers among the candidates of a model with odd names,
/// and what the candidates are.
fn place(seed: u64) -> (Option<usize>, Vec<String>) {
    let mut random = Random(seed);
    let layers = 4 + random.below(5);
    let naming = Naming::of_seed(seed, layers);
    let folder = TempDir::new().expect("a folder");
    let layers = layers.to_string();
    let number = seed.to_string();
    let options = [
        ["--framework", FRAMEWORKS[seed as usize % 4]],
        ["--mode", random.one_of(&["inference", "training"])],
        ["--outlined", random.one_of(&["none", "once", "per-call"])],
        ["--layers", &layers],
        ["--tiles", "4"],
        ["--vars-per-layer-tile", "3"],
        ["--seed", &number],
        ["--page-size", "1024"],
    ];
    let options: Vec<String> = options.concat().iter().map(|&word| word.into()).collect();
    let [profile, debug] = generate(folder.path(), &options);
    let contexts = std::fs::read(debug).expect("a file");
    let planted = model(&profile, &contexts);
    let planted = Layering::new(&planted.operations, &LayerOptions::default());
    let mut document: Value = ciborium::from_reader(&*contexts).expect("CBOR");
    let mut count = 0;
    change_texts(&mut document, &mut |text| {
        count += 1;
        *text = naming.renamed(text, count);
    });
    let mut renamed = Vec::new();
    ciborium::into_writer(&document, &mut renamed).expect("CBOR");
    let model = model(&profile, &renamed);
    let candidates = model.layer_candidates(&LayerOptions::default());
    let place = candidates
        .iter()
        .position(|candidate| agree(&planted, &layering(&model, candidate)));
    let shown = candidates
        .iter()
        .map(|candidate| format!("{} {:?}", candidate.regex, candidate.samples));
    (place, shown.collect())
}

#[test]
fn candidates_have_the_planted_layers() {
    // Each framework with each way to name layers.
    let seeds = seeds(4 * LAYERS.len() as u64);
    let models = seeds.end - seeds.start;
    let seeds: Vec<u64> = seeds.collect();
    let places = each(&seeds, |&seed| (seed, place(seed)));
    let count = |wanted: fn(&Option<usize>) -> bool| {
        places
            .iter()
            .filter(|(_, (place, _))| wanted(place))
            .count() as u64
    };
    let (first, among) = (count(|layer| *layer == Some(0)), count(Option::is_some));
    println!(
        "of {models} models, {first} have the planted layers as the first candidate, {among} as any"
    );
    for (seed, (place, candidates)) in &places {
        if *place != Some(0) {
            println!("seed {seed}, {place:?}: {candidates:#?}");
        }
    }
    assert!(first * 100 >= models * 95 && among * 100 >= models * 99);
}

#[test]
fn the_first_candidate_of_a_fixture_has_its_layers() {
    for fixture in ONE_IPU_FIXTURES {
        let contexts = std::fs::read(root().join(debug(fixture))).expect("a file");
        let model = model(&root().join(profile(fixture)), &contexts);
        let options = LayerOptions::default();
        let planted = Layering::new(&model.operations, &options);
        let best = &model.layer_candidates(&options)[0];
        assert!(
            agree(&planted, &layering(&model, best)),
            "{fixture}: {best:?}"
        );
        assert_eq!(best.layers, planted.len() - 1, "{fixture}");
    }
}

#[test]
fn the_real_sample_has_two_compute_sets_as_its_layers() {
    let Some([profile, debug]) = sample_pair() else {
        return;
    };
    let contexts = std::fs::read(debug).expect("a file");
    let model = model(&profile, &contexts);
    let best = &model.layer_candidates(&LayerOptions::default())[0];
    assert_eq!(best.regex.as_str(), r"CS (\d+)");
    let samples = best.samples.each_ref().map(|name| &**name);
    assert_eq!((best.layers, samples), (2, ["IO in CS 0", "IO in CS 1"]));
}
