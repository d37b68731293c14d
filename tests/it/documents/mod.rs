//! Documents for people, compared with the tool.

mod action;
mod ci_example;
mod floor_tables;
mod messages;
mod pages;
mod release;
mod security;
