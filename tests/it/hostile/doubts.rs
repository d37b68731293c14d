//! Files with a little damage. If the bytes that the damage could move cannot change the verdict, the
//! run warns and has the verdict of the whole files. Otherwise it has no verdict. The message has the
//! bytes.

use ciborium::Value;

use super::cases::{Case, number};
use crate::support::models::pairs;
use crate::support::{ONE_IPU_FIXTURES, Run, contexts, each};

#[derive(Debug, Clone, Copy)]
enum Damage {
    /// A change of the first or last context of the programs of a kind.
    Context(Change, &'static str, &'static str),
    /// A table without rows.
    Empty(&'static str),
}

/// A change of a context.
#[derive(Debug, Clone, Copy)]
enum Change {
    Missing,
    Orphan,
    /// The context is its own ancestor.
    Circle,
}

use Change::{Circle, Missing, Orphan};
use Damage::{Context, Empty};

fn damages() -> Vec<Damage> {
    let programs = [
        ("min", "OnTileExecute"),
        ("max", "OnTileExecute"),
        ("min", "Sync"),
    ];
    let of = |(which, kind)| [Missing, Orphan, Circle].map(|change| Context(change, which, kind));
    let empty = ["memory_by_compute_set", "memory_by_vertex_type"].map(Empty);
    programs.into_iter().flat_map(of).chain(empty).collect()
}

impl Change {
    fn of(self, contexts: &mut Vec<Value>, id: u64) {
        let at = place(contexts, id);
        match self {
            Missing => drop(contexts.remove(at)),
            Orphan => contexts::set(&mut contexts[at], "parentId", 999_999_999),
            Circle => {
                let parent = contexts::number(&contexts[at], "parentId");
                let parent = parent.filter(|&parent| parent != 0);
                let above = parent.map_or(at, |parent| place(contexts, parent));
                contexts::set(&mut contexts[above], "parentId", id);
            }
        }
    }
}

fn place(contexts: &[Value], id: u64) -> usize {
    let is_it = |context: &Value| contexts::number(context, "id") == Some(id);
    contexts.iter().position(is_it).expect("a context")
}

impl Damage {
    /// Damages the files of `case`, which runs without `--allow-incomplete`.
    fn of(self, case: Case) -> Case {
        match self {
            Empty(table) => case.sql(&format!("DELETE FROM {table}")),
            Context(change, which, kind) => {
                // If there is no program of this kind, choose among all programs.
                let sql = format!(
                    "SELECT coalesce({which}(CASE t.name WHEN '{kind}' THEN p.debug_id END),
                                     {which}(p.debug_id))
                     FROM programs p JOIN program_types t ON t.id = p.variant
                     WHERE p.debug_id > 0"
                );
                let id = number(&case.profile, &sql) as u64;
                let case = case.cbor(|contexts, _| change.of(contexts, id));
                let what = format!("{which} {kind}");
                Case {
                    trusts: false,
                    what,
                    ..case
                }
            }
        }
    }
}

/// Returns the number of bytes that may be wrong, as a message says.
fn bytes(messages: &str) -> Option<i64> {
    let (_, rest) = messages.split_once("could move up to ")?;
    let digits = rest.split(" bytes").next()?.replace(',', "");
    Some(digits.parse().expect("bytes"))
}

fn run(case: &Case, limit: i64, more: &str) -> Run {
    case.run(&format!("{SOLVE} --mem-per-tile={limit} {more}"))
}

const SOLVE: &str = "--solve --num-ipus=4 --format=json";

#[test]
fn damage_is_a_warning_where_its_bytes_cannot_turn_the_verdict() {
    let damages = damages();
    let pairs: Vec<_> = pairs(&ONE_IPU_FIXTURES, &damages, 25).collect();
    let verdicts = each(&pairs, |&(&name, &damage)| {
        let whole = Case::loose_of(name);
        let tile = number(&whole.profile, "SELECT bytes_per_tile FROM target_info");
        let needs = whole.run(SOLVE).peak();
        // Three times what is needed is more than any damage here could move.
        let limits = [tile, needs, needs - 1, needs * 3];
        let expected = limits.map(|limit| run(&whole, limit, "").code);
        let case = damage.of(whole);
        let limits = limits.into_iter().zip(expected);
        let verdicts = limits.map(|(limit, code)| check(damage, &case, limit, code));
        verdicts.collect::<Vec<bool>>()
    });
    let verdicts = verdicts.concat();
    let are_mixed = verdicts.contains(&true) && verdicts.contains(&false);
    assert!(are_mixed, "{verdicts:?}");
}

/// Runs the damaged files, and checks that the verdict is the expected one, or is refused, as the
/// bytes in the message require. Returns whether there is a verdict.
fn check(damage: Damage, case: &Case, limit: i64, code: i32) -> bool {
    let accept = "--allow-incomplete";
    let (found, accepted) = (run(case, limit, ""), run(case, limit, accept));
    let moved = bytes(&found.err).unwrap_or_else(|| panic!("{damage:?}: {found:?}"));
    let free = limit - accepted.peak();
    let turns = match free {
        ..0 => moved >= -free,
        _ => moved > free,
    };
    if turns {
        found.refuses(3, &[accept]);
        let error = found.err.lines().last().expect("an error");
        assert_eq!(bytes(error), Some(moved), "{error}");
    } else {
        found.exits(code).says("but the verdict is the same");
    }
    println!("{damage:?}, {limit} bytes a tile: {moved} could move, {free} free");
    !turns
}
