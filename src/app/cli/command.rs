//! The request of a command line: a run, or information about the command.

use super::{Generate, Idle, Options};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, FromArgMatches};
use std::ffi::OsString;
use std::path::Path;

/// Options about the model and the constraints on a split, which suggested commands repeat. Limits
/// and the number of IPUs are not among them, since suggested commands set their own.
const QUESTION: [&str; 27] = [
    "profile",
    "debug",
    "trust_debug_info",
    "allow_incomplete",
    "load_from_file",
    "schedule",
    "recompute",
    "accumulator",
    "optimizer_state",
    "micro_batches",
    "micro_batch",
    "at_micro_batch",
    "replicas",
    "ipu_link_bandwidth",
    "streaming_bandwidth",
    "max_step_ms",
    "memory_model",
    "objective",
    "pin",
    "together",
    "cut_after",
    "no_cut_after",
    "out_on",
    "untie",
    "layer_name_regex",
    "inputs_regex_layer_0",
    "layer_order",
];

/// The request of a command line.
#[derive(Debug, Clone)]
pub enum Command {
    /// Print something about the command itself.
    Generate(Generate),
    /// Read a profile.
    Run(Box<Options>),
}

impl Command {
    /// Reads a command line, which begins with the name of the command.
    ///
    /// # Errors
    /// The error of clap for wrong usage, and also for `--help` and `--version`. Clap knows the
    /// exit code.
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
        let matches = command.try_get_matches_from_mut(&line)?;
        // `Options` requires a profile, which `--generate` does not have.
        match matches.get_one::<Generate>("generate") {
            Some(&what) => Ok(Command::Generate(what)),
            None => {
                let mut options = Options::from_arg_matches(&matches)?;
                let arguments = line.iter().skip(1);
                options.arguments = arguments
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect();
                options.question = question(&command, &matches);
                options.asks_nothing = options.is_without_result();
                options.results.plan |= options.asks_nothing;
                options.idle = Idle::find(&command, &matches, options.asks_nothing);
                Ok(Command::Run(Box::new(options)))
            }
        }
    }
}

/// Returns the arguments in [`QUESTION`] that were given, each option and its value as one
/// argument.
fn question(command: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let given = QUESTION.into_iter().filter(|id| is_given(matches, id));
    let arguments = given.filter_map(|id| {
        let argument = command.get_arguments().find(|arg| arg.get_id() == id)?;
        Some(spelled(argument, matches))
    });
    arguments.flatten().collect()
}

/// Was the option given on the command line?
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Writes an argument so that it can be given again.
fn spelled(argument: &Arg, matches: &ArgMatches) -> Vec<String> {
    let takes_value = argument.get_action().takes_values();
    let raw = matches.get_raw(argument.get_id().as_str());
    let values = raw.into_iter().flatten().map(|word| word.to_string_lossy());
    match argument.get_long() {
        None => values.map(|value| value.into_owned()).collect(),
        Some(name) if takes_value => values.map(|value| format!("--{name}={value}")).collect(),
        Some(name) => vec![format!("--{name}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_what_a_split_is_judged_by() {
        let question = |line: &str| {
            let line = line.split(' ');
            match Command::parse_from(["popliner"].into_iter().chain(line)) {
                Ok(Command::Run(options)) => options.question.join(" "),
                _ => String::new(),
            }
        };
        let line = "--solve p.pop -q --pin 3=0 --num-ipus 4 d.cbor --reserve=5% --pin=In=0 \
                    --trust-debug-info --export-html=x --layer-order natural";
        assert_eq!(
            question(line),
            "p.pop d.cbor --trust-debug-info --pin=3=0 --pin=In=0 --layer-order=natural"
        );
        let again = question(&question(line));
        assert_eq!(again, question(line));
        let command = Options::described();
        for id in QUESTION {
            let mut all = command.get_arguments();
            assert!(all.any(|arg| arg.get_id() == id), "{id}");
        }
    }

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
