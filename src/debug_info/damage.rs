//! Signs that a file is not as Poplar wrote it.

use crate::message::{DEBUG_AGAIN, Warning};
use thiserror::Error;

/// A sign that a file is not as Poplar wrote it, with the numbers. Most is found
/// where it is read, the last two where it is compared with its profile: all of that
/// was right in every whole file that was ever seen.
///
/// No text says the way out: whoever decides about the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Damage {
    /// It was not read to its end.
    #[error("it is {} byte {}, contexts read: {}, {}", .0.how(), .0.offset, .0.contexts, .0.lost())]
    Truncated(Truncation),
    /// Its end was repaired.
    #[error("it has no `stringTable`, so its contexts have no names")]
    NoStringTable,
    /// Contexts that were ignored, since an earlier one has their id.
    #[error("contexts with the id of an earlier one: {0}")]
    Duplicates(usize),
    /// Contexts that were ignored, since nothing can refer to them.
    #[error("contexts without an id: {0}")]
    WithoutId(usize),
    /// Entries of `contexts` that were ignored.
    #[error("entries of `contexts` that are no maps: {0}")]
    NoMaps(usize),
    /// Keys, fields and names that were taken as absent.
    #[error("keys, ids, layers, categories and names of another type: {0}")]
    Mistyped(usize),
    /// Names that were taken as empty, though the table is complete.
    #[error("contexts whose name lies outside the string table: {0}")]
    NamesOutside(usize),
    /// Contexts that the profile refers to, and that are not there.
    #[error(
        "contexts that programs and compute sets refer to and that are missing: {missing} of {all}"
    )]
    Missing {
        /// How many are not there.
        missing: usize,
        /// To how many it refers.
        all: usize,
    },
    /// Contexts that the profile refers to, below one that is not there or on a circle of
    /// parents.
    #[error(
        "above {orphans} of {all} contexts that programs and compute sets refer to, one is missing \
         or leads back to them, so it may have named their layer"
    )]
    Orphans {
        /// How many are below one.
        orphans: usize,
        /// How many of those that the profile refers to are there.
        all: usize,
    },
    /// Names that differ.
    #[error("compute sets whose context has another name or none: {renamed} of {all}")]
    Renamed {
        /// How many have another one.
        renamed: usize,
        /// How many have a name, and a context.
        all: usize,
    },
}

/// How a document that was not read to its end stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Contexts that were read, duplicates not counted.
    pub contexts: usize,
    /// How many bytes were read: all of a file that is cut off; of one that is damaged,
    /// all up to the end of what is malformed.
    pub offset: u64,
    /// Whether the last bytes that were read are malformed, rather than the next ones missing.
    pub damaged: bool,
    /// Whether later contexts are missing.
    pub contexts_lost: bool,
    /// Whether the string table is missing or incomplete, so that names are.
    pub string_table_lost: bool,
    /// Names of the string table that were read.
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

/// Counts of what a sound file does not have.
#[derive(Debug, Default)]
pub(super) struct Anomalies {
    /// The array of contexts was read to its end.
    pub contexts_complete: bool,
    /// The string table was read to its end.
    pub table_complete: bool,
    /// Contexts that repeat an id.
    pub duplicates: usize,
    /// Contexts without an id, or with 0.
    pub without_id: usize,
    /// Entries of `contexts` that are no maps.
    pub no_maps: usize,
    /// Values of another type, where all contexts have the same.
    pub mistyped: usize,
    /// Contexts whose name a complete table lacks.
    pub names_outside: usize,
    /// Where the document ends, if bytes follow.
    pub trailing: Option<u64>,
}

impl Anomalies {
    /// The damage that reading has found, the gravest first.
    pub fn damage(&self, truncation: Option<Truncation>) -> Vec<Damage> {
        let broken = match truncation {
            Some(truncation) => Some(Damage::Truncated(truncation)),
            None => (!self.table_complete).then_some(Damage::NoStringTable),
        };
        let counts = [
            Damage::Duplicates(self.duplicates),
            Damage::WithoutId(self.without_id),
            Damage::NoMaps(self.no_maps),
            Damage::Mistyped(self.mistyped),
            Damage::NamesOutside(self.names_outside),
        ];
        broken
            .into_iter()
            .chain(counts)
            .filter(Damage::is_any)
            .collect()
    }

    /// Warnings about oddities that do no harm: the document is whole.
    pub fn warnings(&self) -> Vec<Warning> {
        let trailing = self.trailing.map(|end| {
            Warning::new(format!(
                "the debug file goes on after its document, which ends at byte {end}, and the rest \
                 is ignored; {DEBUG_AGAIN}"
            ))
        });
        trailing.into_iter().collect()
    }
}

impl Damage {
    /// Could it have changed or taken away the name of any context?
    pub(crate) fn bears_on_all(&self) -> bool {
        match self {
            Damage::Truncated(truncation) => truncation.string_table_lost,
            Damage::Missing { .. } | Damage::Orphans { .. } | Damage::Renamed { .. } => false,
            _ => true,
        }
    }

    /// Is there any of it?
    pub(crate) fn is_any(&self) -> bool {
        match *self {
            Damage::Truncated(_) | Damage::NoStringTable => true,
            Damage::Duplicates(count)
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
