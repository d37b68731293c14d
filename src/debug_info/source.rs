//! The bytes of a document, and what has come of them.

use std::io::{self, ErrorKind, Read};

/// A reader that remembers how far it came and why it stopped: errors within a
/// document do not tell.
#[derive(Debug)]
pub(super) struct Source<R> {
    reader: R,
    /// Bytes that have arrived: once the stream has ended, its length.
    pub received: u64,
    /// Whether a byte was asked for after the last one.
    pub ended: bool,
    /// Why reading failed.
    pub failure: Option<io::Error>,
}

impl<R> Source<R> {
    /// The bytes that `reader` gives.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            received: 0,
            ended: false,
            failure: None,
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(count) => {
                self.received += count as u64;
                self.ended = count == 0;
                Ok(count)
            }
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }
}
