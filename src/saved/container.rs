//! The container around what is saved: header, table, packed parts, checksum.

use super::SavedError;
use crate::limits::{PART, RATIO, RATIO_OF_VARIABLES};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// The first bytes. One has its high bit set and a line end of each kind
/// follows, so that a transfer as text is noticed at once.
pub(super) const MAGIC: [u8; 8] = *b"\x89PopL\r\n\n";

/// Changes with every change of the format.
pub(super) const VERSION: u32 = 14;

/// Magic, version, number of parts, size of the file.
pub(super) const HEADER: usize = 8 + 4 + 4 + 8;

/// Stored bytes and bytes when unpacked, 32 bits each.
pub(super) const ENTRY: usize = 8;

/// A 64-bit XXH3 of everything in front of it.
const CHECKSUM: usize = 8;

/// The level matters little: from 1 to 6, files of 10^7 groups of variables
/// shrink by 3 %, loading takes 5 % more processor time, and saving 30 % more.
const LEVEL: i32 = 3;

/// The content of a part, by its position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The model without its variables.
    Model,
    /// The classes and use sets that all groups of variables refer to.
    Uses,
    /// The groups of some tiles: the rest of the parts.
    Variables,
}

impl Content {
    pub(super) fn at(position: usize) -> Self {
        match position {
            0 => Content::Model,
            1 => Content::Uses,
            _ => Content::Variables,
        }
    }

    /// How many bytes a part of this content may hold for each of its own, so
    /// that a small file cannot ask for much memory. Of variables, which are
    /// most of a large file, a byte becomes 4 in memory; of all else up to 50.
    fn most_ratio(self) -> usize {
        match self {
            Content::Model => RATIO,
            Content::Uses | Content::Variables => RATIO_OF_VARIABLES,
        }
    }

    /// An error in this part.
    #[cold]
    pub(super) fn problem(self, problem: impl fmt::Display) -> SavedError {
        SavedError::Invalid(format!("the {self}: {problem}"))
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Model => "model without its variables",
            Content::Uses => "table of uses",
            Content::Variables => "variables of some tiles",
        })
    }
}

/// A part of the file, compressed on its own.
#[derive(Debug, Clone)]
pub(super) struct Packed<'a> {
    pub(super) content: Content,
    /// Bytes when unpacked, at most [`Content::most_ratio`] times `stored`.
    unpacked: usize,
    stored: Cow<'a, [u8]>,
}

impl<'a> Packed<'a> {
    /// Compresses `bytes`.
    pub(super) fn new(content: Content, bytes: &[u8]) -> Result<Self, SavedError> {
        if bytes.len() > PART {
            let length = bytes.len();
            let problem = format!("the {content} takes {length} bytes, more than {PART}");
            return Err(SavedError::TooLarge(problem));
        }
        let stored = zstd::bulk::compress(bytes, LEVEL);
        let mut stored =
            stored.map_err(|error| SavedError::TooLarge(format!("the {content}: {error}")))?;
        fill_up(&mut stored, bytes.len().div_ceil(content.most_ratio()));
        Ok(Self {
            content,
            unpacked: bytes.len(),
            stored: stored.into(),
        })
    }

    /// How many bytes it has when it is unpacked.
    pub(super) fn unpacked(&self) -> usize {
        self.unpacked
    }

    /// Decompresses it into `buffer`, whose memory is used again.
    pub(super) fn unpack(&self, buffer: &mut Vec<u8>) -> Result<(), SavedError> {
        buffer.clear();
        buffer.reserve_exact(self.unpacked);
        // The buffer may have room for more than is stated.
        let length = zstd::bulk::Decompressor::new()?.decompress_to_buffer(&self.stored, buffer);
        if length.ok() == Some(self.unpacked) {
            return Ok(());
        }
        let stated = self.unpacked;
        let problem = format!("it cannot be decompressed to the {stated} bytes that are stated");
        Err(self.content.problem(problem))
    }

    /// The part that `entry` of the table is about, at the start of `rest`.
    fn split_off(
        content: Content,
        entry: &[u8; ENTRY],
        rest: &mut &'a [u8],
    ) -> Result<Self, SavedError> {
        let (stored, unpacked) = (word(entry, 0) as usize, word(entry, 4) as usize);
        if unpacked > PART || unpacked > stored.saturating_mul(content.most_ratio()) {
            return Err(content.problem(format!("{stored} bytes cannot hold {unpacked}")));
        }
        let (stored, behind) = rest
            .split_at_checked(stored)
            .ok_or_else(|| content.problem("it reaches beyond the end of the file"))?;
        *rest = behind;
        Ok(Self {
            content,
            unpacked,
            stored: stored.into(),
        })
    }
}

/// Appends a frame that decoders skip, so that there are `length` bytes.
fn fill_up(stored: &mut Vec<u8>, length: usize) {
    const SKIPPABLE: u32 = 0x184d_2a50;
    if let Some(missing) = length.checked_sub(stored.len()).filter(|&n| n > 0) {
        stored.extend(SKIPPABLE.to_le_bytes());
        stored.extend((missing as u32).to_le_bytes());
        stored.resize(stored.len() + missing, 0);
    }
}

/// The file of these parts, in the order of their contents.
pub(super) fn assemble(parts: &[Packed<'_>]) -> Result<Vec<u8>, SavedError> {
    let stored: usize = parts.iter().map(|part| part.stored.len()).sum();
    let size = HEADER + parts.len() * ENTRY + stored + CHECKSUM;
    let number = u32::try_from(parts.len())
        .map_err(|_| SavedError::TooLarge("it has more than 2^32 parts".into()))?;
    let mut file = Vec::with_capacity(size);
    file.extend(MAGIC);
    file.extend(VERSION.to_le_bytes());
    file.extend(number.to_le_bytes());
    file.extend((size as u64).to_le_bytes());
    for part in parts {
        file.extend((part.stored.len() as u32).to_le_bytes());
        file.extend((part.unpacked as u32).to_le_bytes());
    }
    parts.iter().for_each(|part| file.extend(&*part.stored));
    let checksum = xxh3_64(&file);
    file.extend(checksum.to_le_bytes());
    Ok(file)
}

/// The size that the header states, if it is one of this version.
pub(super) fn stated_size(header: &[u8]) -> Result<u64, SavedError> {
    let start = &header[..header.len().min(MAGIC.len())];
    if !MAGIC.starts_with(start) {
        return Err(SavedError::NotSaved);
    }
    let cut = SavedError::Truncated {
        found: header.len() as u64,
        expected: HEADER as u64,
    };
    match header.get(..12).map(|start| word(start, 8)) {
        Some(VERSION) => {}
        Some(found) => return Err(SavedError::OtherVersion { found }),
        None => return Err(cut),
    }
    let size = header.get(16..HEADER).and_then(|size| size.try_into().ok());
    size.map(u64::from_le_bytes).ok_or(cut)
}

/// Is `found`, the size of the file, what its header states?
pub(super) fn check_size(found: u64, expected: u64) -> Result<(), SavedError> {
    match found.cmp(&expected) {
        Ordering::Less => Err(SavedError::Truncated { found, expected }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(SavedError::Altered),
    }
}

/// The parts of a file, after its size and checksum were found right.
pub(super) fn take_apart(file: &[u8]) -> Result<Vec<Packed<'_>>, SavedError> {
    check_size(file.len() as u64, stated_size(file)?)?;
    let (content, checksum) = file.split_last_chunk().ok_or(SavedError::Altered)?;
    if content.len() < HEADER || xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err(SavedError::Altered);
    }
    let (table, mut rest) = (word(content, 12) as usize)
        .checked_mul(ENTRY)
        .and_then(|length| content[HEADER..].split_at_checked(length))
        .ok_or_else(|| SavedError::invalid("the table of parts reaches beyond the end"))?;
    let (entries, _) = table.as_chunks();
    let entries = entries.iter().enumerate();
    let parts =
        entries.map(|(position, entry)| Packed::split_off(Content::at(position), entry, &mut rest));
    let parts = parts.collect::<Result<_, _>>()?;
    if !rest.is_empty() {
        return Err(SavedError::invalid("something follows the last part"));
    }
    Ok(parts)
}

/// The 32 bits at a place that is there.
fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..at + 4].iter().rev();
    bytes.fold(0, |word, &byte| word << 8 | u32::from(byte))
}
