//! Units of bytes for people.

use crate::wording::grouped;
use clap::ValueEnum;

/// Units of bytes in text for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Units {
    /// Bytes, which are exact.
    #[default]
    Bytes,
    /// 1,024 bytes.
    #[value(name = "KiB", alias = "kib")]
    KiB,
    /// 1,048,576 bytes.
    #[value(name = "MiB", alias = "mib")]
    MiB,
    /// The largest unit that suits the amount.
    Auto,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

impl Units {
    /// Returns the unit for `bytes`, which is never [`Units::Auto`].
    pub fn for_bytes(self, bytes: u64) -> Units {
        match self {
            Units::Auto if bytes >= MIB => Units::MiB,
            Units::Auto if bytes >= KIB => Units::KiB,
            Units::Auto => Units::Bytes,
            units => units,
        }
    }

    /// Writes an amount with its unit. It is rounded up to a tenth, so that an amount over a limit
    /// never looks like the limit.
    pub fn amount(self, bytes: u64) -> String {
        match self.for_bytes(bytes) {
            Units::KiB => tenths(bytes, KIB) + " KiB",
            Units::MiB => tenths(bytes, MIB) + " MiB",
            _ => grouped(bytes) + " bytes",
        }
    }

    /// Writes an amount, without a unit for bytes.
    pub fn short(self, bytes: u64) -> String {
        match self.for_bytes(bytes) {
            Units::Bytes => grouped(bytes),
            units => units.amount(bytes),
        }
    }
}

fn tenths(bytes: u64, unit: u64) -> String {
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
    let whole = u64::try_from(tenths / 10).unwrap_or(u64::MAX);
    format!("{}.{}", grouped(whole), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

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
