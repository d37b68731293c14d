//! What is written for people, held against the tool.

mod ci_example;
mod floor_tables;
mod messages;
mod pages;
mod security;
