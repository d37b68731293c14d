//! The pieces that sections are made of: numbers, text, values by tile.
//!
//! Numbers are LEB128 varints: 7 bits in each byte, the lowest first, and the
//! high bit set on all but the last.

use super::SavedError;
use crate::profile::{TileBytes, TileRun};

/// Collects the bytes of one section.
#[derive(Debug, Default)]
pub(super) struct Output(pub(super) Vec<u8>);

impl Output {
    #[inline]
    pub(super) fn number(&mut self, value: impl Into<u64>) {
        let mut value = value.into();
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn length(&mut self, value: usize) {
        self.number(value as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// The number of runs, and for each the tiles between it and the run
    /// before it, how many tiles it covers, and its value.
    pub(super) fn tile_bytes(&mut self, bytes: &TileBytes) {
        self.length(bytes.runs().len());
        let mut end = 0;
        for run in bytes.runs() {
            self.number(run.from - end);
            self.number(run.to - run.from);
            self.number(run.value);
            end = run.to;
        }
    }
}

/// Reads one section; nothing is allocated beyond what its bytes can fill.
#[derive(Debug)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
    /// The name of the section, for errors.
    section: &'static str,
}

impl<'a> Input<'a> {
    pub(super) fn new(section: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            section,
        }
    }

    /// An error that names the section.
    #[cold]
    pub(super) fn problem(&self, problem: &str) -> SavedError {
        SavedError::invalid(format!("the {}: {problem}", self.section))
    }

    /// The next number of up to 64 bits.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, SavedError> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, SavedError> {
        let mut value = 0;
        for (place, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * place as u32;
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Ok(value);
            }
        }
        Err(self.problem("a number has no end or more than 64 bits"))
    }

    /// The next number, which must fit in 32 bits.
    #[inline]
    pub(super) fn small(&mut self) -> Result<u32, SavedError> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.problem("a number has more than 32 bits"))
    }

    /// The next number, which must be below `end`: a position in a list.
    #[inline]
    pub(super) fn position(&mut self, end: u32, of: &str) -> Result<u32, SavedError> {
        match self.number()? {
            value if value < u64::from(end) => Ok(value as u32),
            value => Err(self.problem(&format!("there is no {of} {value}, only {end}"))),
        }
    }

    /// How many things follow, each of which takes `each` bytes or more.
    pub(super) fn count(&mut self, each: usize) -> Result<usize, SavedError> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() / each => Ok(count),
            _ => Err(self.problem(&format!("it is too short for {count} entries"))),
        }
    }

    /// The next `length` bytes.
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], SavedError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.problem("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, SavedError> {
        let length = self.count(1)?;
        let bytes = self.bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.problem("a text is not UTF-8"))
    }

    pub(super) fn tile_bytes(&mut self, tiles: u32) -> Result<TileBytes, SavedError> {
        let count = self.count(3)?;
        let mut runs = Vec::with_capacity(count);
        let mut end = 0u32;
        for _ in 0..count {
            let (gap, length, value) = (self.small()?, self.small()?, self.small()?);
            let from = end.checked_add(gap);
            let ends = from.and_then(|from| Some((from, from.checked_add(length)?)));
            let (from, to) = ends.ok_or_else(|| self.problem("a tile has more than 32 bits"))?;
            runs.push(TileRun { from, to, value });
            end = to;
        }
        TileBytes::from_runs(runs, tiles)
            .ok_or_else(|| self.problem("values by tile are not in order or beyond the last tile"))
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Nothing may be left.
    pub(super) fn finish(self) -> Result<(), SavedError> {
        match self.rest {
            [] => Ok(()),
            rest => Err(self.problem(&format!("{} bytes too many", rest.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(bytes: &[u8]) -> Input<'_> {
        Input::new("test", bytes)
    }

    #[test]
    fn numbers_without_end_or_beyond_64_bits_are_errors() {
        assert!(input(&[]).number().is_err());
        assert!(input(&[0x80]).number().is_err());
        assert!(input(&[0xff; 20]).number().is_err());
        let mut highest = [0xff; 10];
        highest[9] = 1;
        assert_eq!(input(&highest).number().unwrap(), u64::MAX);
        highest[9] = 2;
        assert!(input(&highest).number().is_err());
        assert!(input(&highest).small().is_err());
    }

    #[test]
    fn counts_and_texts_are_held_against_what_is_left() {
        assert_eq!(input(&[2, 0, 0, 0, 0]).count(2).unwrap(), 2);
        assert!(input(&[3, 0, 0, 0, 0]).count(2).is_err());
        assert_eq!(input(b"\x02abc").text().unwrap(), "ab");
        assert!(input(b"\x04abc").text().is_err());
        assert!(input(b"\x01\xff").text().is_err());
        assert_eq!(input(&[4]).position(5, "body").unwrap(), 4);
        let error = input(&[5]).position(5, "body").unwrap_err().to_string();
        assert!(error.contains("the test: there is no body 5"), "{error}");
    }

    #[test]
    fn runs_that_no_tile_bytes_can_have_are_errors() {
        // Beyond the tiles, empty, 0, and two runs that would be one.
        for runs in [
            &[1, 8, 3, 1][..],
            &[1, 0, 0, 1],
            &[1, 0, 1, 0],
            &[2, 0, 1, 7, 0, 1, 7],
        ] {
            assert!(input(runs).tile_bytes(10).is_err(), "{runs:?}");
        }
        let bytes = input(&[2, 0, 1, 7, 0, 1, 8]).tile_bytes(10).unwrap();
        assert_eq!((bytes.get(0), bytes.get(1), bytes.get(2)), (7, 8, 0));
    }

    proptest! {
        #[test]
        fn numbers_come_back(values in proptest::collection::vec(any::<u64>(), 0..20), shift in 0u32..64) {
            let mut output = Output::default();
            for &value in &values {
                output.number(value >> shift);
            }
            let mut input = input(&output.0);
            for &value in &values {
                prop_assert_eq!(input.number().unwrap(), value >> shift);
            }
            prop_assert!(input.finish().is_ok());
        }
    }
}
