//! Layers that are missing, meaningless, or have other names.

use super::Row;
use super::files::{fixture, outlined, renamed};
use super::rows::ONE_IPU;

/// Cases of layers that are missing or meaningless.
pub fn layers() -> Vec<Row> {
    vec![
        Row::new(
            r"the layers of calls, in plain Poplar: warning of --layer-name-regex=Layer(\d+)/project
                operation 'Layer0/project' is called from 6 places
                the number of layers found is 1
                each layer calls its own function",
            outlined("poplar"),
        ),
        Row::new(
            r"the same in TensorFlow: warning of --layer-name-regex=blocks/(\d+)/conv2
                is called from 6 places
                optimizations.enable_graph_outlining to False",
            outlined("tensorflow"),
        ),
        Row::new(
            r"the same in PopART: warning of --layer-name-regex=Layer(\d+)/FF/Gelu
                is called from 6 places
                POPART_POPLINER_OUTLINER_REGEX
                enableOutlining to False",
            outlined("popart"),
        ),
        Row::new(
            r#"the same in PopTorch: warning of --layer-name-regex=layer/(\d+)/intermediate/Gelu
                is called from 6 places
                options._Popart.set("enableOutlining", False)"#,
            outlined("poptorch"),
        ),
    ]
}

/// Cases of layers with other names.
pub fn names() -> Vec<Row> {
    vec![
        Row::new(
            "names that the default does not know: note of --solve --num-ipus=4
                Layers: 9 layers by the modules of the model (embed, Unit0, Unit1, ..., loss), which
                describe it better than the default --layer-name-regex",
            renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
        ),
        Row::new(
            "the same where no split is wanted: note of --list-layers
                Layers: 9 layers by the modules of the model",
            renamed("poplar-mlp", |name| name.replace("Layer", "Unit")),
        ),
        Row::new(
            "a regex that matches nothing: error 2 of --solve --layer-name-regex=nowhere
                no operation matched the layer regex nowhere, so there are no layers to split between
                set --layer-name-regex to auto, which finds 9 layers by the modules of the model (embed,",
            fixture("poplar-mlp"),
        ),
        Row::new(
            r"a regex that finds few of the layers: warning of --list-layers --layer-name-regex=FF/(\d+)
                --layer-name-regex 'FF/(\d+)' finds 2 layers with
                but the modules of the model are
                set --layer-name-regex to auto",
            fixture(ONE_IPU),
        ),
        Row::new(
            "numbers that are used twice: note of --list-layers
                Layer0@1, Layer1@1,",
            renamed(ONE_IPU, |name| {
                let again = |name: String, (from, to)| name.replace(from, to);
                let pairs = [("Layer3", "Layer0"), ("Layer4", "Layer1"), ("Layer5", "Layer2")];
                pairs.into_iter().fold(name.to_string(), again)
            }),
        ),
    ]
}
