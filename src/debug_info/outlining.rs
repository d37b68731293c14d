//! The lists of ids that PopART writes as text.

/// Parses `[12,13]`, with spaces allowed anywhere between its parts; `None` if
/// it is anything else. `[]` is the empty list.
pub(super) fn parse_ids(text: &str) -> Option<Vec<u64>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(parse_id).collect()
}

fn parse_id(text: &str) -> Option<u64> {
    let digits = text.trim();
    // `parse` alone would let a plus sign pass.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
