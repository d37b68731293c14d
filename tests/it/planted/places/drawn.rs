//! Options of models, drawn over all features.

use crate::support::models::Random;

/// A model that is drawn.
pub struct Drawn {
    /// Options of the generator.
    pub options: Vec<String>,
    /// Its features, to say where errors come from.
    pub labels: Vec<String>,
}

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

/// Forms of models beside a plain chain of layers.
const FORMS: [&str; 19] = [
    "skip-in",
    "skip-in-all",
    "unet",
    "encoder-memory",
    "bias",
    "stem",
    "aux-heads",
    "pyramid",
    "frozen",
    "adapters",
    "shared-all",
    "shared-pairs",
    "towers",
    "random-state",
    "repeat",
    "casts",
    "experts",
    "entry-weights",
    "hybrid",
];

/// The model of a seed.
pub fn model(seed: u64) -> Drawn {
    let mut drawing = Drawing::new(seed, 0x51ab);
    drawing.size(seed, 3);
    drawing.mode();
    drawing.outlining();
    drawing.ends();
    drawing.rest();
    drawing.drawn
}

/// The model of a seed that has one form, and in two of three cases more of them.
pub fn with_forms(seed: u64) -> Drawn {
    let mut drawing = Drawing::new(seed, 0xf0f0);
    drawing.size(seed, 4);
    drawing.mode();
    drawing.outlining();
    drawing.ends();
    drawing.forms(seed);
    drawing.rest();
    drawing.drawn
}

/// Graphs of real models, with the framework that each is of.
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

/// The real model of a seed.
pub fn of_graph(seed: u64) -> Drawn {
    let mut drawing = Drawing::new(seed, 0x6a4f);
    let (graph, framework) = GRAPHS[seed as usize % GRAPHS.len()];
    drawing.framework = framework;
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
    // No framework has one compute set over all gradients.
    drawing
        .drawn
        .options
        .retain(|option| option != "--whole-sets");
    drawing.drawn
}

/// A small model with these options.
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

    fn size(&mut self, seed: u64, fewest: usize) {
        let layers = fewest + self.random.below(6);
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
        self.norm_and_scaling();
    }

    fn optimiser(&mut self) {
        let optimisers = ["sgd", "adam-each", "adam-each", "adam-sets", "adam-fused"];
        let optimiser = self.random.one_of(&optimisers);
        let names = self.random.one_of(&["operation", "variable", "none"]);
        self.option("--optimiser", optimiser);
        self.option("--names", names);
        self.label(format!("{optimiser}, names: {names}"));
    }

    fn norm_and_scaling(&mut self) {
        let mut reaches = false;
        for feature in ["gradient-norm", "loss-scaling"] {
            if self.random.once_in(3) {
                self.flag(feature);
                reaches = true;
            }
        }
        // A fused optimiser that has accumulators beside gradients and moments
        // pairs moments with weights in ways that the placement does not tell yet.
        let is_fused = self.has_option("adam-fused");
        if !is_fused && self.random.once_in(3) {
            self.flag("accumulation");
        }
        if reaches && self.random.once_in(2) {
            self.flag("whole-sets");
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
        } else {
            let anonymous = self.random.one_of(&["none", "half", "all"]);
            self.option("--anonymous-calls", anonymous);
            self.label(format!("anonymous calls: {anonymous}"));
        }
    }

    fn nesting(&mut self) {
        if self.random.once_in(2) {
            self.drawn.options.push("--nested".to_string());
            let pairs = self.random.one_of(&["on-clone", "on-replaced"]);
            self.option("--pairs", pairs);
            self.label(format!("nested, pairs {pairs}"));
        }
        if self.random.once_in(2) {
            self.flag("shuffle-pairs");
        }
    }

    /// The first form goes through all of them; a label has it where it is alone.
    fn forms(&mut self, seed: u64) {
        let mut forms = vec![FORMS[seed as usize / 4 % FORMS.len()]];
        if !self.random.once_in(3) {
            for _ in 0..1 + self.random.below(3) {
                forms.push(self.random.one_of(&FORMS));
            }
        }
        let shows = self.shows_ties() && !self.has_option("--tied");
        let excludes = [["skip-in", "skip-in-all"], ["shared-all", "shared-pairs"]];
        let mut chosen: Vec<&str> = Vec::new();
        for form in forms {
            let is_shared = form.starts_with("shared") || form == "entry-weights";
            let is_excluded = excludes.iter().any(|pair| {
                pair.contains(&form) && pair.iter().any(|other| chosen.contains(other))
            });
            if !(is_excluded || is_shared && !shows) {
                chosen.push(form);
            }
        }
        chosen.dedup();
        if chosen.is_empty() {
            chosen.push("skip-in");
        }
        let together = if chosen.len() == 1 {
            "alone"
        } else {
            "with others"
        };
        for form in &chosen {
            self.label(format!("{form} {together}"));
        }
        let mode = if self.is_training {
            "training"
        } else {
            "inference"
        };
        self.label(format!("{}, {mode}", self.framework));
        self.option("--forms", chosen.join(","));
        if self.framework == "tensorflow" && self.is_training && self.random.once_in(3) {
            self.option("--update-names", "other");
            self.label("updates with other names");
        }
    }

    fn has_option(&self, name: &str) -> bool {
        self.drawn.options.iter().any(|option| option == name)
    }

    /// What is tied shows in TensorFlow by an update, in plain Poplar not at all.
    fn shows_ties(&self) -> bool {
        self.has_pairs() || (self.framework == "tensorflow" && self.is_training)
    }

    fn ends(&mut self) {
        let ends = self.random.one_of(&["small", "medium", "large"]);
        self.option("--ends", ends);
        self.label(format!("{ends} ends"));
        if self.has_pairs() && self.random.once_in(4) {
            self.flag("head-reads-layer");
        }
        if self.shows_ties() && self.random.once_in(4) {
            let tied = self
                .random
                .one_of(&["ends", "ends", "neighbours", "distant"]);
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
        if self.random.once_in(8) {
            self.flag("equal-layers");
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
