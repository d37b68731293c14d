//! Runs the steps that make the files of a test case.

use std::path::Path;

use crate::support::models::generate;
use crate::support::{Words, contexts, copy, finish, piped, root, run_sql};
use ciborium::Value;
use rusqlite::Connection;

/// Runs one step in a folder.
pub fn make(folder: &Path, step: &str) {
    let (verb, rest) = step.split_once(' ').expect("a step");
    match (verb, &rest.words()[..]) {
        ("$", _) => {
            let mut shell = piped("sh");
            shell.args(["-c", rest]).current_dir(folder);
            finish(shell.env("FIXTURES", root().join("fixtures"))).exits(0);
        }
        ("copy", [fixture, below @ ..]) => {
            let to = folder.join(below.concat());
            std::fs::create_dir_all(&to).expect("a folder");
            copy(fixture, &to);
        }
        ("sql", [file, sql @ ..]) => {
            run_sql(&folder.join(file), &sql.join(" "));
        }
        ("contexts", ["drop_some"]) => change_contexts(folder, drop_some),
        ("contexts", ["recompute"]) => change_contexts(folder, recompute),
        ("renamed", names) => names
            .chunks(2)
            .for_each(|pair| rename(folder, pair[0], pair[1])),
        ("outlined", [framework]) => outlined(folder, framework),
        _ => panic!("{step}"),
    }
}

fn change_contexts(folder: &Path, change: impl Fn(&mut Vec<Value>)) {
    contexts::change(&folder.join("debug.cbor"), |contexts, _| change(contexts));
}

/// Changes the names of operations and compute sets.
fn rename(folder: &Path, from: &str, to: &str) {
    let replace = |text: &mut String| *text = text.replace(from, to);
    contexts::change_texts(&folder.join("debug.cbor"), replace);
    let profile = Connection::open(folder.join("profile.pop")).expect("a profile");
    let sql = "UPDATE compute_sets SET name = replace(name, ?1, ?2)";
    profile.execute(sql, [from, to]).expect(sql);
}

/// Generates a model whose calls lack the pairs of contexts that say which operations they
/// replaced.
fn outlined(folder: &Path, framework: &str) {
    let model = "--mode inference --outlined once --layers 6 --tiles 4";
    generate(folder, &format!("--framework {framework} {model}"));
    change_contexts(folder, |contexts| {
        for context in contexts {
            contexts::remove(context, "outlinedDebugContextIds");
            contexts::remove(context, "replacedDebugContextIds");
        }
    });
}

/// Removes every seventh context.
fn drop_some(contexts: &mut Vec<Value>) {
    let id = |context: &Value| contexts::number(context, "id");
    contexts.retain(|context| id(context).is_none_or(|id| id % 7 != 0));
}

/// Marks all operations of PopART as recomputed.
fn recompute(all: &mut Vec<Value>) {
    for context in all {
        if contexts::field(context, "layer") == Value::from("popart") {
            let mut attributes = contexts::field(context, "attributes");
            let attributes = attributes.as_map_mut().map(std::mem::take);
            let mut marks = attributes.unwrap_or_default();
            marks.push(("recompute".into(), "YES".into()));
            contexts::set(context, "attributes", Value::Map(marks));
        }
    }
}
