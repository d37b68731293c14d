//! The command as users meet it.

mod belonging;
mod completions;
mod goldens;
mod input_files;
mod report_folders;
mod terminal;
mod usage;
