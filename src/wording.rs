//! Writes numbers, amounts of bytes, names and lists in text for people.

use crate::escape::printable;
use clap::ValueEnum;
use indicatif::HumanCount;
use std::fmt::Display;

/// Writes a number with its digits in groups of three, such as `638,976`.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Writes a number and the noun for what it counts, in the plural unless the number is 1: `1 IPU`,
/// `1,472 tiles`, `7 micro-batches`. `thing` is the noun in the singular.
pub fn counted(number: impl TryInto<u64>, thing: &str) -> String {
    // All counts fit 64 bits, so the fallback `u64::MAX` is never used.
    let number = number.try_into().unwrap_or(u64::MAX);
    let things = match thing.strip_suffix('y') {
        _ if number == 1 => thing.to_string(),
        Some(start) => format!("{start}ies"),
        None if thing.ends_with("ch") => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    format!("{} {things}", grouped(number))
}

/// Returns how the command line names the value of an option, such as `peak` for `--objective
/// peak`.
pub fn option_name(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or(String::new(), |value| value.get_name().to_owned())
}

/// Lists names in a sentence: `a`, `a and b`, `a, b and c`. If there are more than 8 names, only
/// the first 8 are listed, followed by `and N more`.
pub fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    const MAX: usize = 8;
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match names.len().checked_sub(MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..MAX].join(", ")),
        _ => joined(&names, "and"),
    }
}

/// Joins phrases, numbers or names into one text, with `between` as the separator.
pub fn join(all: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    Vec::from_iter(all.into_iter().map(|one| one.to_string())).join(between)
}

/// Lists all names in a sentence. Before the last name is the word in `last`, such as `or`: `a, b
/// or c`.
pub fn joined(names: &[String], last: &str) -> String {
    match names.split_last() {
        Some((last_item, others @ [_, ..])) => {
            format!("{} {last} {last_item}", others.join(", "))
        }
        _ => names.concat(),
    }
}

/// Returns the text with its first letter, after any indent, in upper case.
pub fn capital(text: &str) -> String {
    let (indent, words) = text.split_at(text.len() - text.trim_start().len());
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => format!("{indent}{}{}", first.to_uppercase(), characters.as_str()),
        None => text.to_string(),
    }
}

/// Writes `bytes` as a percentage of `whole` with one decimal, such as `98.3 %`. The percentage is
/// rounded up, so that more than `whole` never shows as 100 %.
pub fn share(bytes: u64, whole: u64) -> String {
    let tenths = (u128::from(bytes) * 1000).div_ceil(u128::from(whole.max(1)));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Writes `difference` as a percentage of `whole` with its sign, rounded to two decimals, such as
/// `+1.25 %`.
pub fn signed_share(difference: i64, whole: u64) -> String {
    let scaled = u128::from(difference.unsigned_abs()) * 10_000;
    let whole = u128::from(whole.max(1));
    let hundredths = (scaled + whole / 2) / whole;
    let sign = match difference.signum() {
        1 => "+",
        -1 => "-",
        _ => "",
    };
    format!("{sign}{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Formats a name from a file for a report: control characters are escaped, and a name of more than
/// 160 characters is cut and ends with `…`.
pub fn displayed(name: &str) -> String {
    const MAX_CHARACTERS: usize = 160;
    match name.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}\u{2026}", printable(&name[..end])),
        None => printable(name),
    }
}

/// The unit in which text for people writes amounts of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Units {
    /// Bytes, without rounding.
    #[default]
    Bytes,
    /// 1,024 bytes.
    #[value(name = "KiB", alias = "kib")]
    KiB,
    /// 1,048,576 bytes.
    #[value(name = "MiB", alias = "mib")]
    MiB,
    /// The largest of bytes, KiB and MiB of which the amount has at least one.
    Auto,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

impl Units {
    /// Chooses the unit in which to write `bytes`. [`Units::Auto`] becomes the largest of bytes,
    /// KiB and MiB that is not larger than `bytes`; any other unit stays.
    pub fn for_bytes(self, bytes: u64) -> Self {
        match self {
            Self::Auto if bytes >= MIB => Self::MiB,
            Self::Auto if bytes >= KIB => Self::KiB,
            Self::Auto => Self::Bytes,
            units => units,
        }
    }

    /// Writes an amount of bytes with its unit, such as `624.1 KiB`. In KiB and MiB the number is
    /// rounded up to a tenth, so that an amount over a limit never looks like the limit.
    pub fn amount(self, bytes: u64) -> String {
        match self.for_bytes(bytes) {
            Self::KiB => tenths(bytes, KIB) + " KiB",
            Self::MiB => tenths(bytes, MIB) + " MiB",
            _ => grouped(bytes) + " bytes",
        }
    }

    /// Writes a number of bytes as [`Units::short`] does, with a minus sign if it is negative.
    pub fn signed(self, bytes: i128) -> String {
        let sign = if bytes < 0 { "-" } else { "" };
        // The difference of two 64-bit numbers of bytes fits in 64 bits without its sign. A larger
        // number is shown as the largest 64-bit number.
        let bytes = u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX);
        format!("{sign}{}", self.short(bytes))
    }

    /// Writes an amount of bytes as [`Units::amount`] does, but without the word `bytes`.
    pub fn short(self, bytes: u64) -> String {
        match self.for_bytes(bytes) {
            Self::Bytes => grouped(bytes),
            units => units.amount(bytes),
        }
    }
}

fn tenths(bytes: u64, unit: u64) -> String {
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
    format!("{}.{}", grouped((tenths / 10) as u64), tenths % 10)
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
        assert_eq!(listed(names(0)), "");
        assert_eq!(listed(names(3)), "0, 1 and 2");
        assert_eq!(joined(&names(2), "or"), "0 or 1");
        assert_eq!(listed(names(10)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

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
    fn long_names_are_cut_short() {
        assert_eq!(displayed("layer"), "layer");
        let long = displayed(&"\u{e9}".repeat(1000));
        assert_eq!(long, "\u{e9}".repeat(160) + "\u{2026}");
    }

    #[test]
    fn shares_are_rounded_up_and_signs_stay() {
        assert_eq!(share(638_977, 638_976), "100.1 %");
        assert_eq!(share(638_976, 638_976), "100.0 %");
        assert_eq!(share(1, 0), "100.0 %");
        assert_eq!(Units::Bytes.signed(-1024), "-1,024");
        assert_eq!(Units::Bytes.signed(1024), "1,024");
    }

    #[test]
    fn amounts_are_never_less_than_they_are() {
        let cases = [
            (Units::Bytes, 638_976, "638,976 bytes", "638,976"),
            (Units::KiB, 638_976, "624.0 KiB", "624.0 KiB"),
            (Units::KiB, 638_977, "624.1 KiB", "624.1 KiB"),
            (Units::KiB, 1, "0.1 KiB", "0.1 KiB"),
            (Units::MiB, 2_000_000, "2.0 MiB", "2.0 MiB"),
            (Units::MiB, 2_097_153, "2.1 MiB", "2.1 MiB"),
            (Units::KiB, 10 * MIB, "10,240.0 KiB", "10,240.0 KiB"),
            (Units::Auto, 0, "0 bytes", "0"),
            (Units::Auto, 1023, "1,023 bytes", "1,023"),
            (Units::Auto, 1024, "1.0 KiB", "1.0 KiB"),
            (Units::Auto, MIB, "1.0 MiB", "1.0 MiB"),
            (
                Units::MiB,
                u64::MAX,
                "17,592,186,044,416.0 MiB",
                "17,592,186,044,416.0 MiB",
            ),
        ];
        for (units, bytes, amount, short) in cases {
            assert_eq!(units.amount(bytes), amount);
            assert_eq!(units.short(bytes), short);
        }
    }
}
