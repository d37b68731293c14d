//! Options of models, drawn over all features.

use std::path::{Path, PathBuf};

use crate::support::models::{Random, pairs};
use crate::support::{graph_file, more_graphs, read_graph};

/// A drawn model.
#[derive(Default)]
pub struct Drawn {
    /// Options of the generator.
    pub options: Vec<String>,
}

impl Drawn {
    /// Returns the model's name in failures.
    pub fn name(&self) -> String {
        self.options.join(" ")
    }

    /// Returns the features of the model, which explain errors: its options without numbers.
    pub fn labels(&self) -> Vec<String> {
        let options = self.name();
        let options = options.split("--").skip(1).map(str::trim);
        let label = |option: &str| {
            let (name, value) = option.split_once(' ').unwrap_or((option, ""));
            let file = Path::new(value).file_name().unwrap_or_default();
            let mut sizes = "layers tiles bytes-per-layer-tile seed page-size".split(' ');
            match name {
                "graph" => Some(file.display().to_string()),
                "gaps" | "compiler-made" => Some(name.to_string()),
                _ => sizes.all(|size| size != name).then(|| option.to_string()),
            }
        };
        options.filter_map(label).collect()
    }

    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    /// Whether contexts identify the backward pass. In plain Poplar they do not.
    pub fn has_backward_pass(&self) -> bool {
        self.has("training") && !self.has("poplar")
    }
}

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

/// Optimisers to draw from; a repeated one is drawn more often.
const OPTIMISERS: [&str; 5] = ["sgd", "adam-each", "adam-each", "adam-sets", "adam-fused"];

/// Returns the model of a seed.
pub fn model(seed: u64) -> Drawn {
    let mut drawing = Drawing::new(seed, 0x51ab);
    drawing.size(seed);
    drawing.mode();
    drawing.outlining();
    drawing.ends();
    drawing.rest();
    drawing.drawn
}

/// Graphs of real models with blocks, each with its framework.
pub const GRAPHS: [(&str, &str); 10] = [
    ("bert", "poptorch"),
    ("bart", "poptorch"),
    ("t5", "popart"),
    ("clip", "poptorch"),
    ("resnet50", "poptorch"),
    ("hrnet", "poptorch"),
    ("unet_sd", "poptorch"),
    ("keras_resnet50", "tensorflow"),
    ("keras_xception", "tensorflow"),
    ("tf_bert", "tensorflow"),
];

/// Returns the real model of a seed.
pub fn of_graph(seed: u64) -> Drawn {
    let mut drawing = Drawing::new(seed, 0x6a4f);
    let (graph, framework) = GRAPHS[seed as usize % GRAPHS.len()];
    drawing.framework = framework;
    // No framework has one compute set over hundreds of weights.
    drawing.optimisers = &OPTIMISERS[..4];
    drawing.option("--graph", graph_file(graph).display());
    drawing.option("--tiles", 8);
    drawing.option("--seed", seed);
    drawing.option("--framework", framework);
    drawing.mode();
    drawing.drawn
}

/// Returns this model, compiled otherwise: for another micro-batch, with another available memory
/// proportion, or both.
pub fn recompiled(seed: u64, mut drawn: Drawn) -> Drawn {
    let options = [
        "--batch 4 --temporaries 4",
        "--proportion 0.2 --temporaries 4",
        "--batch 4 --proportion 0.2 --moved",
    ];
    let options = options[seed as usize % 3].split(' ');
    drawn.options.extend(options.map(str::to_string));
    drawn
}

/// Returns a real model of a seed that the program calls twice: with the result of the first call,
/// or with inputs of its own.
pub fn called(seed: u64) -> Drawn {
    const CALLED: [(&str, &str); 4] = [
        ("bert", "--chained --mode inference"),
        ("clip", "--mode inference"),
        ("bert", "--mode training"),
        ("t5", "--chained --mode inference"),
    ];
    let (graph, options) = CALLED[seed as usize % CALLED.len()];
    let file = graph_file(graph).display().to_string();
    let model = format!("--graph {file} --seed {seed} --framework poptorch --calls 2");
    with_options(&format!("{model} {options}"))
}

/// The file and framework of a graph, and the mode.
pub type InMode = (PathBuf, &'static str, &'static str);

const MODES: [&str; 2] = ["inference", "training"];

/// Returns a part of all graphs in both modes.
pub fn in_both_modes(graphs: &[(&'static str, &'static str)], part: usize) -> Vec<InMode> {
    let cases = pairs(graphs, &MODES, part);
    let cases = cases.map(|(of, mode)| (graph_file(of.0), of.1, *mode));
    cases.collect()
}

/// Returns all further graphs with blocks in both modes.
pub fn more_in_both_modes() -> Vec<InMode> {
    let graphs = more_graphs().into_iter();
    let with_blocks = graphs.filter(|path| read_graph(path)["blocks"].is_array());
    let in_modes = with_blocks.flat_map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let framework = match name.starts_with("keras_") || name.starts_with("tf_") {
            true => "tensorflow",
            false => "poptorch",
        };
        MODES.map(|mode| (path.clone(), framework, mode))
    });
    in_modes.collect()
}

/// Returns the model of a graph in this file, on four tiles.
pub fn graph_in(file: &Path, framework: &str, mode: &str) -> Drawn {
    let options = ["--graph", file.to_str().expect("a plain path")].into_iter();
    let settings = ["--tiles", "4", "--framework", framework, "--mode", mode];
    Drawn {
        options: options.chain(settings).map(String::from).collect(),
    }
}

/// Returns a small model with these options.
pub fn with_options(options: &str) -> Drawn {
    let size = "--layers 4 --tiles 8 --bytes-per-layer-tile 40000";
    let options = size.split(' ').chain(options.split_whitespace());
    Drawn {
        options: options.map(str::to_string).collect(),
    }
}

struct Drawing {
    random: Random,
    drawn: Drawn,
    framework: &'static str,
    is_training: bool,
    optimisers: &'static [&'static str],
}

impl Drawing {
    fn new(seed: u64, salt: u64) -> Self {
        Self {
            random: Random(seed ^ salt),
            drawn: Drawn::default(),
            framework: FRAMEWORKS[seed as usize % 4],
            is_training: false,
            optimisers: &OPTIMISERS,
        }
    }

    fn option(&mut self, name: &str, value: impl ToString) {
        let options = [name.to_string(), value.to_string()];
        self.drawn.options.extend(options);
    }

    /// Sets a flag once in `times` times on average.
    fn flag_once_in(&mut self, times: usize, name: &str) -> bool {
        let is_set = self.random.once_in(times);
        let flag = is_set.then(|| format!("--{name}"));
        self.drawn.options.extend(flag);
        is_set
    }

    fn has_pairs(&self) -> bool {
        matches!(self.framework, "popart" | "poptorch")
    }

    fn size(&mut self, seed: u64) {
        let layers = 3 + self.random.below(6);
        let tiles = 8 + 4 * self.random.below(5);
        let bytes = 20_000 + 10_000 * self.random.below(6);
        self.option("--layers", layers);
        self.option("--tiles", tiles);
        self.option("--bytes-per-layer-tile", bytes);
        self.option("--seed", seed);
        self.option("--page-size", 4096);
        self.option("--framework", self.framework);
    }

    fn mode(&mut self) {
        self.is_training = !self.random.once_in(4);
        if !self.is_training {
            return;
        }
        self.option("--mode", "training");
        let optimiser = self.random.one_of(self.optimisers);
        let names = self.random.one_of(&["operation", "variable", "none"]);
        self.option("--optimiser", optimiser);
        self.option("--names", names);
        self.flag_once_in(3, "gradient-norm");
        // A fused optimiser with accumulators beside gradients and moments pairs moments with
        // weights in ways that the placement does not recognize yet.
        if optimiser != "adam-fused" {
            self.flag_once_in(3, "accumulation");
        }
    }

    fn outlining(&mut self) {
        let outlined = self.random.one_of(&["none", "once", "per-call"]);
        self.option("--outlined", outlined);
        if outlined == "none" {
            return;
        }
        if self.is_training {
            self.flag_once_in(2, "outline-backward");
        }
        if !self.has_pairs() {
            self.flag_once_in(2, "anonymous-calls");
            return;
        }
        if self.flag_once_in(2, "nested") {
            self.flag_once_in(2, "pairs-on-replaced");
        }
        self.flag_once_in(2, "shuffle-pairs");
    }

    /// Are ties visible? In TensorFlow an update shows them, in plain Poplar nothing does.
    fn shows_ties(&self) -> bool {
        self.has_pairs() || (self.framework == "tensorflow" && self.is_training)
    }

    fn ends(&mut self) {
        let ends = self.random.one_of(&["small", "medium", "large"]);
        self.option("--ends", ends);
        if self.shows_ties() && self.random.once_in(4) {
            let tied = self.random.one_of(&["ends", "layers"]);
            self.option("--tied", tied);
        }
    }

    fn rest(&mut self) {
        for feature in ["masks", "constants"] {
            self.flag_once_in(2, feature);
        }
        for feature in ["frozen", "random-state"] {
            self.flag_once_in(4, feature);
        }
        if self.random.once_in(2) {
            let percent = 1 + self.random.below(18);
            self.option("--gaps", percent);
        }
        if self.random.once_in(3) {
            let part = 20 + self.random.below(100);
            self.option("--compiler-made", part);
        }
    }
}
