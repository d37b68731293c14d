//! Container of a saved file: header, table of parts, parts, checksum.

use super::SavedError;
use crate::parallel::filled;
use flate2::Crc;
use rayon::prelude::*;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// First bytes of the file. One has its high bit set, and line ends of several kinds follow, so
/// that a transfer as text is detected.
pub(super) const MAGIC: [u8; 8] = *b"\x89PopL\r\n\n";

/// Version of the format; it changes with every change of the format.
pub(super) const VERSION: u32 = 17;

/// Size of the header in bytes: magic, version, number of parts, size of the file.
pub(super) const HEADER: usize = 8 + 4 + 4 + 8;

/// Size of an entry of the table: the bytes of a part, in 32 bits.
pub(super) const ENTRY: usize = 4;

/// Size of the checksum: a CRC-32 of all bytes before it.
pub(super) const CHECKSUM: usize = 4;

/// Content of a part, by its position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The model without its variables.
    Model,
    /// Classes and use sets to which all groups of variables refer.
    Uses,
    /// Groups of variables of some tiles: all other parts.
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

    /// Error in this part.
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

#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) content: Content,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Part<'a> {
    /// Splits off the part that `entry` of the table describes from the start of `rest`.
    fn split_off(
        content: Content,
        entry: [u8; ENTRY],
        rest: &mut &'a [u8],
    ) -> Result<Self, SavedError> {
        let (bytes, behind) = rest
            .split_at_checked(u32::from_le_bytes(entry) as usize)
            .ok_or_else(|| content.problem("it reaches beyond the end of the file"))?;
        *rest = behind;
        let bytes = bytes.into();
        Ok(Self { content, bytes })
    }
}

/// Bytes of a file with these parts, which must be in the order of their contents.
pub(super) fn assemble(parts: &[Part<'_>]) -> Result<Vec<u8>, SavedError> {
    let content: usize = parts.iter().map(|part| part.bytes.len()).sum();
    let size = HEADER + parts.len() * ENTRY + content + CHECKSUM;
    let number = u32::try_from(parts.len())
        .map_err(|_| SavedError::TooLarge("it has more than 2^32 parts".into()))?;
    let mut file = Vec::with_capacity(size);
    file.extend(MAGIC);
    file.extend(VERSION.to_le_bytes());
    file.extend(number.to_le_bytes());
    file.extend((size as u64).to_le_bytes());
    for Part { content, bytes } in parts {
        let length = u32::try_from(bytes.len()).map_err(|_| {
            SavedError::TooLarge(format!("the {content} takes {} bytes", bytes.len()))
        })?;
        file.extend(length.to_le_bytes());
    }
    parts.iter().for_each(|part| file.extend(&*part.bytes));
    file.extend(checksum(&file));
    Ok(file)
}

/// Size that the header states, after checking magic and version.
pub(super) fn stated_size(header: &[u8]) -> Result<u64, SavedError> {
    let start = &header[..header.len().min(MAGIC.len())];
    if !MAGIC.starts_with(start) {
        return Err(SavedError::NotSaved);
    }
    let cut = SavedError::Truncated(header.len() as u64, HEADER as u64);
    match header.get(..12).map(|start| word(start, 8)) {
        Some(VERSION) => {}
        Some(found) => return Err(SavedError::OtherVersion(found)),
        None => return Err(cut),
    }
    let size = header.get(16..HEADER).and_then(|size| size.try_into().ok());
    size.map(u64::from_le_bytes).ok_or(cut)
}

/// Checks that the size of the file is the size that its header states.
pub(super) fn check_size(found: u64, expected: u64) -> Result<(), SavedError> {
    match found.cmp(&expected) {
        Ordering::Less => Err(SavedError::Truncated(found, expected)),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(SavedError::Altered),
    }
}

/// Parts of a file, after checking its size and checksum.
pub(super) fn take_apart(file: &[u8]) -> Result<Vec<Part<'_>>, SavedError> {
    check_size(file.len() as u64, stated_size(file)?)?;
    let (content, stated) = file.split_last_chunk().ok_or(SavedError::Altered)?;
    if content.len() < HEADER || checksum(content) != *stated {
        return Err(SavedError::Altered);
    }
    let (table, mut rest) = (word(content, 12) as usize)
        .checked_mul(ENTRY)
        .and_then(|length| content[HEADER..].split_at_checked(length))
        .ok_or_else(|| SavedError::invalid("the table of parts reaches beyond the end"))?;
    let (entries, _) = table.as_chunks();
    let entries = entries.iter().enumerate();
    let parts =
        entries.map(|(position, entry)| Part::split_off(Content::at(position), *entry, &mut rest));
    let parts = parts.collect::<Result<_, _>>()?;
    if !rest.is_empty() {
        return Err(SavedError::invalid("something follows the last part"));
    }
    Ok(parts)
}

/// Checksum of `content`.
pub(super) fn checksum(content: &[u8]) -> [u8; CHECKSUM] {
    let mut crc = Crc::new();
    crc.update(content);
    crc.sum().to_le_bytes()
}

/// The 32-bit number at an offset, which must exist.
fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..at + 4].iter().rev();
    bytes.fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Bytes that a thread reads at once.
const AT_ONCE: usize = 1 << 20;

/// A file from an offset on, so that threads share no file position.
struct FileSection<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileSection<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// First `size` bytes of a file, read by all threads.
///
/// # Errors
/// Also if the file is shorter.
pub(super) fn read_whole(file: &File, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = filled(0u8, size);
    let parts = bytes.par_chunks_mut(AT_ONCE).enumerate();
    parts.try_for_each(|(number, part)| {
        let offset = (number * AT_ONCE) as u64;
        FileSection { file, offset }.read_exact(part)
    })?;
    Ok(bytes)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
