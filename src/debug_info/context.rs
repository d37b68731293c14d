//! One context: the keys that are read, and the form in which they are stored.

use std::ops::Range;

use serde::de::{MapAccess, SeqAccess};

use super::keys::{
    ContextKey, Field, GRADIENT, IS_CHECKPOINT, IS_RECOMPUTED, SoftwareLayer, TextKey, attribute,
    key,
};
use super::take::{Skipped, Take, To, next_key};

/// Stands for the name of a context without one.
pub(super) const NO_NAME: u32 = u32::MAX;
/// Replaces every name index that is too large for a string table.
const FAR_NAME: u32 = u32::MAX - 1;

/// A stored context.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextRecord {
    /// Id of the context; never 0.
    pub id: u64,
    /// Id of the parent; 0 for a root.
    pub parent: u64,
    /// Index into the string table, or [`NO_NAME`].
    pub name: u32,
    /// Position of its first field in the fields of all contexts.
    pub first_field: u32,
    /// Number of its fields.
    pub field_count: u8,
    pub layer: SoftwareLayer,
    /// Is its category `program` or `compilation`?
    pub is_of_programs: bool,
    /// Is the context on a cycle of parents?
    pub on_cycle: bool,
}

impl ContextRecord {
    pub const NONE: ContextRecord = ContextRecord {
        id: 0,
        parent: 0,
        name: NO_NAME,
        first_field: 0,
        field_count: 0,
        layer: SoftwareLayer::Other,
        is_of_programs: false,
        on_cycle: false,
    };
}

/// The context that is being read. One draft serves all contexts, so that its buffers are reused.
#[derive(Debug)]
pub(super) struct Draft {
    pub record: ContextRecord,
    /// Kept texts, concatenated.
    bytes: String,
    /// Keys of the kept texts, and their ranges in `bytes`.
    texts: Vec<(TextKey, Range<usize>)>,
    /// Number of keys that are not texts, and of values of another type than in every intact file.
    /// A negative number, a float, a boolean or null may stand for a missing value and is not
    /// counted.
    pub mistyped: usize,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            record: ContextRecord::NONE,
            bytes: String::new(),
            texts: Vec::new(),
            mistyped: 0,
        }
    }
}

impl Draft {
    /// Reads one context from its entries.
    ///
    /// A value of an unexpected type counts as absent. If a key repeats, the last value of the
    /// expected type counts.
    pub fn read<'de, A: MapAccess<'de>>(&mut self, entries: A) -> Result<(), A::Error> {
        self.record = ContextRecord::NONE;
        self.bytes.clear();
        self.texts.clear();
        self.mistyped = 0;
        self.mistyped += self.read_entries(entries, key)?;
        Ok(())
    }

    /// Reads the entries to whose keys `meaning` gives a meaning. Returns the number of keys that are
    /// not texts.
    fn read_entries<'de, A: MapAccess<'de>>(
        &mut self,
        mut entries: A,
        meaning: fn(&str) -> Option<ContextKey>,
    ) -> Result<usize, A::Error> {
        let mut no_texts = 0;
        while let Some(key) = next_key(&mut entries, meaning, &mut no_texts)? {
            match key {
                Some(key) => entries.next_value_seed(To(Value { draft: self, key }))?,
                None => entries.next_value_seed(To(Skipped))?,
            }
        }
        Ok(no_texts)
    }

    /// Stores a text, replacing an earlier text of the same key.
    fn keep(&mut self, key: TextKey, text: &str) {
        let start = self.bytes.len();
        self.bytes.push_str(text);
        self.place(key, start);
    }

    /// Stores the text that starts at `start` in `bytes` under `key`, or removes it if its value is
    /// not needed.
    fn place(&mut self, key: TextKey, start: usize) {
        if !is_kept(key, &self.bytes[start..]) {
            return self.bytes.truncate(start);
        }
        let text = start..self.bytes.len();
        match self.texts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => *place = text,
            None => self.texts.push((key, text)),
        }
    }

    /// Stores a list of texts, joined by `/`; stores nothing if an item is not a text.
    fn read_list<'de, A: SeqAccess<'de>>(
        &mut self,
        key: TextKey,
        mut items: A,
    ) -> Result<(), A::Error> {
        let start = self.bytes.len();
        let mut joined = Joined {
            bytes: &mut self.bytes,
            separator: "",
            only_texts: true,
        };
        while items.next_element_seed(To(&mut joined))?.is_some() {}
        match joined.only_texts {
            true => self.place(key, start),
            false => self.bytes.truncate(start),
        }
        Ok(())
    }

    /// The fields of the context, in the meaning that its software layer gives them.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &str)> {
        self.texts.iter().filter_map(|(key, text)| {
            Some((key.field(self.record.layer)?, &self.bytes[text.clone()]))
        })
    }
}

/// Is this value needed? Some keys matter only with certain values.
fn is_kept(key: TextKey, value: &str) -> bool {
    match key.field {
        Field::Gradients => value.contains(GRADIENT),
        Field::Recompute => value == IS_RECOMPUTED,
        Field::RecomputeType => value != IS_CHECKPOINT,
        _ => true,
    }
}

/// Receives the value of a key of a context, or of its attributes.
struct Value<'a> {
    draft: &'a mut Draft,
    key: ContextKey,
}

impl Take for Value<'_> {
    fn number(self, number: u64) {
        let record = &mut self.draft.record;
        match self.key {
            ContextKey::Id => record.id = number,
            ContextKey::ParentId => record.parent = number,
            ContextKey::Name => {
                record.name = u32::try_from(number).map_or(FAR_NAME, |near| near.min(FAR_NAME));
            }
            _ => self.other(),
        }
    }

    fn text(self, text: &str) {
        let record = &mut self.draft.record;
        match self.key {
            ContextKey::Layer => record.layer = SoftwareLayer::from_text(text),
            ContextKey::Category => {
                record.is_of_programs = matches!(text, "program" | "compilation");
            }
            ContextKey::Text(key) if !key.is_list() => self.draft.keep(key, text),
            _ => self.other(),
        }
    }

    fn list<'de, A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        match self.key {
            ContextKey::Text(key) if key.is_list() => self.draft.read_list(key, items),
            _ => {
                self.other();
                Skipped.list(items)
            }
        }
    }

    fn map<'de, A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        match self.key {
            // Only texts are needed; other keys and values do not count as mistyped.
            ContextKey::Attributes => self.draft.read_entries(entries, attribute).map(|_| ()),
            _ => {
                self.other();
                Skipped.map(entries)
            }
        }
    }

    fn none(self) {}

    fn other(self) {
        let is_of_all = !matches!(self.key, ContextKey::Attributes | ContextKey::Text(_));
        self.draft.mistyped += usize::from(is_of_all);
    }
}

/// Receives the items of a list of texts, and joins them.
struct Joined<'a> {
    bytes: &'a mut String,
    separator: &'static str,
    only_texts: bool,
}

impl Take for &mut Joined<'_> {
    fn text(self, text: &str) {
        self.bytes.push_str(self.separator);
        self.bytes.push_str(text);
        self.separator = "/";
    }

    fn other(self) {
        self.only_texts = false;
    }
}
