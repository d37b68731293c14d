//! The document: its shape, where it may break off, and what to say then.

use std::io::{Cursor, Read};

use ciborium_ll::Header;

use super::cbor::{Count, Fault, Items};
use super::context::{Draft, Field, NO_NAME, Record};
use super::error::DebugInfoError;
use super::strings::{Interner, Texts};
use super::{DebugInfo, index};

/// How a document that was not read to its end stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Contexts that were read, duplicates not counted.
    pub contexts: usize,
    /// Offset of the first byte that could not be used: the start of the item
    /// that is cut off or malformed.
    pub offset: u64,
    /// Whether the bytes there are no CBOR, rather than missing.
    pub damaged: bool,
    /// Whether the string table is missing or incomplete, so that names are.
    pub string_table_lost: bool,
}

/// The tag that says "this is CBOR".
const SELF_DESCRIBED: u64 = 55_799;
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Why reading ends before the document does.
enum Stop {
    Fault(Fault),
    Error(DebugInfoError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<DebugInfoError> for Stop {
    fn from(error: DebugInfoError) -> Self {
        Stop::Error(error)
    }
}

/// What has been read of the document so far.
#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    fields: Vec<(Field, u32)>,
    interner: Interner,
    names: Texts,
    saw_contexts: bool,
    contexts_complete: bool,
    table_complete: bool,
    saw_other_key: bool,
    without_id: u64,
    no_maps: u64,
    bad_utf8: u64,
    trailing: Option<u64>,
}

pub(super) fn read(mut reader: impl Read) -> Result<DebugInfo, DebugInfoError> {
    let mut head = Vec::new();
    reader.by_ref().take(64).read_to_end(&mut head)?;
    if head.is_empty() {
        return Err(DebugInfoError::Empty);
    }
    if head.starts_with(SQLITE_MAGIC) {
        return Err(DebugInfoError::Sqlite);
    }
    let mut items = Items::new(Cursor::new(&head).chain(reader));
    let mut collected = Collected::default();
    let truncation = match collected.document(&mut items, &head) {
        Ok(()) => None,
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::Fault(Fault::Io(error))) => return Err(error.into()),
        Err(Stop::Fault(Fault::Cut)) => Some((items.offset(), false)),
        Err(Stop::Fault(Fault::Syntax(offset))) => Some((offset, true)),
    };
    collected.check(truncation)?;
    Ok(collected.finish(truncation))
}

impl Collected {
    fn document<R: Read>(&mut self, items: &mut Items<R>, head: &[u8]) -> Result<(), Stop> {
        let mut count = top(items, head)?;
        let mut key = Vec::new();
        while let Some(header) = items.next(&mut count)? {
            key.clear();
            match header {
                Header::Text(len) if len.is_none_or(|len| len < 64) => items.text(len, &mut key)?,
                other => items.skip(other)?,
            }
            match key.as_slice() {
                b"contexts" => self.contexts(items)?,
                b"stringTable" => self.string_table(items)?,
                _ => {
                    self.saw_other_key = true;
                    let value = items.value()?;
                    items.skip(value)?;
                }
            }
        }
        let end = items.offset();
        self.trailing = items.has_more()?.then_some(end);
        Ok(())
    }

    fn contexts<R: Read>(&mut self, items: &mut Items<R>) -> Result<(), Stop> {
        self.saw_contexts = true;
        let Header::Array(len) = items.value()? else {
            let problem = "its `contexts` is no array";
            return Err(DebugInfoError::Shape { problem }.into());
        };
        self.contexts_complete = false;
        let mut draft = Draft::new();
        let mut count = Count::new(len);
        while let Some(header) = items.next(&mut count)? {
            match header {
                Header::Map(len) => {
                    draft.read(items, len)?;
                    self.push(&draft)?;
                }
                other => {
                    items.skip(other)?;
                    self.no_maps += 1;
                }
            }
        }
        self.contexts_complete = true;
        Ok(())
    }

    fn push(&mut self, draft: &Draft) -> Result<(), DebugInfoError> {
        if draft.record.id == 0 {
            self.without_id += 1;
            return Ok(());
        }
        let first = u32::try_from(self.fields.len()).map_err(|_| too_many("texts"))?;
        for (field, bytes) in draft.fields() {
            let text = String::from_utf8_lossy(bytes);
            self.bad_utf8 += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
            let number = self
                .interner
                .intern(&text)
                .ok_or_else(|| too_many("texts"))?;
            self.fields.push((field, number));
        }
        if self.records.len() >= Texts::LIMIT as usize {
            return Err(too_many("contexts"));
        }
        self.records.push(Record {
            first_field: first,
            field_count: (self.fields.len() - first as usize) as u8,
            ..draft.record
        });
        Ok(())
    }

    fn string_table<R: Read>(&mut self, items: &mut Items<R>) -> Result<(), Stop> {
        self.names = Texts::default();
        self.table_complete = false;
        let value = items.value()?;
        let Header::Array(len) = value else {
            return Ok(items.skip(value)?);
        };
        let mut count = Count::new(len);
        let mut bytes = Vec::new();
        while let Some(header) = items.next(&mut count)? {
            bytes.clear();
            match header {
                Header::Text(len) => items.text(len, &mut bytes)?,
                // Empty, so that the later ones keep their numbers.
                other => items.skip(other)?,
            }
            let text = String::from_utf8_lossy(&bytes);
            self.bad_utf8 += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
            self.names.push(&text).ok_or_else(|| too_many("names"))?;
        }
        self.table_complete = true;
        Ok(())
    }

    /// Whether what was read may stand for a debug file.
    fn check(&self, truncation: Option<(u64, bool)>) -> Result<(), DebugInfoError> {
        match truncation {
            Some((offset, true)) if self.records.is_empty() => {
                Err(DebugInfoError::Syntax { offset })
            }
            // Cut before `contexts` could come: nothing speaks against it.
            Some((_, false)) if !self.saw_other_key => Ok(()),
            _ if !self.saw_contexts => Err(DebugInfoError::Shape {
                problem: "it has no `contexts`",
            }),
            _ => Ok(()),
        }
    }

    fn finish(mut self, stop: Option<(u64, bool)>) -> DebugInfo {
        let (index, duplicates) = index::IdIndex::build(&mut self.records);
        index::mark_cycles(&mut self.records, &index);
        let truncation = stop.map(|(offset, damaged)| Truncation {
            contexts: self.records.len(),
            offset,
            damaged,
            string_table_lost: !self.table_complete,
        });
        let warnings = self.warnings(truncation.as_ref(), duplicates);
        self.records.shrink_to_fit();
        self.fields.shrink_to_fit();
        self.names.shrink();
        DebugInfo {
            layers: self
                .records
                .iter()
                .fold(0, |bits, record| bits | record.layer.bit()),
            records: self.records,
            fields: self.fields,
            texts: self.interner.finish(),
            names: self.names,
            index,
            truncation,
            warnings,
        }
    }

    fn warnings(&self, truncation: Option<&Truncation>, duplicates: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        match truncation {
            Some(truncation) => warnings.push(self.cut_warning(truncation)),
            None if !self.table_complete => warnings.push(
                "the debug file has no usable `stringTable`: contexts have no names".to_owned(),
            ),
            None => {}
        }
        let mut count = |number: u64, what: &str| {
            if number > 0 {
                warnings.push(format!("in the debug file, {number} {what}"));
            }
        };
        count(
            duplicates as u64,
            "contexts have the id of an earlier one and are ignored",
        );
        count(self.without_id, "contexts have no id and are ignored");
        count(
            self.no_maps,
            "entries of `contexts` are no maps and are ignored",
        );
        count(
            self.names_outside(),
            "contexts have a name outside the string table, taken as empty",
        );
        count(
            self.bad_utf8,
            "texts are not valid UTF-8; the bytes in question show as U+FFFD",
        );
        if let Some(offset) = self.trailing {
            warnings.push(format!(
                "the debug file goes on after the end of its document at byte {offset}; the rest is ignored"
            ));
        }
        warnings
    }

    /// Names that the complete table lacks; an incomplete one says so itself.
    fn names_outside(&self) -> u64 {
        let outside =
            |record: &&Record| record.name != NO_NAME && record.name as usize >= self.names.len();
        if self.table_complete {
            self.records.iter().filter(outside).count() as u64
        } else {
            0
        }
    }

    fn cut_warning(&self, truncation: &Truncation) -> String {
        let Truncation {
            contexts, offset, ..
        } = truncation;
        let how = if truncation.damaged {
            format!("malformed at byte {offset}")
        } else {
            format!("cut off at byte {offset}")
        };
        let lost = match (self.contexts_complete, self.table_complete) {
            (false, false) if self.names.len() == 0 => {
                "any after them and the string table are lost, and with it all names and locations"
                    .to_owned()
            }
            (false, true) => "any after them are lost".to_owned(),
            (true, true) => "nothing that is needed is lost".to_owned(),
            (_, false) => format!(
                "the string table is lost after its first {} entries, and with it names and locations",
                self.names.len()
            ),
        };
        format!("the debug file is {how}: {contexts} contexts were read; {lost}")
    }
}

/// What is to come of the document's map. Only CBOR's own tag may stand before it.
fn top<R: Read>(items: &mut Items<R>, head: &[u8]) -> Result<Count, Stop> {
    loop {
        match items.header() {
            Ok(Header::Tag(SELF_DESCRIBED)) => {}
            Ok(Header::Map(len)) => return Ok(Count::new(len)),
            Err(Fault::Cut) if starts_like_a_map(head) => return Err(Fault::Cut.into()),
            Err(Fault::Io(error)) => return Err(Fault::Io(error).into()),
            _ => {
                let found = looks_like(head);
                return Err(DebugInfoError::NotCbor { found }.into());
            }
        }
    }
}

/// Whether the first byte begins a map, or a tag as long as CBOR's own.
fn starts_like_a_map(head: &[u8]) -> bool {
    matches!(head.first(), Some(0xa0..=0xbf | 0xd9))
}

fn too_many(what: &'static str) -> DebugInfoError {
    DebugInfoError::TooMany {
        what,
        limit: u64::from(Texts::LIMIT),
    }
}

/// Says what a file that is no debug file may be, from its first bytes.
fn looks_like(head: &[u8]) -> String {
    let is_text = match std::str::from_utf8(head) {
        Ok(text) => !text.contains('\0'),
        // The bytes may end within a character.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    match head {
        [0x1f, 0x8b, ..] => "a gzip file".to_owned(),
        [b'P', b'K', 3, 4, ..] => "a zip archive".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => "an ELF executable".to_owned(),
        _ if is_text => "a text file".to_owned(),
        [first, ..] => format!("a file that begins with the byte {first:#04x}"),
        [] => "an empty file".to_owned(),
    }
}
