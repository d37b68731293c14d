//! What was odd in a file, and the sentences that say so.

use crate::message::{DEBUG_AGAIN, Warning};
use std::borrow::Cow;

/// How a document that was not read to its end stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Contexts that were read, duplicates not counted.
    pub contexts: usize,
    /// In bytes from 0: the length of a file that is cut off, the start of the
    /// malformed item of one that is damaged.
    pub offset: u64,
    /// Whether the bytes there are no CBOR, rather than missing.
    pub damaged: bool,
    /// Whether the string table is missing or incomplete, so that names are.
    pub string_table_lost: bool,
}

/// Counts of what a sound file does not have.
#[derive(Debug, Default)]
pub(super) struct Anomalies {
    /// The array of contexts was read to its end.
    pub contexts_complete: bool,
    /// The string table was read to its end.
    pub table_complete: bool,
    /// Names that were read.
    pub names: usize,
    /// Contexts that repeat an id.
    pub duplicates: usize,
    /// Contexts without an id, or with 0.
    pub without_id: usize,
    /// Entries of `contexts` that are no maps.
    pub no_maps: usize,
    /// Contexts whose name a complete table lacks.
    pub names_outside: usize,
    /// Kept texts that are no UTF-8.
    pub bad_utf8: u64,
    /// Where the document ends, if bytes follow.
    pub trailing: Option<u64>,
}

impl Anomalies {
    /// The text of these bytes, with U+FFFD where they are no UTF-8.
    pub fn utf8<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.bad_utf8 += 1;
                String::from_utf8_lossy(bytes)
            }
        }
    }

    /// Adds what was odd in the contexts of a stretch.
    pub fn add(&mut self, contexts: &Anomalies) {
        self.without_id += contexts.without_id;
        self.no_maps += contexts.no_maps;
        self.bad_utf8 += contexts.bad_utf8;
    }

    /// One warning for each oddity, the gravest first.
    pub fn warnings(&self, truncation: Option<&Truncation>) -> Vec<Warning> {
        let broken = match truncation {
            Some(truncation) => Some(self.broken_off(truncation)),
            None if !self.table_complete => Some(Warning::new(format!(
                "the debug file has no `stringTable`, so its contexts have no names; {DEBUG_AGAIN}"
            ))),
            None => None,
        };
        let trailing = self.trailing.map(|end| {
            Warning::new(format!(
                "the debug file goes on after its document, which ends at byte {end}, and the rest \
                 is ignored; {DEBUG_AGAIN}"
            ))
        });
        broken
            .into_iter()
            .chain(self.counts())
            .chain(trailing)
            .collect()
    }

    fn counts(&self) -> impl Iterator<Item = Warning> {
        let counts = [
            (
                self.duplicates as u64,
                "contexts ignored because an earlier one has the same id",
            ),
            (
                self.without_id as u64,
                "contexts ignored because they have no id",
            ),
            (
                self.no_maps as u64,
                "entries of `contexts` ignored because they are no maps",
            ),
            (
                self.names_outside as u64,
                "contexts whose name lies outside the string table, taken as empty",
            ),
            (
                self.bad_utf8,
                "texts that are not valid UTF-8, shown with U+FFFD in place of the bad bytes",
            ),
        ];
        (counts.into_iter())
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| {
                Warning::new(format!(
                    "the debug file is damaged: {what}: {count}; {DEBUG_AGAIN}"
                ))
            })
    }

    fn broken_off(&self, truncation: &Truncation) -> Warning {
        let how = if truncation.damaged {
            "malformed from"
        } else {
            "cut off at"
        };
        let lost = match (self.contexts_complete, self.table_complete) {
            (true, true) => "nothing that is needed is lost".to_owned(),
            (false, true) => "later contexts are lost".to_owned(),
            (false, false) => {
                "later contexts are lost, and names and locations with the string table".to_owned()
            }
            (true, false) => format!(
                "names and locations are lost, except for the first {} entries of the string table",
                self.names
            ),
        };
        Warning::new(format!(
            "the debug file is {how} byte {}, contexts read: {}, {lost}; {DEBUG_AGAIN}",
            truncation.offset, truncation.contexts
        ))
    }
}
