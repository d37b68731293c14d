//! Decodes the blobs of `profile.pop`.
//!
//! * **varint**: an unsigned number in big-endian groups of 7 bits, one group per byte. The high
//!   bit marks the *last* byte. The bytes `80` are 0, `81` are 1, and `01 96` are 150.
//! * **list**: varints back to back.
//! * **run-length list**: a sequence of runs. A run begins with a header `h`, a varint, and
//!   `n = h >> 1`. If `h & 1` is set, `n` literal varints follow; otherwise one varint follows,
//!   which stands for `n` equal values.
//! * **difference list**: a run-length list of the differences between adjacent values.
//!
//! A few bytes can stand for 2^60 values. So a list is only decoded up to a bound, which the caller
//! takes from the target (tiles) or the profile (ids), and [`value_runs`] does not expand runs.

use std::iter::from_fn;
use thiserror::Error;

/// The reason why a blob of a profile cannot be decoded.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum BlobError {
    /// The blob ends in the middle of a number (varint), or has fewer values than a header of its
    /// run-length list announces.
    #[error("it is cut off in the middle of a value")]
    Truncated,
    /// The blob has a number that does not fit 64 bits: a varint, or a sum of the differences in a
    /// difference list.
    #[error("it holds a value beyond 64 bits")]
    Overflow,
    /// The blob has more values than the caller of the decoder allows. The field is this limit.
    #[error("it expands to more than {0} values")]
    TooLong(usize),
    /// The blob says that one tile has 2^32 or more bytes or vertices, which no tile can have. The
    /// field of the error is this number of bytes or vertices.
    #[error("it gives {0} to one tile, more than any tile has")]
    BeyondTile(u64),
    /// The number of values in the blob (first field) differs from the number of tiles (second
    /// field), although each tile must have one value.
    #[error("it holds {0} values instead of {1}")]
    WrongLength(usize, usize),
}

/// Iterates over the numbers in `blob`, a list of varints. A varint is a sequence of bytes with 7
/// bits of the number in each byte; the high bit marks the last byte.
pub fn varints(blob: &[u8]) -> impl Iterator<Item = Result<u64, BlobError>> {
    let mut bytes = blob.iter();
    from_fn(move || {
        let mut value = 0u64;
        let mut byte = bytes.next()?;
        loop {
            if value >> 57 != 0 {
                return Some(Err(BlobError::Overflow));
            }
            value = value << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                return Some(Ok(value));
            }
            match bytes.next() {
                Some(next) => byte = next,
                None => return Some(Err(BlobError::Truncated)),
            }
        }
    })
}

/// Appends `value` to `blob` as a varint, which [`varints`] decodes.
pub fn push_varint(blob: &mut Vec<u8>, value: u64) {
    let groups = (64 - value.leading_zeros()).div_ceil(7).max(1);
    for group in (1..groups).rev() {
        blob.push((value >> (7 * group)) as u8 & 0x7f);
    }
    blob.push(value as u8 & 0x7f | 0x80);
}

/// A run of a run-length list: a value and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRun {
    /// How often the value is repeated; at least 1.
    pub count: u64,
    /// The value that is repeated `count` times.
    pub value: u64,
}

/// Iterates over the runs of `blob`, a run-length list, without expanding them. The list is a
/// sequence of headers `h`. If `h` is odd, `h >> 1` literal varints follow it; otherwise one varint
/// follows, which stands for `h >> 1` equal values. Each literal is returned as a run of one value;
/// empty runs are skipped.
pub fn value_runs(blob: &[u8]) -> impl Iterator<Item = Result<ValueRun, BlobError>> {
    let mut varints = varints(blob);
    // Number of literal (not repeated) values that remain to be read before the next header.
    let mut literals = 0u64;
    from_fn(move || {
        loop {
            let mut count = 1;
            if literals > 0 {
                literals -= 1;
            } else {
                let header = match varints.next()? {
                    Ok(header) => header,
                    Err(error) => return Some(Err(error)),
                };
                count = header >> 1;
                if header & 1 == 1 {
                    literals = count;
                    continue;
                }
            }
            let value = varints.next().unwrap_or(Err(BlobError::Truncated));
            let run = value.map(|value| ValueRun { count, value });
            if count > 0 || run.is_err() {
                return Some(run);
            }
        }
    })
}

/// Decodes a list of varints.
///
/// # Errors
/// If the list has more than `limit` values, or ends within a value.
pub fn decode_list(blob: &[u8], limit: usize) -> Result<Vec<u64>, BlobError> {
    let mut values = Vec::new();
    for value in varints(blob) {
        if values.len() == limit {
            return Err(BlobError::TooLong(limit));
        }
        values.push(value?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use synthesize::encoding::{encode_diff_rle, encode_list, encode_rle};

    fn decode_rle(blob: &[u8], limit: usize) -> Result<Vec<u64>, BlobError> {
        let mut values = Vec::new();
        for run in value_runs(blob) {
            let ValueRun { count, value } = run?;
            if count > (limit - values.len()) as u64 {
                return Err(BlobError::TooLong(limit));
            }
            values.resize(values.len() + count as usize, value);
        }
        Ok(values)
    }

    fn decode_diff_rle(blob: &[u8], limit: usize) -> Result<Vec<u64>, BlobError> {
        let mut sum = 0u64;
        let differences = decode_rle(blob, limit)?.into_iter();
        let sums = differences.map(|value| {
            sum = sum.checked_add(value).ok_or(BlobError::Overflow)?;
            Ok(sum)
        });
        sums.collect()
    }

    #[test]
    fn the_examples_of_the_format_page() {
        for (bytes, value) in [(&[0x80][..], 0), (&[0x81], 1), (&[0x01, 0x96], 150)] {
            assert_eq!(decode_list(bytes, 1), Ok(vec![value]));
            assert_eq!(encode_list(&[value]), bytes);
        }
    }

    #[test]
    fn runs_and_literals() {
        // The run-length list has two runs. The header 5 announces two literal values, 1 and 2;
        // the header 6 announces that the next value, 9, is repeated three times.
        let blob = [0x85, 0x81, 0x82, 0x86, 0x89];
        assert_eq!(decode_rle(&blob, 5), Ok(vec![1, 2, 9, 9, 9]));
        assert_eq!(encode_rle(&[1, 2, 9, 9, 9]), blob);
        assert_eq!(decode_diff_rle(&blob, 5), Ok(vec![1, 3, 12, 21, 30]));
    }

    #[test]
    fn damaged_blobs_are_errors_and_never_expand() {
        assert_eq!(decode_list(&[0x01], 9), Err(BlobError::Truncated));
        assert_eq!(decode_rle(&[0x85, 0x81], 9), Err(BlobError::Truncated));
        assert_eq!(decode_rle(&[0x86], 9), Err(BlobError::Truncated));
        assert_eq!(decode_list(&[0x7f; 11], 9), Err(BlobError::Overflow));
        assert_eq!(decode_list(&[0x81; 3], 2), Err(BlobError::TooLong(2)));
        let mut huge = Vec::new();
        push_varint(&mut huge, 1 << 61);
        push_varint(&mut huge, 1);
        assert_eq!(decode_rle(&huge, 1472), Err(BlobError::TooLong(1472)));
        assert_eq!(decode_diff_rle(&huge, 1472), Err(BlobError::TooLong(1472)));
    }

    #[test]
    fn empty_runs_end() {
        // This run-length list has two empty runs. The header 0 (0x80) means that the next value, 1
        // (0x81), is repeated 0 times. The header 1 (the second 0x81) begins a run of 0 listed
        // values.
        assert_eq!(decode_rle(&[0x80, 0x81, 0x81], 4), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn lists_round_trip(values in proptest::collection::vec(any::<u64>(), 0..50)) {
            prop_assert_eq!(decode_list(&encode_list(&values), 50), Ok(values));
        }

        #[test]
        fn run_length_lists_round_trip(values in proptest::collection::vec(0u64..4, 0..200)) {
            prop_assert_eq!(decode_rle(&encode_rle(&values), 200), Ok(values));
        }

        #[test]
        fn ascending_ids_round_trip(mut ids in proptest::collection::vec(0u64..500, 0..100)) {
            ids.sort_unstable();
            prop_assert_eq!(decode_diff_rle(&encode_diff_rle(&ids), 100), Ok(ids));
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for values in [decode_list(&bytes, 99), decode_rle(&bytes, 99), decode_diff_rle(&bytes, 99)] {
                prop_assert!(values.is_err() || values.unwrap().len() <= 99);
            }
        }
    }
}
