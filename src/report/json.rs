//! Writes the stages of a split, and the whole report, as JSON.

use super::{
    Report, Split,
    emit::{Configuration, EmitForm, MODEL, emit},
    sections::{SectionData, for_page},
};
use crate::{escape::json, memory::Parts, model::LayerNames};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// One pipeline stage in the JSON output of `--solve`. The fields have the names of the original
/// Python tool, so that programs that read the output of that tool still work. Some kinds of memory
/// are new.
#[derive(Serialize)]
struct SolvedStage<'a> {
    layer_from: &'a Option<String>,
    layer_to: &'a Option<String>,
    layers: &'a LayerNames,
    mem: StageBytes,
    max_tile: u32,
    peak_step: Option<u32>,
}

/// The bytes of a pipeline stage by kind of memory. `max_tile_mem` is for the stage's fullest tile,
/// and all other fields are sums over all tiles.
#[derive(Serialize)]
struct StageBytes {
    total_mem: u64,
    max_tile_mem: u64,
    #[serde(flatten)]
    parts: Parts,
}

/// Returns the JSON output of `--solve`: an array with one object for each stage of the split, with
/// the fields of the original Python tool. The text does not end with a line feed.
///
/// # Errors
/// When a value cannot be written as JSON. Stages have no such values.
pub fn stages(split: &Split) -> io::Result<String> {
    let stages: Vec<_> = (split.stages.iter())
        .map(|stage| SolvedStage {
            layer_from: &stage.layer_from,
            layer_to: &stage.layer_to,
            layers: &stage.layers,
            mem: StageBytes {
                total_mem: stage.total,
                max_tile_mem: stage.fullest_tile.bytes,
                parts: stage.parts,
            },
            max_tile: stage.fullest_tile.tile,
            peak_step: stage.fullest_tile.peak_step,
        })
        .collect();
    Ok(json(serde_json::to_string_pretty(&stages)?))
}

/// The JSON document of a report: the data, and the sentences, tables and configurations that a
/// page shows to people. Programs can ignore these texts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Report"))]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// The heading of the report, which says whether the model fits.
    #[cfg_attr(test, schemars(default))]
    heading: String,
    /// The sections of the report as people read them: sentences and tables.
    #[cfg_attr(test, schemars(default))]
    sections: Vec<SectionData>,
    /// The split in every form of `--emit`. The form of the profile's framework comes first.
    /// Empty without a split.
    #[cfg_attr(test, schemars(default))]
    configuration: Vec<Configuration>,
}

/// Returns the split as configuration code in all forms of `--emit`. The form of the profile's
/// framework comes first. The list is empty if the report has no split.
fn configurations(report: &Report) -> Vec<Configuration> {
    if report.split.is_none() {
        return Vec::new();
    }
    // The reader of an HTML page can move cuts, so the page has the lines of the configuration for
    // every possible split. If stages come from several profiles, these lines are left out, because
    // the available memory proportion of a stage would depend on the cuts.
    let most_stages = (report.what_if.as_ref())
        .filter(|tried| tried.profiles.len() == 1)
        .map(|tried| tried.max_stages as usize);
    let own = EmitForm::of_report(report);
    let mut forms = EmitForm::value_variants().to_vec();
    forms.sort_by_key(|&form| Some(form) != own);
    forms
        .into_iter()
        .map(|form| emit(form, report, MODEL, most_stages))
        .collect()
}

/// Returns the whole report as a JSON document with line breaks. The HTML page contains the same
/// document. The page needs no line breaks, but a second layout would double the compiled code that
/// serializes a report. The text does not end with a line feed.
///
/// # Errors
/// When a value cannot be written as JSON. Reports have no such values.
pub fn text(report: &Report) -> io::Result<String> {
    let document = Document {
        report,
        heading: report.heading(),
        sections: for_page(report),
        configuration: configurations(report),
    };
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Layout::default());
    document.serialize(&mut serializer)?;
    String::from_utf8(bytes).map(json).map_err(io::Error::other)
}

/// A JSON layout that puts each field of an object on a line of its own, down to the third level of
/// nested objects. Deeper objects and all lists stay on one line, since some lists have thousands
/// of numbers.
#[derive(Default)]
struct Layout {
    depth: usize,
    /// Whether the current object has any fields. If it has none, its closing brace stays on the
    /// line of its opening brace.
    is_filled: bool,
}

impl Layout {
    /// The deepest level of nested JSON objects whose fields have a line each.
    const DEEPEST: usize = 3;

    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{}", "  ".repeat(self.depth))
    }
}

impl Formatter for Layout {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.is_filled = false;
        out.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.is_filled = true;
        if self.depth > Self::DEEPEST {
            return self.begin_array_value(out, first);
        }
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.is_filled && self.depth < Self::DEEPEST {
            self.line(out)?;
        }
        self.is_filled = true;
        out.write_all(b"}")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::report;
    use std::fs;

    /// Fails if the committed JSON schema is not the schema of the report's types. If the
    /// environment variable `BLESS` is 1, the test writes the schema first.
    #[test]
    fn the_json_schema_is_that_of_the_code() {
        let schema = schemars::schema_for!(Document<'static>);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/report-v1.schema.json");
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            fs::write(path, &text).unwrap();
        }
        let committed = fs::read_to_string(path).unwrap();
        assert!(committed == text, "BLESS=1 cargo test --lib json_schema");
    }

    #[test]
    fn an_object_for_each_stage() {
        let text = stages(&report().split.unwrap()).unwrap();
        let stages: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "layer_from": null,
            "layer_to": "0",
            "layers": [null, "0"],
            "mem": {
                "total_mem": 600_424, "max_tile_mem": 600_024, "variables": 600_400,
                "vertex_code": 0, "vertex_state": 0, "exchange_code": 0, "control_code": 24,
                "overhead": 0, "gaps": 0,
            },
            "max_tile": 0,
            "peak_step": 3,
        });
        assert_eq!(stages[0], expected);
    }

    #[test]
    fn objects_break_lines_and_lists_do_not() {
        let deep = serde_json::json!({"f": 3, "g": [{"h": 4}]});
        let value = serde_json::json!({"a": [1, 2, {"b": {}, "c": []}], "d": [{}], "e": {"i": {"j": deep}}});
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut out, Layout::default());
        value.serialize(&mut serializer).unwrap();
        let expected = "\
{
  \"a\": [1, 2, {
    \"b\": {},
    \"c\": []
  }],
  \"d\": [{}],
  \"e\": {
    \"i\": {
      \"j\": {\"f\": 3, \"g\": [{\"h\": 4}]}
    }
  }
}";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
