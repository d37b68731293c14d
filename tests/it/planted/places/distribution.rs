//! Distributions of errors, by feature of the model.

use std::collections::BTreeMap;

/// Errors by label, each relative to the truth.
#[derive(Default)]
pub struct Distribution(BTreeMap<String, Vec<f64>>);

impl Distribution {
    /// Adds an error of a model with these labels.
    pub fn add(&mut self, labels: &[String], error: f64) {
        for label in labels.iter().map(String::as_str).chain(["all"]) {
            self.0.entry(label.to_string()).or_default().push(error);
        }
    }

    /// Returns the error that `part` of 1,000 errors do not exceed.
    pub fn per_mille(&self, label: &str, part: usize) -> f64 {
        let mut errors = self.0.get(label).cloned().unwrap_or_default();
        errors.sort_unstable_by(f64::total_cmp);
        let at = (errors.len() * part / 1000).min(errors.len().saturating_sub(1));
        errors.get(at).copied().unwrap_or(0.0)
    }

    /// Prints a table of all labels, with errors in per cent.
    pub fn print(&self, title: &str) {
        let head = ["count", "median", "95 %", "99 %", "99.9 %", "worst"];
        let head = head.map(|word| format!("{word:>8}")).join(" ");
        println!("\n{title}\n{:34} {head}", "");
        for label in self.0.keys() {
            let values = [500, 950, 990, 999, 1000].map(|part| 100.0 * self.per_mille(label, part));
            let values = values.map(|value| format!("{value:8.2}")).join(" ");
            println!("{label:34} {:8} {values}", self.0[label].len());
        }
    }
}

/// Prints the worst of these errors, each with its place.
pub fn print_worst(title: &str, errors: impl Iterator<Item = (f64, String)>) {
    println!("\nworst: {title}");
    let mut errors: Vec<(f64, String)> = errors.filter(|error| error.0 > 0.0).collect();
    errors.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (error, place) in errors.iter().take(12) {
        println!("{:8.2} % {place}", 100.0 * error);
    }
}
