//! Options of models with known places, drawn over all features.

use crate::support::models::Random;

/// A model that is drawn.
pub struct Drawn {
    /// Options of the generator.
    pub options: Vec<String>,
    /// Its features, to say where errors come from.
    pub labels: Vec<&'static str>,
}

const FRAMEWORKS: [&str; 4] = ["popart", "poptorch", "tensorflow", "poplar"];

/// The model of a seed.
pub fn model(seed: u64) -> Drawn {
    let mut drawing = Drawing {
        random: Random(seed ^ 0x51ab),
        drawn: Drawn {
            options: Vec::new(),
            labels: Vec::new(),
        },
        framework: FRAMEWORKS[seed as usize % 4],
        is_training: false,
    };
    drawing.size(seed);
    drawing.mode();
    drawing.outlining();
    drawing.ends();
    drawing.rest();
    drawing.drawn
}

struct Drawing {
    random: Random,
    drawn: Drawn,
    framework: &'static str,
    is_training: bool,
}

impl Drawing {
    fn option(&mut self, name: &str, value: impl ToString) {
        let options = [name.to_string(), value.to_string()];
        self.drawn.options.extend(options);
    }

    fn flag(&mut self, name: &'static str) {
        self.drawn.options.push(format!("--{name}"));
        self.drawn.labels.push(name);
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
        self.drawn.labels.push(self.framework);
        self.drawn.options.push("--places".to_string());
    }

    fn mode(&mut self) {
        self.is_training = !self.random.once_in(4);
        if !self.is_training {
            self.drawn.labels.push("inference");
            return;
        }
        self.option("--mode", "training");
        if self.has_pairs() {
            self.drawn.labels.push("gradients without names");
        }
        let optimiser =
            self.random
                .one_of(&["sgd", "adam-each", "adam-each", "adam-sets", "adam-fused"]);
        let names = self.random.one_of(&["operation", "variable", "none"]);
        self.option("--optimiser", optimiser);
        self.option("--names", names);
        self.drawn.labels.push(match (optimiser, names) {
            ("sgd", "operation") => "sgd, names in operations",
            ("sgd", "variable") => "sgd, names in variables",
            ("sgd", _) => "sgd, no names",
            ("adam-each", "operation") => "adam-each, names in operations",
            ("adam-each", "variable") => "adam-each, names in variables",
            ("adam-each", _) => "adam-each, no names",
            ("adam-sets", "operation") => "adam-sets, names in operations",
            ("adam-sets", "variable") => "adam-sets, names in variables",
            ("adam-sets", _) => "adam-sets, no names",
            (_, "operation") => "adam-fused, names in operations",
            (_, "variable") => "adam-fused, names in variables",
            _ => "adam-fused, no names",
        });
        let mut reaches = false;
        for feature in ["gradient-norm", "loss-scaling"] {
            if self.random.once_in(3) {
                self.flag(feature);
                reaches = true;
            }
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
        self.drawn.labels.push(match outlined {
            "once" => "outlined, listed once",
            _ => "outlined, listed per call",
        });
        if self.is_training && self.random.once_in(2) {
            self.flag("outline-backward");
        }
        if self.has_pairs() {
            self.nesting();
        } else {
            let anonymous = self.random.one_of(&["none", "half", "all"]);
            self.option("--anonymous-calls", anonymous);
            self.drawn.labels.push(match anonymous {
                "none" => "calls with names",
                "half" => "half of the calls anonymous",
                _ => "all calls anonymous",
            });
        }
    }

    fn nesting(&mut self) {
        if self.random.once_in(2) {
            self.drawn.options.push("--nested".to_string());
            let pairs = self.random.one_of(&["on-clone", "on-replaced"]);
            self.option("--pairs", pairs);
            self.drawn.labels.push(match pairs {
                "on-clone" => "nested, pairs on the clone",
                _ => "nested, pairs on the replaced",
            });
        }
        if self.random.once_in(2) {
            self.flag("shuffle-pairs");
        }
    }

    fn ends(&mut self) {
        let ends = self.random.one_of(&["small", "medium", "large"]);
        self.option("--ends", ends);
        self.drawn.labels.push(match ends {
            "small" => "small ends",
            "medium" => "medium ends",
            _ => "large ends",
        });
        if self.has_pairs() && self.random.once_in(4) {
            self.flag("head-reads-layer");
        }
        // What is tied shows in TensorFlow by an update, in plain Poplar not at all.
        let shows = self.has_pairs() || (self.framework == "tensorflow" && self.is_training);
        if shows && self.random.once_in(4) {
            let tied = self
                .random
                .one_of(&["ends", "ends", "neighbours", "distant"]);
            self.option("--tied", tied);
            self.drawn.labels.push(match tied {
                "ends" => "tied ends",
                "neighbours" => "tied neighbours",
                _ => "tied distant layers",
            });
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
            self.drawn.labels.push("gaps");
        }
        if self.random.once_in(3) {
            let part = 20 + self.random.below(100);
            self.option("--compiler-made", part);
            self.drawn.labels.push("compiler-made");
        }
    }
}
