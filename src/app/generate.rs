//! Files of an installed command: a manual page, completions, and a viewer of reports.

use super::options::{Generate, Options};
use crate::report::viewer;
use clap_complete::Shell;
use std::io;

/// Returns the whole text of the requested file.
///
/// # Errors
/// None in practice, since memory is written to, but the libraries return a result.
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
