//! Layers that are missing, are none, or are called otherwise.

use super::Kind::{Error, Note, Warning};
use super::Row;
use super::files::{fixture, outlined, renamed};
use super::rows::{ONE_IPU, SPLIT};

/// Layers that are missing, or that are none.
pub fn layers() -> Vec<Row> {
    let lost = |what, files, options, says| Row {
        what,
        files,
        options,
        kind: Warning,
        says,
    };
    vec![
        lost(
            "the layers of calls, in plain Poplar",
            outlined("poplar"),
            &[
                "--solve",
                "--num-ipus=4",
                r"--layer-name-regex=Layer(\d+)/project",
            ],
            &[
                "operation 'Layer0/project' is called from 6 places",
                "the number of layers found is 1",
                "each layer calls a function of its own",
            ],
        ),
        lost(
            "the same in TensorFlow",
            outlined("tensorflow"),
            &[
                "--solve",
                "--num-ipus=4",
                r"--layer-name-regex=blocks/(\d+)/conv2",
            ],
            &[
                "is called from 6 places",
                "optimizations.enable_graph_outlining to False",
            ],
        ),
        lost(
            "the same in PopART",
            outlined("popart"),
            &[
                "--solve",
                "--num-ipus=4",
                r"--layer-name-regex=Layer(\d+)/FF/Gelu",
            ],
            &[
                "is called from 6 places",
                "POPART_POPLINER_OUTLINER_REGEX",
                "enableOutlining to False",
            ],
        ),
        lost(
            "the same in PopTorch",
            outlined("poptorch"),
            &[
                "--solve",
                "--num-ipus=4",
                r"--layer-name-regex=layer/(\d+)/intermediate/Gelu",
            ],
            &[
                "is called from 6 places",
                "options._Popart.set(\"enableOutlining\", False)",
            ],
        ),
        lost(
            "layers with hardly any bytes",
            fixture("tensorflow-cnn"),
            &[
                "--solve",
                "--num-ipus=4",
                r"--layer-name-regex=blocks/(\d+)/relu3",
            ],
            &["1 of 6 layers have less than 1 % of the ", ": 5 (4,572);"],
        ),
    ]
}

const AUTO: &[&str] = &["--solve", "--layer-name-regex=auto"];

/// Layers that are called otherwise.
pub fn names() -> Vec<Row> {
    vec![
        Row {
            what: "names that the default does not know",
            files: renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
            options: SPLIT,
            kind: Error(2),
            says: &[
                r"no operation matched the layer regex (?:^|\/)(?:[L|l]ayer|blocks|encoder)",
                "choose one of these, the most likely first, or auto for the first\n",
                r"  --layer-name-regex 'Unit(\d+)' finds 5 layers, 51.0 % of operations",
                " % of bytes, such as Unit0/matmul and Unit4/matmul",
            ],
        },
        Row {
            what: "the same where no split is wanted",
            files: renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
            options: &["--list-layers"],
            kind: Note,
            says: &["Possible layers, the most likely first:"],
        },
        Row {
            what: "the same, found by themselves",
            files: renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
            options: AUTO,
            kind: Note,
            says: &[r"Layers: --layer-name-regex 'Unit(\d+)' finds 5 layers"],
        },
        Row {
            what: "names without numbers",
            files: renamed("poplar-mlp", |name| {
                name.replace(|c: char| c.is_ascii_digit(), "x")
            }),
            options: AUTO,
            kind: Error(2),
            says: &[
                "so auto finds none; set --layer-name-regex to a regex whose capture group",
                "some names in this model:\n",
                "  Layerx/matmul",
            ],
        },
        Row {
            what: "a regex that finds few of the layers",
            files: fixture(ONE_IPU),
            options: &["--list-layers", r"--layer-name-regex=FF/(\d+)"],
            kind: Warning,
            says: &[
                " operations got a layer; set --layer-name-regex to 'Layer(\\d+)', which finds 6",
                "or to auto",
            ],
        },
        Row {
            what: "numbers that do not grow",
            files: renamed("poplar-mlp", |name| name.replace("Layer1", "Layer9")),
            options: SPLIT,
            kind: Warning,
            says: &[
                "order of their numbers: 9 runs before 2;",
                "--layer-order natural",
            ],
        },
        Row {
            what: "numbers that are used twice",
            files: renamed(ONE_IPU, |name| {
                let pairs = [
                    ("Layer3", "Layer0"),
                    ("Layer4", "Layer1"),
                    ("Layer5", "Layer2"),
                ];
                let again = |name: String, (from, to)| name.replace(from, to);
                pairs.into_iter().fold(name.to_string(), again)
            }),
            options: SPLIT,
            kind: Warning,
            says: &[
                "3 of 3 layers run in several places",
                "capture the word before",
            ],
        },
    ]
}
