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

/// A number of things, with the plural form: `1 IPU`, `1,472 tiles`, `7 micro-batches`.
pub fn counted(number: impl TryInto<u64>, thing: &str) -> String {
    // No number of things exceeds 64 bits.
    let number = number.try_into().unwrap_or(u64::MAX);
    let things = match thing.strip_suffix('y') {
        _ if number == 1 => thing.to_string(),
        Some(start) => format!("{start}ies"),
        None if thing.ends_with("ch") => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    format!("{} {things}", grouped(number))
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`; of more than 8 names, the first 8 and the
/// number of others.
pub fn listed(names: &[String]) -> String {
    const MAX: usize = 8;
    match names.len().checked_sub(MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..MAX].join(", ")),
        _ => joined(names, "and"),
    }
}

/// All names in a sentence, with `last` before the last one: `a, b or c`.
pub fn joined(names: &[String], last: &str) -> String {
    match names.split_last() {
        Some((only, [])) => only.clone(),
        Some((last_item, others)) => format!("{} {last} {last_item}", others.join(", ")),
        None => String::new(),
    }
}

/// The text with its first letter, after any indent, in upper case.
pub fn capital(text: &str) -> String {
    let start = text.len() - text.trim_start().len();
    let (indent, words) = text.split_at(start);
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => format!("{indent}{}{}", first.to_uppercase(), characters.as_str()),
        None => text.to_string(),
    }
}

/// Share of `whole` in tenths of a per cent, rounded up, so that a share above the whole never
/// shows as 100 %.
pub fn share(bytes: u64, whole: u64) -> String {
    let tenths = (u128::from(bytes) * 1000).div_ceil(u128::from(whole.max(1)));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_many() {
        let cases = [
            (0, "IPU", "0 IPUs"),
            (1, "IPU", "1 IPU"),
            (1472, "tile", "1,472 tiles"),
            (1, "micro-batch", "1 micro-batch"),
            (7, "micro-batch", "7 micro-batches"),
            (2, "more copy", "2 more copies"),
        ];
        for (number, thing, text) in cases {
            assert_eq!(counted(number, thing), text);
        }
    }

    #[test]
    fn lists_end_with_the_last_or_with_how_many_more() {
        let names = |count: u32| (0..count).map(|own| own.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(&names(0)), "");
        assert_eq!(listed(&names(3)), "0, 1 and 2");
        assert_eq!(joined(&names(2), "or"), "0 or 1");
        assert_eq!(listed(&names(10)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
