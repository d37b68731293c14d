//! Bars in one line of text.

use super::{Severity, TextStyle};

/// A share of the limit above this, in per cent, is highlighted.
const NOTABLE: u128 = 90;

/// Draws `bytes` as a bar of `width` columns with a mark at `limit`. The whole width stands for
/// `largest` or the limit, whichever is higher. A bar passes the mark if and only if the bytes are
/// over the limit.
pub(super) fn bar(look: &TextStyle, bytes: u64, limit: u64, largest: u64, width: usize) -> String {
    let [full, free, mark] = signs(look);
    let cells = width.saturating_sub(1);
    let whole = u128::from(largest.max(limit).max(1));
    let scaled = |bytes: u64| ((u128::from(bytes) * cells as u128).div_ceil(whole)) as usize;
    let over = bytes.saturating_sub(limit);
    let beyond = scaled(largest.saturating_sub(limit)).min(cells);
    let within = cells - beyond;
    let limit_share = u128::from(bytes.min(limit)) * within as u128;
    // Only a bar without free bytes is full, and only a bar without bytes is empty.
    let filled = (limit_share / u128::from(limit.max(1))) as usize;
    let filled = filled.clamp(usize::from(bytes > 0).min(within), within);
    let drawn = format!(
        "{}{}{mark}{}",
        full.repeat(filled),
        free.repeat(within - filled),
        full.repeat(scaled(over).min(beyond))
    );
    look.toned(tone(bytes, limit), &drawn)
}

/// Returns the characters of bars: taken, free, and the limit.
fn signs(look: &TextStyle) -> [&'static str; 3] {
    if look.screen.is_some_and(|screen| screen.unicode) {
        ["█", "·", "│"]
    } else {
        ["#", ".", "|"]
    }
}

fn tone(bytes: u64, limit: u64) -> Severity {
    if bytes > limit {
        Severity::Bad
    } else if u128::from(bytes) * 100 > u128::from(limit) * NOTABLE {
        Severity::Notable
    } else {
        Severity::Good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Units;
    use crate::report::terminal::Screen;

    fn look(unicode: bool) -> TextStyle {
        let screen = Screen {
            width: 80,
            colour: false,
            unicode,
        };
        TextStyle {
            units: Units::Bytes,
            screen: Some(screen),
            columns: None,
        }
    }

    #[test]
    fn a_bar_passes_the_mark_only_over_the_limit() {
        let cases = [
            (0, 100, "..........|"),
            (1, 100, "#.........|"),
            (50, 100, "#####.....|"),
            (100, 100, "##########|"),
            (100, 200, "#####|"),
            (101, 200, "#####|#"),
            (200, 200, "#####|#####"),
            (0, 200, ".....|"),
        ];
        for (bytes, largest, expected) in cases {
            assert_eq!(
                bar(&look(false), bytes, 100, largest, 11),
                expected,
                "{bytes}"
            );
        }
        assert_eq!(bar(&look(true), 60, 100, 100, 6), "███··│");
    }

    #[test]
    fn no_bar_is_wider_than_it_may_be() {
        let amounts = [0, 1, 99, 100, 101, 5_000, u64::MAX];
        for width in 0..12 {
            for bytes in amounts {
                for limit in amounts {
                    for largest in amounts.into_iter().filter(|&largest| largest >= bytes) {
                        let drawn = bar(&look(true), bytes, limit, largest, width);
                        let wide = drawn.chars().count();
                        assert!(wide <= width.max(1), "{bytes} {limit} {largest} {width}");
                    }
                }
            }
        }
    }
}
