//! What is written for people, held against the tool.

mod ci_example;
mod floor_tables;
mod pages;
mod security;
