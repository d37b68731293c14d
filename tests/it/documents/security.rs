//! SECURITY.md against the bounds in the code.

use super::read;
use popliner::limits::{self, Growing};

#[test]
fn its_table_has_all_limits() {
    let rows = table().into_iter();
    let rows = rows.map(|(what, limit)| format!("| {what} | {limit} |\n"));
    let table = format!(
        "\n| what | limit |\n|---|---|\n{}\n",
        rows.collect::<String>()
    );
    assert!(read("SECURITY.md").contains(&table), "{table}");
}

/// All bounds, as the rows of the table in SECURITY.md.
fn table() -> Vec<(&'static str, String)> {
    let growing = |bound: Growing, of: &str| {
        let (least, each) = (number(bound.least), number(bound.each));
        format!("{least}, or {each} for each {of}")
    };
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let tile = limits::BYTES_OF_TILE.div_ceil(1 << 30);
    vec![
        ("tiles of all IPUs", number(limits::TILES as usize)),
        (
            "tiles of an IPU, bytes of a tile",
            format!("{}; {tile} GiB", number(limits::TILES_OF_IPU as usize)),
        ),
        (
            "variables of all compute sets together",
            growing(limits::MEMBERS, "variable"),
        ),
        (
            "contexts of a variable",
            number(limits::CONTEXTS_OF_VARIABLE),
        ),
        ("items inside each other, contexts above a context", {
            format!(
                "{}; {}",
                number(limits::NESTED_ITEMS),
                number(limits::CONTEXTS_ABOVE)
            )
        }),
        ("visits of programs, Calls inside each other", {
            format!(
                "{}; {}",
                growing(limits::VISITS, "program"),
                number(limits::NESTED_CALLS)
            )
        }),
        ("cycles of all programs", number(limits::CYCLES as usize)),
        (
            "bytes of names and inputs of all operations",
            number(limits::TEXT),
        ),
        (
            "uses of variables by operations",
            growing(limits::USES, "variable"),
        ),
        (
            "different groups of operations that share variables",
            growing(limits::SETS, "variable"),
        ),
        (
            "such groups in all pieces of operations",
            growing(limits::SETS_OF_CLUSTERS, "program"),
        ),
        (
            "runs of tiles in the code of all operations",
            growing(limits::CODE_RUNS, "one of the profile"),
        ),
        ("layers", number(limits::LAYERS)),
        (
            "uses of variables that places are found by",
            number(limits::LOOKS),
        ),
        (
            "ends of all edges of the flow of data",
            number(limits::FLOW),
        ),
        (
            "pairs of an operation without a layer and a group of layers that share variables",
            number(limits::PAIRS),
        ),
        ("layers in all groups of layers", number(limits::PLACES)),
        (
            "entries of variables and of code into ranges of layers, on one tile",
            format!("{} each", number(limits::ENTRIES)),
        ),
        (
            "layers times steps that can hold a peak, on one tile",
            number(limits::CELLS),
        ),
        (
            "ranges of layers times stages of a pipeline",
            number(limits::RANGE_COSTS),
        ),
        ("steps of a saved file, steps times tiles", {
            let cells = number(limits::STEPS_AND_TILES as usize);
            format!("{}; {cells}", number(limits::STEPS as usize))
        }),
        (
            "a report for `--compare`; a JSON file beside the profile",
            format!("{}; {}", mib(limits::REPORT), mib(limits::BESIDE)),
        ),
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
