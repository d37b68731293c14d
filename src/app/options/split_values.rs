//! Values of options that guide the search.

use crate::message::BadValue;
use std::fmt;
use std::str::FromStr;

/// The value of `--num-ipus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumIpus {
    /// The smallest number on which the model fits.
    Auto,
    /// Exactly this number.
    Exactly(usize),
}

/// Upper bound on IPUs, far above the largest pod that one program spans; a larger number is a
/// mistake.
pub const MAX_IPUS: usize = 4096;

impl FromStr for NumIpus {
    type Err = BadValue;

    fn from_str(number: &str) -> Result<Self, BadValue> {
        match number.parse() {
            _ if number == "auto" => Ok(Self::Auto),
            Ok(ipus) if (1..=MAX_IPUS).contains(&ipus) => Ok(Self::Exactly(ipus)),
            _ => Err(BadValue::new(format!(
                "it is neither auto nor a number from 1 to {MAX_IPUS}; give one of these"
            ))),
        }
    }
}

/// Upper bound on the memory of a tile in bytes, 1 TiB. A tile of an IPU has 624 KiB, so a larger
/// number is a mistake.
const MAX_MEM_PER_TILE: u64 = 1 << 40;

/// The value of `--mem-per-tile`: bytes for all IPUs, or for each IPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemPerTile(pub Vec<u64>);

impl FromStr for MemPerTile {
    type Err = BadValue;

    fn from_str(list: &str) -> Result<Self, BadValue> {
        let amount = |text: &str| match text.trim().parse() {
            Ok(bytes) if (1..=MAX_MEM_PER_TILE).contains(&bytes) => Ok(bytes),
            _ => Err(BadValue::new(format!(
                "'{text}' is not a number of bytes from 1 to {MAX_MEM_PER_TILE}; give one, or one \
                 for each IPU separated by commas"
            ))),
        };
        let amounts: Result<Vec<u64>, _> = list.split(',').map(amount).collect();
        amounts.map(Self)
    }
}

/// The value of `--ipu-link-bandwidth` and `--streaming-bandwidth`: bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth(pub u64);

impl FromStr for Bandwidth {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        billionths(text, "GB in a second").map(Self)
    }
}

/// The value of `--max-step-ms`, in billionths of a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Milliseconds(u64);

impl Milliseconds {
    /// Returns the time in nanoseconds, rounded down.
    pub fn nanoseconds(self) -> u64 {
        self.0 / 1000
    }
}

impl FromStr for Milliseconds {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        billionths(text, "milliseconds").map(Self)
    }
}

/// Reads a number above 0 and up to 1,000,000 with decimals, as billionths.
fn billionths(text: &str, what: &str) -> Result<u64, BadValue> {
    let number: Option<f64> = text.trim().parse().ok();
    let number = number.map(|number| (number * 1e9).round());
    match number.filter(|number| (1.0..=1e15).contains(number)) {
        Some(number) => Ok(number as u64),
        None => Err(BadValue::new(format!(
            "'{text}' is not a number of {what} above 0 and up to 1,000,000; write it like 29.5"
        ))),
    }
}

/// The value of `--pin`: a layer and its IPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The name of the layer.
    pub layer: String,
    /// The IPU, from 0.
    pub ipu: usize,
}

impl FromStr for Pin {
    type Err = BadValue;

    fn from_str(pin: &str) -> Result<Self, BadValue> {
        let wrong = || BadValue::new(format!("'{pin}' is not LAYER=IPU; write it like 3=0"));
        let (layer, ipu) = pin.rsplit_once('=').ok_or_else(wrong)?;
        let ipu = ipu.trim().parse().map_err(|_| wrong())?;
        let layer = layer.trim().to_string();
        Ok(Self { layer, ipu })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.layer, self.ipu)
    }
}

/// The value of options with several layers: names with commas between. A comma inside a name is
/// written `\,`, and a backslash before it `\\`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerNames(pub Vec<String>);

impl FromStr for LayerNames {
    type Err = BadValue;

    fn from_str(list: &str) -> Result<Self, BadValue> {
        let mut names = vec![String::new()];
        let mut characters = list.chars();
        while let Some(character) = characters.next() {
            let name = names.last_mut().expect("there is always one");
            match character {
                '\\' => name.extend(characters.next()),
                ',' => names.push(String::new()),
                other => name.push(other),
            }
        }
        let names: Vec<String> = names.iter().map(|name| name.trim().to_string()).collect();
        if list.trim().is_empty() {
            Ok(Self(Vec::new()))
        } else if names.iter().any(String::is_empty) {
            Err(BadValue::new(format!(
                "'{list}' has a layer without a name; leave out the extra comma"
            )))
        } else {
            Ok(Self(names))
        }
    }
}

/// The value of `--together`: two layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together(pub String, pub String);

impl FromStr for Together {
    type Err = BadValue;

    fn from_str(pair: &str) -> Result<Self, BadValue> {
        let names: LayerNames = pair.parse()?;
        match <[String; 2]>::try_from(names.0) {
            Ok([first, last]) => Ok(Self(first, last)),
            Err(_) => Err(BadValue::new(format!(
                "'{pair}' is not LAYER,LAYER; write it like 3,5"
            ))),
        }
    }
}

impl fmt::Display for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.0, self.1)
    }
}

/// The value of `--layers-per-ipu`: the number of layers on each IPU. `None`, written -1, is an
/// equal share of the remaining layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayersPerIpu(pub Vec<Option<usize>>);

impl LayersPerIpu {
    /// Returns the number of layers on each IPU, for a model with `layers` layers. IPUs with -1
    /// share the remaining layers evenly; if there is a remainder, the first ones take one more
    /// each.
    pub fn counts(&self, layers: usize) -> Vec<usize> {
        let given = self.0.iter().flatten();
        let left = given.fold(layers, |left, &count| left.saturating_sub(count));
        let open = self.0.iter().filter(|count| count.is_none()).count();
        let shares = (0..open).map(|place| left / open + usize::from(place < left % open));
        let mut shares = shares.collect::<Vec<_>>().into_iter();
        let all = self.0.iter();
        all.map(|count| count.or_else(|| shares.next()).unwrap_or(0))
            .collect()
    }
}

impl FromStr for LayersPerIpu {
    type Err = BadValue;

    fn from_str(list: &str) -> Result<Self, BadValue> {
        let plain = list.trim().trim_start_matches('[').trim_end_matches(']');
        let separated = |letter: char| letter == ',' || letter.is_whitespace();
        let words = plain.split(separated).filter(|word| !word.is_empty());
        let count = |word: &str| match word {
            "-1" => Some(None),
            number => number.parse().ok().map(Some),
        };
        let counts: Option<Vec<Option<usize>>> = words.map(count).collect();
        counts
            .filter(|counts| !counts.is_empty())
            .map(Self)
            .ok_or_else(|| {
                BadValue::new(format!(
                    "'{list}' is not a list of numbers; write it like 3,7,7,7 or [3 7 -1 -1]"
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ipus() {
        assert_eq!("auto".parse(), Ok(NumIpus::Auto));
        assert_eq!("4".parse(), Ok(NumIpus::Exactly(4)));
        for wrong in ["0", "-1", "Auto", "", "4097"] {
            assert!(wrong.parse::<NumIpus>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_may_hold_commas_and_pins_equal_signs() {
        let names = |list: &str| list.parse::<LayerNames>().map(|names| names.0);
        assert_eq!(names("0, 3"), Ok(vec!["0".into(), "3".into()]));
        assert_eq!(names(r"a\,b,c\\"), Ok(vec!["a,b".into(), r"c\".into()]));
        assert_eq!(names(""), Ok(vec![]));
        assert!(names("1,,2").is_err());
        let pin: Pin = "a=b=2".parse().unwrap();
        assert_eq!((pin.layer.as_str(), pin.ipu), ("a=b", 2));
        for wrong in ["3", "3=", "=x", "3=-1"] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
        assert!("1,2,3".parse::<Together>().is_err());
    }

    #[test]
    fn amounts_with_decimals() {
        assert_eq!("29".parse(), Ok(Bandwidth(29_000_000_000)));
        let nanoseconds = |text: &str| text.parse().map(Milliseconds::nanoseconds);
        assert_eq!(nanoseconds("1.5"), Ok(1_500_000));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "x"] {
            assert!(wrong.parse::<Bandwidth>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_numbers() {
        let counts = |list: &str| list.parse::<LayersPerIpu>().map(|counts| counts.counts(12));
        assert_eq!(counts("[3, 7, 0]"), Ok(vec![3, 7, 0]));
        assert_eq!(counts("[0 4 -1 -1]"), Ok(vec![0, 4, 4, 4]));
        assert_eq!(counts("-1,-1,-1,-1,-1"), Ok(vec![3, 3, 2, 2, 2]));
        assert_eq!(counts("13 -1"), Ok(vec![13, 0]));
        assert!(counts("3,x").is_err() && counts("").is_err());
        let bytes = |list: &str| list.parse::<MemPerTile>().map(|bytes| bytes.0);
        assert_eq!(bytes("638976"), Ok(vec![638_976]));
        assert_eq!(bytes("5,6"), Ok(vec![5, 6]));
        assert_eq!(bytes("1099511627776"), Ok(vec![MAX_MEM_PER_TILE]));
        for wrong in [
            "0",
            "5,",
            "x",
            "1,-1",
            "1099511627777",
            "18446744073709551615",
        ] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
