//! Numbers and names in text for people.

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

/// Does a terminal do something else with this character than show it? Control
/// characters, and those that turn the direction of what follows.
pub(super) fn is_obeyed(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control()
}

/// A name from a file, with control characters written out: a terminal would
/// obey them.
pub fn printable(name: &str) -> String {
    name.chars()
        .flat_map(|c| match is_obeyed(c) {
            true => c.escape_default().collect::<Vec<char>>(),
            false => vec![c],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1234567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(
            printable("a\u{1b}[31mb\n\u{9b}é"),
            "a\\u{1b}[31mb\\n\\u{9b}é"
        );
    }
}
