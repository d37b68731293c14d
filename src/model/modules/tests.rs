use super::ModuleLayers;
use crate::{
    limits,
    model::{Operation, testing},
};

fn layers(names: &[String]) -> ModuleLayers {
    ModuleLayers::of_names(&operations(names))
}

fn names(found: &ModuleLayers) -> Vec<String> {
    found
        .layers
        .iter()
        .map(|layer| layer.name.clone())
        .collect()
}

fn operations(names: &[String]) -> Vec<Operation> {
    let numbered = (0u32..).zip(names);
    let operations = numbered.map(|(group, name)| testing::operation(group, name, ""));
    operations.collect()
}

fn block(scope: &str) -> Vec<String> {
    let parts = [
        "attention/query/MatMul",
        "attention/key/MatMul",
        "attention/value/MatMul",
        "attention/Softmax",
        "attention/output/MatMul",
        "attention/Add",
        "norm/LayerNormalization",
        "mlp/up/MatMul",
        "mlp/Gelu",
        "mlp/down/MatMul",
        "Add",
    ];
    parts.map(|part| format!("{scope}/{part}")).to_vec()
}

fn blocks(list: &str, count: usize) -> Vec<String> {
    (0..count)
        .flat_map(|number| block(&format!("{list}/{number}")))
        .collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

#[test]
fn blocks_are_layers_and_not_their_parts() {
    let embedding = owned(&[
        "model/embed/Gather",
        "model/embed/Add",
        "model/embed/norm/Norm",
    ]);
    let head = owned(&["head/MatMul", "head/Softmax"]);
    let found = layers(&[embedding, blocks("model/blocks", 4), head].concat());
    assert_eq!(names(&found), ["embed", "0", "1", "2", "3", "head"]);
    assert_eq!(found.layers[1].path, "model/blocks/0");
}

#[test]
fn names_of_variables_may_lack_the_root() {
    let head = owned(&["jvp(Net)/head/Norm", "jvp(Net)/head/MatMul"]);
    let found = layers(&[blocks("jvp(Net)/blocks", 3), head, owned(&["Add"])].concat());
    assert_eq!(found.layer_of("Net/blocks/1/mlp/up/kernel"), Some(1));
    assert_eq!(found.layer_of("blocks/1/mlp/up/kernel"), Some(1));
    assert_eq!(found.layer_of("Add:0/1"), None);
    let blocks = layers(&blocks("jvp(Net)/blocks", 3));
    assert_eq!(blocks.layer_of("Add:0/1"), None);
}

#[test]
fn two_lists_are_apart() {
    let found = layers(&[blocks("m/encoder", 3), blocks("m/decoder", 2)].concat());
    let expected = [
        "encoder/0",
        "encoder/1",
        "encoder/2",
        "decoder/0",
        "decoder/1",
    ];
    assert_eq!(names(&found), expected);
}

#[test]
fn stages_of_blocks_are_cut_also_where_they_are_short() {
    let stages = [3, 6, 2].into_iter().zip(1..);
    let all: Vec<String> = stages
        .flat_map(|(blocks_in, stage)| blocks(&format!("layer{stage}"), blocks_in))
        .collect();
    assert_eq!(layers(&all).layers.len(), 11);
}

/// The convolutional network of this test has four equal stages (modules), each with two equal
/// blocks. By the rule that the shortest description of the model decides, the four stages would
/// become layers. But chains of similar blocks are always divided, so the eight blocks must be the
/// layers.
#[test]
fn blocks_are_layers_although_their_stages_are_alike() {
    let stages = (1..5).flat_map(|stage| blocks(&format!("layer{stage}"), 2));
    assert_eq!(layers(&stages.collect::<Vec<_>>()).layers.len(), 8);
}

#[test]
fn operations_of_the_caller_change_no_block() {
    let [mask, cast] = ["Mask", "Cast"].map(|kind| owned(&[&format!("m/blocks/{kind}")]));
    let [first, second, third] = [0, 1, 2].map(|number| block(&format!("m/blocks/{number}")));
    let found = layers(&[first, mask, second, cast, third].concat());
    assert_eq!(names(&found), ["0", "1", "2"]);
    let runs: Vec<usize> = found
        .layers
        .iter()
        .map(|layer| layer.operations().count())
        .collect();
    assert_eq!(runs, [12, 12, 11]);
    assert_eq!(found.blocks(), Some((0, 2)));
}

/// Besides its blocks, a model has two embeddings with the same types of operations, and two norms
/// with the same types of operations. All are layers, but the embeddings and norms do not count as
/// blocks, because they have far fewer operations than the blocks.
#[test]
fn blocks_are_the_large_ones_of_like_layers() {
    let ends = ["word/Gather", "position/Gather", "first/Norm", "last/Norm"];
    let [word, position, first, last] = ends.map(|end| owned(&[&format!("m/{end}")]));
    let found = layers(&[word, position, first, blocks("m/blocks", 3), last].concat());
    assert_eq!(names(&found)[3], "0");
    assert_eq!(found.blocks(), Some((3, 5)));
}

#[test]
fn items_of_lists_are_modules_and_no_runs_of_one() {
    let lists = ["resnets/0", "attentions/0", "resnets/1", "attentions/1"];
    let items = lists.map(|item| {
        let extra = owned(&[&format!("down/{item}/extra/Sigmoid")]);
        let is_attention = item.starts_with('a');
        [block(&format!("down/{item}")), extra].concat()[..11 + usize::from(is_attention)].to_vec()
    });
    let expected = ["resnets/0", "attentions/0", "resnets/1", "attentions/1"];
    assert_eq!(names(&layers(&items.concat())), expected);
}

#[test]
fn calls_of_one_module_are_layers() {
    let calls: Vec<String> = (0..5).flat_map(|_| block("m/shared")).collect();
    let found = layers(&calls);
    assert_eq!(
        names(&found),
        ["shared@1", "shared@2", "shared@3", "shared@4", "shared@5"]
    );
}

#[test]
fn numbers_in_flat_names_are_parts_of_paths() {
    let parts = [
        "1_conv/Conv2D",
        "1_bn/Norm",
        "1_relu/Relu",
        "2_conv/Conv2D",
        "2_bn/Norm",
        "add/Add",
    ];
    let stages = (2..5).flat_map(|stage| (1..4).map(move |block| (stage, block)));
    let all = stages.flat_map(|(stage, block)| {
        parts.map(|part| format!("resnet/conv{stage}_block{block}_{part}"))
    });
    let found = layers(&all.collect::<Vec<_>>());
    assert_eq!(found.layers.len(), 9);
    assert_eq!(names(&found)[4], "conv3_block2");
}

/// The paths of the layers `conv_0` and `conv_5` both begin with `net/conv`. But they are different
/// modules, so they must not become one layer that runs twice.
#[test]
fn layers_of_unlike_modules_are_no_runs_of_one() {
    let all = [
        "conv_0/Conv",
        "conv_1/Conv",
        "bn/Norm",
        "conv_5/Conv",
        "conv_6/Conv",
    ];
    let all = all.map(|name| format!("net/{name}"));
    assert_eq!(names(&layers(&all)), ["conv_0", "bn", "conv_5"]);
}

#[test]
fn parts_of_layers_are_layers_where_they_are_named() {
    let found = layers(&blocks("m", 3));
    let with = found.with_part("1.attention").expect("a part");
    let expected = ["0", "1.attention", "1.norm", "1.mlp", "2"];
    assert_eq!(names(&with), expected);
    assert_eq!(names(&found.refined(1).unwrap()), expected);
    assert!(found.with_part("1.other").is_none());
    assert!(found.with_part("7.attention").is_none());
    let finest = found
        .with_part("1.attention.query")
        .expect("a part of a part");
    assert!(names(&finest).contains(&"1.attention.query".to_string()));
}

#[test]
fn other_operations_follow_names() {
    let mut all = operations(&blocks("model/blocks", 3));
    let found = ModuleLayers::of_names(&all);
    all.push(testing::operation(
        90,
        "gradient_tape/model/blocks/1/norm/Norm/Grad",
        "",
    ));
    all.push(testing::operation(91, "loss/Sum", ""));
    let layers = found.layers(&all);
    assert_eq!(layers[33..], [Some(1), None]);
    assert_eq!(
        found.layer_of("Accl1___model.blocks.2.mlp.up.weight"),
        Some(2)
    );
}

#[test]
fn a_regex_matches_modules_where_it_finds_the_same_blocks() {
    let all = operations(&[blocks("m/encoder", 3), blocks("m/decoder", 3)].concat());
    let found = ModuleLayers::of_names(&all);
    let by = |layer: fn(usize) -> u32| (0..all.len()).map(|at| layer(at / 11)).collect::<Vec<_>>();
    assert!(found.are_matched_by(&by(|block| block as u32 + 1)));
    // The layers that a regex finds do not describe the model as well as its modules do if they
    // lack the blocks of the decoder, which are like those of the encoder, or if each layer has two
    // blocks.
    assert!(!found.are_matched_by(&by(|block| if block < 3 { block as u32 + 1 } else { 0 })));
    assert!(!found.are_matched_by(&by(|block| block as u32 / 2 + 1)));
}

#[test]
fn hostile_names_are_bounded() {
    let deep = "a/".repeat(100_000);
    let long = "b".repeat(1_000_000);
    let all: Vec<String> = (0..20)
        .flat_map(|n| [format!("{deep}{n}/x"), format!("{long}/{n}/y")])
        .collect();
    assert!(!layers(&all).layers.is_empty());
    assert!(
        !layers(&owned(&["", "/", "//", "_", "a", "a", "a/"]))
            .layers
            .is_empty()
    );
    assert!(layers(&[]).layers.is_empty());
    let many = (0..3 * limits::LAYERS).map(|number| format!("{number}/{}", number % 7));
    let mut model = testing::model(1, 1000);
    model.operations = operations(&many.collect::<Vec<_>>());
    for operation in &mut model.operations {
        operation.group = 0;
    }
    model.operation_groups = vec![crate::model::OperationGroup {
        uid: 1,
        window: None,
        code: Default::default(),
        host_copies: Vec::new(),
        clusters: Vec::new(),
    }];
    assert!(ModuleLayers::new(&model).layers.len() <= limits::LAYERS);
}
