//! The files of the cases.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::models::generate;
use crate::support::{contexts, copy, debug, root};
use ciborium::Value;
use rusqlite::{Connection, params};

/// Makes the files in a folder, and returns the path that the user gives.
pub type Files = Box<dyn Fn(&Path) -> PathBuf + Sync>;

/// Copies both files of a fixture.
pub fn fixture(name: &'static str) -> Files {
    changed(name, |_| {})
}

/// Copies a fixture and changes it.
pub fn changed(name: &'static str, change: impl Fn(&[PathBuf; 2]) + Sync + 'static) -> Files {
    Box::new(move |folder| {
        let files = copy(name, folder);
        change(&files);
        files[0].clone()
    })
}

/// Copies a fixture and runs SQL on the profile.
pub fn with_sql(name: &'static str, sql: &'static str) -> Files {
    changed(name, move |[profile, _]| {
        let connection = Connection::open(profile).expect("a profile");
        connection.execute_batch(sql).expect(sql);
    })
}

/// Copies a fixture and changes its contexts.
pub fn with_contexts(name: &'static str, change: fn(&mut Vec<Value>)) -> Files {
    changed(name, move |[_, debug]| {
        contexts::change(debug, |contexts, _| change(contexts));
    })
}

/// Copies a fixture with other names of operations and compute sets.
pub fn renamed(name: &'static str, rename: fn(&str) -> String) -> Files {
    changed(name, move |[profile, debug]| {
        contexts::change_texts(debug, |text| *text = rename(text));
        rename_compute_sets(profile, rename);
    })
}

fn rename_compute_sets(profile: &Path, rename: fn(&str) -> String) {
    let connection = Connection::open(profile).expect("a profile");
    let mut names = connection
        .prepare("SELECT compute_set, name FROM compute_sets")
        .expect("compute sets");
    let rows = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(i64, String)> = rows.expect("rows").map(|row| row.expect("a row")).collect();
    let sql = "UPDATE compute_sets SET name = ?2 WHERE compute_set = ?1";
    let mut update = connection.prepare(sql).expect(sql);
    for (id, name) in rows {
        update.execute(params![id, rename(&name)]).expect(sql);
    }
}

/// Copies a fixture with the contexts of another one.
pub fn with_debug_of(name: &'static str, other: &'static str) -> Files {
    changed(name, move |[_, file]| {
        fs::copy(root().join(debug(other)), file).expect("a copy");
    })
}

/// Writes a file with these bytes beside the files of a fixture.
pub fn other_file(name: &'static str, bytes: &'static [u8]) -> Files {
    Box::new(move |folder| {
        copy("poplar-mlp", folder);
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file");
        path
    })
}

/// Makes a folder with fixtures in folders below it, and with small other files.
pub fn folder(
    engines: &'static [(&'static str, &'static str)],
    others: &'static [&'static str],
) -> Files {
    Box::new(move |folder| {
        for (name, fixture) in engines {
            let engine = folder.join(name);
            fs::create_dir_all(&engine).expect("a folder");
            copy(fixture, &engine);
        }
        for name in others {
            fs::write(folder.join(name), "no profile").expect("a file");
        }
        folder.to_path_buf()
    })
}

/// Generates a model whose calls lack the pairs of contexts that say which operations they
/// replaced.
pub fn outlined(framework: &'static str) -> Files {
    Box::new(move |folder| {
        let model = "--mode inference --outlined once --layers 6 --tiles 4";
        let [profile, debug] = generate(folder, &format!("--framework {framework} {model}"));
        contexts::change(&debug, |contexts, _| {
            for context in contexts {
                contexts::remove(context, "outlinedDebugContextIds");
                contexts::remove(context, "replacedDebugContextIds");
            }
        });
        profile
    })
}

/// Writes the 25 bytes of two debug files that were found in public repositories.
pub fn empty(debug: &Path) {
    let bytes = b"\xa2\x68contexts\x9f\xff\x6bstringTable\x80";
    fs::write(debug, bytes).expect("a file");
}

/// Removes every seventh context.
pub fn drop_some(contexts: &mut Vec<Value>) {
    let id = |context: &Value| contexts::number(context, "id");
    contexts.retain(|context| id(context).is_none_or(|id| id % 7 != 0));
}

/// Marks all operations of PopART as recomputed.
pub fn recompute(all: &mut Vec<Value>) {
    for context in all {
        if contexts::field(context, "layer") == Value::from("popart") {
            let mut attributes = contexts::field(context, "attributes");
            let mut marks = attributes
                .as_map_mut()
                .map(std::mem::take)
                .unwrap_or_default();
            marks.push(("recompute".into(), "YES".into()));
            contexts::set(context, "attributes", Value::Map(marks));
        }
    }
}
