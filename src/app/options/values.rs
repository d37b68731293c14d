//! Parses the values of options, and sets their texts in `-h`.

use crate::{limits, message::BadValue};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ValueEnum};
use std::{fmt::Display, ops::RangeInclusive, path::PathBuf, str::FromStr};

/// Upper bound on the numbers of micro-batches, samples and replicas; a larger number is a mistake.
pub const MAX_BATCHES: u64 = 1 << 32;

/// Gives an option a short text, with which `-h` lists the option.
pub trait ShortHelp {
    /// Sets the text of the option in `-h`, which must fit on one line. The comment of the option's
    /// field becomes the text in `--help`.
    fn short_help(self, text: &'static str) -> Self;
}

impl ShortHelp for Arg {
    fn short_help(self, text: &'static str) -> Self {
        let long = self.get_help().cloned().unwrap_or_default();
        self.long_help(long).help(text)
    }
}

/// Several values in one option, separated by commas. For a field of type `Vec`, clap would expect
/// one option for each value; this other name of `Vec` prevents that.
pub type List<T> = Vec<T>;

/// Parses the value of `--tiles`: numbers and ranges of tiles. Returns the tiles in the given
/// order.
pub fn tiles(list: &str) -> Result<List<u32>, BadValue> {
    let number = |text: &str| {
        let text = text.trim();
        text.parse::<u32>().map_err(|_| {
            BadValue(format!(
                "'{text}' is not a tile; give numbers from 0 and ranges, such as 0,5-9"
            ))
        })
    };
    let mut tiles = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        if from > to || tiles.len() + (to - from) as usize >= limits::TILES as usize {
            return Err(BadValue(format!(
                "'{part}' is not a range of tiles; give the lower number first, such as 5-9"
            )));
        }
        tiles.extend(from..=to);
    }
    Ok(tiles)
}

/// Upper bound on the value of `--mem-per-tile` in bytes, 1 TiB. A tile of an IPU has 624 KiB, so a
/// larger number is a mistake.
const MAX_MEM_PER_TILE: u64 = 1 << 40;

/// Parses the value of `--mem-per-tile`: a number of bytes for all IPUs, or one for each IPU.
pub fn mem_per_tile(list: &str) -> Result<List<u64>, BadValue> {
    list.split(',').map(|text| match text.trim().parse() {
        Ok(bytes) if (1..=MAX_MEM_PER_TILE).contains(&bytes) => Ok(bytes),
        _ => Err(BadValue(format!(
            "'{text}' is not a number of bytes from 1 to {MAX_MEM_PER_TILE}; give one, or one for \
             each IPU separated by commas"
        ))),
    }).collect()
}

/// A setting of a compilation, such as a micro-batch size, and the profile that was recorded with
/// it.
#[derive(Debug, Clone)]
pub struct OfProfile<T> {
    /// Value of a setting that the profile was recorded with, such as 4 for a micro-batch of 4
    /// samples.
    pub value: T,
    /// Path of the profile; `None` for the profile that the argument PROFILE names.
    pub profile: Option<PathBuf>,
}

/// Returns a parser for the value of a setting, alone or followed by an equals sign and a profile.
/// `allowed` has the values that the setting may have. The other parameters are words for the error
/// message: `what` is the kind of value, such as "a proportion"; `name` stands for the value in
/// `VALUE=PROFILE`; `example` is one value.
pub fn of_profile<T: Clone + Display + FromStr + PartialOrd>(
    allowed: RangeInclusive<T>,
    [what, name, example]: [&'static str; 3],
) -> impl Fn(&str) -> Result<OfProfile<T>, BadValue> + Clone {
    move |text| {
        let (value, profile) = text.split_once('=').unzip();
        match value.unwrap_or(text).trim().parse() {
            Ok(value) if allowed.contains(&value) && profile != Some("") => Ok(OfProfile {
                value,
                profile: profile.map(Into::into),
            }),
            _ => Err(BadValue(format!(
                "'{text}' is neither {what} from {} to {} nor {name}=PROFILE; write it like \
                 {example} or {example}=FOLDER",
                allowed.start(),
                allowed.end()
            ))),
        }
    }
}

/// Parses a bandwidth in GB per second, such as 29.5, and returns it in bytes per second. The
/// number must be above 0 and at most 1,000,000.
pub fn bandwidth(text: &str) -> Result<u64, BadValue> {
    let bytes = text
        .trim()
        .parse()
        .map(|number: f64| (number * 1e9).round());
    match bytes {
        Ok(bytes) if (1.0..=1e15).contains(&bytes) => Ok(bytes as u64),
        _ => Err(BadValue(format!(
            "'{text}' is not a number of GB in a second above 0 and up to 1,000,000; write it like 29.5"
        ))),
    }
}

/// The value of an option; `None` stands for `auto`, with which popliner chooses the value from the
/// profile. With a field of type `Option`, clap would use `None` for an option that is not given;
/// this other name of `Option` prevents that.
pub type OrAuto<T> = Option<T>;

/// Returns a parser that accepts `auto`, with the result `None`, and all values of `T`.
pub fn or_auto<T: ValueEnum + Send + Sync + 'static>() -> impl TypedValueParser<Value = OrAuto<T>> {
    let auto = PossibleValue::new("auto").help("As the model suggests");
    let values = T::value_variants().iter().filter_map(T::to_possible_value);
    // The parser accepts only `auto` and the names of variants of `T`, so a value that is not a
    // variant is `auto`.
    PossibleValuesParser::new([auto].into_iter().chain(values))
        .map(|value| T::from_str(&value, false).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tiles() {
        assert_eq!(tiles("3,0, 7-9"), Ok(vec![3, 0, 7, 8, 9]));
        for wrong in ["", "a", "-1", "3-1", "1,,2", "0-4294967295"] {
            assert!(tiles(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_of_memory() {
        assert_eq!(mem_per_tile("638976"), Ok(vec![638_976]));
        assert_eq!(mem_per_tile("5,6"), Ok(vec![5, 6]));
        assert_eq!(mem_per_tile("1099511627776"), Ok(vec![MAX_MEM_PER_TILE]));
        let too_large = ["1099511627777", "18446744073709551615"];
        for wrong in ["0", "5,", "x", "1,-1"].into_iter().chain(too_large) {
            assert!(mem_per_tile(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_with_decimals() {
        assert_eq!(bandwidth("29"), Ok(29_000_000_000));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "x"] {
            assert!(bandwidth(wrong).is_err(), "{wrong}");
        }
    }
}
