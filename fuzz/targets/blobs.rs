//! Fuzzes the decoders of blobs: they never panic, never return more values than allowed, and
//! decode what was encoded again to the same values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use popliner::profile::encoding::{ValueRun, decode_list, value_runs};
use synthesize::encoding::{encode_diff_rle, encode_list, encode_rle};

fuzz_target!(|data: &[u8]| {
    let Some((&limit, blob)) = data.split_first() else {
        return;
    };
    let limit = usize::from(limit) * 8;
    if let Ok(values) = decode_list(blob, limit) {
        assert!(values.len() <= limit);
        assert_eq!(decode_list(&encode_list(&values), limit), Ok(values));
    }
    let Some(values) = expanded(blob, limit) else {
        return;
    };
    assert_eq!(
        expanded(&encode_rle(&values), limit).as_ref(),
        Some(&values)
    );
    let sums = values.iter().scan(0u64, |sum, value| {
        *sum = sum.checked_add(*value)?;
        Some(*sum)
    });
    let sums: Vec<u64> = sums.collect();
    let differences = expanded(&encode_diff_rle(&sums), limit);
    assert_eq!(differences.as_deref(), Some(&values[..sums.len()]));
});

/// Expands a run-length list; `None` if it is damaged, or has more than `limit` values.
fn expanded(blob: &[u8], limit: usize) -> Option<Vec<u64>> {
    let mut values = Vec::new();
    for run in value_runs(blob) {
        let ValueRun { count, value } = run.ok()?;
        if count > (limit - values.len()) as u64 {
            return None;
        }
        values.resize(values.len() + count as usize, value);
    }
    Some(values)
}
