//! Reading a report that was written before.

use crate::message::GIVE_REPORT;
use crate::report::{Report, VERSION};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Reasons why a file cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// It is not JSON at all.
    #[error("it is not JSON: {0}; {GIVE_REPORT}")]
    NotJson(serde_json::Error),
    /// It is JSON of another kind.
    #[error("its format is {0} and not \"popliner-report\"; {GIVE_REPORT}")]
    OtherFormat(String),
    /// It was written by another version of this tool.
    #[error(
        "it is a report of version {0}, and this popliner reads version {VERSION}; write it \
         again with --export-json of this popliner"
    )]
    OtherVersion(String),
    /// It says that it is a report, and something is missing or wrong in it.
    #[error("it is a report of version {VERSION}, but not a whole one: {0}; {GIVE_REPORT}")]
    Damaged(serde_json::Error),
}

/// The fields that every version has.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

/// Reads a report.
///
/// # Errors
/// [`CompareError`] for anything else, first of all another format or version.
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
    // From the text again, so that an error tells the line.
    serde_json::from_slice(bytes).map_err(CompareError::Damaged)
}

/// More characters of a value say nothing more.
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
