//! The command as users meet it.

mod completions;
mod goldens;
mod input_files;
mod terminal;
mod usage;
