//! Options of models, drawn over all features.

use crate::support::models::Random;

/// A drawn model.
pub struct Drawn {
    /// Options of the generator.
    pub options: Vec<String>,
    /// Features of the model, which explain errors.
    pub labels: Vec<String>,
}

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

/// As often as they are drawn.
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

/// Graphs of real models, each with its framework.
const GRAPHS: [(&str, &str); 10] = [
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
    drawing.option(
        "--graph",
        format!("crates/synthesize/graphs/{graph}.json.gz"),
    );
    drawing.option("--tiles", 8);
    drawing.option("--seed", seed);
    drawing.option("--framework", framework);
    drawing.label(framework);
    drawing.label(graph);
    drawing.mode();
    drawing.drawn
}

/// Returns a small model with these options.
pub fn with_options(options: &str) -> Drawn {
    let size = "--layers 4 --tiles 8 --bytes-per-layer-tile 40000";
    let options = size.split(' ').chain(options.split_whitespace());
    Drawn {
        options: options.map(str::to_string).collect(),
        labels: Vec::new(),
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
            drawn: Drawn {
                options: Vec::new(),
                labels: Vec::new(),
            },
            framework: FRAMEWORKS[seed as usize % 4],
            is_training: false,
            optimisers: &OPTIMISERS,
        }
    }

    fn option(&mut self, name: &str, value: impl ToString) {
        let options = [name.to_string(), value.to_string()];
        self.drawn.options.extend(options);
    }

    fn flag(&mut self, name: &'static str) {
        self.drawn.options.push(format!("--{name}"));
        self.label(name);
    }

    fn label(&mut self, label: impl ToString) {
        self.drawn.labels.push(label.to_string());
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
        self.label(self.framework);
    }

    fn mode(&mut self) {
        self.is_training = !self.random.once_in(4);
        if !self.is_training {
            self.label("inference");
            return;
        }
        self.option("--mode", "training");
        if self.has_pairs() {
            self.label("gradients without names");
        }
        self.optimiser();
        self.norm_and_accumulation();
    }

    fn optimiser(&mut self) {
        let optimiser = self.random.one_of(self.optimisers);
        let names = self.random.one_of(&["operation", "variable", "none"]);
        self.option("--optimiser", optimiser);
        self.option("--names", names);
        self.label(format!("{optimiser}, names: {names}"));
    }

    fn norm_and_accumulation(&mut self) {
        if self.random.once_in(3) {
            self.flag("gradient-norm");
        }
        // A fused optimiser with accumulators beside gradients and moments pairs moments with
        // weights in ways that the placement does not recognize yet.
        let is_fused = self.has_option("adam-fused");
        if !is_fused && self.random.once_in(3) {
            self.flag("accumulation");
        }
    }

    fn outlining(&mut self) {
        let outlined = self.random.one_of(&["none", "once", "per-call"]);
        self.option("--outlined", outlined);
        if outlined == "none" {
            return;
        }
        self.label(format!("outlined, listed {outlined}"));
        if self.is_training && self.random.once_in(2) {
            self.flag("outline-backward");
        }
        if self.has_pairs() {
            self.nesting();
        } else if self.random.once_in(2) {
            self.flag("anonymous-calls");
        }
    }

    fn nesting(&mut self) {
        if self.random.once_in(2) {
            self.flag("nested");
            if self.random.once_in(2) {
                self.flag("pairs-on-replaced");
            }
        }
        if self.random.once_in(2) {
            self.flag("shuffle-pairs");
        }
    }

    fn has_option(&self, name: &str) -> bool {
        self.drawn.options.iter().any(|option| option == name)
    }

    /// Are ties visible? In TensorFlow an update shows them, in plain Poplar nothing does.
    fn shows_ties(&self) -> bool {
        self.has_pairs() || (self.framework == "tensorflow" && self.is_training)
    }

    fn ends(&mut self) {
        let ends = self.random.one_of(&["small", "medium", "large"]);
        self.option("--ends", ends);
        self.label(format!("{ends} ends"));
        if self.shows_ties() && self.random.once_in(4) {
            let tied = self.random.one_of(&["ends", "layers"]);
            self.option("--tied", tied);
            self.label(format!("tied: {tied}"));
        }
    }

    fn rest(&mut self) {
        for feature in ["masks", "constants"] {
            if self.random.once_in(2) {
                self.flag(feature);
            }
        }
        for feature in ["frozen", "random-state"] {
            if self.random.once_in(4) {
                self.flag(feature);
            }
        }
        if self.random.once_in(2) {
            let percent = 1 + self.random.below(18);
            self.option("--gaps", percent);
            self.label("gaps");
        }
        if self.random.once_in(3) {
            let part = 20 + self.random.below(100);
            self.option("--compiler-made", part);
            self.label("compiler-made");
        }
    }
}
