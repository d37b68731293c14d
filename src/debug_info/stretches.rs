//! The contexts of a file, read at many places at once.
//!
//! The file is cut into stretches. Where the first context of a stretch begins is
//! guessed, and what was read from there counts only when the stretch before it
//! has ended exactly there. Otherwise it is thrown away and read again from the
//! true place. So the outcome is that of reading one context after the other,
//! whatever a guess has hit: the inside of a text, or a map within a context.

use std::fs::File;
use std::io::Read;

use rayon::prelude::*;

use super::DebugInfo;
use super::cbor::{Count, ItemHead, Items};
use super::context::Draft;
use super::contexts::Contexts;
use super::error::DebugInfoError;
use super::reader;
use crate::progress::{Counted, Task};
use crate::section::FileSection;

/// Length of a stretch, in bytes: some thousand contexts.
const STRETCH: u64 = 1 << 19;
/// Stretches that are read at once, for each thread, so that it is little that the
/// others wait for the last. What is in as many is added to the whole meanwhile.
const AT_ONCE: u64 = 4;

/// A file that can be read from any place, by several threads at once.
pub(super) struct Stretches<'a, O> {
    /// Gives a reader that begins at this offset.
    pub open: O,
    /// Of the file, in bytes; no more than a hint of where it ends.
    pub length: u64,
    /// Length of a stretch, in bytes.
    pub stretch: u64,
    /// Stretches that are read at once.
    pub at_once: u64,
    /// What hears of the bytes that are read.
    pub task: &'a Task,
}

/// Contexts that lie one after the other.
pub(super) struct StretchPart {
    pub begin: u64,
    /// Where the next entry begins.
    pub end: u64,
    /// Entries of the array, of which not all are contexts.
    pub entries: u64,
    contexts: Contexts,
}

impl<'a, R: Read, O: Fn(u64) -> R + Sync> Stretches<'a, O> {
    /// Reads the whole document.
    pub fn read(&self) -> Result<DebugInfo, DebugInfoError> {
        reader::read_with(self.items(0), |contexts, items, count| {
            self.contexts(contexts, items, count)
        })
    }

    fn items(&self, offset: u64) -> Items<Counted<'a, R>> {
        Items::new(Counted::new((self.open)(offset), self.task), offset)
    }

    /// Reads the entries from `items` on, of which `count` are to come, up to
    /// near the end of the file or to what is no entry.
    fn contexts(
        &self,
        contexts: &mut Contexts,
        items: &mut Items<Counted<'a, R>>,
        count: &mut Count,
    ) -> Result<(), DebugInfoError> {
        let begin = items.offset();
        let mut way = Way {
            stretches: self,
            here: begin,
            counted: items.received(),
            count: *count,
            ends: false,
        };
        let mut read = Vec::new();
        while !way.ends && self.length.saturating_sub(way.here) > self.stretch {
            let guess = || self.guesses(way.here);
            let (guesses, appended) = rayon::join(guess, || contexts.append(read));
            appended?;
            read = way.follow(guesses);
        }
        contexts.append(read)?;
        *count = way.count;
        if way.here <= items.received() {
            items.advance((way.here - begin) as usize);
        } else {
            *items = self.items(way.here);
        }
        Ok(())
    }

    /// What seems to be in the stretches from `begin` on, and where each ends.
    pub(super) fn guesses(&self, begin: u64) -> Vec<(u64, Option<StretchPart>)> {
        let stretches = self.length.saturating_sub(begin).div_ceil(self.stretch);
        let guess = |number: u64| {
            let start = begin + number * self.stretch;
            let limit = start + self.stretch;
            // A guess may be the beginning of anything, but takes no more than this.
            let reader = (self.open)(start).take(2 * self.stretch);
            let mut items = Items::new(reader, start);
            let found = number == 0 || find_context(&mut items);
            let part = found.then(|| self.part(&mut items, limit, Count::UntilBreak));
            (limit, part)
        };
        (0..stretches.min(self.at_once))
            .into_par_iter()
            .map(guess)
            .collect()
    }

    /// Reads the entries that begin before `limit`. Ends sooner where no entry can
    /// be read, and when it takes more memory than contexts of real files do.
    fn part<S: Read>(&self, items: &mut Items<S>, limit: u64, mut count: Count) -> StretchPart {
        let mut part = StretchPart {
            begin: items.offset(),
            end: items.offset(),
            entries: 0,
            contexts: Contexts::default(),
        };
        let mut draft = Draft::new();
        let room = self.stretch as usize / 2;
        while part.end < limit && (part.entries == 0 || part.contexts.size() < room) {
            let Ok(Some(head)) = items.next(&mut count) else {
                break;
            };
            if part.contexts.entry(items, head, &mut draft).is_err() {
                break;
            }
            part.entries += 1;
            part.end = items.offset();
        }
        part
    }
}

/// Reads the document in `file`, which has about this length in bytes, on all
/// threads.
pub(super) fn read(file: &File, length: u64, task: &Task) -> Result<DebugInfo, DebugInfoError> {
    let stretches = Stretches {
        open: |offset| FileSection::new(file, offset),
        length,
        stretch: STRETCH,
        at_once: AT_ONCE * rayon::current_num_threads() as u64,
        task,
    };
    stretches.read()
}

/// The way through the entries, from one true place to the next.
struct Way<'a, 'b, O> {
    stretches: &'b Stretches<'a, O>,
    /// Where the next entry begins.
    here: u64,
    /// Up to where bytes have been counted as read.
    counted: u64,
    /// The entries that are to come.
    count: Count,
    /// Whether the next can be read only as a stream is: it may be the end of the
    /// array, damaged, or cut off.
    ends: bool,
}

impl<R: Read, O: Fn(u64) -> R + Sync> Way<'_, '_, O> {
    /// What is in these stretches.
    fn follow(&mut self, guesses: Vec<(u64, Option<StretchPart>)>) -> Vec<Contexts> {
        let mut read = Vec::new();
        for (limit, guess) in guesses {
            // That an entry cannot be read is believed only from a true place: what
            // a guess may read is bounded.
            let is_right = |part: &StretchPart| part.begin == self.here && part.entries > 0;
            let mut guess = guess.filter(is_right);
            while self.here < limit && !self.ends {
                let part = guess.take().unwrap_or_else(|| self.read(limit));
                read.extend(self.step(part));
            }
        }
        read
    }

    /// Reads the entries from here on that begin before `limit`.
    fn read(&self, limit: u64) -> StretchPart {
        let reader = (self.stretches.open)(self.here);
        let mut items = Items::new(reader, self.here);
        self.stretches.part(&mut items, limit, self.count)
    }

    /// Goes on to the end of the part, unless it has more entries than the array:
    /// so may a guess.
    fn step(&mut self, part: StretchPart) -> Option<Contexts> {
        self.count = self.count.after(part.entries)?;
        self.ends = part.entries == 0;
        self.here = part.end;
        let more = self.here.saturating_sub(self.counted);
        self.stretches.task.add(more);
        self.counted += more;
        Some(part.contexts)
    }
}

/// How much is decoded in search of a context, in bytes, so that a file where
/// every byte may begin one takes no longer than others.
const SEARCHED: u64 = 1 << 16;

/// Goes to where a context seems to begin: a map with an id. `false` if there is
/// none nearby.
fn find_context<R: Read>(items: &mut Items<R>) -> bool {
    let mut draft = Draft::new();
    let mut searched = 0;
    while searched < SEARCHED && find_map(items) {
        let begin = items.offset();
        let is_context = match items.item() {
            Ok(head) => draft.read(items, Count::of(head)).is_ok() && draft.record.id != 0,
            Err(_) => false,
        };
        searched += items.offset() - begin;
        if !items.back(begin) {
            return false;
        }
        if is_context {
            return true;
        }
        items.advance(1);
    }
    false
}

/// Goes to the next byte that may be the head of a map that begins with a text.
fn find_map<R: Read>(items: &mut Items<R>) -> bool {
    let Ok(bytes) = items.ahead(ItemHead::LONGEST) else {
        return false;
    };
    let is_map = |pair: &[u8]| matches!(pair, [0xa1..=0xb8 | 0xbf, 0x60..=0x78]);
    let place = bytes.windows(2).position(is_map);
    items.advance(place.unwrap_or(0));
    place.is_some()
}
