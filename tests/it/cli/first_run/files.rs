//! The files of the cases.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::models::generate;
use crate::support::{change_texts, copy, debug, root};
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
    changed(name, move |[_, debug]| change_contexts(debug, change))
}

fn change_contexts(debug: &Path, change: fn(&mut Vec<Value>)) {
    change_document(debug, |document| {
        let entries = document.as_map_mut().expect("two entries");
        change(entries[0].1.as_array_mut().expect("contexts"));
    });
}

fn change_document(debug: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = fs::read(debug).expect("a file");
    let mut document: Value = ciborium::from_reader(&*bytes).expect("CBOR");
    change(&mut document);
    let mut bytes = Vec::new();
    ciborium::into_writer(&document, &mut bytes).expect("CBOR");
    fs::write(debug, bytes).expect("a file");
}

/// Copies a fixture with other names of operations and compute sets.
pub fn renamed(name: &'static str, rename: fn(&str) -> String) -> Files {
    changed(name, move |[profile, debug]| {
        change_document(debug, |document| {
            change_texts(document, &mut |text| *text = rename(text));
        });
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
        let options = [
            ["--framework", framework],
            ["--mode", "inference"],
            ["--outlined", "once"],
            ["--layers", "6"],
            ["--tiles", "4"],
        ];
        let options: Vec<String> = options.concat().iter().map(|&text| text.into()).collect();
        let [profile, debug] = generate(folder, &options);
        change_contexts(&debug, |contexts| {
            for context in contexts {
                let fields = context.as_map_mut().expect("a map");
                let is_pair = |key: &Value| {
                    let key = key.as_text().unwrap_or("");
                    key == "outlinedDebugContextIds" || key == "replacedDebugContextIds"
                };
                fields.retain(|(key, _)| !is_pair(key));
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
    let id = |context: &Value| {
        let fields = context.as_map().expect("a map");
        let id = fields.iter().find(|(name, _)| name.as_text() == Some("id"));
        id.and_then(|(_, id)| id.as_integer()).map(i128::from)
    };
    contexts.retain(|context| id(context).is_none_or(|id| id % 7 != 0));
}

/// Marks all operations of PopART as recomputed.
pub fn recompute(contexts: &mut Vec<Value>) {
    for context in contexts {
        let fields = context.as_map_mut().expect("a map");
        let is_popart = |(key, value): &(Value, Value)| {
            key.as_text() == Some("layer") && value.as_text() == Some("popart")
        };
        if fields.iter().any(is_popart) {
            let mark = || (Value::from("recompute"), Value::from("YES"));
            let attributes = fields.iter_mut();
            let mut attributes = attributes.filter(|(key, _)| key.as_text() == Some("attributes"));
            match attributes.next().and_then(|(_, value)| value.as_map_mut()) {
                Some(attributes) => attributes.push(mark()),
                None => fields.push(("attributes".into(), Value::Map(vec![mark()]))),
            }
        }
    }
}
