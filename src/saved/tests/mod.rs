//! Tests that a saved model is loaded without any change, and that files which popliner did not
//! write are refused. Tests in `tests/it` save the models of whole profiles (`planted`), and check
//! that an interrupted run leaves no incomplete file (`report::exports`, `hostile::faults`).

mod damaged;
mod hostile;
mod models;

use super::*;
use crate::{
    message::Warning,
    model::{TileUse, UseSets, VariableGroup, VariableGroups},
    profile::{TileBytes, TileRun},
};
use models::full;

#[test]
fn a_model_with_something_in_every_field_comes_back() {
    let model = full();
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
    assert_eq!(to_bytes(&full()).unwrap(), bytes, "always the same bytes");
}

/// A model with at least 600,000 groups of variables and 3 MB of text must be the same after it is
/// saved and loaded.
#[test]
fn a_large_model_comes_back() {
    let mut model = full();
    model.warnings = (0..3_000)
        .map(|n| Warning::new(format!("{n:x<1000}")))
        .collect();
    let items = (0..600_000u32).map(|n| {
        let (class, set, bytes) = (n % 4, n % 3, n);
        ((n % 4) as u16, VariableGroup { class, set, bytes })
    });
    // These 600,000 groups of variables are not merged with each other: the bytes of a merged group
    // must fit in 32 bits, but the sum of any two of these groups does not.
    let many = (0..600_000u32)
        .map(|n| (n % 4) as u16)
        .zip((0..).map(|n| VariableGroup {
            class: n % 4,
            set: n % 3,
            bytes: u32::MAX - n,
        }));
    model.variables = VariableGroups::new(4, items.chain(many));
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
}

#[test]
fn more_steps_than_can_be_read_are_not_saved() {
    let mut long = full();
    let (always, steps) = (vec![true; 4], 1 << 30);
    long.classes = crate::profile::LiveClasses::new(always, Vec::new(), steps);
    let error = to_bytes(&long).unwrap_err().to_string();
    assert!(error.contains("1073741824 liveness steps"), "{error}");
}

/// Decoding a part of a saved model, such as its use sets or the bytes of its tiles, must fail if
/// the part is malformed: if, for example, its lists are out of order or differ in length.
#[test]
fn parts_that_do_not_fit_together_are_none() {
    let of = |nodes: &[(u32, u32)], labels: &[u32], partners: &[u32]| {
        let sets: Vec<_> = nodes.iter().zip(labels).zip(partners).collect();
        let bytes = postcard::to_stdvec(&sets).unwrap();
        let sets: UseSets = postcard::from_bytes(&bytes).unwrap();
        sets.is_sound(2, 1)
    };
    let first = (0, u32::MAX);
    for (labels, partners) in [
        (&[0, 1][..], &[0, 0][..]),
        (&[0, 0], &[0, 2]),
        (&[1, 0], &[0, 0]),
        (&[0, 0], &[1, 0]),
    ] {
        assert!(!of(&[first, (0, 0)], labels, partners));
    }
    assert!(of(&[first, (0, 0)], &[0, 0], &[0, 1]));
    assert!(of(&[first, (0, 0), (1, 1)], &[0; 3], &[0; 3]));
    assert!(!of(&[], &[], &[]));
    assert!(!of(&[(0, 1)], &[0], &[0]));
    for nodes in [
        &[first, (1, 0)][..],
        &[first, (2, 0), (0, 1)],
        &[first, (0, 2)],
        &[first, (0, 1), (1, 1)],
        &[first, (0, 1), (1, 0)],
        &[first, (u32::MAX, 0)],
    ] {
        let none = vec![0; nodes.len()];
        assert!(!of(nodes, &none, &none), "{nodes:?}");
    }
    let run = |from, to, value| TileRun { from, to, value };
    assert!(TileBytes::from_runs(vec![run(0, 1, 3), run(1, 4, 2), run(5, 6, 2)]).is_some());
    for runs in [
        vec![run(2, 2, 1)],
        vec![run(3, 2, 1)],
        vec![run(0, 1, 0)],
        vec![run(2, 3, 1), run(0, 1, 1)],
        vec![run(0, 3, 1), run(2, 4, 2)],
        vec![run(0, 1, 1), run(1, 2, 1)],
    ] {
        assert_eq!(TileBytes::from_runs(runs.clone()), None, "{runs:?}");
    }
    let groups = || [2, 2, 0, 1].map(|number| TileUse { number, bytes: 1 });
    let of = |uses: &[(u32, u32)], counts: &[u32]| {
        let found = VariableGroups::from_numbered(uses, counts, groups().into());
        found.is_some()
    };
    let uses = [(0, 1), (0, 2), (1, 0)];
    assert!(of(&uses, &[2, 0, 2]));
    for counts in [&[4][..], &[1, 3], &[2, 1], &[2, 3], &[], &[u32::MAX, 5]] {
        assert!(!of(&uses, counts), "{counts:?}");
    }
    for uses in [
        &uses[..2],
        &[(0, 1), (1, 0), (0, 2)],
        &[(0, 1), (0, 1), (1, 0)],
    ] {
        assert!(!of(uses, &[2, 0, 2]), "{uses:?}");
    }
    // Decodes `count` groups of variables on one tile from `blob`; returns `None` if `blob` is
    // malformed. It has two numbers for each group: the difference of the group's index into `uses`
    // from that of the previous group, and the bytes of the group.
    let of = |count: u32, blob: &[u8]| {
        let groups = EncodedGroups {
            uses: uses.into(),
            tiles: vec![(count, blob)],
        };
        groups.decode()
    };
    let blob = [0x81, 0x85, 0x81, 0x86];
    let on_tile = of(2, &blob).map(|found| found.uses_on_tile(0).to_vec());
    let expected = [(1, 5), (2, 6)].map(|(number, bytes)| TileUse { number, bytes });
    assert_eq!(on_tile, Some(expected.into()));
    for (count, blob) in [
        (1, &blob[..]),
        (3, &blob),
        (2, &blob[..3]),
        (2, &[0x81, 0x85, 0x82, 0x86]),
        (2, &[0x81, 0x05, 0x81, 0x86]),
        (u32::MAX, &blob),
    ] {
        assert_eq!(of(count, blob), None, "{count} {blob:?}");
    }
}
