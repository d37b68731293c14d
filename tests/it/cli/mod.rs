//! The command as users meet it.

mod alone;
mod belonging;
mod completions;
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
