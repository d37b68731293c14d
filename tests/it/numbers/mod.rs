//! Printed numbers, compared with a second computation.

mod cycle_counts;
mod fixtures;
mod generated;
mod mutated;
mod printed;
mod real_sample;
