//! Tests which values of a debug context the reader keeps. They depend on the software layer that
//! wrote the context, such as PopART or Poplar.

use super::*;

/// Returns entries of a debug context, with keys that the reader keeps only in contexts of certain
/// software layers, such as PopART. The value of an entry is the name of its key, or a list that
/// begins with this name, so that a test can see from which key a value was read.
fn every_key() -> Vec<(&'static str, Value)> {
    let mut entries: Vec<(&str, Value)> = [
        "api",
        "opName",
        "op_name",
        "hlo_name",
        "opid",
        "instanceId",
        "tensorId",
        "outlinedDebugContextIds",
        "replacedDebugContextIds",
    ]
    .map(|key| (key, text(key)))
    .to_vec();
    entries.push(("inputs", texts(&["inputs", "b"])));
    entries.push(("input", texts(&["input", "b"])));
    entries
}

fn kept(layer: &str) -> Vec<(ContextField, String)> {
    let info = read_sound(&document(&[context(1, 0, layer, &every_key())], &[]));
    let position = at(&info, 1);
    let kept = |field| {
        info.text(position, field)
            .map(|text| (field, text.to_owned()))
    };
    ALL_FIELDS.into_iter().filter_map(kept).collect()
}

fn expect(layer: &str, expected: &[(ContextField, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(field, text)| (*field, text.to_string()))
        .collect();
    assert_eq!(kept(layer), expected, "{layer}");
}

#[test]
fn each_layer_keeps_its_own_fields_only() {
    use ContextField::*;
    expect("poplar", &[]);
    expect("poplibs", &[(Api, "api")]);
    expect(
        "popartbuilder",
        &[(TensorId, "tensorId"), (Inputs, "inputs/b")],
    );
    expect("onnx", &[(OpName, "opName")]);
    expect("poptorch", &[(OpName, "op_name")]);
    expect("popxl", &[(Api, "api"), (Inputs, "inputs/b")]);
    expect("xla_op", &[(OpName, "op_name")]);
    expect("hloinstruction", &[(HloName, "hlo_name")]);
    expect("poplar_driver", &[]);
    expect("somebody else's", &[]);
    expect(
        "popart",
        &[
            (Opid, "opid"),
            (InstanceId, "instanceId"),
            (TensorId, "tensorId"),
            (Inputs, "inputs/b"),
            (OutlinedIds, "outlinedDebugContextIds"),
            (ReplacedIds, "replacedDebugContextIds"),
        ],
    );
}

#[test]
fn layers_are_told_apart_and_counted() {
    let known = [
        ("poplar", SoftwareLayer::Poplar),
        ("poplibs", SoftwareLayer::Poplibs),
        ("popartbuilder", SoftwareLayer::PopartBuilder),
        ("onnx", SoftwareLayer::Onnx),
        ("popart", SoftwareLayer::Popart),
        ("poptorch", SoftwareLayer::Poptorch),
        ("popxl", SoftwareLayer::Popxl),
        ("xla_op", SoftwareLayer::XlaOp),
        ("hloinstruction", SoftwareLayer::HloInstruction),
        ("Poplar", SoftwareLayer::Other),
        ("", SoftwareLayer::Other),
    ];
    for (name, layer) in known {
        let info = read_sound(&document(&[context(7, 0, name, &[])], &[]));
        assert_eq!(info.layer(at(&info, 7)), layer, "{name}");
        for (_, other) in known {
            assert_eq!(info.has_layer(other), other == layer, "{name}, {other:?}");
        }
    }
    let without = read_sound(&document(&[map(&[("id", int(1))])], &[]));
    assert_eq!(without.layer(at(&without, 1)), SoftwareLayer::Other);
}

#[test]
fn keys_may_come_in_any_order() {
    let entries = [
        ("instanceId", text("4")),
        ("inputs", texts(&["a", "b"])),
        ("layer", text("popart")),
        ("opid", text("ai.onnx.Add:6")),
        ("name", int(0)),
        ("id", int(3)),
    ];
    for shift in 0..entries.len() {
        let mut turned = entries.to_vec();
        turned.rotate_left(shift);
        let info = read_sound(&document(&[map(&turned)], &["n"]));
        let position = at(&info, 3);
        assert_eq!(info.layer(position), SoftwareLayer::Popart);
        assert_eq!(info.name(position), "n");
        assert_eq!(info.text(position, ContextField::InstanceId), Some("4"));
        assert_eq!(info.text(position, ContextField::Inputs), Some("a/b"));
        assert_eq!(
            info.text(position, ContextField::Opid),
            Some("ai.onnx.Add:6")
        );
    }
}

#[test]
fn empty_and_absent_texts_differ() {
    let contexts = [
        context(
            1,
            0,
            "popart",
            &[("opid", text("")), ("inputs", texts(&[]))],
        ),
        context(2, 0, "popart", &[("inputs", texts(&["", ""]))]),
    ];
    let info = read_sound(&document(&contexts, &[]));
    let (first, second) = (at(&info, 1), at(&info, 2));
    assert_eq!(info.text(first, ContextField::Opid), Some(""));
    assert_eq!(info.text(first, ContextField::Inputs), Some(""));
    assert_eq!(info.text(second, ContextField::Opid), None);
    assert_eq!(info.text(second, ContextField::Inputs), Some("/"));
}

#[test]
fn values_of_another_type_are_absent() {
    let nested = Value::Array(vec![text("a"), texts(&["b"]), text("c")]);
    let odd = [
        int(5),
        Value::Integer((-5).into()),
        Value::Float(1.5),
        Value::Null,
        Value::Bool(true),
        Value::Bytes(b"bytes".to_vec()),
        map(&[("a", nested.clone())]),
        nested,
    ];
    for value in odd {
        let rest = [
            ("opid", value.clone()),
            ("inputs", value.clone()),
            ("tensorId", text("t")),
        ];
        let info = read_sound(&document(&[context(1, 0, "popart", &rest)], &[]));
        let position = at(&info, 1);
        assert_eq!(info.text(position, ContextField::Opid), None, "{value:?}");
        assert_eq!(info.text(position, ContextField::Inputs), None, "{value:?}");
        assert_eq!(
            info.text(position, ContextField::TensorId),
            Some("t"),
            "{value:?}"
        );
    }
}

#[test]
fn odd_names_parents_and_layers_are_absent() {
    for value in [
        text("3"),
        Value::Integer((-1).into()),
        Value::Float(0.0),
        Value::Null,
    ] {
        let rest = [
            ("name", value.clone()),
            ("parentId", value.clone()),
            ("id", int(9)),
        ];
        let info = read(&document(&[map(&rest)], &["first"])).unwrap();
        // If the name or the parent of a debug context is a text, the file is damaged. Null, a
        // negative number or a floating-point number is no sign of damage, since it may stand for a
        // missing name or parent.
        let damage = [Damage::Mistyped(2)];
        let is_text = value.is_text();
        assert_eq!(info.damage(), if is_text { &damage[..] } else { &[] });
        assert_eq!(info.name(at(&info, 9)), "");
        assert_eq!(chain_ids(&info, 9), [9]);
    }
    let layer = [("layer", int(1)), ("id", int(9))];
    let info = read(&document(&[map(&layer)], &[])).unwrap();
    assert_eq!(info.layer(at(&info, 9)), SoftwareLayer::Other);
    assert_eq!(info.damage(), [Damage::Mistyped(1)]);
}

#[test]
fn of_a_key_that_comes_twice_the_last_fitting_value_counts() {
    let rest = [
        ("opid", text("one")),
        ("opid", text("two")),
        ("opid", int(3)),
        ("name", int(0)),
        ("name", int(1)),
        ("inputs", texts(&["a"])),
        ("inputs", texts(&["b"])),
        ("inputs", Value::Array(vec![text("c"), int(1)])),
    ];
    let info = read_sound(&document(&[context(1, 0, "popart", &rest)], &["x", "y"]));
    let position = at(&info, 1);
    assert_eq!(info.text(position, ContextField::Opid), Some("two"));
    assert_eq!(info.text(position, ContextField::Inputs), Some("b"));
    assert_eq!(info.name(position), "y");
}

#[test]
fn equal_texts_are_kept_once() {
    let contexts: Vec<Value> = (1..=50)
        .map(|id| context(id, 0, "poplibs", &[("api", text("convolution"))]))
        .collect();
    let info = read_sound(&document(&contexts, &[]));
    assert_eq!(info.texts.len(), 1);
    assert_eq!(
        info.text(at(&info, 50), ContextField::Api),
        Some("convolution")
    );
}

#[test]
fn names_come_from_the_string_table() {
    let named = |id, name| context(id, 0, "poplar", &[("name", int(name))]);
    let contexts = [
        named(1, 2),
        named(2, 0),
        context(3, 0, "poplar", &[]),
        named(4, 1),
    ];
    let info = read_sound(&document(&contexts, &["", "Öl\n\"x\"", "plain"]));
    let names: Vec<&str> = (1..=4).map(|id| info.name(at(&info, id))).collect();
    assert_eq!(names, ["plain", "", "", "Öl\n\"x\""]);
}

#[test]
fn pairs_of_outlined_operations() {
    let call = |outlined: &str, replaced: &str| {
        let rest = [
            ("outlinedDebugContextIds", text(outlined)),
            ("replacedDebugContextIds", text(replaced)),
        ];
        let info = read_sound(&document(&[context(1, 0, "popart", &rest)], &[]));
        info.outlined_pairs(at(&info, 1))
    };
    assert_eq!(call("[12,13]", "[2,3]"), [(12, 2), (13, 3)]);
    assert_eq!(call(" [ 12 , 13 ] ", "[2,  3]"), [(12, 2), (13, 3)]);
    assert_eq!(call("[18446744073709551615]", "[0]"), [(u64::MAX, 0)]);
    for (outlined, replaced) in [
        ("[]", "[]"),
        ("[1,2]", "[1]"),
        ("[1,]", "[1,2]"),
        ("1,2", "1,2"),
        ("[1,2", "[1,2]"),
        ("[-1]", "[1]"),
        ("[+1]", "[1]"),
        ("[1 2]", "[1]"),
        ("[18446744073709551616]", "[1]"),
        ("[x]", "[x]"),
        ("[", "["),
        ("", ""),
    ] {
        assert_eq!(call(outlined, replaced), [], "{outlined} {replaced}");
    }
}

#[test]
fn pairs_need_both_lists() {
    let rest = [("outlinedDebugContextIds", text("[1]"))];
    let info = read_sound(&document(&[context(1, 0, "popart", &rest)], &[]));
    assert_eq!(info.outlined_pairs(at(&info, 1)), []);
}
