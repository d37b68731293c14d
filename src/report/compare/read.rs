//! Reads a report from its JSON form.

use crate::message::GIVE_REPORT;
use crate::report::{Report, VERSION};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Reasons why a file cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The file is not JSON.
    #[error("it is not JSON: {0}; {GIVE_REPORT}")]
    NotJson(serde_json::Error),
    /// The file is JSON, but not a report.
    #[error("its format is {0} instead of \"popliner-report\"; {GIVE_REPORT}")]
    OtherFormat(String),
    /// The report has a version that this tool does not read.
    #[error(
        "it is a report of version {0}, and this popliner reads version {VERSION}; write it \
         again with --export-json of this popliner"
    )]
    OtherVersion(String),
    /// The file is a report with a missing or wrong field.
    #[error("it is a report of version {VERSION}, but not a complete one: {0}; {GIVE_REPORT}")]
    Damaged(serde_json::Error),
}

/// The fields that reports of every version have.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

/// Reads a report from JSON.
///
/// # Errors
/// [`CompareError`] for any other input. The format and the version are checked first.
pub fn read(bytes: &[u8]) -> Result<Report, CompareError> {
    let head: Head = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => CompareError::OtherFormat("missing".into()),
        _ => CompareError::NotJson(error),
    })?;
    if head.format != "popliner-report" {
        return Err(CompareError::OtherFormat(excerpt(&head.format)));
    }
    if head.version != VERSION {
        return Err(CompareError::OtherVersion(excerpt(&head.version)));
    }
    // Parse the text again, since errors of a parsed value have no line number.
    serde_json::from_slice(bytes).map_err(CompareError::Damaged)
}

/// Upper bound on characters of a value in an error.
const MAX_CHARACTERS: usize = 40;

fn excerpt(value: &Value) -> String {
    let text = match value {
        Value::Null => "missing".to_string(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
