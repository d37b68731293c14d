//! Documents for people, compared with the tool.

mod action;
mod ci_example;
mod floor_tables;
mod numbers;
mod pages;
mod release;
mod security;

use crate::support::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}
