//! Layers that are missing, meaningless, or have other names.

use super::Kind::{Error, Note, Warning};
use super::Row;
use super::files::{fixture, outlined, renamed};
use super::rows::{ONE_IPU, SPLIT};

/// Cases of layers that are missing or meaningless.
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
                "each layer calls its own function",
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
    ]
}

/// Cases of layers with other names.
pub fn names() -> Vec<Row> {
    vec![
        Row {
            what: "names that the default does not know",
            files: renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
            options: SPLIT,
            kind: Note,
            says: &[
                "Layers: 9 layers by the modules of the model (embed, Unit0, Unit1, ..., loss), which",
                "describe it better than the default --layer-name-regex",
            ],
        },
        Row {
            what: "the same where no split is wanted",
            files: renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
            options: &["--list-layers"],
            kind: Note,
            says: &["Layers: 9 layers by the modules of the model"],
        },
        Row {
            what: "a regex that matches nothing",
            files: fixture("poplar-mlp"),
            options: &["--solve", "--layer-name-regex=nowhere"],
            kind: Error(2),
            says: &[
                "no operation matched the layer regex nowhere, so there are no layers to split between",
                "set --layer-name-regex to auto, which finds 9 layers by the modules of the model (embed,",
            ],
        },
        Row {
            what: "a regex that finds few of the layers",
            files: fixture(ONE_IPU),
            options: &["--list-layers", r"--layer-name-regex=FF/(\d+)"],
            kind: Warning,
            says: &[
                r"--layer-name-regex 'FF/(\d+)' finds 2 layers with ",
                "but the modules of the model are ",
                "set --layer-name-regex to auto",
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
            options: &["--list-layers"],
            kind: Note,
            says: &["Layer0@1, Layer1@1, "],
        },
    ]
}
