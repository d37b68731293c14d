//! Distributions of errors, by feature of the model.

use std::collections::BTreeMap;

/// Errors by label, each relative to the truth.
#[derive(Default)]
pub struct Distribution {
    errors: BTreeMap<String, Vec<f64>>,
    /// All errors with their places.
    places: Vec<(f64, String)>,
}

impl Distribution {
    /// Adds an error in a place with these labels.
    pub fn add(&mut self, labels: &[String], error: f64, place: &str) {
        for label in labels.iter().map(String::as_str).chain(["all"]) {
            let errors = self.errors.entry(label.to_string());
            errors.or_default().push(error);
        }
        self.places.push((error, place.to_string()));
    }

    /// Returns the error that `part` of 1,000 errors do not exceed.
    pub fn per_mille(&self, label: &str, part: usize) -> f64 {
        let mut errors = self.errors.get(label).cloned().unwrap_or_default();
        errors.sort_unstable_by(f64::total_cmp);
        let at = (errors.len() * part / 1000).min(errors.len().saturating_sub(1));
        errors.get(at).copied().unwrap_or(0.0)
    }

    /// Prints a table of all labels, with errors in per cent, and the worst places.
    pub fn print(&self, title: &str) {
        let head = ["count", "median", "95 %", "99 %", "99.9 %", "worst"];
        let head = head.map(|word| format!("{word:>8}")).join(" ");
        println!("\n{title}\n{:34} {head}", "");
        for label in self.errors.keys() {
            let values = [500, 950, 990, 999, 1000].map(|part| 100.0 * self.per_mille(label, part));
            let values = values.map(|value| format!("{value:8.2}")).join(" ");
            println!("{label:34} {:8} {values}", self.errors[label].len());
        }
        let mut places: Vec<_> = self.places.iter().filter(|place| place.0 > 0.0).collect();
        places.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (error, place) in places.iter().take(12) {
            println!("{:8.2} % {place}", 100.0 * error);
        }
    }
}
