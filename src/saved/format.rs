//! The file around the sections: header, table, frames, checksum.

use super::SavedError;
use crate::limits::{self, FRAME};
use xxhash_rust::xxh3::xxh3_64;

/// The first bytes. One has its high bit set and a line end of each kind
/// follows, so that a transfer as text is noticed at once.
pub(super) const MAGIC: [u8; 8] = *b"\x89PopL\r\n\n";

/// Changes with every change of the format.
pub(super) const VERSION: u32 = 4;

/// Magic, version, number of frames, size of the file.
pub(super) const HEADER: usize = 8 + 4 + 4 + 8;

/// Kind, stored bytes, bytes when decompressed; 32 bits each.
const ENTRY: usize = 12;

/// A 64-bit XXH3 of everything in front of it.
const CHECKSUM: usize = 8;

/// No frame holds more bytes for each of its own: a small file cannot ask for
/// much memory. The writer fills frames up that compress better.
///
/// Of items, which are most of a large file, a byte becomes 6 in memory; of all
/// else up to 40.
fn most_ratio(kind: u32) -> usize {
    let of_variables = Kind::Uses as u32..=Kind::Items as u32;
    if of_variables.contains(&kind) {
        limits::RATIO_OF_VARIABLES
    } else {
        limits::RATIO
    }
}

/// The level matters little: from 1 to 6, files of 10^7 items shrink by 3 %,
/// loading takes 5 % more processor time, and saving 30 % more.
const LEVEL: i32 = 3;

/// What a frame holds. A file has them in this order; those that are marked as
/// lists stand as often as their length asks for, all others once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(super) enum Kind {
    Shape = 1,
    /// A list.
    Operations,
    /// A list.
    Bodies,
    Classes,
    Sets,
    /// A list.
    VertexCode,
    RecordedCode,
    CodeVariables,
    /// A list.
    Programs,
    /// A list.
    RecordedTiles,
    /// A list.
    Categories,
    /// A list.
    BottleneckVariables,
    /// A list.
    Warnings,
    Origin,
    Cycles,
    /// A list.
    Labels,
    /// A list.
    Calls,
    Uses,
    Tiles,
    /// A list.
    Items,
}

impl Kind {
    /// Its name in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Shape => "shape",
            Kind::Operations => "list of operations",
            Kind::Bodies => "list of bodies",
            Kind::Classes => "table of classes",
            Kind::Sets => "table of sets",
            Kind::VertexCode => "list of vertex code",
            Kind::RecordedCode => "table of recorded code",
            Kind::CodeVariables => "table of code variables",
            Kind::Programs => "list of programs",
            Kind::RecordedTiles => "list of recorded tiles",
            Kind::Categories => "list of categories",
            Kind::BottleneckVariables => "list of bottleneck variables",
            Kind::Warnings => "list of warnings",
            Kind::Origin => "table of origins",
            Kind::Cycles => "table of cycles",
            Kind::Labels => "list of labels",
            Kind::Calls => "list of calls",
            Kind::Uses => "table of uses",
            Kind::Tiles => "table of tiles",
            Kind::Items => "list of items",
        }
    }
}

/// A compressed piece of the file, on its way out.
#[derive(Debug)]
pub(super) struct Frame {
    kind: Kind,
    /// Bytes when decompressed.
    raw: u32,
    stored: Vec<u8>,
}

impl Frame {
    /// Compresses `raw`.
    pub(super) fn new(kind: Kind, raw: &[u8]) -> Result<Self, SavedError> {
        if raw.len() > FRAME {
            let (name, length) = (kind.name(), raw.len());
            let problem = format!("the {name} takes {length} bytes, more than {FRAME}");
            return Err(SavedError::TooLarge(problem));
        }
        let mut stored = zstd::bulk::compress(raw, LEVEL)?;
        fill_up(&mut stored, raw.len().div_ceil(most_ratio(kind as u32)));
        Ok(Self {
            kind,
            raw: raw.len() as u32,
            stored,
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

/// The whole file.
pub(super) fn assemble(frames: &[Frame]) -> Result<Vec<u8>, SavedError> {
    let stored: usize = frames.iter().map(|frame| frame.stored.len()).sum();
    let size = HEADER + frames.len() * ENTRY + stored + CHECKSUM;
    let mut file = Vec::with_capacity(size);
    let number = u32::try_from(frames.len())
        .map_err(|_| SavedError::TooLarge("it has more than 2^32 parts".into()))?;
    file.extend(MAGIC);
    file.extend(VERSION.to_le_bytes());
    file.extend(number.to_le_bytes());
    file.extend((size as u64).to_le_bytes());
    for frame in frames {
        file.extend((frame.kind as u32).to_le_bytes());
        file.extend((frame.stored.len() as u32).to_le_bytes());
        file.extend(frame.raw.to_le_bytes());
    }
    for frame in frames {
        file.extend_from_slice(&frame.stored);
    }
    let checksum = xxh3_64(&file);
    file.extend(checksum.to_le_bytes());
    Ok(file)
}

/// The size that the header states, if it is one of this version.
pub(super) fn stated_size(header: &[u8]) -> Result<u64, SavedError> {
    let start = &header[..header.len().min(MAGIC.len())];
    if !MAGIC.starts_with(start) {
        let sqlite = start.starts_with(b"SQLite f");
        let hint = match sqlite {
            true => {
                ": it is an SQLite database, as every profile.pop is; leave --load-from-file out \
                 to read that"
            }
            false => "",
        };
        return Err(SavedError::NotSaved { hint });
    }
    let cut = SavedError::Truncated {
        found: header.len() as u64,
        expected: HEADER as u64,
    };
    let Some(found) = header.get(8..12) else {
        return Err(cut);
    };
    match word(found) {
        VERSION => {}
        found => {
            let known = VERSION;
            return Err(SavedError::OtherVersion { found, known });
        }
    }
    let size = header.get(16..HEADER).and_then(|size| size.try_into().ok());
    size.map(u64::from_le_bytes).ok_or(cut)
}

/// Is `found`, the size of the file, what its header states?
pub(super) fn check_size(found: u64, expected: u64) -> Result<(), SavedError> {
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(SavedError::Truncated { found, expected }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(SavedError::Altered),
    }
}

/// A frame of a file, still compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    kind: u32,
    /// Bytes when decompressed; at most [`most_ratio`] times `stored`.
    raw: usize,
    stored: &'a [u8],
}

impl<'a> Section<'a> {
    /// Does it stand before all of this kind?
    pub(super) fn is_before(&self, kind: Kind) -> bool {
        self.kind < kind as u32
    }

    /// Is it of this kind?
    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u32
    }

    /// How many bytes it has when it is decompressed.
    pub(super) fn raw(&self) -> usize {
        self.raw
    }

    /// Decompresses it into `buffer`, whose memory is used again.
    pub(super) fn decompress(&self, kind: Kind, buffer: &mut Vec<u8>) -> Result<(), SavedError> {
        buffer.clear();
        buffer.reserve_exact(self.raw);
        // The buffer may have room for more than is stated.
        let length = zstd::bulk::Decompressor::new()?
            .decompress_to_buffer(self.stored, buffer)
            .ok();
        match length == Some(self.raw) {
            true => Ok(()),
            false => Err(SavedError::Invalid(format!(
                "the {} cannot be decompressed to the {} bytes that are stated",
                kind.name(),
                self.raw
            ))),
        }
    }

    fn read(entry: &[u8], rest: &mut &'a [u8]) -> Result<Self, SavedError> {
        let (kind, stored, raw) = (word(&entry[..4]), word(&entry[4..8]), word(&entry[8..]));
        let (stored, raw) = (stored as usize, raw as usize);
        if raw > FRAME || raw > stored.saturating_mul(most_ratio(kind)) {
            let problem = format!("{stored} bytes of a frame cannot hold {raw}");
            return Err(SavedError::Invalid(problem));
        }
        let (stored, behind) = rest
            .split_at_checked(stored)
            .ok_or_else(|| SavedError::invalid("a frame reaches beyond the end"))?;
        *rest = behind;
        Ok(Self { kind, raw, stored })
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// The frames of a file, after its size and checksum were found right.
pub(super) fn take_apart(file: &[u8]) -> Result<Vec<Section<'_>>, SavedError> {
    check_size(file.len() as u64, stated_size(file)?)?;
    let end = file
        .len()
        .checked_sub(CHECKSUM)
        .filter(|&end| end >= HEADER);
    let (content, checksum) = file.split_at(end.ok_or(SavedError::Altered)?);
    if xxh3_64(content).to_le_bytes() != checksum {
        return Err(SavedError::Altered);
    }
    let number = word(&content[12..16]) as usize;
    let (table, mut rest) = number
        .checked_mul(ENTRY)
        .and_then(|length| content[HEADER..].split_at_checked(length))
        .ok_or_else(|| SavedError::invalid("the table of frames reaches beyond the end"))?;
    let entries = table.chunks_exact(ENTRY);
    let sections: Vec<Section<'_>> = entries
        .map(|entry| Section::read(entry, &mut rest))
        .collect::<Result<_, _>>()?;
    let known = Kind::Shape as u32..=Kind::Items as u32;
    if !sections.is_sorted_by_key(|section| section.kind)
        || !sections.iter().all(|section| known.contains(&section.kind))
        || !rest.is_empty()
    {
        let problem = "the frames are not in order, unknown, or followed by something else";
        return Err(SavedError::invalid(problem));
    }
    Ok(sections)
}
