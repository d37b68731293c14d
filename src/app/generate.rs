//! Files of an installed command: a manual page, completions, and a viewer of
//! reports.

use super::cli::{Generate, Options};
use crate::report::viewer;
use clap_complete::Shell;
use std::io;

/// The whole text of what is requested.
///
/// # Errors
/// None that memory would not have, but the library says so.
pub fn text(what: Generate) -> io::Result<Vec<u8>> {
    let mut command = Options::described();
    let mut text = Vec::new();
    let shell = match what {
        Generate::Man => {
            clap_mangen::Man::new(command).render(&mut text)?;
            return Ok(text);
        }
        Generate::Viewer => return Ok(viewer().into_bytes()),
        Generate::CompleteBash => Shell::Bash,
        Generate::CompleteZsh => Shell::Zsh,
        Generate::CompleteFish => Shell::Fish,
    };
    clap_complete::generate(shell, &mut command, "popliner", &mut text);
    Ok(text)
}
