//! Tests how debug contexts are found by id, and how their chains of parents are followed.

use super::*;

fn plain(id: u64, parent: u64) -> Value {
    context(id, parent, "poplar", &[])
}

#[test]
fn children_come_before_their_parents() {
    let info = read_sound(&document(
        &[plain(5, 4), plain(4, 2), plain(3, 2), plain(2, 0)],
        &[],
    ));
    assert_eq!(chain_ids(&info, 5), [5, 4, 2]);
    assert_eq!(chain_ids(&info, 3), [3, 2]);
    assert_eq!(chain_ids(&info, 2), [2]);
    assert!(chain_ids(&info, 1).is_empty());
    assert!(chain_ids(&info, 0).is_empty());
    assert!(chain_ids(&info, u64::MAX).is_empty());
    assert_eq!(info.position(6), None);
}

#[test]
fn a_missing_parent_ends_the_chain() {
    let info = read_sound(&document(&[plain(1, 1_000_000), plain(2, u64::MAX)], &[]));
    assert_eq!(chain_ids(&info, 1), [1]);
    assert_eq!(chain_ids(&info, 2), [2]);
}

#[test]
fn ids_far_apart_and_beyond_32_bits() {
    let ids = [u64::MAX, 1 << 40, (1 << 32) + 1, 1];
    let contexts: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(place, id)| plain(*id, ids.get(place + 1).copied().unwrap_or(0)))
        .collect();
    let info = read_sound(&document(&contexts, &[]));
    assert_eq!(chain_ids(&info, u64::MAX), ids);
    assert_eq!(info.position(2), None);
    assert_eq!(info.position(0), None);
}

#[test]
fn of_equal_ids_the_first_counts() {
    for far in [1, 1 << 50] {
        let named = |id, name| context(id, 0, "poplar", &[("name", int(name))]);
        let contexts = [
            named(2, 0),
            named(far, 1),
            named(2, 2),
            named(far, 3),
            named(3, 4),
        ];
        let info = read(&document(&contexts, &["a", "b", "c", "d", "e"])).unwrap();
        assert_eq!(info.len(), 3);
        let names = [2, far, 3].map(|id| info.name(at(&info, id)));
        assert_eq!(names, ["a", "b", "e"]);
        assert_eq!(info.damage(), [Damage::Duplicates(2)]);
    }
}

#[test]
fn a_layer_only_of_ignored_contexts_is_not_there() {
    let contexts = [plain(1, 0), context(1, 0, "popart", &[])];
    let info = read(&document(&contexts, &[])).unwrap();
    assert!(!info.has_layer(SoftwareLayer::Popart));
}

#[test]
fn contexts_without_an_id_are_ignored() {
    let contexts = [
        plain(0, 0),
        map(&[("layer", text("poplar"))]),
        map(&[("id", text("5"))]),
        plain(1, 0),
    ];
    let info = read(&document(&contexts, &[])).unwrap();
    assert_eq!(info.len(), 1);
    assert_eq!(info.damage(), [Damage::WithoutId(3), Damage::Mistyped(1)]);
    assert_eq!(chain_ids(&info, 1), [1]);
}

#[test]
fn cycles_end_where_they_close() {
    let contexts = [
        plain(1, 1),
        plain(2, 3),
        plain(3, 4),
        plain(4, 3),
        plain(5, 1),
    ];
    let info = read_sound(&document(&contexts, &[]));
    assert_eq!(chain_ids(&info, 1), [1]);
    assert_eq!(chain_ids(&info, 2), [2, 3, 4]);
    assert_eq!(chain_ids(&info, 3), [3, 4]);
    assert_eq!(chain_ids(&info, 4), [4, 3]);
    assert_eq!(chain_ids(&info, 5), [5, 1]);
}

#[test]
fn chains_are_walked_up_to_a_bound_and_longer_ones_are_named() {
    let chain = |count: u64, last: u64| -> Vec<Value> {
        let parent = |id| if id == count { last } else { id + 1 };
        (1..=count).map(|id| plain(id, parent(id))).collect()
    };
    for last in [0, 1] {
        let info = read_sound(&document(&chain(1025, last), &[]));
        assert_eq!(info.chain(1).count(), 1025);
        for count in [1026, 200_000] {
            let error = DebugInfo::from_reader(&*document(&chain(count, last), &[]));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("the id 1 has more than 1024"), "{error}");
        }
    }
}
