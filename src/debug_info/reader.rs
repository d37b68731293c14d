//! Reads a whole debug file: checks the kind of the file, finds the end of its CBOR document, and
//! records why the reading stopped.

use super::{
    DebugInfo,
    context::ContextRecord,
    damage::{Damage, Truncation, looks_like, shape},
    document::Collected,
};
use crate::{
    limits,
    message::{DEBUG_AGAIN, GIVE_DEBUG, Result, Warning, unusable},
    profile::Ids,
    progress::Progress,
};
use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Read},
    path::Path,
};

/// The optional tag (3 bytes) at the start of a CBOR document that marks the file as CBOR.
const SELF_DESCRIBED: &[u8] = b"\xd9\xd9\xf7";
/// Number of bytes at the start of a file from which the kind of the file is guessed.
const HEAD: u64 = 64;
/// Size of the buffer through which a debug file is read, in bytes.
const BUFFER: usize = 1 << 16;

impl DebugInfo {
    /// Reads the debug file at `path`, which may also be a named pipe.
    ///
    /// # Errors
    /// If the file is not a debug file. A truncated file is not an error (see
    /// [`DebugInfo::damage`]).
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_with(path, &Progress::new())
    }

    /// Reads the debug file at `path`, and reports the number of bytes read to `progress`.
    ///
    /// # Errors
    /// If the file is not a debug file, as for [`DebugInfo::read`].
    pub(crate) fn read_with(path: &Path, progress: &Progress) -> Result<Self> {
        let file = File::open(path)?;
        // The length of a pipe is 0, so the progress of reading a pipe shows no total.
        let task = progress.begin("reading debug.cbor", file.metadata()?.len());
        Self::from_reader(task.reading(file))
    }

    /// Reads a whole debug file from `reader`, which need not be buffered.
    ///
    /// # Errors
    /// If the file is not a debug file, as for [`DebugInfo::read`].
    pub fn from_reader(mut reader: impl Read) -> Result<Self> {
        let mut head = Vec::new();
        reader.by_ref().take(HEAD).read_to_end(&mut head)?;
        check_head(&head)?;
        let source = TrackedReader {
            reader: head.chain(reader),
            received: 0,
            ended: false,
            failure: None,
        };
        let mut reader = BufReader::with_capacity(BUFFER, source);
        let mut collected = Collected::read(&mut reader)?;
        if collected.is_complete {
            reader.fill_buf()?;
        }
        let rest = reader.buffer();
        let offset = reader.get_ref().received - rest.len() as u64;
        if collected.is_complete && !rest.is_empty() {
            if begins_map(rest) {
                collected.info.damage = vec![Damage::SecondDocument(offset)];
            } else {
                collected.info.warning = Some(Warning::new(format!(
                    "the debug file continues after its document, which ends at byte {offset}, and \
                     the rest is ignored; {DEBUG_AGAIN}"
                )));
            }
        }
        let source = reader.into_inner();
        match source.failure {
            Some(error) => Err(error.into()),
            None => finish(collected, offset, !source.ended),
        }
    }
}

/// Returns `bytes` without the leading tags that mark a file as CBOR.
fn untagged(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_prefix(SELF_DESCRIBED) {
        bytes = rest;
    }
    bytes
}

/// Returns whether `bytes` begin with a CBOR map, after any tags that mark a file as CBOR.
fn begins_map(bytes: &[u8]) -> bool {
    matches!(untagged(bytes), [0xa0..=0xbf, ..])
}

/// Checks that a file that begins with `head` may be a debug file: a CBOR map, after an optional
/// tag that marks the file as CBOR.
///
/// # Errors
/// If the file is of another kind; the error has a guess of the kind.
fn check_head(head: &[u8]) -> Result<()> {
    if head.is_empty() {
        return unusable(format!(
            "the file is empty: the process that wrote it was probably stopped; {DEBUG_AGAIN}"
        ));
    }
    // A truncated debug file may end within the tag that marks it as CBOR.
    if begins_map(head) || SELF_DESCRIBED.starts_with(untagged(head)) {
        return Ok(());
    }
    if head.starts_with(b"SQLite format 3\0") {
        return unusable(
            "this is an SQLite database, not a debug.cbor; give profile.pop first and debug.cbor \
             second",
        );
    }
    unusable(format!(
        "this is {}, not a debug.cbor (a CBOR map with `contexts`); {GIVE_DEBUG}",
        looks_like(head)
    ))
}

/// Builds a [`DebugInfo`] from `collected`, the parts of a file that were read. `offset` is the
/// number of bytes read. `damaged` tells whether an incomplete file is malformed at `offset`; if
/// false, the file is cut off there.
///
/// # Errors
/// If `collected` cannot come from a debug file.
fn finish(collected: Collected, offset: u64, damaged: bool) -> Result<DebugInfo> {
    if !collected.is_complete && damaged && collected.info.is_empty() {
        return unusable(format!(
            "no context could be read, since the CBOR is malformed before byte {offset}; \
             {DEBUG_AGAIN}"
        ));
    }
    // The key `contexts` may be in the missing part of a file that is cut off. So the file is
    // accepted without this key, unless it has a key that Poplar does not write.
    let may_follow = !collected.is_complete && !damaged && !collected.saw_other_key;
    if !collected.saw_contexts && !may_follow {
        return Err(shape("it has no `contexts`"));
    }
    with_damage(collected, offset, damaged)
}

/// Builds a [`DebugInfo`] with the signs of damage that were found, the gravest first. `offset` is
/// the number of bytes read. `damaged` tells whether an incomplete file is malformed there;
/// otherwise the file is cut off there.
fn with_damage(collected: Collected, offset: u64, damaged: bool) -> Result<DebugInfo> {
    let read = collected.info.records.len();
    let mut info = with_index(collected.info)?;
    let (records, names) = (&info.records, info.names.len());
    let broken = if !collected.is_complete {
        Some(Damage::Truncated(Truncation {
            contexts: records.len(),
            offset,
            damaged,
            contexts_lost: !collected.contexts_complete,
            string_table_lost: !collected.table_complete,
            names,
        }))
    } else {
        (!collected.table_complete).then_some(Damage::NoStringTable)
    };
    let is_outside = |record: &&ContextRecord| {
        collected.table_complete && record.name.is_some_and(|name| name as usize >= names)
    };
    let counts = [
        (collected.repeated, Damage::Repeated as fn(usize) -> Damage),
        (read - records.len(), Damage::Duplicates),
        (collected.without_id, Damage::WithoutId),
        (collected.no_maps, Damage::NoMaps),
        (collected.mistyped, Damage::Mistyped),
        (
            records.iter().filter(is_outside).count(),
            Damage::NamesOutside,
        ),
    ];
    info.damage.splice(0..0, broken);
    info.damage.extend(
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, damage)| damage(count)),
    );
    info.texts = collected.texts.texts;
    Ok(info)
}

/// Adds to `info` an index of its contexts by id, and marks the contexts that are on a cycle of
/// parents. Of several contexts with the same id, only the first is kept.
///
/// # Errors
/// If a context has more than [`limits::CONTEXTS_ABOVE`] ancestors.
fn with_index(mut info: DebugInfo) -> Result<DebugInfo> {
    let records = &mut info.records;
    let index = |records: &[ContextRecord]| Ids::new(records.iter().map(|record| record.id));
    let index = index(records).or_else(|_| {
        let mut seen = HashSet::new();
        records.retain(|record| seen.insert(record.id));
        index(records)
    });
    info.index = index.expect("each id is left once");
    check_chains(records, &info.index)?;
    Ok(info)
}

/// Marks the contexts that are on a cycle of parents. For a context on a cycle, the number of
/// ancestors is the length of the cycle minus 1.
///
/// # Errors
/// If a context has more than [`limits::CONTEXTS_ABOVE`] ancestors.
fn check_chains(records: &mut [ContextRecord], index: &Ids) -> Result<()> {
    let parents: Vec<u32> = records
        .iter()
        .map(|record| index.position(record.parent).unwrap_or(NOWHERE))
        .collect();
    let mut lengths = vec![UNKNOWN; records.len()];
    // Indices of the contexts on the chain of parents that is being followed, from child to parent.
    let mut way = Vec::new();
    // The contexts are visited from the last to the first. In a debug file, a parent comes after
    // its children, so the number of its ancestors is usually known when a child is visited.
    for start in (0..records.len() as u32).rev() {
        let mut here = start;
        while here != NOWHERE && lengths[here as usize] == UNKNOWN {
            lengths[here as usize] = ON_THE_WAY;
            way.push(here);
            here = parents[here as usize];
        }
        let mut length = lengths.get(here as usize).copied().unwrap_or(0);
        if length == ON_THE_WAY {
            // The chain of parents has come back to the context `here`. The contexts from the first
            // occurrence of `here` in the chain on form a cycle.
            let cycle = way.split_off(way.iter().rposition(|&place| place == here).unwrap_or(0));
            length = cycle.len() as u32;
            for place in cycle {
                records[place as usize].on_cycle = true;
                lengths[place as usize] = length;
            }
        }
        for place in way.drain(..).rev() {
            length += 1;
            lengths[place as usize] = length;
        }
    }
    let most = limits::CONTEXTS_ABOVE;
    match lengths
        .iter()
        .position(|&length| length as usize > most + 1)
    {
        None => Ok(()),
        Some(place) => unusable(format!(
            "the context with the id {} has more than {most} contexts above it, more than any \
             software writes; {DEBUG_AGAIN}",
            records[place].id
        )),
    }
}

/// In the list of parents of debug contexts, the entry of a context that is a root or whose parent
/// the file lacks.
const NOWHERE: u32 = u32::MAX;
/// In the list of chain lengths, the entry of a context whose chain of parents was not followed
/// yet.
const UNKNOWN: u32 = 0;
/// Stands for the chain length of a debug context whose chain of parents is being followed. If the
/// chain comes back to such a context, it has a cycle.
const ON_THE_WAY: u32 = u32::MAX;

/// A reader that counts its bytes, and stores whether the file ended or an error occurred, since
/// the CBOR decoder does not report why reading stopped.
struct TrackedReader<R> {
    reader: R,
    received: u64,
    ended: bool,
    /// The error with which reading the file failed; `None` if it did not fail.
    failure: Option<io::Error>,
}

impl<R: Read> Read for TrackedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Ok(count) => {
                    self.received += count as u64;
                    self.ended = count == 0;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    self.failure = Some(error);
                    return Err(kind.into());
                }
            }
        }
    }
}
