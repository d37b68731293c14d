//! Numbers and lists in sentences.

/// A number with its digits in groups of three: `638,976`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`; of more than a reader wants,
/// the first and how many more there are.
pub fn listed(names: &[String]) -> String {
    const MAX: usize = 8;
    match names.len().checked_sub(MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..MAX].join(", ")),
        _ => joined(names, "and"),
    }
}

/// All names in a sentence, `last` before the last of them: `a, b or c`.
pub fn joined(names: &[String], last: &str) -> String {
    match names.split_last() {
        Some((own, [])) => own.clone(),
        Some((own, others)) => format!("{} {last} {own}", others.join(", ")),
        None => String::new(),
    }
}

/// In tenths of a per cent, rounded up: what is over the whole never shows as
/// 100 %.
pub fn share(bytes: u64, whole: u64) -> String {
    let tenths = (u128::from(bytes) * 1000).div_ceil(u128::from(whole.max(1)));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
