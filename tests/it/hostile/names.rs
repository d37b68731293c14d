//! Hostile names in every output, each read back with a parser of the output's language.

use std::collections::BTreeSet;
use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::cases::{Case, new_folder};
use crate::support::{
    Run, Words, cells, contexts, piped, popliner, python, sections, skip, try_finish,
};

/// Names that try to end a text, begin a key, be computed, control a terminal, or imitate a result.
const NAMES: [&str; 6] = [
    "</script><img src=x onerror=alert(1)>'\"\\",
    "a\u{2028}evil: [1]\u{2029}b: 2\u{85}c: 3",
    "=cmd|' /C calc'!A0\t=1",
    "\u{1b}]0;t\u{7}\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200b}\u{61c}\u{feff}\u{ffff}\u{e0041}",
    "x\r\n# solve\n[]\n::error::y",
    "|`*_[x](javascript:y) @all $(touch z) {{1}} \u{1f680}é",
];

/// Characters of these names that must not be printed. Line ends are allowed between results.
const OBEYED: &str = "\u{2028}\u{2029}\u{85}\u{1b}\u{7}\u{9b}\u{7f}\u{202e}\u{2066}\u{200b}\u{61c}\
                      \u{feff}\u{ffff}\u{e0041}\r";

fn is_obeyed(c: char) -> bool {
    OBEYED.contains(c)
}

/// Matches names from [`renamed`].
const REGEX: &str = "--layer-name-regex=(?s)«(.+?)»";

/// Returns a fixture in which names that match a pattern, such as `Layer0`, become a hostile name
/// and a number.
fn renamed(fixture: &str, pattern: &str, name: &str) -> Case {
    let pattern = regex::Regex::new(pattern).unwrap();
    let renamed = |text: &str| {
        let renamed = |found: &regex::Captures<'_>| format!("«{name}{}»", &found[1]);
        pattern.replace_all(text, renamed).into_owned()
    };
    let case = Case::of(fixture);
    let connection = Connection::open(&case.profile).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for table in ["compute_sets", "programs", "unlowered_vars"] {
        let sql = format!("SELECT rowid, name FROM {table} WHERE name IS NOT NULL");
        let mut names = connection.prepare(&sql).unwrap();
        let names = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let names: Result<Vec<(i64, String)>, _> = names.unwrap().collect();
        for (row, name) in names.unwrap() {
            let sql = format!("UPDATE {table} SET name = ?2 WHERE rowid = ?1");
            connection.execute(&sql, (row, renamed(&name))).unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    drop(connection);
    contexts::change_texts(&case.debug, |text| *text = renamed(text));
    Case {
        trusts: true,
        ..case
    }
}

const LAYER: &str = "Layer([0-9]+)";

/// Options that print everything about a model, in one run, beside [`REGEX`].
const ALL: &str = "
    -vv --num-ipus=3 --solve --sweep --explain --list-layers --layer-breakdown --operation-breakdown
    --memory-totals --memory-affinity --interlayer-communication --diagnose
    --emit=examples --emit=popart --emit=poptorch --emit=keras --emit=pipeline-splits
    --emit=mmcv --export-json=- --export-markdown=- --export-html=- --format=csv";

fn run(case: &Case, options: &(impl Words + ?Sized)) -> Run {
    let run = case.run(&[&[REGEX], &options.words()[..]].concat());
    assert!(run.code < 2, "{}", run.err);
    plain(run)
}

/// Checks that no control characters are printed. Tabs are only allowed between the cells of a
/// table.
fn plain(run: Run) -> Run {
    let is_table = run.of.contains("--format=tsv");
    let obeyed = |c: char| is_obeyed(c) || c == '\t' && !is_table;
    for text in [&run.out, &run.err] {
        let line = text.lines().find(|line| line.contains(obeyed));
        assert_eq!(line, None);
    }
    run
}

/// Returns a section of standard output, which must occur once.
fn section<'a>(all: &'a [(String, String)], name: &str) -> &'a str {
    let mut named = all.iter().filter(|(layer, _)| layer == name);
    let (Some((_, text)), None) = (named.next(), named.next()) else {
        panic!("{name} is not there once");
    };
    text
}

/// Escapes the control characters of a name, as in texts for people.
fn written_out(name: &str) -> String {
    let written = |c: char| match is_obeyed(c) || "\t\n".contains(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    name.chars().map(written).collect()
}

/// Writes a name as a cell of a table: as text, not as a formula.
fn as_cell(name: &str) -> String {
    let sign = if name.starts_with('=') { "'" } else { "" };
    format!("{sign}{}", written_out(name))
}

/// Returns the names of all five layers of the fixture.
fn layers(name: &str) -> Vec<String> {
    (0..5).map(|number| format!("{name}{number}")).collect()
}

fn check_tables(sections: &[(String, String)], delimiter: char, name: &str) {
    let expected: BTreeSet<String> = layers(name).iter().map(|layer| as_cell(layer)).collect();
    for table in ["layer-breakdown", "list-layers", "memory-affinity"] {
        let text = section(sections, table);
        let rows = cells(text, delimiter);
        assert_eq!(rows.len(), text.lines().count(), "{text}");
        let first: BTreeSet<String> = rows.into_iter().map(|mut row| row.remove(0)).collect();
        assert!(first.is_superset(&expected), "{first:?}");
    }
}

/// Checks all JSON, and returns the layers of each stage.
fn check_json(sections: &[(String, String)], name: &str) -> Vec<Vec<String>> {
    let report: Value = serde_json::from_str(section(sections, "export-json")).expect("JSON");
    let names = |layers: &Value| {
        let mut names = strings(layers);
        names.retain(|layer| layer != "Out");
        names
    };
    let stages = report["split"]["stages"].as_array().unwrap().iter();
    let stages: Vec<Vec<String>> = stages.map(|stage| names(&stage["layers"])).collect();
    assert_eq!(stages.concat(), layers(name));
    let named = report["layers"].as_array().unwrap().iter();
    let named = named.map(|layer| layer["name"].clone()).collect();
    assert_eq!(names(&named), layers(name));
    stages
}

/// Returns the expected contents of both forms of YAML.
fn yaml(stages: &[Vec<String>]) -> Value {
    let counts: Vec<usize> = stages.iter().map(Vec::len).collect();
    let splits = stages[1..].iter().map(|stage| format!("<{}>", stage[0]));
    let splits: Vec<String> = splits.collect();
    let ipus = stages.len();
    json!([
        { "layers_per_ipu": counts, "ipus_per_replica": ipus, "device_iterations": ipus },
        { "pipeline_splits": splits }
    ])
}

/// Reads all forms except JSON and tables with Python.
fn read_by_python(sections: &[(String, String)]) -> Option<Value> {
    let of = |name| section(sections, name);
    let input = json!({
        "keras": of("emit-keras"),
        "python": [of("emit-popart"), of("emit-poptorch"), of("emit-mmcv")],
        "yaml": [of("emit-examples"), of("emit-pipeline-splits")],
        "html": of("export-html"),
        "markdown": of("export-markdown"),
    });
    let found = python(include_str!("names.py"), &input.to_string())?;
    Some(serde_json::from_str(&found).expect("JSON"))
}

/// Compares the values that Python read with its values for plain layer names.
fn check_python(found: &Value, plain: &Value, stages: &[Vec<String>]) {
    let layers = stages.concat();
    let begun = stages[1..].iter().map(|stage| format!("<{}>", stage[0]));
    assert_eq!(found["keras"], json!(Vec::from_iter(begun)));
    assert_eq!(found["python"], plain["python"]);
    // If a name cannot be typed, command lines with it are left out, and nothing is added.
    let elements = |found: &Value| BTreeSet::from_iter(strings(&found["elements"]));
    assert!(elements(found).is_subset(&elements(plain)), "{found}");
    let in_page = strings(&found["page"]);
    for layer in &layers {
        assert!(in_page.contains(layer), "{layer}");
    }
    let written = written_out(&layers[0]);
    let codes = strings(&found["markdown"]);
    assert!(codes.iter().any(|code| code.contains(&written)), "{found}");
}

#[test]
fn every_language_reads_them_back() {
    let harmless = run(&renamed("poplar-mlp", LAYER, "plain"), ALL);
    let harmless = sections(&harmless.out);
    let read_harmless = read_by_python(&harmless);
    for name in NAMES {
        let case = renamed("poplar-mlp", LAYER, name);
        let csv = sections(&run(&case, ALL).out);
        let names = |all: &[(String, String)]| all.iter().map(|layer| layer.0.clone()).collect();
        let [expected, found]: [Vec<String>; 2] = [names(&harmless), names(&csv)];
        assert_eq!(found, expected, "no name is a section");
        check_tables(&csv, ',', name);
        let stages = check_json(&csv, name);
        let of_yaml: [Value; 2] = ["emit-examples", "emit-pipeline-splits"].map(|form| {
            let read = serde_yaml_ng::from_str(section(&csv, form));
            read.expect("YAML")
        });
        assert_eq!(Value::from(of_yaml.to_vec()), yaml(&stages));
        if let (Some(plain), Some(found)) = (&read_harmless, read_by_python(&csv)) {
            check_python(&found, plain, &stages);
        }
        let tables = "--layer-breakdown --list-layers --memory-affinity --format=tsv";
        let tsv = run(&case, tables);
        check_tables(&sections(&tsv.out), '\t', name);
    }
}

/// Shells read back the words of command lines that messages have.
#[test]
fn shells_read_them_back() {
    for name in NAMES {
        let case = renamed("tied-weights", "Embedding_Dict()", name);
        let options = "--solve --num-ipus=4 --out-on=last --export-json=-";
        let report = case.run(options).report();
        let weight = report["tied_weights"][0]["weight"].as_str().unwrap();
        assert!(weight.contains(name), "{weight:?}");
        let all = strings(&report);
        let message = all.iter().find(|line| line.contains("--untie ")).unwrap();
        let (_, word) = message.rsplit_once("--untie ").unwrap();
        let word = word.strip_suffix(" says otherwise").unwrap();
        let script = format!("printf %s {word}");
        let Some(read) = try_finish(piped("bash").args(["-c", &script])) else {
            skip("there is no bash");
            return;
        };
        assert_eq!(read.out, weight, "{word}");
    }
}

/// Hostile names in earlier reports, saved models and paths. `report::names` compares compilations
/// with predictions.
#[test]
fn files_read_them_back() {
    for name in NAMES {
        let folder = new_folder();
        let folder = folder.path().join(name.replace('/', ""));
        fs::create_dir(&folder).unwrap();
        let option = |option: &str, file: &str| format!("{option}={}", folder.join(file).display());
        let case = renamed("training-pipeline", LAYER, name);
        let split = "--layers-per-ipu=1,2,2,1";
        let export = option("--export-json", "report.json");
        run(&case, &[split, &export, &option("--save-to-file", "saved")]);
        let compare = option("--compare", "report.json");
        run(&case, &[split, "-v", "--format=csv", &compare]);
        let saved = folder.join("saved");
        let saved = saved.to_str().unwrap();
        let loaded = popliner(["--load-from-file", saved, REGEX, "--export-json=-"]);
        let report = plain(loaded).report();
        assert!(strings(&report).contains(&format!("{name}5")));
    }
}

/// Returns all texts in a document.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}
