//! Tests that the reader accepts all forms in which CBOR can encode a debug file.

use super::*;
use crate::limits;

/// Returns a debug file with the context `{"id": 1, "layer": "popart", "opid": "x"}`. The bytes
/// `odd`, one more encoded map entry, are inserted before the entry `opid`.
fn around(odd: &[u8]) -> Vec<u8> {
    let mut context = vec![0xbf];
    for part in [text("id"), int(1), text("layer"), text("popart")] {
        context.extend(bytes(&part));
    }
    context.extend_from_slice(odd);
    context.extend(bytes(&text("opid")));
    context.extend(bytes(&text("x")));
    context.push(0xff);
    document_of(&[context], &texts(&["a name"]))
}

fn reads_past(odd: &[u8], damage: &[Damage]) {
    let info = read(&around(odd)).unwrap();
    assert_eq!(info.damage(), damage, "{odd:x?}");
    let position = at(&info, 1);
    assert_eq!(
        info.text(position, ContextField::Opid),
        Some("x"),
        "{odd:x?}"
    );
    assert_eq!(info.layer(position), SoftwareLayer::Popart, "{odd:x?}");
}

#[test]
fn values_of_unknown_keys_are_stepped_over() {
    let values: [&[u8]; 14] = [
        b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xf5",
        b"\xf6",
        b"\xf7",
        b"\xf9\x7c\x00",
        b"\xfa\x7f\xc0\x00\x00",
        b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x43\xff\xff\xff",
        b"\x5f\x41a\x42bc\xff",
        b"\x7f\x61a\x60\x62bc\xff",
        b"\x9f\x01\x82\x02\x03\x9f\x04\xff\xff",
        b"\xbf\x61a\xbf\xff\x02\x9f\xff\xff",
        b"\xc1\xd9\xd9\xf7\xdb\x00\x00\x00\x00\x00\x00\x00\x01\x82\xc0\x01\x02",
    ];
    for value in values {
        let mut entry = bytes(&text("unknown"));
        entry.extend_from_slice(value);
        reads_past(&entry, &[]);
        // The CBOR value under test is now a key of the context, and the value of this key is 0.
        // The reader must skip both, and report damage if the key is not a text.
        let is_text = matches!(value[0], 0x60..0x80);
        let mut entry = value.to_vec();
        entry.push(0x00);
        let damage = [Damage::Mistyped(1)];
        reads_past(&entry, if is_text { &[] } else { &damage });
    }
}

#[test]
fn known_values_are_found_in_every_encoding() {
    let contexts: [&[u8]; 4] = [
        // CBOR in which maps and lists have lengths, and numbers take more bytes than needed.
        b"\xb8\x03\x78\x02id\x1b\0\0\0\0\0\0\0\x05\x65layer\x79\0\x06popart\x66inputs\x98\x02\x61a\x61b",
        // CBOR in which maps, lists and texts have end markers instead of lengths.
        b"\xbf\x7f\x61i\x61d\xff\x05\x65layer\x7f\x63pop\x63art\xff\x66inputs\x9f\x7f\x61a\xff\x61b\xff\xff",
        // CBOR in which all items have a tag, which the reader must ignore.
        b"\xc1\xa3\xc1\x62id\xc1\x05\xc1\x65layer\xc1\x66popart\xc1\x66inputs\xc1\x82\xc1\x61a\xc1\x61b",
        b"\xbf\xc1\x62id\x05\x65layer\x66popart\x66inputs\x9f\xc1\x61a\x61b\xff\xff",
    ];
    for context in contexts {
        let info = read_sound(&document_of(&[context.to_vec()], &texts(&[])));
        let position = at(&info, 5);
        assert_eq!(info.layer(position), SoftwareLayer::Popart);
        assert_eq!(info.text(position, ContextField::Inputs), Some("a/b"));
    }
}

#[test]
fn the_document_may_be_laid_out_otherwise() {
    let context = context(1, 0, "poplar", &[("name", int(0))]);
    let contexts = ("contexts", Value::Array(vec![context]));
    let table = ("stringTable", texts(&["name"]));
    let more = ("more", map(&[("contexts", int(1))]));
    let check = |document: &[u8]| {
        let info = read_sound(document);
        assert_eq!((info.len(), info.name(at(&info, 1))), (1, "name"));
    };
    let plain = bytes(&map(&[contexts.clone(), table.clone()]));
    check(&plain);
    check(&bytes(&map(&[table.clone(), contexts.clone()])));
    check(&bytes(&map(&[
        more.clone(),
        contexts.clone(),
        more.clone(),
        table.clone(),
        more,
    ])));
    check(&[b"\xd9\xd9\xf7", plain.as_slice()].concat());
    check(&[b"\xd9\xd9\xf7\xd9\xd9\xf7", plain.as_slice()].concat());
    check(&[b"\xbf", &plain[1..], b"\xff"].concat());
}

#[test]
fn keys_of_the_document_that_come_twice() {
    let one = |id| Value::Array(vec![context(id, 0, "poplar", &[("name", int(0))])]);
    let document = map(&[
        ("contexts", one(1)),
        ("stringTable", texts(&["old", "longer"])),
        ("contexts", one(2)),
        ("stringTable", texts(&["new"])),
        ("stringTable", int(5)),
    ]);
    let info = read(&bytes(&document)).expect("a debug file");
    assert_eq!(info.damage(), [Damage::Repeated(3)]);
    assert_eq!(info.len(), 2);
    assert_eq!(info.name(at(&info, 1)), "new");
    assert_eq!(info.name(at(&info, 2)), "new");
}

#[test]
fn nesting_is_read_up_to_a_bound_and_is_damage_beyond() {
    // The nested items are in the map of a context, which is in the array of contexts, which is in
    // the top-level map. These take three of the allowed levels; the others are left for the items.
    let room = limits::NESTED_ITEMS - 3;
    for opener in [&b"\x81"[..], b"\x9f", b"\xa1\x60", b"\xbf\x00", b"\xc1"] {
        let is_open = opener[0] & 0x1f == 0x1f;
        let deep = |depth: usize| {
            let mut entry = bytes(&text("deep"));
            entry.extend(opener.repeat(depth));
            entry.push(0x00);
            entry.extend(b"\xff".repeat(if is_open { depth } else { 0 }));
            entry
        };
        reads_past(&deep(room), &[]);
        for depth in [room + 1, 1 << 20] {
            let refused = read(&around(&deep(depth))).unwrap_err();
            assert!(refused.contains("malformed"), "{depth}: {refused}");
        }
    }
}

#[test]
fn text_longer_than_the_buffer() {
    let long = "ä".repeat(300_000);
    let rest = [("skipped", text(&long)), ("opid", text(&long))];
    let info = read_sound(&document(&[context(1, 0, "popart", &rest)], &[&long]));
    assert_eq!(
        info.text(at(&info, 1), ContextField::Opid),
        Some(long.as_str())
    );
}

#[test]
fn no_contexts_at_all() {
    let info = read_sound(&document(&[], &[]));
    assert!(info.is_empty());
    let empty = DebugInfo::default();
    assert_eq!(
        (empty.len(), empty.position(1), empty.chain(1).count()),
        (0, None, 0)
    );
}
