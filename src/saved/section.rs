//! Reads a file at given offsets, so that threads share no file position.

use crate::parallel::filled;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Read};

/// Bytes that a thread reads at once.
const AT_ONCE: usize = 1 << 20;

/// A file from an offset on.
struct FileSection<'a> {
    file: &'a File,
    offset: u64,
}

impl<'a> FileSection<'a> {
    /// Content of `file` from the byte `offset` on.
    fn new(file: &'a File, offset: u64) -> Self {
        Self { file, offset }
    }
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
        FileSection::new(file, (number * AT_ONCE) as u64).read_exact(part)
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
