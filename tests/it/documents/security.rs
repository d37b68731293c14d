//! SECURITY.md against the bounds in the code.

use super::read;
use popliner::limits::{self, Growing};

#[test]
fn its_table_has_all_limits() {
    let text = read("SECURITY.md");
    let (_, table) = text.split_once("\n| what | limit |\n").expect("a table");
    let rows = table.lines().skip(1).take_while(|line| !line.is_empty());
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "));
    let found: Vec<&str> = cells.map(|(_, limit)| limit).collect();
    assert_eq!(found, limits());
}

/// All bounds, in the order of the table in SECURITY.md.
fn limits() -> Vec<String> {
    let each = |bound: Growing| format!("{}, or {}", number(bound.least), number(bound.each));
    let both = |one: usize, other: usize| format!("{}; {}", number(one), number(other));
    let tile = limits::BYTES_OF_TILE.div_ceil(1 << 30);
    vec![
        number(limits::TILES as usize),
        format!("{}; {tile} GiB", number(limits::TILES_OF_IPU as usize)),
        each(limits::MEMBERS) + " for each variable",
        number(limits::CONTEXTS_OF_VARIABLE),
        both(limits::NESTED_ITEMS, limits::CONTEXTS_ABOVE),
        each(limits::VISITS) + " for each program; " + &number(limits::NESTED_CALLS),
        number(limits::CYCLES as usize),
        number(limits::TEXT),
        each(limits::USES) + " for each variable",
        each(limits::SETS) + " for each variable",
        each(limits::SETS_OF_CLUSTERS) + " for each program",
        each(limits::CODE_RUNS) + " for each one of the profile",
        number(limits::LAYERS),
        number(limits::LOOKS),
        number(limits::FLOW),
        number(limits::PAIRS),
        number(limits::PLACES),
        number(limits::ENTRIES) + " each",
        number(limits::CELLS),
        number(limits::RANGE_COSTS),
        both(limits::STEPS as usize, limits::STEPS_AND_TILES as usize),
        format!("{} MiB; {} MiB", limits::REPORT >> 20, limits::BESIDE >> 20),
    ]
}

/// A number as SECURITY.md writes it: large powers of 2 as such, others with groups of digits.
fn number(number: usize) -> String {
    match (number / 1000, number % 1000) {
        _ if number.is_power_of_two() && number > 1 << 12 => format!("2^{}", number.ilog2()),
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}
