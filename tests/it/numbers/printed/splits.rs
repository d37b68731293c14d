//! The output of `--solve`, compared with the oracle.

use std::ops::Range;

use serde_json::{Value, json};

use super::Subject;
use super::counted;
use crate::oracle::search::{Ranges, best, greedy};
use crate::support::{Run, Words};

impl Subject {
    /// Returns every range of layers. The cycles of a layer come from the report; other tests
    /// compare them with a second count (`numbers::cycle_counts`, `planted::layer_cycles`).
    pub fn ranges(&self) -> Ranges {
        let run = self.run(&["--export-json=-"]);
        let report = run.report();
        let of_layer = |layer| {
            let passes = &report["execution"]["layers"][layer]["passes"];
            let cycles = ["forward", "backward"].map(|pass| passes[pass].as_u64());
            cycles.into_iter().flatten().sum()
        };
        let cycles = (0..self.oracle.layer_count()).map(of_layer).collect();
        Ranges::of(&self.oracle, cycles)
    }

    /// Checks the integer program with a number of IPUs and a limit. Returns the bytes on the
    /// fullest tile if the model fits.
    pub fn solve(&self, ranges: &Ranges, num_ipus: usize, limit: Option<u64>) -> Option<i64> {
        let stages = best(ranges, num_ipus);
        let limit_bytes = limit.unwrap_or(self.oracle.profile.bytes_per_tile);
        let peak = stages.iter().map(|stage| ranges.peak(stage)).max().unwrap();
        let fits = peak <= limit_bytes;
        let run = self.run_solve("ilp", num_ipus, limit);
        self.stages(&run, ranges, &stages, fits);
        if self.lacks_verdict(&run) {
            return None;
        }
        self.table_of_stages(&run, ranges, &stages, limit_bytes);
        self.too_large(&run, ranges, limit_bytes);
        let missing = format!(" {} bytes over the limit", peak.saturating_sub(limit_bytes));
        let is_said = run.err.replace(',', "").contains(&missing);
        assert!(fits || is_said, "{run:?}");
        printed_peak(&run)
    }

    /// Checks the greedy search with a number of IPUs and a limit, like [`Self::solve`].
    pub fn greedy(&self, ranges: &Ranges, num_ipus: usize, limit: Option<u64>) -> Option<i64> {
        let limit_bytes = limit.unwrap_or(self.oracle.profile.bytes_per_tile);
        let found = greedy(ranges, num_ipus, limit_bytes);
        let run = self.run_solve("greedy", num_ipus, limit);
        self.stages(&run, ranges, &found.stages, found.fits);
        if self.lacks_verdict(&run) {
            return None;
        }
        self.table_of_stages(&run, ranges, &found.stages, limit_bytes);
        if !found.fits {
            self.too_large(&run, ranges, limit_bytes);
        }
        let settled = format!(
            "{} at {} of the memory of a tile and at least {}",
            if found.fits { "settled" } else { "gave up" },
            found.proportion,
            counted(found.min_layers, "layer")
        );
        printed_peak(run.says(&settled))
    }

    /// Checks both searches: the integer program is never worse than the greedy search.
    pub fn splits(&self, ranges: &Ranges, num_ipus: usize, limit: Option<u64>) {
        let best = self.solve(ranges, num_ipus, limit);
        let greedy = self.greedy(ranges, num_ipus, limit);
        if let Some(greedy) = greedy {
            let best = best.expect("it fits");
            assert!(best <= greedy, "{}, {num_ipus} IPUs", self.name);
        }
    }

    fn run_solve(&self, solver: &str, num_ipus: usize, limit: Option<u64>) -> Run {
        let mut options = format!("--solve --solver={solver} --num-ipus={num_ipus}");
        if let Some(limit) = limit {
            options += &format!(" --mem-per-tile={limit}");
        }
        self.run(&options.words())
    }

    /// Checks the stages on standard output, the verdict and the exit code.
    fn stages(&self, run: &Run, ranges: &Ranges, stages: &[Range<usize>], fits: bool) {
        let expected = stages.iter().map(|stage| self.stage(ranges, stage));
        assert_eq!(run.report(), expected.collect::<Value>(), "{}", self.name);
        if self.lacks_verdict(run) {
            run.exits(3);
            return;
        }
        let names = |stage: &Range<usize>| -> String {
            let names: Vec<String> = stage.clone().map(|layer| self.layer_name(layer)).collect();
            names.join(" ")
        };
        // The sentence shortens a stage of more than eight layers; the list above has all names.
        let whole = stages.iter().take_while(|stage| stage.len() <= 8);
        let whole: Vec<String> = whole.map(names).collect();
        let is_whole = whole.len() == stages.len();
        let end = if is_whole { " ]" } else { "" };
        let verdict = if fits { "SUCCESS" } else { "FAILURE" };
        run.says(&format!("{verdict}: [ {}{end}", whole.join(" | ")));
        run.exits(i32::from(!fits));
    }

    /// Checks the row of each stage in the table for people: its peak memory, and its share of the
    /// limit, rounded up.
    fn table_of_stages(&self, run: &Run, ranges: &Ranges, stages: &[Range<usize>], limit: u64) {
        let text = run.err.replace(',', "");
        let mut lines = text.lines().skip_while(|line| !line.starts_with(" Stage"));
        let header = lines.next();
        // A search that gave up at once has no stages.
        assert_eq!(header.is_some(), !stages.is_empty(), "{}", self.name);
        for (number, range) in stages.iter().enumerate() {
            let stage = ranges.stage(range);
            let tenths = (u128::from(stage.peak()) * 1000).div_ceil(u128::from(limit));
            let percent = format!("{}.{}", tenths / 10, tenths % 10);
            let ends = [stage.peak().to_string(), percent];
            let line = lines.next().expect("a row");
            let cells: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(cells[0], number.to_string(), "{}: {line}", self.name);
            let percent = cells.iter().position(|&cell| cell == "%").expect("one");
            assert_eq!(cells[percent - 2..percent], ends, "{}", self.name);
        }
    }

    /// Checks the positions that fit in no split.
    fn too_large(&self, run: &Run, ranges: &Ranges, limit: u64) {
        let text = run.err.replace(',', "");
        let lines = text.lines();
        let found = lines.filter(|line| line.contains(" by itself needs "));
        let mut expected = Vec::new();
        for layer in 0..self.oracle.layer_count() {
            let stage = ranges.stage(&(layer..layer + 1));
            let (peak, fullest) = (stage.peak(), stage.fullest());
            if peak > limit {
                let name = match layer {
                    0 => "None (the operations without a layer)".to_string(),
                    layer => format!("Layer {}", self.layer_name(layer)),
                };
                expected.push(format!(
                    "  {name} by itself needs {peak} bytes on tile {fullest} {} over the limit",
                    peak - limit
                ));
            }
        }
        assert_eq!(found.collect::<Vec<_>>(), expected, "{}", self.name);
    }

    fn stage(&self, ranges: &Ranges, range: &Range<usize>) -> Value {
        let names = &self.oracle.layering.names[range.clone()];
        let stage = ranges.stage(range);
        let sums = stage.sums();
        json!({
            "layer_from": names[0],
            "layer_to": names[names.len() - 1],
            "layers": names,
            "mem": {
                "total_mem": sums.total(),
                "max_tile_mem": stage.peak(),
                "variables": sums.variables,
                "vertex_code": sums.vertex_code,
                "vertex_state": sums.vertex_state,
                "exchange_code": sums.exchange_code,
                "control_code": sums.control_code,
                "overhead": 0,
                "gaps": 0,
            },
            "max_tile": stage.fullest(),
            "peak_step": stage.peak_steps[stage.fullest()],
        })
    }
}

/// Returns the bytes on the fullest tile of the printed stages if the model fits.
fn printed_peak(run: &Run) -> Option<i64> {
    (run.code == 0).then(|| run.peak())
}
