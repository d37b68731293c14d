//! Lists of a model that do not fit together, so that no value can be made of them.

use crate::model::{TileUse, UseSets, VariableGroups};
use crate::profile::{TileBytes, TileRun};

#[test]
fn parts_that_do_not_fit_together_are_none() {
    let of = |nodes: &[(u32, u32)], labels: &[u32], partners: &[u32]| {
        let bytes = postcard::to_stdvec(&(nodes, labels, partners)).unwrap();
        let sets: UseSets = postcard::from_bytes(&bytes).unwrap();
        sets.is_sound(2, 1)
    };
    let first = (0, u32::MAX);
    for (labels, partners) in [
        (&[0, 1][..], &[0, 0][..]),
        (&[0, 0], &[0, 2]),
        (&[1, 0], &[0, 0]),
        (&[0, 0], &[1, 0]),
        (&[0], &[0, 0]),
        (&[0, 0], &[0, 0, 0]),
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
    assert!(TileBytes::from_runs(vec![run(0, 1, 3), run(1, 4, 2), run(5, 6, 2)], 6).is_some());
    for runs in [
        vec![run(0, 7, 1)],
        vec![run(2, 2, 1)],
        vec![run(3, 2, 1)],
        vec![run(0, 1, 0)],
        vec![run(2, 3, 1), run(0, 1, 1)],
        vec![run(0, 3, 1), run(2, 4, 2)],
        vec![run(0, 1, 1), run(1, 2, 1)],
    ] {
        assert_eq!(TileBytes::from_runs(runs.clone(), 6), None, "{runs:?}");
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
    // Blobs as `variables.rs` describes them: the second group of the tile has the next use.
    let of = |count: u32, blob: &[u8]| {
        let bytes = postcard::to_stdvec(&(&uses[..], &[(count, blob)][..])).unwrap();
        postcard::from_bytes::<VariableGroups>(&bytes).ok()
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
