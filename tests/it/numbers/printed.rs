//! Everything that the tool prints about a model, compared with the oracle.

pub mod diagnoses;
pub mod splits;

use std::path::PathBuf;

use crate::oracle::Oracle;
use crate::oracle::layers::Rules;
use crate::oracle::memory::Parts;
use crate::support::{self, Run, cells, popliner, sections};

/// A model for the tool and the oracle.
pub struct Subject {
    /// The name in failures.
    pub name: String,
    /// Does the tool accept contexts that are not as Poplar writes them?
    pub trusts: bool,
    arguments: Vec<String>,
    pub oracle: Oracle,
}

impl Subject {
    pub fn new(name: &str, profile: PathBuf, debug: PathBuf, rules: &Rules) -> Self {
        let order = if rules.natural { "natural" } else { "steps" };
        let path = |path: &PathBuf| path.to_str().expect("a plain path").to_string();
        let arguments = vec![
            path(&profile),
            path(&debug),
            format!("--layer-name-regex={}", rules.layer_regex),
            format!("--inputs-regex-layer-0={}", rules.inputs_regex),
            format!("--layer-order={order}"),
        ];
        let root = support::root();
        let oracle = Oracle::new(&root.join(profile), &root.join(debug), rules);
        Self {
            name: name.to_string(),
            trusts: false,
            arguments,
            oracle,
        }
    }

    /// Runs the tool on the model.
    pub fn run(&self, options: &[&str]) -> Run {
        let fixed = self.arguments.iter().map(String::as_str);
        let fixed = fixed.chain(["--memory-model=classic"]);
        let fixed = fixed.chain(self.trusts.then_some("--allow-incomplete"));
        let of = self.name.clone();
        Run {
            of,
            ..popliner(fixed.chain(options.iter().copied()))
        }
    }

    /// Returns whether the contexts are too odd for a verdict.
    fn lacks_verdict(&self, run: &Run) -> bool {
        self.trusts && run.err.contains("so there is no verdict")
    }

    /// Returns the cells of the only table that an option prints.
    fn table(&self, options: &[&str], header: &str) -> Vec<Vec<String>> {
        let run = self.run(options);
        run.exits(3 * i32::from(self.lacks_verdict(&run)));
        let mut rows = cells(&run.out, '\t');
        assert_eq!(rows.remove(0).join(", "), header, "{}", self.name);
        rows
    }

    fn layer_name(&self, layer: usize) -> String {
        let name = &self.oracle.layering.names[layer];
        name.as_deref().unwrap_or("None").to_string()
    }

    pub fn operation_breakdown(&self) {
        let header = "Layer, Note, Full name, Vertex state, Vertex code, Exchange code, \
                      Control code, Variables";
        let rows = self.table(&["--operation-breakdown"], header);
        let operations = &self.oracle.operations;
        assert_eq!(rows.len(), operations.len(), "{}", self.name);
        for (index, (operation, row)) in operations.iter().zip(rows).enumerate() {
            let layering = &self.oracle.layering;
            let mut expected = vec![
                self.layer_name(layering.layer[index].unwrap_or(0)),
                layering.notes[index].clone(),
                operation.name.clone(),
            ];
            let stage = self.oracle.stage(&[index]);
            expected.extend(parts(&stage.sums()));
            let place = format!("{}, operation {index} ({})", self.name, operation.uid);
            assert_eq!(row, expected, "{place}");
        }
    }

    pub fn layer_breakdown(&self) {
        let header = "Name, Vertex state, Vertex code, Exchange code, Control code, Variables, \
                      Total (MB)";
        let rows = self.table(&["--layer-breakdown"], header);
        assert_eq!(rows.len(), self.oracle.layer_count(), "{}", self.name);
        for (layer, row) in rows.iter().enumerate() {
            let members = self.oracle.members(layer..layer + 1);
            let sums = self.oracle.stage(&members).sums();
            let mut expected = vec![self.layer_name(layer)];
            expected.extend(parts(&sums));
            assert_eq!(row[..6], expected, "{}", self.name);
            let megabytes: f64 = row[6].parse().expect("a number");
            let difference = megabytes * 1e6 - sums.total() as f64;
            assert!(difference.abs() <= 500.5, "{}: {row:?}", self.name);
        }
    }

    pub fn memory_totals(&self) {
        let header = "Tile, Always live, Not always live, Total";
        let recorded = &self.oracle.profile.recorded;
        let rows = self.table(&["--memory-totals"], header);
        let tiles = rows[1..].iter().map(|row| row[0].parse().unwrap());
        let tiles: Vec<usize> = tiles.collect();
        assert_eq!(tiles.len(), recorded.len().min(10), "{}", self.name);
        let total = |tile: &usize| recorded[*tile].total;
        assert!(tiles.is_sorted_by(|a, b| total(a) >= total(b)));
        let least = tiles.last().map(total);
        let mut hidden = (0..recorded.len()).filter(|tile| !tiles.contains(tile));
        assert!(hidden.all(|tile| Some(total(&tile)) <= least));
        self.recorded_rows(&rows, &tiles);
        let rows = self.table(&["--memory-totals", "--tiles=3,0,1-2"], header);
        self.recorded_rows(&rows, &[3, 0, 1, 2]);
    }

    /// Checks the row of the whole model, and the rows of some tiles.
    fn recorded_rows(&self, rows: &[Vec<String>], tiles: &[usize]) {
        let all = self.oracle.explaining(false);
        let whole = self.oracle.stage(&all).sums().total();
        assert_eq!(rows[0][1..], ["".into(), "".into(), whole.to_string()]);
        assert_eq!(rows.len(), tiles.len() + 1);
        for (row, &tile) in rows[1..].iter().zip(tiles) {
            let recorded = self.oracle.profile.recorded[tile];
            let expected = [
                tile as u64,
                recorded.always_live,
                recorded.not_always_live,
                recorded.total,
            ];
            let expected = expected.map(|number| number.to_string());
            assert_eq!(row[..], expected, "{}", self.name);
        }
    }

    pub fn memory_affinity(&self) {
        self.matrix("--memory-affinity", &self.oracle.affinity());
    }

    pub fn interlayer_communication(&self) {
        self.matrix("--interlayer-communication", &self.oracle.communication());
    }

    fn matrix(&self, option: &str, expected: &[Vec<u64>]) {
        let layers = 0..self.oracle.layer_count();
        let names: Vec<String> = layers.map(|layer| self.layer_name(layer)).collect();
        let rows = self.table(&[option], &format!("Layer, {}", names.join(", ")));
        assert_eq!(rows.len(), expected.len(), "{}, {option}", self.name);
        for ((row, cells), name) in rows.iter().zip(expected).zip(&names) {
            let mut expected = vec![name.clone()];
            expected.extend(cells.iter().map(u64::to_string));
            assert_eq!(*row, expected, "{}, {option}", self.name);
        }
    }

    /// Checks the counts of `-v`, and the warnings about layers.
    pub fn warnings(&self) {
        let run = self.run(&["--layer-breakdown", "-v"]);
        let layers = &self.oracle.layering.layer;
        let counts = format!(
            "{} {} of them in {} {} {}",
            counted(layers.len(), "operation"),
            layers.iter().flatten().count(),
            counted(self.oracle.layer_count() - 1, "layer"),
            counted(self.oracle.profile.steps.len(), "step"),
            counted(self.oracle.profile.tiles, "tile")
        );
        let mut lines = run.err.lines();
        assert!(lines.any(|line| line.replace(',', "") == counts), "{run:?}");
        let text = "calls code that was outlined across layers";
        let is_warning = |line: &str| line.starts_with("warning:") && line.contains(text);
        let is_outlined = run.err.lines().any(is_warning);
        assert_eq!(is_outlined, self.oracle.layering.mixed_call, "{run:?}");
    }

    /// Returns the tables of `--diagnose`.
    pub fn diagnosis(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let sections = sections(&self.run(&["--diagnose"]).exits(0).out).into_iter();
        let tables = sections.map(|(name, text)| (name, cells(&text, '\t').split_off(1)));
        tables.collect()
    }
}

/// Writes a number of things for people, without separators of thousands.
fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Returns the columns of the breakdowns.
fn parts(parts: &Parts) -> [String; 5] {
    let [vertices, exchange, control] =
        [parts.vertex_code, parts.exchange_code, parts.control_code];
    let (state, variables) = (parts.vertex_state, parts.variables);
    [state, vertices, exchange, control, variables].map(|bytes| bytes.to_string())
}
