//! Tests that truncated, damaged and hostile debug files, and files of another kind, give an error
//! or a sign of damage.

use std::{
    io::{self, Read},
    path::Path,
};

use super::*;

fn three() -> Vec<u8> {
    let named = |id, name| context(id, 0, "popart", &[("name", int(name)), ("opid", text("o"))]);
    document(
        &[named(1, 0), named(2, 1), named(3, 2)],
        &["zero", "one", "two"],
    )
}

fn find(bytes: &[u8], needle: &[u8]) -> usize {
    let at = bytes
        .windows(needle.len())
        .position(|window| window == needle);
    at.unwrap()
}

fn only_damage(info: &DebugInfo) -> String {
    match info.damage() {
        [damage] => damage.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cut_within_the_contexts() {
    let whole = three();
    let table = find(&whole, b"stringTable");
    let info = read(&whole[..table - 5]).unwrap();
    let truncation = info.truncation().unwrap();
    assert_eq!((truncation.contexts, info.len()), (2, 2));
    assert_eq!(truncation.offset, table as u64 - 5);
    assert!(truncation.string_table_lost && !truncation.damaged);
    assert_eq!(info.text(at(&info, 2), ContextField::Opid), Some("o"));
    assert_eq!(info.name(at(&info, 2)), "");
    let expected = format!(
        "it is cut off at byte {}, contexts read: 2, later contexts are lost, and names and \
         locations with the string table",
        table - 5
    );
    assert_eq!(only_damage(&info), expected);
}

#[test]
fn cut_within_the_string_table() {
    let whole = three();
    let info = read(&whole[..whole.len() - 2]).unwrap();
    let truncation = info.truncation().unwrap();
    assert_eq!(truncation.contexts, 3);
    assert!(truncation.string_table_lost);
    let names = [1, 2, 3].map(|id| info.name(at(&info, id)));
    assert_eq!(names, ["zero", "one", ""]);
    assert!(only_damage(&info).ends_with("except for the first 2 entries of the string table"));
}

#[test]
fn cut_with_the_string_table_in_front() {
    let contexts = Value::Array(vec![context(1, 0, "poplar", &[("name", int(0))]), int(1)]);
    let whole = bytes(&map(&[
        ("stringTable", texts(&["n"])),
        ("contexts", contexts),
    ]));
    let info = read(&whole[..whole.len() - 1]).unwrap();
    assert!(!info.truncation().unwrap().string_table_lost);
    assert_eq!(info.name(at(&info, 1)), "n");
    assert!(only_damage(&info).ends_with("contexts read: 1, later contexts are lost"));
}

#[test]
fn damage_in_the_middle_keeps_what_came_before() {
    let mut whole = three();
    let third = find(&whole, b"\x62id\x03");
    whole[third + 3] = 0x1c;
    let info = read(&whole).unwrap();
    let truncation = info.truncation().unwrap();
    assert_eq!((info.len(), truncation.contexts), (2, 2));
    assert_eq!(truncation.offset, third as u64 + 4);
    assert!(truncation.damaged && truncation.string_table_lost);
    let start = format!(
        "it is malformed before byte {}, contexts read: 2,",
        third + 4
    );
    assert!(only_damage(&info).starts_with(&start));
}

#[test]
fn breaks_where_none_may_be() {
    let bad: [&[u8]; 6] = [
        b"\xa1\x62id\xff",
        b"\xbf\x62id\xff",
        b"\xbf\x61x\x82\x00\xff\xff",
        b"\xbf\x61x\xbf\x00\xff\xff",
        b"\xbf\x61x\xc1\xff\xff",
        b"\xbf\x61x\x7f\x41a\xff\xff",
    ];
    for context in bad {
        let good = bytes(&map(&[("id", int(1))]));
        let whole = document_of(&[good, context.to_vec()], &texts(&[]));
        let info = read(&whole).unwrap();
        assert!(info.truncation().unwrap().damaged, "{context:x?}");
        assert_eq!(info.len(), 1, "{context:x?}");
    }
}

#[test]
fn damage_before_any_context_is_an_error() {
    let mut whole = three();
    let first = find(&whole, b"\x62id\x01");
    whole[first] = 0x1d;
    let refused = read(&whole).unwrap_err();
    let place = format!("malformed before byte {};", first + 1);
    assert!(refused.contains(&place), "{refused}");
}

#[test]
fn huge_lengths_are_no_promise() {
    let heads: [&[u8]; 8] = [
        b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x7b\x80\0\0\0\0\0\0\0",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x7f\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x81\x7b\x80\0\0\0\0\0\0\0",
        b"\x9f\x7b\x80\0\0\0\0\0\0\0",
        b"\x81\xbb\x80\0\0\0\0\0\0\0",
    ];
    for key in ["skipped", "opid", "inputs", "layer", "id", "name"] {
        for head in heads {
            let mut context = b"\xbf\x62id\x02".to_vec();
            context.extend(bytes(&text(key)));
            context.extend_from_slice(head);
            let good = bytes(&map(&[("id", int(1))]));
            let info = read(&document_of(&[good, context], &texts(&["a"]))).unwrap();
            assert_eq!(info.len(), 1);
            assert!(info.truncation().is_some());
        }
    }
    for head in heads {
        assert_eq!(
            read(&[b"\xa1\x68contexts", head].concat()).map_or(0, |info| info.len()),
            0
        );
        let table = [
            b"\xa2\x68contexts\x81\xa1\x62id\x01\x6bstringTable\x82\x60",
            head,
        ]
        .concat();
        assert_eq!(read(&table).unwrap().len(), 1);
    }
    // The CBOR headers of the top-level map and of the array of contexts announce more entries than
    // the file has bytes. The only context in the file must be read nevertheless.
    let info = read(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x68contexts\x9b\xff\xff\xff\xff\xff\xff\xff\xff\xa1\x62id\x01");
    assert_eq!(info.unwrap().len(), 1);
}

#[test]
fn names_outside_the_table() {
    let named = |id, name| context(id, 0, "poplar", &[("name", int(name))]);
    let far = [
        named(1, 1),
        named(2, 0),
        named(3, u64::MAX),
        named(4, u64::from(u32::MAX)),
        named(5, u64::from(u32::MAX) - 1),
    ];
    let info = read(&document(&far, &["in"])).unwrap();
    let names: Vec<&str> = (1..=5).map(|id| info.name(at(&info, id))).collect();
    assert_eq!(names, ["", "in", "", "", ""]);
    assert_eq!(info.damage(), [Damage::NamesOutside(4)]);
}

#[test]
fn entries_of_the_table_that_are_no_text_keep_their_place() {
    let named = context(1, 0, "poplar", &[("name", int(2))]);
    let table = Value::Array(vec![int(1), texts(&["x"]), text("third")]);
    let info = read(&document_of(&[bytes(&named)], &table)).unwrap();
    assert_eq!(info.name(at(&info, 1)), "third");
    assert_eq!(info.damage(), [Damage::Mistyped(2)]);
}

#[test]
fn entries_of_contexts_that_are_no_maps() {
    let info = read(&document(
        &[int(1), texts(&["a"]), context(1, 0, "poplar", &[])],
        &[],
    ))
    .unwrap();
    assert_eq!(info.len(), 1);
    assert_eq!(info.damage(), [Damage::NoMaps(2)]);
}

#[test]
fn texts_that_are_no_utf8_end_the_reading() {
    let good = bytes(&map(&[("id", int(1))]));
    let bad: [&[u8]; 5] = [
        b"\x64opid\x63a\xffb",
        b"\x61x\x62\xff\xfe",
        b"\x61\xff\x00",
        // This CBOR text is malformed: it consists of two segments, and the two bytes of one
        // character are in different segments.
        b"\x61x\x7f\x61\xc3\x61\xb6\xff",
        b"\x61x\x81\x61\xff",
    ];
    for entry in bad {
        let context = [b"\xbf\x62id\x02", entry, b"\xff"].concat();
        let info = read(&document_of(&[good.clone(), context], &texts(&["z"]))).unwrap();
        let truncation = info.truncation().unwrap();
        assert!(truncation.damaged, "{entry:x?}");
        assert_eq!(info.len(), 1, "{entry:x?}");
    }
    let mut whole = document_of(&[good], &texts(&["a", "zz"]));
    let end = whole.len();
    whole[end - 1] = 0xc3;
    let truncation = *read(&whole).unwrap().truncation().unwrap();
    assert_eq!((truncation.names, truncation.offset), (1, end as u64));
    assert!(truncation.damaged && !truncation.contexts_lost);
}

#[test]
fn only_texts_are_keys_where_a_map_has_a_length() {
    let good = bytes(&map(&[("id", int(1))]));
    let entries: [&[u8]; 3] = [b"\x00\x00", b"\x7f\x61a\xff\x00", b"\xf6\x00"];
    for entry in entries {
        let contexts = |head: &[u8], end: &[u8]| {
            let context = [head, b"\x62id\x02", entry, end].concat();
            read(&document_of(&[good.clone(), context], &texts(&[]))).unwrap()
        };
        let info = contexts(b"\xa2", b"");
        assert!(info.truncation().unwrap().damaged, "{entry:x?}");
        assert_eq!(info.len(), 1, "{entry:x?}");
        let info = contexts(b"\xbf", b"\xff");
        assert_eq!((info.len(), info.truncation()), (2, None), "{entry:x?}");
    }
}

#[test]
fn bytes_after_the_document() {
    let mut whole = three();
    let end = whole.len();
    whole.push(0);
    let info = read(&whole).unwrap();
    assert_eq!((info.len(), info.truncation()), (3, None));
    assert_eq!(info.damage(), []);
    let warning = info.warning().unwrap();
    assert!(warning.contains(&format!("ends at byte {end}")));
}

#[test]
fn a_document_without_a_string_table() {
    for table in [vec![], vec![("stringTable", int(1))]] {
        let contexts = Value::Array(vec![context(1, 0, "poplar", &[("name", int(0))])]);
        let whole = bytes(&map(&[vec![("contexts", contexts)], table].concat()));
        let info = read(&whole).unwrap();
        assert_eq!((info.truncation(), info.name(at(&info, 1))), (None, ""));
        assert_eq!(info.damage(), [Damage::NoStringTable]);
    }
}

#[test]
fn other_cbor_documents() {
    let says = |bytes: &[u8], part: &str| read(bytes).unwrap_err().contains(part);
    let not_cbor = |bytes: &[u8]| says(bytes, ", not a debug.cbor (");
    let shape = |bytes: &[u8]| says(bytes, "but not a debug.cbor: it");
    assert!(not_cbor(&bytes(&texts(&["contexts"]))));
    assert!(not_cbor(&bytes(&int(5))));
    assert!(shape(&bytes(&map(&[]))));
    assert!(shape(&bytes(&map(&[("stringTable", texts(&[]))]))));
    assert!(shape(&bytes(&map(&[("contexts", int(1))]))));
    let other = bytes(&map(&[("other", int(1)), ("more", int(2))]));
    assert!(shape(&other));
    assert!(shape(&other[..other.len() - 1]));
}

#[test]
fn other_files_are_named() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err();
    assert!(message(b"").starts_with("the file is empty: "));
    assert!(
        message(b"SQLite format 3\0\x10\x00")
            .ends_with("give profile.pop first and debug.cbor second")
    );
    for text in [
        "{\"contexts\": []}",
        "x",
        "hello\n",
        "äöü",
        "\u{feff}layer,mem",
        "Ù",
    ] {
        assert!(message(text.as_bytes()).contains("a text file"), "{text}");
    }
    let long = "é".repeat(1000);
    assert!(message(&long.as_bytes()[..99]).contains("a text file"));
    assert!(message(&["x", &long].concat().into_bytes()).contains("a text file"));
    assert!(message(b"\x1f\x8b\x08\0").contains("a gzip file"));
    assert!(message(b"PK\x03\x04\0").contains("a zip archive"));
    assert!(message(b"\x7fELF\x02").contains("an ELF executable"));
    assert!(message(b"\x00\x00\x00\x00").contains("the byte 0x00"));
    assert!(message(b"\xff").contains("the byte 0xff"));
}

/// A reader that returns `bytes` one at a time, interrupted before each byte, and then fails or
/// ends.
struct Dripping<'a> {
    bytes: &'a [u8],
    fails: bool,
    interrupted: bool,
}

impl Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match (self.bytes.split_first(), into.first_mut()) {
            (Some((first, rest)), Some(place)) => {
                *place = *first;
                self.bytes = rest;
                Ok(1)
            }
            _ if self.fails => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(0),
        }
    }
}

#[test]
fn a_slow_pipe_gives_the_same_as_a_file() {
    let bytes = three();
    let slow = DebugInfo::from_reader(Dripping {
        bytes: &bytes,
        fails: false,
        interrupted: false,
    });
    assert_eq!(everything(&slow.unwrap()), everything(&read_sound(&bytes)));
}

#[test]
fn failing_to_read_is_no_truncation() {
    for len in [0, 1, 70, three().len()] {
        let bytes = &three()[..len];
        let result = DebugInfo::from_reader(Dripping {
            bytes,
            fails: true,
            interrupted: false,
        });
        let failure = result.unwrap_err().to_string();
        assert!(failure.starts_with("you have no permission"), "{failure}");
    }
}

#[test]
fn paths_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let failure = |path: &Path| DebugInfo::read(path).unwrap_err().to_string();
    let missing = failure(&folder.path().join("debug.cbor"));
    assert!(missing.contains("No such file"), "{missing}");
    let of_folder = failure(folder.path());
    assert!(of_folder.starts_with("it cannot be read: "), "{of_folder}");
}
