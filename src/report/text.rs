//! Numbers and names in text for people.

pub use crate::escape::printable;
pub use crate::wording::{capital, counted, grouped, share};

use super::LayerNames;
use super::layer_names::{in_brackets, shortened};
use crate::model::PseudoLayers;

/// Groups digits like [`grouped`], with a sign: `-1,024`. Beyond 64 bits digits are not grouped.
pub fn grouped_signed(number: impl Into<i128>) -> String {
    let number = number.into();
    let sign = if number < 0 { "-" } else { "" };
    let digits = u64::try_from(number.unsigned_abs());
    digits.map_or_else(
        |_| number.to_string(),
        |digits| format!("{sign}{}", grouped(digits)),
    )
}

/// Gives a difference in per cent of `whole`, rounded to two decimals, with its sign.
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

/// Returns a name from a file as a report shows it: [`printable`], and cut to a readable length.
pub fn displayed(name: &str) -> String {
    const MAX_CHARACTERS: usize = 160;
    match name.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}\u{2026}", printable(&name[..end])),
        None => printable(name),
    }
}

impl PseudoLayers {
    /// Returns the name of a position as a report shows it.
    pub(super) fn displayed(self, layer: &Option<String>) -> String {
        displayed(self.name_of(layer))
    }

    /// Returns the layers of a stage; a long list is shortened.
    pub(super) fn displayed_list(self, layers: &[Option<String>]) -> String {
        shortened(self.names_of(layers), displayed, "\u{2026}")
    }

    /// Returns the layers of all stages: `[ In 0 1 | 2 3 Out ]`.
    pub(super) fn displayed_stages(self, stages: &[LayerNames]) -> String {
        in_brackets(stages.iter().map(|layers| self.displayed_list(layers)))
    }
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
    fn long_names_and_lists_are_cut_short() {
        assert_eq!(displayed("layer"), "layer");
        let long = displayed(&"\u{e9}".repeat(1000));
        assert_eq!(long, "\u{e9}".repeat(160) + "\u{2026}");
        let many: Vec<_> = (0..9).map(|n| Some(n.to_string())).collect();
        let order = PseudoLayers::InAndOut;
        assert_eq!(order.displayed_list(&many), "0-8");
        assert_eq!(order.displayed_list(&[None, Some("0".into())]), "In 0");
        let stages: Vec<_> = (0..7).map(|n| vec![Some(n.to_string())]).collect();
        let all = "[ 0 | 1 | 2 | 3 | 4 | 5 | 6 ]";
        assert_eq!(order.displayed_stages(&stages), all);
    }

    #[test]
    fn shares_are_rounded_up_and_signs_stay() {
        assert_eq!(share(638_977, 638_976), "100.1 %");
        assert_eq!(share(638_976, 638_976), "100.0 %");
        assert_eq!(share(1, 0), "100.0 %");
        assert_eq!(grouped_signed(-1024i64), "-1,024");
        assert_eq!(grouped_signed(1024u32), "1,024");
    }
}
