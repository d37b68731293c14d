//! `debug.cbor` as another CBOR reader reads it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ciborium::Value;
use tempfile::TempDir;

use super::{cases, generate, number, open, rows};

/// Returns the fields of the contexts of a case by id, and the number of names in its string table.
pub fn contexts(directory: &Path) -> (Vec<HashMap<String, Value>>, usize) {
    let file = std::fs::File::open(directory.join("debug.cbor")).unwrap();
    let document: Value = ciborium::from_reader(std::io::BufReader::new(file)).unwrap();
    let entries = document.into_map().unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|entry| entry.0.as_text().unwrap())
        .collect();
    assert_eq!(names, ["contexts", "stringTable"]);
    let strings = entries[1].1.as_array().unwrap().len();
    let list = entries.into_iter().next().unwrap().1.into_array().unwrap();
    let contexts = list.into_iter().map(|context| {
        let fields = context.into_map().unwrap().into_iter();
        fields
            .map(|(key, value)| (key.into_text().unwrap(), value))
            .collect()
    });
    (contexts.collect(), strings)
}

pub fn uint(value: Option<&Value>) -> Option<u64> {
    value.map(|value| value.as_integer().unwrap().try_into().unwrap())
}

#[test]
fn contexts_parse_and_come_before_their_parents() {
    for case in cases() {
        let directory = TempDir::new().unwrap();
        let summary = generate(directory.path(), &case);
        let (contexts, strings) = contexts(directory.path());
        assert_eq!(contexts.len(), summary.contexts, "{case:?}");
        let ids: HashSet<u64> = contexts
            .iter()
            .map(|c| uint(c.get("id")).unwrap())
            .collect();
        assert_eq!(ids.len(), contexts.len(), "{case:?}");
        let mut written = HashSet::new();
        for context in &contexts {
            if let Some(parent) = uint(context.get("parentId")) {
                assert!(
                    ids.contains(&parent) && !written.contains(&parent),
                    "{case:?}"
                );
            }
            written.insert(uint(context.get("id")).unwrap());
            assert!((uint(context.get("name")).unwrap() as usize) < strings);
        }
        let profile = open(&directory.path().join("profile.pop"));
        let used = "SELECT debug_id FROM programs UNION SELECT debug_id FROM compute_sets";
        let used = rows(&profile, used, |row| row.get::<_, i64>(0));
        assert!(
            used.iter().all(|id| ids.contains(&(*id as u64))),
            "{case:?}"
        );
        assert_eq!(
            summary.variables as i64,
            number(&profile, "SELECT count(*) FROM vars_info")
        );
        assert!(summary.shared > 0, "{case:?}");
    }
}

/// Reads a list such as `[12,13]`.
pub fn ids(context: &HashMap<String, Value>, key: &str) -> Vec<u64> {
    let text = context[key].as_text().unwrap();
    let inside = text.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    inside.split(',').map(|id| id.parse().unwrap()).collect()
}

#[test]
fn pairs_of_calls_resolve_to_operations() {
    for (nested, expected) in [(false, 3), (true, 3 + 2 * 3)] {
        let directory = TempDir::new().unwrap();
        let mut arguments = vec!["--framework", "poptorch", "--outlined", "once"];
        arguments.extend(nested.then_some("--nested"));
        generate(directory.path(), &arguments);
        let contexts = contexts(directory.path()).0;
        let operations: HashSet<u64> = contexts
            .iter()
            .filter(|context| context["layer"] == Value::from("popart"))
            .map(|context| uint(context.get("id")).unwrap())
            .collect();
        let calls = contexts
            .iter()
            .filter(|context| context.contains_key("outlinedDebugContextIds"));
        let mut found = 0;
        for call in calls {
            found += 1;
            let [outlined, replaced] =
                ["outlinedDebugContextIds", "replacedDebugContextIds"].map(|key| ids(call, key));
            assert_eq!(outlined.len(), replaced.len());
            let mut all = outlined.iter().chain(&replaced);
            assert!(all.all(|id| operations.contains(id)));
        }
        assert_eq!(found, expected);
    }
}
