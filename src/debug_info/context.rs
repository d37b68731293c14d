//! One context: the keys that are read, and the form in which they are stored.

use super::items::{Item, Items, Left, Stop};
use super::keys::{
    ContextKey, Field, GRADIENT, IS_CHECKPOINT, IS_RECOMPUTED, SoftwareLayer, TextKey, attribute,
    key,
};
use std::io;
use std::ops::Range;

/// A stored context; the default is one without data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ContextRecord {
    /// Id of the context; never 0.
    pub id: u64,
    /// Id of the parent; 0 for a root.
    pub parent: u64,
    /// Number of its name in the string table, from 1; 0 for none.
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

/// The context that is being read. One draft serves all contexts, so that its buffers are reused.
#[derive(Debug, Default)]
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

impl Draft {
    /// Reads one context, a map of which its beginning was read.
    ///
    /// A value of an unexpected type counts as absent. If a key repeats, the last value of the
    /// expected type counts.
    pub fn read<R: io::Read>(&mut self, items: &mut Items<R>, left: Left) -> Result<(), Stop> {
        self.record = ContextRecord::default();
        self.bytes.clear();
        self.texts.clear();
        self.mistyped = 0;
        self.mistyped += self.read_entries(items, left, key)?;
        Ok(())
    }

    /// Reads the entries to whose keys `meaning` gives a meaning. Returns the number of keys that are
    /// not texts.
    fn read_entries<R: io::Read>(
        &mut self,
        items: &mut Items<R>,
        mut left: Left,
        meaning: fn(&str) -> Option<ContextKey>,
    ) -> Result<usize, Stop> {
        let mut no_texts = 0;
        while let Some(key) = items.next_key(&mut left, meaning, &mut no_texts)? {
            match key {
                Some(key) => self.read_value(items, key)?,
                None => items.skip_next()?,
            }
        }
        Ok(no_texts)
    }

    fn read_value<R: io::Read>(
        &mut self,
        items: &mut Items<R>,
        key: ContextKey,
    ) -> Result<(), Stop> {
        let record = &mut self.record;
        match (key, items.next()?) {
            (ContextKey::Id, Item::Number(number)) => record.id = number,
            (ContextKey::ParentId, Item::Number(number)) => record.parent = number,
            (ContextKey::Name, Item::Number(number)) => {
                // No string table has as many names as fit a `u32`.
                record.name = u32::try_from(number.saturating_add(1)).unwrap_or(u32::MAX);
            }
            (ContextKey::Layer, Item::Text) => {
                record.layer = SoftwareLayer::from_text(items.text());
            }
            (ContextKey::Category, Item::Text) => {
                record.is_of_programs = matches!(items.text(), "program" | "compilation");
            }
            (ContextKey::Text(key), Item::Text) if !key.is_list() => {
                let start = self.bytes.len();
                self.bytes.push_str(items.text());
                self.place(key, start);
            }
            (ContextKey::Text(key), Item::List(left)) if key.is_list() => {
                self.read_list(items, left, key)?;
            }
            // Only texts are needed; other keys and values do not count as mistyped.
            (ContextKey::Attributes, Item::Map(left)) => {
                self.read_entries(items, left, attribute)?;
            }
            (ContextKey::Attributes | ContextKey::Text(_), other) => items.skip(other)?,
            (_, Item::None) => {}
            (_, other) => {
                self.mistyped += 1;
                items.skip(other)?;
            }
        }
        Ok(())
    }

    /// Stores the text that starts at `start` in `bytes` under `key`, in place of an earlier text, or
    /// removes it if its value is not needed.
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
    fn read_list<R: io::Read>(
        &mut self,
        items: &mut Items<R>,
        mut left: Left,
        key: TextKey,
    ) -> Result<(), Stop> {
        let start = self.bytes.len();
        let (mut separator, mut only_texts) = ("", true);
        while items.has_next(&mut left)? {
            let item = items.next()?;
            if item == Item::Text {
                self.bytes.push_str(separator);
                self.bytes.push_str(items.text());
                separator = "/";
            } else {
                only_texts = false;
                items.skip(item)?;
            }
        }
        match only_texts {
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
