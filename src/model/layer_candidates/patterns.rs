//! Numbers in the names of operations, and the patterns of text that they fill.

/// More numbers of one name are not looked at.
const MAX_NUMBERS: usize = 8;
/// Longer ones are dates or addresses, and no layers.
pub(super) const MAX_DIGITS: usize = 5;
/// How far apart the two numbers of a pair may be, in bytes.
const MAX_BETWEEN: usize = 64;
/// Characters between a word and its number, and between words.
const SEPARATORS: [u8; 6] = [b'/', b'.', b'_', b'-', b' ', b':'];

/// Text around numbers that may be those of layers: `layer/` before one number, or
/// `stage` before one and `/block` before a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NumberPattern<'a> {
    /// The text before the first number: letters, and what separates them from it.
    /// Where the number is all of a part of a path, `/` or `.` alone.
    pub(super) label: &'a str,
    /// Is the number all of a part of a path, whatever is before it?
    pub(super) is_part: bool,
    /// The separator between the label and the word before it, where that word is
    /// part of what tells layers apart, as in `encoder/layer/0` and
    /// `decoder/layer/0`.
    pub(super) after_word: Option<&'a str>,
    /// The text between both numbers, where there are two.
    pub(super) between: Option<&'a str>,
}

impl<'a> NumberPattern<'a> {
    /// An order of patterns, the plainest first.
    pub(super) fn rank(&self) -> (Option<&'a str>, Option<&'a str>, bool, &'a str) {
        (self.after_word, self.between, self.is_part, self.label)
    }
}

/// The parts of one name that fill a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Filling<'a> {
    /// The word before the label; empty where the pattern has none.
    pub(super) word: &'a str,
    /// The first number.
    pub(super) first: &'a str,
    /// The second number; empty where there is none.
    pub(super) second: &'a str,
}

/// A number in a name, as its first byte and the one after it.
#[derive(Clone, Copy)]
struct Number {
    from: usize,
    to: usize,
}

/// The patterns that a name fills, each with what fills it. Those that it fills in
/// two different ways are left out: a regex would match twice, and no layer would
/// be told (docs/model.md, "Layers").
pub(super) fn of_name(name: &str) -> Vec<(NumberPattern<'_>, Filling<'_>)> {
    let mut found: Vec<(NumberPattern<'_>, Filling<'_>)> = Vec::new();
    let mut ambiguous: Vec<NumberPattern<'_>> = Vec::new();
    for (pattern, filling) in all(name) {
        match found.iter().find(|(other, _)| *other == pattern) {
            None => found.push((pattern, filling)),
            Some((_, other)) if *other == filling => {}
            Some(_) => ambiguous.push(pattern),
        }
    }
    found.retain(|(pattern, _)| !ambiguous.contains(pattern));
    found
}

fn all(name: &str) -> Vec<(NumberPattern<'_>, Filling<'_>)> {
    let numbers = numbers(name);
    let text = |number: Number| &name[number.from..number.to];
    let mut all = Vec::new();
    for (place, &number) in numbers.iter().enumerate() {
        let filling = Filling {
            word: "",
            first: text(number),
            second: "",
        };
        all.extend(part(name, number).map(|pattern| (pattern, filling)));
        let Some(single) = single(name, number) else {
            continue;
        };
        all.push((single, filling));
        all.extend(with_word(name, number, single, filling));
        for &second in numbers.iter().skip(place + 1).take(2) {
            let between = &name[number.to..second.from];
            if between.len() <= MAX_BETWEEN {
                let pattern = NumberPattern {
                    between: Some(between),
                    ..single
                };
                let second = text(second);
                all.push((pattern, Filling { second, ..filling }));
            }
        }
    }
    all
}

/// The runs of digits.
fn numbers(name: &str) -> Vec<Number> {
    let bytes = name.as_bytes();
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(skipped) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let from = at + skipped;
        let digits = bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        at = from + digits.count();
        if at - from <= MAX_DIGITS {
            numbers.push(Number { from, to: at });
        }
        if numbers.len() == MAX_NUMBERS {
            break;
        }
    }
    numbers
}

/// The pattern of one number by the word before it, if there is one.
fn single(name: &str, number: Number) -> Option<NumberPattern<'_>> {
    let bytes = name.as_bytes();
    let separated = before_separator(bytes, number.from);
    let from = word_before(bytes, separated);
    (from < separated).then(|| NumberPattern {
        label: &name[from..number.from],
        is_part: false,
        after_word: None,
        between: None,
    })
}

/// The pattern of a number that is all of a part of a path, as in a sequence of
/// modules that have no names.
fn part(name: &str, number: Number) -> Option<NumberPattern<'_>> {
    let separator = name[number.to..].chars().next();
    let separator = separator.filter(|separator| matches!(separator, '/' | '.'))?;
    let before = &name[..number.from];
    (before.is_empty() || before.ends_with(separator)).then(|| NumberPattern {
        label: &name[number.to..number.to + 1],
        is_part: true,
        after_word: None,
        between: None,
    })
}

/// The label with the word before it, where there is one.
fn with_word<'a>(
    name: &'a str,
    number: Number,
    single: NumberPattern<'a>,
    filling: Filling<'a>,
) -> Option<(NumberPattern<'a>, Filling<'a>)> {
    let bytes = name.as_bytes();
    let label = number.from - single.label.len();
    let to = before_separator(bytes, label);
    let from = word_before(bytes, to);
    (from < to && to < label).then(|| {
        let pattern = NumberPattern {
            after_word: Some(&name[to..label]),
            ..single
        };
        let word = &name[from..to];
        (pattern, Filling { word, ..filling })
    })
}

/// Where the separator begins that ends before `to`; `to` where there is none.
fn before_separator(bytes: &[u8], to: usize) -> usize {
    let separator = bytes[..to].last();
    let is_separated = separator.is_some_and(|byte| SEPARATORS.contains(byte));
    to - usize::from(is_separated)
}

/// Where the letters begin that end before `to`. Bytes beyond ASCII are letters, so
/// that no character is torn apart.
fn word_before(bytes: &[u8], to: usize) -> usize {
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    to - bytes[..to].iter().rev().take_while(is_letter).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The patterns with what fills them, `#` for numbers and `@` for a word.
    fn formatted(name: &str) -> Vec<String> {
        let found = of_name(name).into_iter();
        let formatted = found.map(|(pattern, filling)| {
            let begins = if pattern.is_part { "..." } else { "" };
            let word = pattern.after_word.map(|after| format!("@{after}"));
            let second = pattern.between.map(|between| format!("{between}#"));
            let filled = [filling.word, filling.first, filling.second];
            let filled: Vec<_> = filled.into_iter().filter(|text| !text.is_empty()).collect();
            format!(
                "{begins}{}{}#{} = {}",
                word.unwrap_or_default(),
                pattern.label,
                second.unwrap_or_default(),
                filled.join(" ")
            )
        });
        formatted.collect()
    }

    #[test]
    fn a_number_belongs_to_the_word_before_it() {
        assert_eq!(formatted("IO in CS 1"), ["CS # = 1", "@ CS # = in 1"]);
        assert_eq!(formatted("Layer12/Add"), ["Layer# = 12"]);
        assert_eq!(
            formatted("encoder/layer/3/Add"),
            [".../# = 3", "layer/# = 3", "@/layer/# = encoder 3"]
        );
        assert_eq!(formatted("fc"), [""; 0]);
        assert_eq!(formatted("0/conv"), [".../# = 0"]);
        assert_eq!(formatted("net.7.conv"), ["....# = 7", "net.# = 7"]);
        assert_eq!(formatted("größe_04"), ["größe_# = 04"]);
    }

    #[test]
    fn two_numbers_make_a_pair() {
        assert_eq!(
            formatted("conv_res_block3.res4/Add"),
            [
                "block# = 3",
                "@_block# = res 3",
                "block#.res# = 3 4",
                "res# = 4"
            ]
        );
        assert_eq!(
            formatted("layer1/0/conv"),
            ["layer# = 1", "layer#/# = 1 0", ".../# = 0"]
        );
    }

    #[test]
    fn what_matches_twice_tells_no_layer() {
        assert_eq!(formatted("conv1/conv2"), ["conv#/conv# = 1 2"]);
        assert_eq!(formatted("conv2/conv2").len(), 2);
    }

    #[test]
    fn dates_and_endless_lists_of_numbers_are_cut_short() {
        assert_eq!(formatted("run_20231105123456/Add"), [""; 0]);
        let long: String = (0..100).map(|number| format!("a{number}/")).collect();
        assert!(formatted(&long).len() < 40);
    }
}
