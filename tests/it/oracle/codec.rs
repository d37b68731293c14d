//! The encodings of blobs, from the format page.

/// Reads one varint from the front: groups of 7 bits, the highest first, with the high bit on the
/// last.
fn varint(bytes: &mut std::slice::Iter<u8>) -> Option<u64> {
    let mut value = 0u64;
    let mut begun = false;
    for &byte in bytes {
        begun = true;
        value = value.checked_mul(128).expect("64 bits") + u64::from(byte & 0x7f);
        if byte >= 0x80 {
            return Some(value);
        }
    }
    assert!(!begun, "a varint without an end");
    None
}

/// Reads varints back to back.
pub fn list(blob: &[u8]) -> Vec<u64> {
    let mut bytes = blob.iter();
    std::iter::from_fn(|| varint(&mut bytes)).collect()
}

/// Reads runs. After an odd header, header / 2 values follow. After an even header, one value
/// follows, which stands for header / 2 equal values.
pub fn runs(blob: &[u8]) -> Vec<u64> {
    let mut bytes = blob.iter();
    let mut values = Vec::new();
    while let Some(header) = varint(&mut bytes) {
        let count = header / 2;
        if header % 2 == 1 {
            for _ in 0..count {
                values.push(varint(&mut bytes).expect("a literal"));
            }
        } else {
            let value = varint(&mut bytes).expect("a value");
            values.extend((0..count).map(|_| value));
        }
    }
    values
}

/// Reads runs of the differences between neighbours.
pub fn differences(blob: &[u8]) -> Vec<u64> {
    let mut values = runs(blob);
    for place in 1..values.len() {
        values[place] += values[place - 1];
    }
    values
}
