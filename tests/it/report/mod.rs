//! The forms of a report other than the page.

mod comparisons;
mod emit;
mod exports;
mod json_schema;
mod page_types;
mod schema_check;
