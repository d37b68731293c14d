//! What a command line asks for: a run, or something about the command.

use super::{Generate, Options};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// What a command line asks for.
#[derive(Debug, Clone)]
pub enum Command {
    /// To print something about the command itself.
    Generate(Generate),
    /// To read a profile.
    Run(Box<Options>),
}

impl Command {
    /// Reads a command line, the name of the command first.
    ///
    /// # Errors
    /// That of the library, for wrong usage and also for `--help` and
    /// `--version`: it knows how to exit.
    pub fn parse_from<T: Into<OsString> + Clone>(
        line: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let line: Vec<OsString> = line.into_iter().map(Into::into).collect();
        let matches = Options::command().try_get_matches_from(&line)?;
        // Options has a profile, and this does not.
        match matches.get_one::<Generate>("generate") {
            Some(&what) => Ok(Command::Generate(what)),
            None => {
                let mut options = Options::from_arg_matches(&matches)?;
                let arguments = line.iter().skip(1);
                options.arguments = arguments
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect();
                Ok(Command::Run(Box::new(options)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_about_the_command_needs_no_profile_and_takes_none() {
        let command = Command::parse_from(["popliner", "--generate", "man"]);
        assert!(matches!(command, Ok(Command::Generate(Generate::Man))));
        for more in ["profile.pop", "--solve", "--units=KiB"] {
            let command = Command::parse_from(["popliner", "--generate=complete-zsh", more]);
            assert!(command.is_err(), "{more}");
        }
        let command = Command::parse_from(["popliner", "profile.pop"]);
        assert!(matches!(command, Ok(Command::Run(_))));
        assert!(Command::parse_from(["popliner"]).is_err());
    }
}
