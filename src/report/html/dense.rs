//! Long lists of numbers as short texts for the script: two or three characters for most.
//! `plain` and `unpacked` of `scripts/page.js` read them.
//!
//! A digit is below 45. The characters from space to `~` but `"`, `&`, `<`, `>` and `\`,
//! which JSON or the page would write longer, are 90: the first 45 are the digits of
//! which more follow in the same number, the lowest first, and the others the last ones.

/// Numbers of a list must be below: a change and its sign have one bit more, and a
/// browser has 53.
pub(super) const MAX_NUMBER: u64 = 1 << 52;

const BASE: u64 = 45;

/// Neighbours that differ little: the first number, and by how much each is more than
/// the one before (`2n`) or less (`2n - 1`). A change of 0 is written once for all that follow
/// it without another, with their number less 1 after it.
pub(super) fn changes(numbers: impl IntoIterator<Item: Into<u64>>) -> String {
    let mut text = String::new();
    let (mut before, mut same) = (0, 0u64);
    let end_run = |text: &mut String, same: &mut u64| {
        if *same > 0 {
            push(text, 0);
            push(text, *same - 1);
        }
        *same = 0;
    };
    for number in numbers {
        let number = number.into();
        if number == before {
            same += 1;
            continue;
        }
        end_run(&mut text, &mut same);
        let far = number.abs_diff(before).saturating_mul(2);
        push(&mut text, if number > before { far } else { far - 1 });
        before = number;
    }
    end_run(&mut text, &mut same);
    text
}

/// Numbers that have nothing to do with each other.
pub(super) fn plain(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut text = String::new();
    for number in numbers {
        push(&mut text, number);
    }
    text
}

fn push(text: &mut String, mut number: u64) {
    while number >= BASE {
        text.push(character(number % BASE));
        number /= BASE;
    }
    text.push(character(number + BASE));
}

/// The character with this number, below 90.
fn character(number: u64) -> char {
    let mut byte = b' ' + number as u8;
    // The five that are left out, ascending.
    for skipped in [b'"', b'&', b'<', b'>', b'\\'] {
        byte += u8::from(byte >= skipped);
    }
    char::from(byte)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the script reads them.
    pub(in crate::report::html) fn read_plain(text: &str) -> Vec<u64> {
        let (mut numbers, mut sum, mut scale) = (Vec::new(), 0, 1);
        for own in text.chars() {
            let number = (0..90).find(|&number| character(number) == own).unwrap();
            sum += number % BASE * scale;
            scale *= BASE;
            if number >= BASE {
                numbers.push(sum);
                (sum, scale) = (0, 1);
            }
        }
        numbers
    }

    /// The same for changes.
    pub(in crate::report::html) fn read_changes(text: &str) -> Vec<u64> {
        let mut numbers = Vec::new();
        let mut last = 0u64;
        let mut all = read_plain(text).into_iter();
        while let Some(change) = all.next() {
            last = match change % 2 {
                0 => last + change / 2,
                _ => last - change.div_ceil(2),
            };
            let more = if change == 0 { all.next().unwrap() } else { 0 };
            numbers.extend(std::iter::repeat_n(last, more as usize + 1));
        }
        numbers
    }

    #[test]
    fn the_characters_are_all_that_json_and_a_page_leave_alone() {
        let all: String = (0..90).map(character).collect();
        let plain: String = (' '..='~').filter(|c| !"\"&<>\\".contains(*c)).collect();
        assert_eq!(all, plain);
    }

    #[test]
    fn equal_numbers_take_no_room() {
        assert_eq!(changes([0u64; 1000]).len(), 3);
        assert_eq!(changes([638_976u64; 1000]).len(), 4 + 3);
        assert_eq!(changes([0u64; 0]), "");
    }

    proptest! {
        #[test]
        fn numbers_read_back(
            some in proptest::collection::vec(prop_oneof![0..3u64, 0..2000u64, 0..MAX_NUMBER], 0..40),
        ) {
            prop_assert_eq!(&read_plain(&plain(some.iter().copied())), &some);
            prop_assert_eq!(&read_changes(&changes(some.iter().copied())), &some);
        }
    }
}
