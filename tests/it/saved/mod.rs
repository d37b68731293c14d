//! Saved files in place of the profile.

mod file_size;
mod options;
