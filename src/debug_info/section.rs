//! Reading a file from any place, without a place that threads would share.

use std::fs::File;
use std::io::{self, Read};

/// A file from an offset on.
pub(super) struct FileSection<'a> {
    file: &'a File,
    offset: u64,
}

impl<'a> FileSection<'a> {
    /// What `file` holds from `offset` on, in bytes.
    pub fn new(file: &'a File, offset: u64) -> Self {
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

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
