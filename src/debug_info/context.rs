//! One context: which of its keys are kept, and how it is stored.

use std::io::Read;
use std::ops::Range;

use super::cbor::{Count, Fault, Items};
use super::head::ItemHead;
use super::keys::{
    ContextKey, Field, GRADIENT, IS_CHECKPOINT, IS_RECOMPUTED, LONGEST_KEY, SoftwareLayer, TextKey,
    attribute, key,
};

/// The `name` of a context that has none.
pub(super) const NO_NAME: u32 = u32::MAX;
/// Replaces every index that no string table can reach.
const FAR_NAME: u32 = u32::MAX - 1;

/// A stored context.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextRecord {
    /// Never 0.
    pub id: u64,
    /// 0 for a root.
    pub parent: u64,
    /// Index into the string table, or [`NO_NAME`].
    pub name: u32,
    /// The first of its entries among the fields of all contexts.
    pub first_field: u32,
    /// How many entries it has.
    pub field_count: u8,
    pub layer: SoftwareLayer,
    /// Whether its category is that of programs, or of the compilation.
    pub is_of_programs: bool,
    /// Whether following the parents leads back here.
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

/// The context being read. One is used for all, to keep its room.
#[derive(Debug)]
pub(super) struct Draft {
    pub record: ContextRecord,
    /// Kept texts back to back.
    bytes: Vec<u8>,
    /// The keys of those texts, and where they are.
    texts: Vec<(TextKey, Range<usize>)>,
    /// Keys that are no text, and values of another type than all contexts have there. A
    /// negative number, a float or null may stand for none.
    pub mistyped: usize,
}

impl Draft {
    pub fn new() -> Self {
        Self {
            record: ContextRecord::NONE,
            bytes: Vec::new(),
            texts: Vec::new(),
            mistyped: 0,
        }
    }

    /// Reads the context whose map head was just read, with this count.
    ///
    /// A value of an unexpected type counts as absent. Of a key that comes
    /// twice the last value of the expected type counts.
    pub fn read<R: Read>(&mut self, items: &mut Items<R>, mut count: Count) -> Result<(), Fault> {
        self.record = ContextRecord::NONE;
        self.bytes.clear();
        self.texts.clear();
        self.mistyped = 0;
        while let Some(key) = self.next_key(items, &mut count)? {
            match key {
                Some(key) => self.read_value(items, key)?,
                None => items.skip_value()?,
            }
        }
        Ok(())
    }

    /// The next key, which is `None` if it is not looked at; `None` at the end.
    #[inline(always)]
    fn next_key<R: Read>(
        &mut self,
        items: &mut Items<R>,
        count: &mut Count,
    ) -> Result<Option<Option<ContextKey>>, Fault> {
        match items.next(count)? {
            Some(head) => self.read_key(items, head).map(Some),
            None => Ok(None),
        }
    }

    fn read_key<R: Read>(
        &mut self,
        items: &mut Items<R>,
        head: ItemHead,
    ) -> Result<Option<ContextKey>, Fault> {
        match head {
            ItemHead::Text(0..=LONGEST_KEY) | ItemHead::TextSegments => {
                let text = self.read_text(items, head)?;
                let key = key(&self.bytes[text.clone()]);
                self.bytes.truncate(text.start);
                Ok(key)
            }
            other => {
                let is_text = matches!(other, ItemHead::Text(_));
                self.mistyped += usize::from(!is_text);
                items.skip(other)?;
                Ok(None)
            }
        }
    }

    fn read_value<R: Read>(&mut self, items: &mut Items<R>, key: ContextKey) -> Result<(), Fault> {
        let value = items.value()?;
        match (key, value) {
            (ContextKey::Id, ItemHead::Uint(id)) => self.record.id = id,
            (ContextKey::ParentId, ItemHead::Uint(id)) => self.record.parent = id,
            (ContextKey::Name, ItemHead::Uint(index)) => {
                self.record.name = u32::try_from(index).map_or(FAR_NAME, |near| near.min(FAR_NAME));
            }
            (ContextKey::Layer, ItemHead::Text(_) | ItemHead::TextSegments) => {
                let text = self.read_text(items, value)?;
                self.record.layer = SoftwareLayer::from_text(&self.bytes[text.clone()]);
                self.bytes.truncate(text.start);
            }
            (ContextKey::Category, ItemHead::Text(_) | ItemHead::TextSegments) => {
                let text = self.read_text(items, value)?;
                let category = &self.bytes[text.clone()];
                self.record.is_of_programs = matches!(category, b"program" | b"compilation");
                self.bytes.truncate(text.start);
            }
            (ContextKey::Text(key), ItemHead::Text(_) | ItemHead::TextSegments)
                if !key.is_list() =>
            {
                let text = self.read_text(items, value)?;
                self.keep(key, text);
            }
            (ContextKey::Text(key), ItemHead::Array(_) | ItemHead::OpenArray) if key.is_list() => {
                let text = self.read_list(items, value)?;
                let kept = text.filter(|text| self.is_kept(key, text.clone()));
                if let Some(text) = kept {
                    self.keep(key, text);
                }
            }
            (ContextKey::Attributes, ItemHead::Map(_) | ItemHead::OpenMap) => {
                self.read_attributes(items, value)?;
            }
            (key, other) => {
                let is_of_all = !matches!(key, ContextKey::Attributes | ContextKey::Text(_));
                self.mistyped += usize::from(is_of_all && other != ItemHead::Other);
                items.skip(other)?;
            }
        }
        Ok(())
    }

    fn read_text<R: Read>(
        &mut self,
        items: &mut Items<R>,
        head: ItemHead,
    ) -> Result<Range<usize>, Fault> {
        let start = self.bytes.len();
        items.text(head, &mut self.bytes)?;
        Ok(start..self.bytes.len())
    }

    /// Keeps a text, in place of an earlier one with this key.
    fn keep(&mut self, key: TextKey, text: Range<usize>) {
        match self.texts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => *place = text,
            None => self.texts.push((key, text)),
        }
    }

    /// Of some texts only few values tell anything.
    fn is_kept(&mut self, key: TextKey, text: Range<usize>) -> bool {
        let value = &self.bytes[text.clone()];
        let has_gradient = || value.windows(GRADIENT.len()).any(|part| part == GRADIENT);
        let is_kept = match key {
            TextKey::Outputs => has_gradient(),
            TextKey::Recompute => value == IS_RECOMPUTED,
            TextKey::RecomputeType => value != IS_CHECKPOINT,
            _ => true,
        };
        if !is_kept {
            self.bytes.truncate(text.start);
        }
        is_kept
    }

    /// The entries of `attributes` that are looked at and are texts.
    fn read_attributes<R: Read>(
        &mut self,
        items: &mut Items<R>,
        map: ItemHead,
    ) -> Result<(), Fault> {
        let mut count = Count::of(map);
        while let Some(head) = items.next(&mut count)? {
            let key = match head {
                ItemHead::Text(_) | ItemHead::TextSegments => {
                    let name = self.read_text(items, head)?;
                    let key = attribute(&self.bytes[name.clone()]);
                    self.bytes.truncate(name.start);
                    key
                }
                other => {
                    items.skip(other)?;
                    None
                }
            };
            let value = items.value()?;
            match (key, value) {
                (Some(key), ItemHead::Text(_) | ItemHead::TextSegments) => {
                    let text = self.read_text(items, value)?;
                    if self.is_kept(key, text.clone()) {
                        self.keep(key, text);
                    }
                }
                (_, other) => items.skip(other)?,
            }
        }
        Ok(())
    }

    /// Joins a list of texts by `/`; `None` if anything in it is not a text.
    fn read_list<R: Read>(
        &mut self,
        items: &mut Items<R>,
        head: ItemHead,
    ) -> Result<Option<Range<usize>>, Fault> {
        let start = self.bytes.len();
        let mut only_texts = true;
        let mut count = Count::of(head);
        let mut separator: &[u8] = b"";
        while let Some(head) = items.next(&mut count)? {
            let is_text = matches!(head, ItemHead::Text(_) | ItemHead::TextSegments);
            only_texts &= is_text;
            if only_texts {
                self.bytes.extend_from_slice(separator);
                separator = b"/";
                items.text(head, &mut self.bytes)?;
            } else {
                items.skip(head)?;
            }
        }
        if !only_texts {
            self.bytes.truncate(start);
        }
        Ok(only_texts.then_some(start..self.bytes.len()))
    }

    /// The fields that the context's layer gives a meaning to.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &[u8])> {
        self.texts.iter().filter_map(|(key, text)| {
            Some((key.field(self.record.layer)?, &self.bytes[text.clone()]))
        })
    }
}
