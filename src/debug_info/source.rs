//! The bytes of a document, with a record of errors.

use std::io::{self, ErrorKind, Read};

/// A reader that stores how many bytes it read and why it stopped, since the errors of the decoder
/// do not say.
#[derive(Debug)]
pub(super) struct Source<R> {
    reader: R,
    /// Bytes read so far; at the end of the stream, its length.
    pub received: u64,
    /// Was the end of the stream reached?
    pub ended: bool,
    /// Error of the reader, if it failed.
    pub failure: Option<io::Error>,
}

impl<R> Source<R> {
    /// Reads from `reader`.
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
