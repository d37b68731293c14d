//! Defines errors that prevent reading a debug file, and signs of damage in a readable file.

use crate::message::{DEBUG_AGAIN, FileError, GIVE_DEBUG, Result};
use thiserror::Error;

/// Returns the error that the file is a CBOR document, but not a debug file of Poplar. `what`
/// describes the part of the file that is missing or has a wrong type.
pub fn shape(what: &str) -> FileError {
    FileError::new(format!(
        "this is a CBOR document, but not a debug.cbor: {what}; {GIVE_DEBUG}"
    ))
}

/// Maximum number of contexts, texts or names in a debug file. Their indices have 32 bits, and
/// `u32::MAX` is no index: it stands for a name that is outside the string table.
const LIMIT: u32 = u32::MAX - 1;

/// Returns the index that the next context, text or name of a debug file gets, if `count` of them
/// were read before it. Returns an error if `count` is [`LIMIT`] or more; `what` is the word for
/// them in the error, such as `contexts`.
pub fn next_index(count: usize, what: &str) -> Result<u32> {
    let index = u32::try_from(count).ok().filter(|&index| index < LIMIT);
    index.ok_or_else(|| {
        FileError::new(format!(
            "the file holds more than {LIMIT} {what}, more than any model has; {DEBUG_AGAIN}"
        ))
    })
}

/// Guesses the kind of a file from `head`, its first bytes, and returns a phrase such as `a gzip
/// file`.
pub fn looks_like(head: &[u8]) -> String {
    let is_text = match std::str::from_utf8(head) {
        Ok(text) => !text.contains('\0'),
        // The first bytes of a text file may end in the middle of a character. In this case,
        // `error_len` is `None`, and the file still counts as text.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    match head {
        [0x1f, 0x8b, ..] => "a gzip file",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [0x7f, b'E', b'L', b'F', ..] => "an ELF executable",
        _ if is_text => "a text file",
        [first, ..] => return format!("a file that begins with the byte {first:#04x}"),
        [] => "an empty file",
    }
    .to_owned()
}

/// A sign that a debug file is not as Poplar wrote it, with the number of affected items. The
/// variants `Missing`, `Orphans` and `Renamed` result from comparing the file with the profile, the
/// other variants from reading the file. No intact file seen so far has any such sign.
///
/// The messages do not tell the user what to do, since that depends on whether the file is
/// accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Damage {
    /// The debug file is truncated or malformed, so that only its beginning was read.
    #[error(
        "it is {} byte {}, contexts read: {}, {}",
        if .0.damaged { "malformed before" } else { "cut off at" },
        .0.offset,
        .0.contexts,
        .0.lost()
    )]
    Truncated(Truncation),
    /// The debug file was read to its end, but has no string table, so its contexts have no names.
    /// A file whose end was cut off and repaired looks like that.
    #[error("it has no `stringTable`, so its contexts have no names")]
    NoStringTable,
    /// A second CBOR document, which is not read, follows the first document, as if two files were
    /// joined. The number is the byte offset where the second document begins.
    #[error("another document follows at byte {0}")]
    SecondDocument(u64),
    /// The file has the top-level key `contexts` or `stringTable` more than once. The number counts
    /// all such keys after the first of each kind.
    #[error("keys `contexts` and `stringTable` that come again: {0}")]
    Repeated(usize),
    /// Debug contexts are ignored, because an earlier context has the same id. The number counts
    /// the ignored contexts.
    #[error("contexts with the id of an earlier one: {0}")]
    Duplicates(usize),
    /// Debug contexts are ignored, because they have no id. The number counts the ignored contexts.
    #[error("contexts without an id: {0}")]
    WithoutId(usize),
    /// Entries of the array `contexts` are ignored, because they are not CBOR maps. The number
    /// counts the ignored entries.
    #[error("entries of `contexts` that are not maps: {0}")]
    NoMaps(usize),
    /// Keys and values in debug contexts, or names in the string table, are ignored, because they
    /// have a wrong type. The number counts the ignored keys, values and names.
    #[error("keys, ids, layers, categories and names of another type: {0}")]
    Mistyped(usize),
    /// Debug contexts have no name: they refer to an entry beyond the end of the string table,
    /// although the table is complete. The number counts these contexts.
    #[error("contexts whose name lies outside the string table: {0}")]
    NamesOutside(usize),
    /// The debug file lacks contexts to which the profile refers. The first number counts the
    /// missing contexts, the second all contexts to which the profile refers.
    #[error("contexts that programs and compute sets refer to and that are missing: {0} of {1}")]
    Missing(usize, usize),
    /// Contexts to which the profile refers lack an ancestor, or following their parents leads into
    /// a cycle. The first number counts these contexts, the second all existing contexts to which
    /// the profile refers.
    #[error(
        "above {0} of {1} contexts that programs and compute sets refer to, one is missing or leads \
         back to them, so it may have named their layer"
    )]
    Orphans(usize, usize),
    /// Compute sets of the profile have another name than their debug context, or their debug
    /// context has no name. The first number counts these compute sets, the second all compute sets
    /// with a name and a context.
    #[error("compute sets whose context has another name or none: {0} of {1}")]
    Renamed(usize, usize),
}

/// Where and why reading a debug file stopped before the end of its CBOR document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Number of debug contexts that were read from the truncated file, without duplicates.
    pub contexts: usize,
    /// Number of bytes of the debug file that were read. This is the size of a truncated file or,
    /// in a malformed file, the byte offset of the end of the malformed item.
    pub offset: u64,
    /// Whether the debug file is malformed at the place where the reading stopped. If false, the
    /// file is truncated there.
    pub damaged: bool,
    /// Whether the file lacks debug contexts after the last context that was read.
    pub contexts_lost: bool,
    /// Whether the string table is missing or incomplete, so that contexts lack their names.
    pub string_table_lost: bool,
    /// Number of names that were read from the string table of a truncated file.
    pub names: usize,
}

impl Truncation {
    /// Returns the last part of a message about a truncated debug file: which data are missing,
    /// such as `later contexts are lost`.
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

impl Damage {
    /// Returns whether the damage may have changed or removed the name of any debug context.
    /// Returns `false` if it affects only certain contexts, which are known.
    pub(crate) fn may_change_any_name(&self) -> bool {
        match self {
            Self::Truncated(truncation) => truncation.string_table_lost,
            Self::Missing(..) | Self::Orphans(..) | Self::Renamed(..) => false,
            _ => true,
        }
    }
}
