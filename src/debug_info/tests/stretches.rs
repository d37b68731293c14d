//! Reading a file in stretches gives what reading it as a stream gives.

use proptest::prelude::*;

use super::*;
use crate::debug_info::stretches::Stretches;
use crate::progress::{Progress, Unit};

/// What is known after reading, or why it could not be read.
fn told(info: Result<DebugInfo, DebugInfoError>) -> String {
    format!("{info:?}")
}

/// Reads in stretches of this length in bytes, so many at once.
fn in_stretches(bytes: &[u8], stretch: u64, at_once: u64) -> String {
    let progress = Progress::new();
    let task = progress.begin("reading", Unit::Bytes, bytes.len() as u64);
    let stretches = Stretches {
        open: |offset| bytes.get(offset as usize..).unwrap_or_default(),
        length: bytes.len() as u64,
        stretch,
        at_once,
        task: &task,
    };
    let told = told(stretches.read());
    let done = progress.tasks()[0].done();
    assert!(done <= bytes.len() as u64);
    told
}

#[track_caller]
fn same(bytes: &[u8]) {
    let stream = told(read(bytes));
    for (stretch, at_once) in [(1, 7), (20, 200), (100, 1), (333, 20), (1000, 3)] {
        let file = in_stretches(bytes, stretch, at_once);
        assert_eq!(file, stream, "{stretch} bytes, {at_once} at once");
    }
}

/// Like the contexts of Poplar and of PopART in turn.
fn some(count: u64) -> Vec<Vec<u8>> {
    let location = map(&[("fileName", int(1)), ("lineNumber", int(300))]);
    let one = |id| {
        let layer = ["poplar", "popart"][id as usize % 2];
        let opid = format!("ai.onnx.Add:{}", id % 7);
        let rest = [("location", location.clone()), ("opid", text(&opid))];
        bytes(&context(id, id / 2, layer, &rest))
    };
    (1..=count).map(one).collect()
}

/// A text, which need not be UTF-8, of these bytes.
fn text_of(inside: &[u8]) -> Vec<u8> {
    let length = u32::try_from(inside.len()).unwrap();
    [b"\x7a", &length.to_be_bytes()[..], inside].concat()
}

/// A context of popart with this key and value.
fn with(id: u8, key: &str, value: &[u8]) -> Vec<u8> {
    let start = [b"\xbf\x62id\x18", &[id][..], b"\x65layer\x66popart"].concat();
    [&start, &*bytes(&text(key)), value, b"\xff"].concat()
}

#[test]
fn documents_of_all_shapes() {
    let contexts = some(60);
    let table = texts(&["", "a", "b"]);
    let open = document_of(&contexts, &table);
    same(&open);
    same(&[&open, &b"more"[..]].concat());
    let count = contexts.len() as u8;
    let counted = |count: u8| {
        let start = [b"\xbf\x68contexts\x98", &[count][..]].concat();
        [&start, &*contexts.concat(), b"\x6bstringTable\x80\xff"].concat()
    };
    same(&counted(count));
    // More than there are, so that the key after them is one; and fewer.
    same(&counted(count + 1));
    same(&counted(count - 1));
    same(&counted(1));
    // A second array adds to the first, also where it repeats an id.
    let two = [&open[..1], &open[1..open.len() - 17].repeat(2)].concat();
    same(&two);
}

#[test]
fn entries_that_are_no_contexts() {
    let odd: [&[u8]; 6] = [
        b"\x01",
        b"\x83\x01\xa1\x62id\x09\x02",
        b"\xc1\xa1\x62id\x18\x63",
        b"\xa1\x62id\x00",
        b"\xa0",
        b"\xf6",
    ];
    let contexts = some(60).into_iter().enumerate();
    let mixed = contexts.map(|(place, context)| [&context, odd[place % odd.len()]].concat());
    same(&document_of(&mixed.collect::<Vec<_>>(), &texts(&[])));
}

#[test]
fn texts_and_maps_that_look_like_contexts() {
    let inside = some(30).concat();
    let array = [b"\x9f", &*inside, b"\xff"].concat();
    for key in ["opid", "inputs", "attributes", "skipped"] {
        for value in [&text_of(&inside), &array] {
            let contexts = [some(3).concat(), with(200, key, value), some(9).concat()];
            same(&document_of(&contexts, &texts(&[])));
        }
    }
    // As the value of a key that comes first, so that nothing is before them.
    same(&document_of(&[with(1, "", &array)], &texts(&[])));
    same(&document_of(&some(2), &texts(&["x"; 900])));
}

#[test]
fn guesses_hit_the_contexts_of_a_sound_file() {
    let bytes = document_of(&some(2000), &texts(&[]));
    let progress = Progress::new();
    let task = progress.begin("reading", Unit::Bytes, 0);
    let stretches = Stretches {
        open: |offset| &bytes[offset as usize..],
        length: bytes.len() as u64,
        stretch: 5000,
        at_once: 20,
        task: &task,
    };
    // After the head of the array.
    let parts = stretches.guesses(11);
    assert_eq!(parts.len(), 20);
    let mut end = 11;
    for (limit, part) in parts {
        let part = part.unwrap();
        assert_eq!(part.begin, end);
        assert!(part.entries > 40 && part.end >= limit);
        end = part.end;
    }
}

#[test]
fn a_file_on_disk_and_the_bytes_that_were_counted() {
    let bytes = document_of(&some(40_000), &texts(&["name"; 5000]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("debug.cbor");
    for length in [bytes.len(), bytes.len() - 50_000, 1_200_000, 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(told(DebugInfo::read(&path)), told(read(&bytes[..length])));
        let file = std::fs::File::open(&path).unwrap();
        let progress = Progress::new();
        let task = progress.begin("reading", Unit::Bytes, 0);
        crate::debug_info::stretches::read(&file, length as u64, &task).unwrap();
        assert_eq!(progress.tasks()[0].done(), length as u64);
    }
}

fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => properties::any_context(300).prop_map(|context| bytes(&context)),
        4 => (1u64..20, 0u64..20, 0u64..4).prop_map(|(id, parent, name)| {
            bytes(&context(id, parent, "popart", &[("name", int(name)), ("opid", text("o"))]))
        }),
        1 => (1u64..5).prop_map(|count| with(7, "opid", &text_of(&some(count).concat()))),
        1 => properties::any_value().prop_map(|value| bytes(&value)),
        1 => any::<u8>().prop_map(|id| [b"\xc1", &*with(id, "x", b"\x9f\x01\xff")].concat()),
    ]
}

fn any_document() -> impl Strategy<Value = Vec<u8>> {
    let entries = prop::collection::vec(any_entry(), 0..20);
    (entries, -2i8..3, any::<bool>()).prop_map(|(entries, wrong, is_open)| {
        let table = texts(&["", "a"]);
        if is_open {
            return document_of(&entries, &table);
        }
        let count = entries.len() as u8;
        let count = count.saturating_add_signed(wrong);
        let start = [b"\xbf\x68contexts\x98", &[count][..]].concat();
        let end = [b"\x6bstringTable", &*bytes(&table), b"\xff"].concat();
        [start, entries.concat(), end].concat()
    })
}

proptest! {
    #[test]
    fn any_document_reads_the_same(
        document in any_document(),
        stretch in 1u64..300,
        at_once in 1u64..6,
    ) {
        prop_assert_eq!(in_stretches(&document, stretch, at_once), told(read(&document)));
    }

    #[test]
    fn changed_bits_read_the_same(
        document in any_document(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
        stretch in 10u64..300,
    ) {
        let mut document = document;
        for (place, bit) in flips {
            let place = place.index(document.len());
            document[place] ^= 1 << bit;
        }
        prop_assert_eq!(in_stretches(&document, stretch, 4), told(read(&document)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_cut_reads_the_same(document in any_document(), stretch in 30u64..300) {
        for length in 0..document.len() {
            let cut = &document[..length];
            prop_assert_eq!(in_stretches(cut, stretch, 4), told(read(cut)), "{} bytes", length);
        }
    }
}
