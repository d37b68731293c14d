//! The values that options take.

use crate::limits;
use clap::ValueEnum;
use std::str::FromStr;

/// Values of `--solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Solver {
    /// The integer program.
    Ilp,
    /// The search of the original tool.
    Greedy,
}

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
}

/// The tiles of `--tiles`, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles(pub Vec<u32>);

impl FromStr for Tiles {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let text = text.trim();
            text.parse::<u32>()
                .map_err(|_| format!("'{text}' is no tile"))
        };
        let mut tiles = Vec::new();
        for part in list.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if from > to || tiles.len() + (to - from) as usize >= limits::TILES as usize {
                return Err(format!("'{part}' is no range of tiles"));
            }
            tiles.extend(from..=to);
        }
        Ok(Self(tiles))
    }
}

/// The amount of `--reserve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// So many bytes.
    Bytes(u64),
    /// So many thousandths of a per cent.
    PerCent(u64),
}

impl Reserve {
    /// The bytes to keep free of `memory`, rounded up.
    pub fn of(self, memory: u64) -> u64 {
        match self {
            Reserve::Bytes(bytes) => bytes,
            Reserve::PerCent(thousandths) => {
                let bytes = u128::from(memory) * u128::from(thousandths);
                // Less than the whole of `memory`.
                u64::try_from(bytes.div_ceil(100_000)).unwrap_or(memory)
            }
        }
    }

    /// The least memory that has `bytes` beside what is kept free of it.
    pub fn beside(self, bytes: u64) -> u64 {
        match self {
            Reserve::Bytes(reserve) => bytes.saturating_add(reserve),
            Reserve::PerCent(thousandths) => {
                let rest = u128::from(100_000 - thousandths.min(99_999));
                let memory = (u128::from(bytes) * 100_000).div_ceil(rest);
                let memory = u64::try_from(memory).unwrap_or(u64::MAX);
                // Rounding up what is kept free can take one byte more.
                let is_enough = memory - self.of(memory).min(memory) >= bytes;
                memory.saturating_add(u64::from(!is_enough))
            }
        }
    }
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(amount: &str) -> Result<Self, String> {
        let wrong = || format!("'{amount}' is neither bytes nor per cent: write 8192 or 5%");
        let Some(percent) = amount.strip_suffix('%') else {
            return amount.parse().map(Reserve::Bytes).map_err(|_| wrong());
        };
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !(0.0..100.0).contains(&percent) {
            return Err(format!("'{amount}' leaves nothing of a tile"));
        }
        Ok(Reserve::PerCent((percent * 1000.0).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_bytes_or_per_cent() {
        let bytes = |amount: &str| amount.parse::<Reserve>().map(|reserve| reserve.of(638_976));
        for amount in ["0", "8192", "5%", "12.5%", "99.999%"] {
            let reserve: Reserve = amount.parse().unwrap();
            for bytes in [1, 7, 638_976, 1 << 40] {
                let memory = reserve.beside(bytes);
                assert!(memory - reserve.of(memory) >= bytes, "{amount} {bytes}");
                let less = memory - 1;
                let left = less.checked_sub(reserve.of(less));
                assert!(left.is_none_or(|left| left < bytes), "{amount} {bytes}");
            }
        }
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("8192"), Ok(8192));
        assert_eq!(bytes("5%"), Ok(31_949));
        assert_eq!(bytes("12.5 %"), Ok(79_872));
        for wrong in ["", "%", "-1", "-1%", "100%", "5 percent", "NaN%"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_tiles() {
        let tiles = |list: &str| list.parse::<Tiles>().map(|tiles| tiles.0);
        assert_eq!(tiles("3,0, 7-9"), Ok(vec![3, 0, 7, 8, 9]));
        for wrong in ["", "a", "-1", "3-1", "1,,2", "0-4294967295"] {
            assert!(tiles(wrong).is_err(), "{wrong}");
        }
    }
}
