//! Parses a command line, which requests a run or information about the command.

use super::{
    Generate, NoEffect, Options,
    effects::{ONE_PROFILE, is_given, listed, one_ipu_results, words},
};
use crate::app::export::is_standard_output;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, FromArgMatches};
use std::{ffi::OsString, path::Path};

/// Groups of options (structs in [`Options`]), and single options, that describe the model and the
/// constraints on a split. Suggested commands repeat these options as the user gave them. Limits
/// and the number of IPUs are not listed here: `Options::own_arguments` adds them to suggested
/// commands.
const REPEATED: &str = "profile debug allow_incomplete load_from_file PipelineArgs TimeArgs \
     memory_model SearchArgs LayerArgs";

/// Options that suggested commands do not repeat, although they are in a group that [`REPEATED`]
/// lists: `--list-layers`, since a suggested command requests its own results, and `--solver`,
/// since commands are only suggested if it has its default value.
const NOT_REPEATED: [&str; 2] = ["list_layers", "solver"];

/// A parsed command line. It requests either a text that needs no profile, such as the manual page
/// (`--generate`), or results about a profile.
#[derive(Debug)]
pub enum CommandLine {
    Generate(Generate),
    Run(Box<Options>),
}

impl CommandLine {
    /// Parses a command line, which begins with the name of the command.
    ///
    /// # Errors
    /// The error of the parser clap, for wrong usage and also for `--help` and `--version`. The
    /// error contains the text to print and the exit code.
    pub fn parse_from<T: Into<OsString> + Clone>(
        line: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let mut line: Vec<OsString> = line.into_iter().map(Into::into).collect();
        if let [_, word] = &mut line[..]
            && word == "help"
            && !Path::new(word).exists()
        {
            *word = "--help".into();
        }
        let mut command = Options::described();
        let matches = command
            .try_get_matches_from_mut(&line)
            .map_err(|error| with_suggestion(error, &command))?;
        // With `--generate`, the command line has no argument PROFILE. `Options` requires this
        // argument, so no `Options` are made.
        if let Some(&what) = matches.get_one::<Generate>("generate") {
            return Ok(Self::Generate(what));
        }
        let mut options = Options::from_arg_matches(&matches)?;
        options.arguments = line[1..]
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        options.repeated = repeated(&command, &matches, REPEATED);
        options.judged = repeated(&command, &matches, "splits layers_per_ipu");
        options.is_bare = is_bare(&options, &matches);
        options.results.plan |= options.is_bare;
        options.of_one_profile = words(ONE_PROFILE)
            .find(|id| is_given(&matches, id))
            .map(|id| listed(id, ""));
        options.no_effect = NoEffect::find(&command, &matches, options.is_bare);
        Ok(Self::Run(Box::new(options)))
    }
}

/// Adds a suggestion to an error about an unknown option: the option whose help has all words of
/// the unknown name, such as `--mem-per-tile` for `--memory-limit`. Of several such options, the
/// one with the most similar name is suggested.
fn with_suggestion(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let name = unknown.trim_start_matches('-').to_lowercase();
    let has_all_words = |option: &&Arg| {
        let help = option.get_long_help().or(option.get_help());
        let help = help.map_or(String::new(), |help| help.to_string().to_lowercase());
        name.contains('-') && name.split('-').all(|word| help.contains(word))
    };
    let nearest = command
        .get_arguments()
        .filter(has_all_words)
        .filter_map(Arg::get_long)
        .max_by_key(|long| (strsim::jaro_winkler(long, &name) * 1e6) as u64);
    if let (ErrorKind::UnknownArgument, Some(long)) = (error.kind(), nearest) {
        error.insert(
            ContextKind::SuggestedArg,
            ContextValue::String(format!("--{long}")),
        );
        error.insert(ContextKind::Usage, ContextValue::None);
    }
    error
}

/// Returns whether the command line requests no result, or only a page in a file (`--export-html`).
/// The command then answers whether the model fits on one IPU, and prints a plan if it does not.
fn is_bare(options: &Options, matches: &ArgMatches) -> bool {
    // If the page goes to standard output (`--export-html -`), a plan in the same output would
    // damage it.
    !options
        .export_html
        .as_deref()
        .is_some_and(is_standard_output)
        && !one_ipu_results()
            .chain(words("fit compare export_json export_markdown"))
            .any(|id| is_given(matches, id))
}

/// Returns the arguments of the command line that set any of the options `ids` (clap ids of options
/// or groups). The result can be put into another command line: each value of an option is one
/// argument, such as `--pin=3=0`.
fn repeated(command: &clap::Command, matches: &ArgMatches, ids: &'static str) -> Vec<String> {
    words(ids)
        .flat_map(|id| {
            let group = command.get_groups().find(|group| *group.get_id() == id);
            group.map_or_else(
                || vec![id.to_owned()],
                |group| group.get_args().map(ToString::to_string).collect(),
            )
        })
        .filter(|id| is_given(matches, id) && !NOT_REPEATED.contains(&&**id))
        .filter_map(|id| command.get_arguments().find(|arg| *arg.get_id() == id))
        .flat_map(|option| {
            let values = matches
                .get_raw(option.get_id().as_str())
                .into_iter()
                .flatten()
                .map(|word| word.to_string_lossy());
            match option.get_long() {
                None => values.map(|value| value.into_owned()).collect(),
                Some(name) if option.get_action().takes_values() => {
                    values.map(|value| format!("--{name}={value}")).collect()
                }
                Some(name) => vec![format!("--{name}")],
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_commands_repeat_the_model_and_the_constraints() {
        let repeated = |line: &str| {
            let line = line.split(' ');
            match CommandLine::parse_from(["popliner"].into_iter().chain(line)) {
                Ok(CommandLine::Run(options)) => options.repeated.join(" "),
                _ => String::new(),
            }
        };
        let line = "--solve p.pop -q --pin 3=0 --num-ipus 4 d.cbor --reserve=5% --pin=In=0 \
                    --allow-incomplete --export-html=x --layer-order natural --list-layers";
        assert_eq!(
            repeated(line),
            "p.pop d.cbor --allow-incomplete --pin=3=0 --pin=In=0 --layer-order=natural"
        );
        assert_eq!(repeated(&repeated(line)), repeated(line));
        let command = Options::described();
        for id in words(REPEATED) {
            let mut options = command.get_arguments().map(|arg| arg.get_id());
            let mut groups = command.get_groups().map(|group| group.get_id());
            assert!(
                options.any(|own| own == id) || groups.any(|own| own == id),
                "{id}"
            );
        }
    }

    #[test]
    fn an_unknown_option_is_answered_with_the_one_that_has_its_words() {
        let line = ["popliner", "profile.pop", "--memory-limit", "5"];
        let error = CommandLine::parse_from(line).expect_err("an unknown option");
        assert!(error.to_string().contains("'--mem-per-tile'"), "{error}");
    }

    #[test]
    fn something_about_the_command_needs_no_profile_and_takes_none() {
        let line = CommandLine::parse_from(["popliner", "--generate", "man"]);
        assert!(matches!(line, Ok(CommandLine::Generate(Generate::Man))));
        for more in ["profile.pop", "--solve", "--units=KiB"] {
            let line = CommandLine::parse_from(["popliner", "--generate=complete-zsh", more]);
            assert!(line.is_err(), "{more}");
        }
        let line = CommandLine::parse_from(["popliner", "profile.pop"]);
        assert!(matches!(line, Ok(CommandLine::Run(_))));
        assert!(CommandLine::parse_from(["popliner"]).is_err());
    }
}
