//! What the script of the page needs to give numbers under the pointer.

use crate::escape::json_in_script;
use crate::model::PseudoLayers;
use crate::report::Band;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

/// All charts of a page that are read at a step or a tile.
#[derive(Debug, Default, Serialize)]
pub(super) struct Charts {
    charts: Vec<Chart>,
    /// Layer, first and last step.
    bands: Vec<(String, u32, u32)>,
}

/// One chart.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// What runs to the right: `step` or `tile`.
    pub(super) what: &'static str,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Where the entries of the series begin to hold, ascending.
    pub(super) at: Vec<u32>,
    /// Bytes that are the same everywhere.
    pub(super) fixed: Vec<(&'static str, u64)>,
    pub(super) series: Vec<(&'static str, Vec<u64>)>,
    /// Do all of them together make the height?
    pub(super) adds: bool,
    /// Do layers have bands in it?
    pub(super) banded: bool,
}

impl Charts {
    pub(super) fn new(bands: &[Band], pseudo_layers: PseudoLayers) -> Self {
        let band = |band: &Band| (pseudo_layers.shown(&band.layer), band.from, band.to);
        Self {
            charts: Vec::new(),
            bands: bands.iter().map(band).collect(),
        }
    }

    /// Adds a chart, and gives the number by which its drawing names it.
    pub(super) fn add(&mut self, chart: Chart) -> usize {
        self.charts.push(chart);
        self.charts.len() - 1
    }

    /// What the script reads.
    pub(super) fn json(&self) -> String {
        for_script(self)
    }
}

/// Data for the script of the page.
pub(super) fn for_script(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("numbers and texts have a form in JSON");
    json_in_script(json)
}

/// What a chart needs, for the script; nothing where there is none.
pub(super) fn data_element(id: &str, json: Option<String>) -> Markup {
    html! {
        @if let Some(json) = json {
            script type="application/json" id=(id) { (PreEscaped(json)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_script_and_all_reads_back() {
        let name = "</script><!--\u{2028}&\"\\";
        let band = Band {
            layer: Some(name.into()),
            from: 0,
            to: 1,
        };
        let json = Charts::new(&[band], PseudoLayers::InAndOut).json();
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["bands"][0][0], crate::report::printable(name));
    }
}
