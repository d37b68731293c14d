//! Tests that people with any colour vision can distinguish the colours of the HTML page.

use super::STYLE;

/// How people see red, green and blue: with normal colour vision, and without one kind of cones
/// (Machado, Oliveira and Fernandes 2009, severity 1).
const SEEN: [(&str, [[f64; 3]; 3]); 4] = [
    ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// Returns the coordinates in the CIELAB colour space of a colour such as `#3d6fb0`, as people with
/// the colour vision `seen` see it.
fn place(colour: &str, seen: &[[f64; 3]; 3]) -> [f64; 3] {
    let linear = [1, 3, 5].map(|at| {
        let channel = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.04045 {
            channel / 12.92
        } else {
            ((channel + 0.055) / 1.055).powf(2.4)
        }
    });
    let sum = |row: &[f64; 3]| row.iter().zip(linear).map(|(a, b)| a * b).sum::<f64>();
    let [r, g, b] = seen.each_ref().map(|row| sum(row).clamp(0.0, 1.0));
    let curved = |ratio: f64| {
        if ratio > 0.008856 {
            ratio.cbrt()
        } else {
            7.787 * ratio + 16.0 / 116.0
        }
    };
    let x = curved((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
    let y = curved(0.2126729 * r + 0.7151522 * g + 0.0721750 * b);
    let z = curved((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Compares how people with each kind of colour vision see two colours. Returns the smallest
/// distance (in CIELAB) between the two as they are seen, and the kind of vision with this
/// distance.
fn distance(a: &str, b: &str) -> (f64, &'static str) {
    let distances = SEEN.map(|(who, seen)| {
        let (a, b) = (place(a, &seen), place(b, &seen));
        let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
        (squares.sum::<f64>().sqrt(), who)
    });
    distances
        .into_iter()
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap()
}

/// Returns the colours of the page's light and dark scheme, by name.
fn schemes() -> [impl Fn(&str) -> String; 2] {
    let mut blocks = STYLE.split(":root {").skip(1);
    [(); 2].map(|()| {
        let block = blocks.next().unwrap().split('}').next().unwrap();
        move |name: &str| {
            let colour = block.split(&format!("--{name}: ")).nth(1).expect(name);
            colour[..7].to_string()
        }
    })
}

/// Checks that the colours of any two parts of memory are at least 12 apart, and those of parts
/// that charts stack next to each other at least 18. Distances are in CIELAB, where 2.3 is just
/// noticeable for most people.
#[test]
fn parts_of_memory_are_told_apart_by_all() {
    // The order in which charts stack parts of memory, as in `colours.js`: variables, vertex code
    // and state, exchange and control code, and the parts that a pipeline adds.
    let names = [
        "tile-0",
        "tile-2",
        "tile-3",
        "tile-4",
        "tile-5",
        "overhead",
        "gaps",
        "stash",
        "accumulators",
        "waiting",
        "passing",
        "state",
    ];
    for colour in schemes() {
        for (place, a) in names.iter().enumerate() {
            for (after, b) in names[place + 1..].iter().enumerate() {
                let needed = if after == 0 { 18.0 } else { 12.0 };
                let (found, who) = distance(&colour(a), &colour(b));
                assert!(found >= needed, "{a} and {b} are {found} apart: {who}");
            }
        }
    }
}

#[test]
fn parts_of_a_curve_are_told_apart_by_all() {
    for colour in schemes() {
        for (a, b) in [("variables", "always"), ("always", "overhead")] {
            let (found, who) = distance(&colour(a), &colour(b));
            assert!(found >= 18.0, "{a} and {b} are {found} apart: {who}");
        }
    }
}
