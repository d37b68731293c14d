//! Further compilations that the generator makes of a model: the properties that all of them share,
//! and how bytes and cycles change with the setting.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{SIZE, Words, each};

const MODELS: [&str; 5] = [
    "--mode training --optimiser adam-each --masks --constants --execution",
    "--framework poptorch --mode training --outlined per-call --outline-backward",
    "--framework tensorflow --mode training --outlined once --steps 900 --contexts 9000",
    "--framework poplar --mode training --overflow",
    "--framework poptorch --mode training --graph crates/synthesize/graphs/bert.json.gz",
];

/// The last words of names of temporaries, and of other data of samples.
const DATA: &str = "work rearranged message edge out in result argument input";

struct Compiled {
    /// By name of a variable: its bytes, and the number of its lowered variables.
    tensors: BTreeMap<String, [u64; 2]>,
    /// By operation: its name and places.
    names: Vec<String>,
    contexts: Vec<u32>,
    cycles: Vec<u64>,
}

fn compiled(options: &str) -> Compiled {
    let folder = TempDir::new().unwrap();
    let written = synthesize::write(folder.path(), options.words()).unwrap();
    let file = Connection::open(folder.path().join("profile.pop")).unwrap();
    let sql = "SELECT string, sum(size_bytes), count(*) FROM vars_info v
               JOIN vars_string_table s ON s.id = name_base_id WHERE string LIKE '%#' GROUP BY 1";
    let mut statement = file.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?])));
    let ops = written.places().operations;
    Compiled {
        tensors: rows.unwrap().map(Result::unwrap).collect(),
        names: ops
            .iter()
            .map(|op| format!("{}{:?}", op.name, op.home))
            .collect(),
        contexts: ops.iter().map(|op| op.context).collect(),
        cycles: written.cycles().unwrap().positions,
    }
}

fn number_of_data(name: &str) -> Option<usize> {
    let mut words = name.trim_end_matches('#').rsplit(['/', '_']);
    let word = words.find(|word| word.parse::<u32>().is_err())?;
    DATA.split(' ').position(|data| data == word)
}

/// With four samples, data have four times their bytes, and all else stays. With a smaller
/// proportion, the temporaries of some products shrink, and those of others stay as all else does.
#[test]
fn other_compilations_are_of_the_same_model() {
    each(&MODELS, |model| {
        let all = [
            "--batch 4",
            "",
            "--proportion 0.2",
            "--proportion 0.05 --moved",
        ];
        let all = all.map(|options| compiled(&format!("{SIZE} {model} {options}")));
        for (at, pair) in all.windows(2).enumerate() {
            let [more, less] = [&pair[0], &pair[1]];
            assert!(more.tensors.keys().eq(less.tensors.keys()) && more.names == less.names);
            let mut ids = more.contexts.iter().zip(&less.contexts);
            assert!(ids.all(|(id, other)| id != other), "{model}");
            let mut products = [0; 2];
            let tensors = more.tensors.iter().zip(less.tensors.values());
            for ((name, &[more, count]), &[less, _]) in tensors {
                let is_right = match (at, number_of_data(name)) {
                    // A variable is rounded to whole words.
                    (0, Some(_)) => more.abs_diff(4 * less) <= 16 * count,
                    (1.., Some(0..4)) => less <= more,
                    _ => less == more,
                };
                assert!(is_right, "{model}, {name}: {less} {more}");
                if number_of_data(name) == Some(0) && name.to_lowercase().contains("matmul") {
                    products[usize::from(less < more)] += 1;
                }
            }
            let is_batch = at == 0;
            assert!(is_batch || !products.contains(&0), "{model}: {products:?}");
            let [slow, fast] = if is_batch { [more, less] } else { [less, more] };
            let mut cycles = slow.cycles.iter().zip(&fast.cycles);
            assert!(cycles.all(|(slow, fast)| slow >= fast) && slow.cycles != fast.cycles);
        }
    });
}
