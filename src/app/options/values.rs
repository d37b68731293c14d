//! Values of options.

use crate::limits;
use crate::message::BadValue;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::str::FromStr;

/// Values of `--generate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// A manual page.
    Man,
    /// Completions for bash.
    CompleteBash,
    /// Completions for zsh.
    CompleteZsh,
    /// Completions for fish.
    CompleteFish,
    /// A page that opens reports of --export-json.
    Viewer,
}

/// The value of `--tiles`: tiles in the given order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles(pub Vec<u32>);

impl FromStr for Tiles {
    type Err = BadValue;

    fn from_str(list: &str) -> Result<Self, BadValue> {
        let number = |text: &str| {
            let text = text.trim();
            text.parse::<u32>().map_err(|_| {
                BadValue::new(format!(
                    "'{text}' is not a tile; give numbers from 0 and ranges, such as 0,5-9"
                ))
            })
        };
        let mut tiles = Vec::new();
        for part in list.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if from > to || tiles.len() + (to - from) as usize >= limits::TILES as usize {
                return Err(BadValue::new(format!(
                    "'{part}' is not a range of tiles; give the lower number first, such as 5-9"
                )));
            }
            tiles.extend(from..=to);
        }
        Ok(Self(tiles))
    }
}

/// The value of an option that the tool can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrAuto<T> {
    /// The tool chooses, as the model suggests.
    Auto,
    /// The given value.
    Given(T),
}

impl<T> OrAuto<T> {
    /// Returns the given value; `None` for `auto`.
    pub fn given(self) -> Option<T> {
        match self {
            OrAuto::Auto => None,
            OrAuto::Given(value) => Some(value),
        }
    }
}

/// Reads `auto` or one of the values of `T`.
pub fn or_auto<T: ValueEnum + Send + Sync + 'static>() -> impl TypedValueParser<Value = OrAuto<T>> {
    let auto = PossibleValue::new("auto").help("As the model suggests");
    let others = T::value_variants().iter().filter_map(T::to_possible_value);
    let values = PossibleValuesParser::new([auto].into_iter().chain(others));
    // The parser accepts only `auto` and values of `T`.
    values.map(|value| T::from_str(&value, false).map_or(OrAuto::Auto, OrAuto::Given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tiles() {
        let tiles = |list: &str| list.parse::<Tiles>().map(|tiles| tiles.0);
        assert_eq!(tiles("3,0, 7-9"), Ok(vec![3, 0, 7, 8, 9]));
        for wrong in ["", "a", "-1", "3-1", "1,,2", "0-4294967295"] {
            assert!(tiles(wrong).is_err(), "{wrong}");
        }
    }
}
