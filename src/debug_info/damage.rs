//! Signs of damage in a debug file.

use crate::message::{DEBUG_AGAIN, Warning};
use thiserror::Error;

/// A sign that a debug file is not as Poplar wrote it, with counts. The last three variants result
/// from a comparison with the profile, the others from reading the file. None of them occurs in any
/// intact file seen so far.
///
/// The messages do not say what to do; the code that decides whether to use the file adds that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Damage {
    /// The document is truncated or malformed.
    #[error("it is {} byte {}, contexts read: {}, {}", .0.how(), .0.offset, .0.contexts, .0.lost())]
    Truncated(Truncation),
    /// The document is complete, but has no string table, as after a repair of its end.
    #[error("it has no `stringTable`, so its contexts have no names")]
    NoStringTable,
    /// Another document begins at this byte, where the first one ends, as in files that were joined.
    #[error("another document follows at byte {0}")]
    SecondDocument(u64),
    /// Number of times that `contexts` or `stringTable` comes again.
    #[error("keys `contexts` and `stringTable` that come again: {0}")]
    Repeated(usize),
    /// Number of contexts ignored because an earlier context has the same id.
    #[error("contexts with the id of an earlier one: {0}")]
    Duplicates(usize),
    /// Number of contexts ignored because nothing can refer to them.
    #[error("contexts without an id: {0}")]
    WithoutId(usize),
    /// Number of ignored entries of `contexts`.
    #[error("entries of `contexts` that are not maps: {0}")]
    NoMaps(usize),
    /// Number of keys, values and names of a wrong type, which count as absent.
    #[error("keys, ids, layers, categories and names of another type: {0}")]
    Mistyped(usize),
    /// Number of names outside a complete string table, which count as empty.
    #[error("contexts whose name lies outside the string table: {0}")]
    NamesOutside(usize),
    /// The profile refers to contexts that are missing.
    #[error(
        "contexts that programs and compute sets refer to and that are missing: {missing} of {all}"
    )]
    Missing {
        /// Number of missing contexts.
        missing: usize,
        /// Number of contexts to which the profile refers.
        all: usize,
    },
    /// The profile refers to contexts that have a missing ancestor or are on or below a cycle of
    /// parents.
    #[error(
        "above {orphans} of {all} contexts that programs and compute sets refer to, one is missing \
         or leads back to them, so it may have named their layer"
    )]
    Orphans {
        /// Number of contexts with such ancestors.
        orphans: usize,
        /// Number of contexts to which the profile refers and that exist.
        all: usize,
    },
    /// Compute sets have other names than their contexts.
    #[error("compute sets whose context has another name or none: {renamed} of {all}")]
    Renamed {
        /// Number of compute sets whose name differs.
        renamed: usize,
        /// Number of compute sets with a name and a context.
        all: usize,
    },
}

/// Where and how reading of a document stopped early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Number of contexts read, without duplicates.
    pub contexts: usize,
    /// Number of bytes read: the size of a truncated file, or, in a damaged file, the end of the
    /// malformed item.
    pub offset: u64,
    /// Are the last bytes read malformed? Otherwise the next bytes are missing.
    pub damaged: bool,
    /// Are later contexts missing?
    pub contexts_lost: bool,
    /// Is the string table, and with it names, missing or incomplete?
    pub string_table_lost: bool,
    /// Number of names read from the string table.
    pub names: usize,
}

impl Truncation {
    fn how(&self) -> &'static str {
        match self.damaged {
            true => "malformed before",
            false => "cut off at",
        }
    }

    fn lost(&self) -> String {
        match (self.contexts_lost, self.string_table_lost) {
            (false, false) => "nothing that is needed is lost".to_owned(),
            (true, false) => "later contexts are lost".to_owned(),
            (true, true) => {
                "later contexts are lost, and names and locations with the string table".to_owned()
            }
            (false, true) => format!(
                "names and locations are lost, except for the first {} entries of the string table",
                self.names
            ),
        }
    }
}

/// Counts of anomalies that an intact file does not have.
#[derive(Debug, Default)]
pub(super) struct Anomalies {
    /// Was the array of contexts read to its end?
    pub contexts_complete: bool,
    /// Was the string table read to its end?
    pub table_complete: bool,
    /// Number of contexts that repeat an id.
    pub duplicates: usize,
    /// Number of contexts without an id, or with id 0.
    pub without_id: usize,
    /// Number of entries of `contexts` that are not maps.
    pub no_maps: usize,
    /// Number of keys and values of a wrong type.
    pub mistyped: usize,
    /// Number of contexts whose name is outside a complete string table.
    pub names_outside: usize,
    /// Number of times that `contexts` or `stringTable` comes again.
    pub repeated: usize,
    /// Byte offset of the document's end, if another map follows.
    pub second_document: Option<u64>,
    /// Byte offset of the document's end, if other bytes follow.
    pub trailing: Option<u64>,
}

impl Anomalies {
    /// Damage found while reading, the gravest first.
    pub fn damage(&self, truncation: Option<Truncation>) -> Vec<Damage> {
        let broken = match truncation {
            Some(truncation) => Some(Damage::Truncated(truncation)),
            None => (!self.table_complete).then_some(Damage::NoStringTable),
        };
        let counts = [
            Damage::Repeated(self.repeated),
            Damage::Duplicates(self.duplicates),
            Damage::WithoutId(self.without_id),
            Damage::NoMaps(self.no_maps),
            Damage::Mistyped(self.mistyped),
            Damage::NamesOutside(self.names_outside),
        ];
        let second = self.second_document.map(Damage::SecondDocument);
        let others = second.into_iter().chain(counts);
        broken
            .into_iter()
            .chain(others)
            .filter(Damage::is_any)
            .collect()
    }

    /// Warnings about harmless anomalies of a complete document.
    pub fn warnings(&self) -> Vec<Warning> {
        let trailing = self.trailing.map(|end| {
            Warning::new(format!(
                "the debug file continues after its document, which ends at byte {end}, and the \
                 rest is ignored; {DEBUG_AGAIN}"
            ))
        });
        trailing.into_iter().collect()
    }
}

impl Damage {
    /// Could the damage have changed or removed the name of any context?
    pub(crate) fn may_change_any_name(&self) -> bool {
        match self {
            Damage::Truncated(truncation) => truncation.string_table_lost,
            Damage::Missing { .. } | Damage::Orphans { .. } | Damage::Renamed { .. } => false,
            _ => true,
        }
    }

    /// Is there any damage of this kind?
    pub(crate) fn is_any(&self) -> bool {
        match *self {
            Damage::Truncated(_) | Damage::NoStringTable | Damage::SecondDocument(_) => true,
            Damage::Repeated(count)
            | Damage::Duplicates(count)
            | Damage::WithoutId(count)
            | Damage::NoMaps(count)
            | Damage::Mistyped(count)
            | Damage::NamesOutside(count)
            | Damage::Missing { missing: count, .. }
            | Damage::Orphans { orphans: count, .. }
            | Damage::Renamed { renamed: count, .. } => count > 0,
        }
    }
}
