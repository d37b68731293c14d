//! Names as frameworks and their users write them, each with its layers.

use super::*;
use crate::model::testing;

/// The operations of one layer.
const PARTS: [&str; 6] = [
    "q/MatMul",
    "k/MatMul",
    "v/MatMul",
    "Softmax",
    "conv1/Conv2D",
    "conv2/Conv2D",
];

fn find(names: &[String]) -> Vec<LayerCandidate> {
    let operations = (0u32..).zip(names);
    let operations: Vec<Operation> = operations
        .map(|(group, name)| testing::operation(group, name, ""))
        .collect();
    LayerCandidate::find(
        &operations,
        &vec![100; names.len()],
        &LayerOptions::default(),
    )
}

/// Every part of every layer, with something before and after.
fn model(layers: &[String]) -> Vec<String> {
    let layers = layers
        .iter()
        .flat_map(|layer| PARTS.map(|part| format!("{layer}/{part}")));
    let before = [
        "embeddings/Gather".to_string(),
        "embeddings/head_12/Add".to_string(),
    ];
    let after = ["loss/Softmax_3".to_string(), "loss/Sum".to_string()];
    before.into_iter().chain(layers).chain(after).collect()
}

fn numbered(count: usize, name: impl Fn(usize) -> String) -> Vec<String> {
    model(&(0..count).map(name).collect::<Vec<_>>())
}

#[test]
fn layers_are_found_by_the_word_before_their_number() {
    type Name = fn(usize) -> String;
    let cases: [(Name, &str); 14] = [
        (|n| format!("Layer{n}"), r"Layer(\d+)"),
        (|n| format!("bert/encoder/layer/{n}"), r"layer/(\d+)"),
        (|n| format!("model.blocks.{n}"), r"blocks[./](\d+)"),
        (|n| format!("transformer/h_{n}"), r"h_(\d+)"),
        (|n| format!("IO in CS {n}"), r"CS (\d+)"),
        (|n| format!("fc{}", n + 1), r"fc(\d+)"),
        (|n| format!("20231105/{n}/sub"), r"(?:^|/)(\d{1,5})/"),
        (|n| format!("net/layer_{n:03}"), r"layer_(\d+)"),
        (|n| format!("run_2023_11_05/v1.2/stack{n}"), r"stack(\d+)"),
        (|n| format!("tower_0/h{}", 3 * n + 1), r"/h(\d+)"),
        (
            |n| format!("stage{}/block{}", n / 3 + 1, n % 3),
            r"stage(\d+)/block(\d+)",
        ),
        (
            |n| format!("conv_res_block{}.res{}", n / 2, n % 2),
            r"block(\d+)[./]res(\d+)",
        ),
        (
            |n| format!("layer{}/{}", n / 3 + 1, n % 3),
            r"layer(\d+)/(\d+)",
        ),
        (
            |n| format!("{}/layer/{}", ["encoder", "decoder"][n / 4], n % 4),
            r"(encoder|decoder)/layer/(\d+)",
        ),
    ];
    for (name, regex) in cases {
        let found = find(&numbered(8, name));
        let regexes = found.iter().map(|candidate| candidate.regex.as_str());
        let regexes: Vec<_> = regexes.collect();
        let best = regexes.first().copied().unwrap_or("");
        assert!(
            best.ends_with(regex.trim_start_matches('/')),
            "{regex}: {regexes:?}"
        );
        assert_eq!(found[0].layers, 8, "{regex}");
    }
}
