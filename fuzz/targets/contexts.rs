//! Fuzzes the reader of `debug.cbor`: it never panics, holds nothing that exceeds the bytes of the
//! input, and every chain of parents ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use popliner::debug_info::{ContextField, DebugInfo};

const FIELDS: [ContextField; 9] = [
    ContextField::Api,
    ContextField::OpName,
    ContextField::HloName,
    ContextField::Opid,
    ContextField::InstanceId,
    ContextField::TensorId,
    ContextField::Inputs,
    ContextField::OutlinedIds,
    ContextField::ReplacedIds,
];

fuzz_target!(|data: &[u8]| {
    let Ok(info) = DebugInfo::from_reader(data) else {
        return;
    };
    // The shortest context is a map of an id.
    assert!(info.len() <= data.len() / 5 + 1);
    let mut found = 0;
    for id in (0..300).chain([1 << 31, 1 << 32, u64::MAX]) {
        let chain: Vec<_> = info.chain(id).collect();
        assert!(chain.len() <= info.len());
        let Some(&own) = chain.first() else { continue };
        found += 1;
        assert_eq!(info.id(own), id);
        assert!(info.name(own).len() <= data.len());
        for field in FIELDS {
            assert!(info.text(own, field).unwrap_or("").len() <= data.len());
        }
        assert!(info.outlined_pairs(own).len() <= data.len());
    }
    assert!(found <= info.len());
    assert!(info.damage().len() <= 6);
});
