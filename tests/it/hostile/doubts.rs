//! Files with a little damage. If the bytes that the damage could move are at most 1 % of the
//! fullest tile and cannot change the verdict, the run warns and has the verdict of the whole
//! files. Otherwise it has no verdict, and the message has the bytes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use crate::hostile::cases::{Case, number, set};
use crate::support::models::pairs;
use crate::support::{ONE_IPU_FIXTURES, Run, each, mutations};

const COMPILED: &str = "training-pipelined";

/// The name of a damage, the option that accepts it, and the damage itself.
type Damage = (&'static str, &'static str, fn(Case) -> Case);

const DAMAGES: [Damage; 11] = [
    (
        "the context of the first compute set is missing",
        TRUST,
        |case| without(case, ["min", "OnTileExecute"]),
    ),
    (
        "the context of the first compute set is an orphan",
        TRUST,
        |case| orphan(case, ["min", "OnTileExecute"]),
    ),
    (
        "the context of the first compute set is its own ancestor",
        TRUST,
        |case| circle(case, ["min", "OnTileExecute"]),
    ),
    (
        "the context of the last compute set is missing",
        TRUST,
        |case| without(case, ["max", "OnTileExecute"]),
    ),
    (
        "the context of the last compute set is an orphan",
        TRUST,
        |case| orphan(case, ["max", "OnTileExecute"]),
    ),
    (
        "the context of the last compute set is its own ancestor",
        TRUST,
        |case| circle(case, ["max", "OnTileExecute"]),
    ),
    ("the context of the syncs is missing", TRUST, |case| {
        without(case, ["min", "Sync"])
    }),
    ("the context of the syncs is an orphan", TRUST, |case| {
        orphan(case, ["min", "Sync"])
    }),
    (
        "the context of the syncs is its own ancestor",
        TRUST,
        |case| circle(case, ["min", "Sync"]),
    ),
    (
        "memory_by_compute_set is empty",
        "--allow-incomplete",
        |case| case.sql("DELETE FROM memory_by_compute_set"),
    ),
    (
        "memory_by_vertex_type is empty",
        "--allow-incomplete",
        |case| case.sql("DELETE FROM memory_by_vertex_type"),
    ),
];

const TRUST: &str = "--trust-debug-info";

/// Returns the id of the first or last context of the programs of this kind, or of all programs if
/// there are none.
fn context(case: &Case, [which, kind]: [&str; 2]) -> i64 {
    let sql = format!(
        "SELECT coalesce({which}(CASE t.name WHEN '{kind}' THEN p.debug_id END), {which}(p.debug_id))
         FROM programs p JOIN program_types t ON t.id = p.variant WHERE p.debug_id > 0"
    );
    number(&case.profile, &sql)
}

/// Returns the number in a field of a context.
fn field(context: &ciborium::Value, key: &str) -> Option<i128> {
    let entries = context.as_map()?;
    let (_, value) = entries
        .iter()
        .find(|(name, _)| name.as_text() == Some(key))?;
    value.as_integer().map(i128::from)
}

/// Changes the contexts, without the trust that [`Case::cbor`] adds.
fn changed(case: Case, change: impl FnOnce(&mut Vec<ciborium::Value>)) -> Case {
    let mut case = case.cbor(|contexts, _| change(contexts));
    case.trusts = false;
    case
}

fn place(contexts: &[ciborium::Value], id: i128) -> usize {
    let is_it = |context: &ciborium::Value| field(context, "id") == Some(id);
    contexts.iter().position(is_it).expect("a context")
}

fn without(case: Case, which: [&str; 2]) -> Case {
    let id = context(&case, which).into();
    changed(case, |contexts| {
        contexts.remove(place(contexts, id));
    })
}

fn orphan(case: Case, which: [&str; 2]) -> Case {
    let id = context(&case, which).into();
    changed(case, |contexts| {
        let place = place(contexts, id);
        set(&mut contexts[place], "parentId", 999_999_999.into());
    })
}

fn circle(case: Case, which: [&str; 2]) -> Case {
    let id = context(&case, which);
    changed(case, |contexts| {
        let here = place(contexts, id.into());
        let above = field(&contexts[here], "parentId").filter(|&parent| parent != 0);
        let above = above.map_or(here, |parent| place(contexts, parent));
        set(&mut contexts[above], "parentId", id.into());
    })
}

/// Returns the bytes that could move, as a message says.
fn bytes(messages: &str) -> Option<i64> {
    let (_, rest) = messages.split_once("could move up to ")?;
    let digits = rest.split(" bytes").next()?.replace(',', "");
    Some(digits.parse().expect("bytes"))
}

/// Returns the bytes on the fullest tile of the split that a run printed.
fn peak(run: &Run) -> i64 {
    let stages: Value = serde_json::from_str(&run.out).expect("JSON");
    let stages = stages.as_array().expect("stages").iter();
    let peaks = stages.map(|stage| stage["mem"]["max_tile_mem"].as_i64().expect("bytes"));
    peaks.max().expect("a stage")
}

#[test]
fn a_little_damage_is_a_warning_where_its_bytes_cannot_turn_the_verdict() {
    let counts = Counts::default();
    let fixtures: Vec<&str> = ONE_IPU_FIXTURES.into_iter().chain([COMPILED]).collect();
    let pairs: Vec<_> = pairs(&fixtures, &DAMAGES, 25).collect();
    each(&pairs, |&(&name, &(what, accept, damage))| {
        let whole = Case::of(name);
        let fullest = number(&whole.profile, "SELECT max(total) FROM memory_by_tile");
        let tile = number(&whole.profile, "SELECT bytes_per_tile FROM target_info");
        mutations::loosen(&whole.profile);
        if name == COMPILED {
            let expected = whole.run(&["--fit"]);
            let run = damage(whole).run(&["--fit"]);
            // Contexts only name layers, and move no recorded bytes.
            assert_eq!(run.code, expected.code, "{what}: {}", run.err);
            return;
        }
        let needs = peak(&whole.run(&SOLVE));
        let limits = [tile, needs, needs - 1];
        let run = |case: &Case, limit: i64, more: &[&str]| {
            let limit = format!("--mem-per-tile={limit}");
            case.run(&[&SOLVE[..], &[&limit], more].concat())
        };
        let expected = limits.map(|limit| run(&whole, limit, &[]));
        let case = damage(whole);
        for (limit, expected) in limits.into_iter().zip(expected) {
            let name = format!("{name}, {what}, {limit} bytes a tile");
            check(
                &name,
                [fullest, limit],
                accept,
                &expected,
                |more| run(&case, limit, more),
                &counts,
            );
        }
    });
    let counts = counts.into_inner().expect("no panic");
    assert_eq!(counts.len(), 2, "{counts:?}");
    for (is_little, mut lines) in counts {
        lines.sort_unstable();
        let kind = if is_little { "a warning" } else { "no verdict" };
        println!("{kind}:\n{}", lines.join("\n"));
    }
}

const SOLVE: [&str; 3] = ["--solve", "--num-ipus=4", "--format=json"];

type Counts = Mutex<BTreeMap<bool, Vec<String>>>;

/// Runs the damaged files, and checks that the verdict is the expected one, or is refused, as the
/// bytes in the message require.
fn check(
    name: &str,
    [fullest, limit]: [i64; 2],
    accept: &str,
    expected: &Run,
    run: impl Fn(&[&str]) -> Run,
    counts: &Counts,
) {
    let (found, accepted) = (run(&[]), run(&[accept]));
    let moved = bytes(&found.err).unwrap_or_else(|| panic!("{name}: {}", found.err));
    let free = limit - peak(&accepted);
    let turns = if free < 0 {
        moved >= -free
    } else {
        moved > free
    };
    let is_little = moved * 100 <= fullest && !turns;
    if is_little {
        assert_eq!(found.code, expected.code, "{name}: {}", found.err);
        assert!(found.err.contains("warning: "), "{name}: {}", found.err);
    } else {
        assert_eq!((found.code, &*found.out), (3, ""), "{name}: {}", found.err);
        let error = found.err.lines().last().expect("an error");
        assert!(error.starts_with("error: "), "{name}: {error}");
        assert_eq!(bytes(error), Some(moved), "{name}: {error}");
        assert!(error.contains(accept), "{name}: {error}");
    }
    let line = format!("{name}: {moved} of {fullest}, {free} free");
    counts
        .lock()
        .expect("no panic")
        .entry(is_little)
        .or_default()
        .push(line);
}
