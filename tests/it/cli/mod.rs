//! The command as users meet it.

mod alone;
mod completions;
mod debug_match;
mod effects;
mod first_run;
mod golden_options;
pub mod goldens;
mod input_files;
mod one_answer;
mod paths;
mod printed;
mod terminal;
mod usage;
