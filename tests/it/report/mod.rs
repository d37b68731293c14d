//! The forms of a report other than the page.

mod comparisons;
mod emit;
mod exports;
mod json_schema;
mod names;
mod page_types;
mod schema_check;
