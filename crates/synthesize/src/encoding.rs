//! Encodes the blobs of `profile.pop` (`src/profile/encoding.rs` decodes them). The library is not
//! used here, so that the generator neither waits for it nor is rebuilt after it.

/// Appends `value` to `blob` as a varint, groups of 7 bits, the high bit marks the last byte.
pub fn push_varint(blob: &mut Vec<u8>, value: u64) {
    let groups = (64 - value.leading_zeros()).div_ceil(7).max(1);
    for group in (1..groups).rev() {
        blob.push((value >> (7 * group)) as u8 & 0x7f);
    }
    blob.push(value as u8 & 0x7f | 0x80);
}

/// Encodes values as a list of varints.
pub fn encode_list(values: &[u64]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(values.len());
    for &value in values {
        push_varint(&mut blob, value);
    }
    blob
}

/// Encodes values as a run-length list: three or more equal
/// values in a row become a run, all others literals.
pub fn encode_rle(values: &[u64]) -> Vec<u8> {
    let mut blob = Vec::new();
    let mut literals: Vec<u64> = Vec::new();
    for group in values.chunk_by(|a, b| a == b) {
        if group.len() < 3 {
            literals.extend(group);
            continue;
        }
        push_literals(&mut blob, &mut literals);
        push_varint(&mut blob, (group.len() as u64) << 1);
        push_varint(&mut blob, group[0]);
    }
    push_literals(&mut blob, &mut literals);
    blob
}

/// Appends `literals` to `blob` as literals of a run-length list, and empties them.
fn push_literals(blob: &mut Vec<u8>, literals: &mut Vec<u64>) {
    if literals.is_empty() {
        return;
    }
    push_varint(blob, (literals.len() as u64) << 1 | 1);
    for value in literals.drain(..) {
        push_varint(blob, value);
    }
}

/// Encodes ascending ids as a run-length list of the differences between adjacent ids, the first
/// one from 0.
///
/// # Panics
/// If `ids` do not ascend.
pub fn encode_diff_rle(ids: &[u64]) -> Vec<u8> {
    let mut previous = 0;
    let differences: Vec<u64> = ids
        .iter()
        .map(|&id| id - std::mem::replace(&mut previous, id))
        .collect();
    encode_rle(&differences)
}
