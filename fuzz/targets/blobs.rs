//! The decoders of blobs: no panic, never more values than allowed, and what
//! is encoded again decodes to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use popliner::profile::encoding::{
    Run, Runs, decode_diff_rle, decode_list, decode_rle, encode_diff_rle, encode_list, encode_rle,
};

fuzz_target!(|data: &[u8]| {
    let Some((&limit, blob)) = data.split_first() else {
        return;
    };
    let limit = usize::from(limit) * 8;
    if let Ok(values) = decode_list(blob, limit) {
        assert!(values.len() <= limit);
        assert_eq!(decode_list(&encode_list(&values), limit), Ok(values));
    }
    if let Ok(values) = decode_rle(blob, limit) {
        assert!(values.len() <= limit);
        assert_eq!(decode_rle(&encode_rle(&values), limit), Ok(values.clone()));
        assert_eq!(expanded(blob), values);
    }
    if let Ok(sums) = decode_diff_rle(blob, limit) {
        assert!(sums.len() <= limit && sums.is_sorted());
        assert_eq!(decode_diff_rle(&encode_diff_rle(&sums), limit), Ok(sums));
    }
});

/// The same by the runs, for a blob that is known to be short.
fn expanded(blob: &[u8]) -> Vec<u64> {
    let runs = Runs::new(blob).map(|run| run.expect("a sound blob"));
    let values = runs.flat_map(|Run { count, value }| std::iter::repeat_n(value, count as usize));
    values.collect()
}
